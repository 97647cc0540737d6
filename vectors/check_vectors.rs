// check_vectors.rs - reads vectors.tsv, and checks shapes, strides, sizes and streams by arithmetic. No crates.
// SPDX-License-Identifier: MIT
//     rustc --edition 2021 check_vectors.rs && ./check_vectors vectors.tsv
// For a reader of your own, call it in `judge`: Ok(facts) or Err.

use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq)]
enum Value { None, Bool(bool), Int(i128), Float(f64), Text(Vec<u8>), Tuple(Vec<Value>), List(Vec<Value>), Table(Table) }
type Table = HashMap<String, Value>;
type Facts = HashMap<&'static str, String>; // as the cells have them

fn text(word: &str) -> Vec<u8> { // %20 is a space
    let (bytes, mut out, mut i) = (word.as_bytes(), vec![], 0);
    while i < bytes.len() {
        let coded = bytes[i] == b'%';
        out.push(if coded { u8::from_str_radix(&word[i + 1..i + 3], 16).unwrap() } else { bytes[i] });
        i += if coded { 3 } else { 1 };
    }
    out
}

fn value<'a>(words: &mut impl Iterator<Item = &'a str>) -> Value {
    let (kind, rest) = words.next().unwrap().split_at(1);
    let count = rest.parse().unwrap_or(0);
    match kind {
        "n" => Value::None,
        "b" => Value::Bool(rest == "1"),
        "i" => Value::Int(rest.parse().unwrap()),
        "f" => Value::Float(rest.parse().unwrap()),
        "s" => Value::Text(text(rest)),
        "t" => Value::Tuple((0..count).map(|_| value(words)).collect()),
        "l" => Value::List((0..count).map(|_| value(words)).collect()),
        _ => Value::Table((0..count).map(|_| {
            let key = words.next().unwrap()[1..].to_string();
            (key, value(words))
        }).collect()),
    }
}

fn ints(value: Option<&Value>) -> Option<Vec<i128>> {
    match value? {
        Value::Tuple(items) | Value::List(items) =>
            items.iter().map(|item| if let Value::Int(n) = item { Some(*n) } else { None }).collect(),
        _ => None,
    }
}

fn list(numbers: &[i128]) -> String {
    format!("[{}]", numbers.iter().map(i128::to_string).collect::<Vec<_>>().join(","))
}

// Bytes of an item, and of one step of a stride. None: elements are parts of bytes.
fn sizes(input: &Table) -> Option<(i128, i128)> {
    if let Some(dtype) = ints(input.get("dtype")) { // DLPack: strides in elements
        let bits = dtype[1] * dtype[2];
        return if bits % 8 == 0 { Some((bits / 8, bits / 8)) } else { None };
    }
    let typestr = if let Some(Value::Text(text)) = input.get("typestr") { text } else { return None };
    let digits = std::str::from_utf8(&typestr[2..]).ok()?.split('[').next()?;
    let number: i128 = digits.parse().ok()?;
    match typestr[1] { b't' => None, b'U' => Some((4 * number, 1)), _ => Some((number, 1)) }
}

fn layout(input: &Table) -> Option<Facts> {
    let (item, step) = sizes(input)?;
    let shape = ints(input.get("shape")).unwrap_or(vec![]);
    let mut rows = vec![item; shape.len()];
    for i in (1..shape.len()).rev() { rows[i - 1] = rows[i] * shape[i].max(1); }
    let given = ints(input.get("strides")).map(|s| s.iter().map(|n| n * step).collect::<Vec<_>>());
    let strides = given.unwrap_or(rows.clone());
    let size: i128 = shape.iter().product();
    let last = |sign: i128| shape.iter().zip(&strides).map(|(n, s)| ((n - 1) * s * sign).max(0) * sign).sum::<i128>();
    let extent = if size == 0 { [0, 0] } else { [last(-1), item + last(1)] };
    let dense = size == 0 || (0..shape.len()).all(|i| shape[i] == 1 || strides[i] == rows[i]);
    Some([("shape", list(&shape)), ("itemsize", item.to_string()), ("size", size.to_string()),
        ("nbytes", (size * item).to_string()), ("strides", list(&strides)), ("extent", list(&extent)),
        ("c_contiguous", (dense as i32).to_string())].into())
}

fn stream(input: &Table) -> Result<Facts, String> {
    let is = |key: &str, word: &str| input.get(key) == Some(&Value::Text(word.into()));
    let (dlpack, cuda, rocm) = (is("protocol", "dlpack"), is("platform", "cuda"), is("platform", "rocm"));
    let old = matches!(input.get("version"), Some(Value::Int(n)) if *n < 3);
    let order = match input.get("stream").unwrap_or(&Value::None) {
        Value::None if !dlpack && !input.contains_key("stream") && old => "unknown",
        Value::None if dlpack && (cuda || rocm) => "legacy",
        Value::None => "none",
        Value::Int(-1) if dlpack && (cuda || rocm) => "unordered",
        Value::Int(0) if dlpack && rocm => "default",
        Value::Int(1) if cuda => "legacy",
        Value::Int(2) if cuda => "per_thread",
        Value::Int(n) if (cuda || rocm) && *n > 2 && *n <= u64::MAX as i128 =>
            return Ok([("order", "handle".to_string()), ("stream", n.to_string())].into()),
        other => return Err(format!("{other:?} is no stream")),
    };
    Ok([("order", order.to_string())].into())
}

// What is wrong, or nothing.
fn judge(row: &HashMap<&str, &str>) -> Vec<String> {
    let input = match value(&mut row["input"].split(' ')) { Value::Table(table) => table, _ => panic!("no table") };
    let accepted = row["verdict"] == "accept";
    if accepted == (row["order"] == "-" && row["size"] == "-") { return vec!["facts against the verdict".into()]; }
    let found = match row["kind"] {
        "stream" => stream(&input),
        _ if accepted => Ok(layout(&input).unwrap_or_default()),
        _ => Err("an input that this program does not judge".into()),
    };
    match found {
        Err(why) if accepted => vec![why],
        Ok(_) if !accepted => vec!["accepted".into()],
        Ok(facts) => facts.iter().filter(|(key, fact)| row[*key] != "-" && row[*key] != **fact)
            .map(|(key, fact)| format!("{key} is {fact}, not {}", row[key])).collect(),
        _ => vec![],
    }
}

fn main() {
    let file = std::env::args().nth(1).unwrap_or("vectors.tsv".into());
    let table = std::fs::read_to_string(file).unwrap();
    let mut lines = table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t'));
    let names: Vec<_> = lines.next().unwrap().collect();
    let (mut count, mut wrong) = (0, 0);
    for row in lines.map(|cells| names.iter().copied().zip(cells).collect::<HashMap<_, _>>()) {
        let faults = judge(&row);
        count += 1;
        wrong += faults.len();
        for fault in faults { println!("{}: {fault}", row["id"]); }
    }
    println!("{count} vectors, {wrong} wrong");
    std::process::exit((wrong > 0) as i32);
}
