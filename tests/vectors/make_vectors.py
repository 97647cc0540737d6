#!/usr/bin/env python3
"""Makes what follows from the vectors: their facts, vectors.tsv, and the tables of docs/vectors.md.

    make_vectors.py [--write]

By hand in vectors/vectors.json: id, kind, input, verdict, entry, rules, policy, needs, note, wrong. Each verdict is also
that of oracle.py, whose facts are written. Without --write the committed files are compared with what is made.
"""

from __future__ import annotations

import collections
import importlib.util
import json
import pathlib
import re
import sys
from typing import Any

import oracle
import schema

ROOT = pathlib.Path(__file__).resolve().parents[2]
MASTER, TABLE = ROOT / "vectors" / "vectors.json", ROOT / "vectors" / "vectors.tsv"
PAGE = ROOT / "docs" / "vectors.md"
BEGIN, END = "<!-- tests/vectors/make_vectors.py --write -->\n", "<!-- end -->\n"
sys.path.insert(0, str(ROOT / "vectors"))
import check_vectors  # noqa: E402

Vector = dict
KEYS = "id kind input verdict entry rules policy needs note facts wrong".split()
EXACT = 2**53
FACTS = ("dtype shape itemsize size nbytes strides extent c_contiguous f_contiguous read_only byte_swapped address order "
         "stream").split()  # fmt: skip
COLUMNS = ["id", "kind", "verdict", "needs", "rules", "entry", "input", *FACTS, "mask_shape", "note", "wrong"]

# ---------------------------------------------------------------------------------------------------- the master


def coded(fact: Any) -> Any:
    """A fact in JSON: an integer that a double cannot hold is text."""
    if isinstance(fact, dict):
        return {key: coded(item) for key, item in fact.items()}
    if isinstance(fact, list):
        return [coded(item) for item in fact]
    return str(fact) if type(fact) is int and abs(fact) > EXACT else fact


def with_facts(vector: Vector) -> tuple[Vector, list[str]]:
    """The vector with the facts of the oracle, and what is wrong with it."""
    given = {key: check_vectors.value(item) for key, item in vector["input"].items()}
    made = {key: vector[key] for key in KEYS if key in vector and key != "facts"}
    accepted, bad = vector["verdict"] == "accept", []
    try:
        found = oracle.READERS[vector["kind"]](given)
        if not accepted:
            return made, ["is rejected, and the oracle accepts it"]
        made["facts"] = coded(found)
    except oracle.Wrong as wrong:
        if accepted:
            return made, [f"is accepted, and the oracle rejects {wrong.args}"]
        if not set(wrong.args) & set(vector.get("entry", [])):
            bad = [f"entry is {vector.get('entry')}, and the oracle says {wrong.args}"]
    if accepted and "entry" in vector or not accepted and "needs" in vector:
        bad.append("has an entry and is accepted, or needs and is rejected")
    return {key: made[key] for key in KEYS if key in made}, bad


def text_of(master: dict[str, Any]) -> str:
    """JSON, one key a line."""
    say = lambda value: json.dumps(value, ensure_ascii=True)  # noqa: E731
    head = [f'"{key}": {say(master[key])}' for key in ("about", "format")]
    libraries = ",\n".join(f"  {say(name)}: {say(what)}" for name, what in master["libraries"].items())
    vectors = []
    for vector in master["vectors"]:
        lines = [f"  {say(key)}: {say(vector[key])}" for key in vector if key != "wrong"]
        if "wrong" in vector:
            lines.append('  "wrong": [\n' + ",\n".join(f"    {say(one)}" for one in vector["wrong"]) + "]")
        vectors.append("{\n" + ",\n".join(lines) + "}")
    return "{\n" + ",\n".join(head) + f',\n"libraries": {{\n{libraries}}},\n"vectors": [\n' + ",\n".join(vectors) + "]}\n"


def rules_that_are() -> tuple[set[str], set[str]]:
    """The numbers of docs/rules.md and of cai_conform, and those of them that are a choice of cai."""
    numbers = set(re.findall(r'<a id="(R\d+)">', (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")))
    rules = conform_module("tools/cai_conform.py").RULES
    return numbers | set(rules), {rule for rule, (_, source) in rules.items() if source == "policy of cai"}


def conform_module(path: str) -> Any:
    sys.path.insert(0, str((ROOT / path).parent))
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[spec.name] = module  # type: ignore[union-attr]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def renewed(master: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The master with all facts, and what is wrong with it."""
    rules = json.loads((ROOT / "vectors" / "vectors.schema.json").read_text(encoding="utf-8"))
    bad = list(schema.faults(master, rules, rules))[:20]
    if bad:
        return master, bad
    pairs = [with_facts(vector) for vector in master["vectors"]]
    made = {**master, "vectors": [vector for vector, _ in pairs]}
    bad += [f"{vector['id']} {what}" for vector, faults in pairs for what in faults]
    bad += list(schema.faults(made, rules, rules))[:20]
    (known, chosen), seen = rules_that_are(), collections.Counter(vector["id"] for vector in made["vectors"])
    bad += [f"{id} is there {count} times" for id, count in seen.items() if count > 1]
    for vector in made["vectors"]:
        bad += [f"{vector['id']}: there is no rule {rule}" for rule in vector["rules"] if rule not in known]
        if vector["verdict"] == "reject" and set(vector["rules"]) <= chosen and "policy" not in vector:
            bad.append(f"{vector['id']}: its rules are choices of cai, and policy is not set")
        if "policy" in vector and "wrong" in vector:
            bad.append(f"{vector['id']}: the verdict is a choice of cai, so no library is wrong")
        for one in vector.get("wrong", []):
            if one["library"] not in made["libraries"]:
                bad.append(f"{vector['id']}: {one['library']} is not in libraries")
    return made, bad


# ------------------------------------------------------------------------------------------------------ the table


def words(value: Any) -> list[str]:
    """A value of Python as words: t, l, m, d and a count, then the items; i, b, f and a number; n; s and text."""
    if value is None:
        return ["n"]
    if isinstance(value, (tuple, list)):
        return [f"{'t' if isinstance(value, tuple) else 'l'}{len(value)}"] + [w for item in value for w in words(item)]
    if isinstance(value, str):
        shown = (chr(byte) if 33 <= byte <= 126 and byte != 37 else f"%{byte:02x}" for byte in value.encode("utf-8"))
        return ["s" + "".join(shown)]
    if isinstance(value, check_vectors.Mask):
        return words_of_table(value.__cuda_array_interface__, "m")
    return [{bool: "b", int: "i", float: "f"}[type(value)] + str(int(value) if isinstance(value, bool) else value)]


def words_of_table(table: dict[str, Any], letter: str = "d") -> list[str]:
    return [f"{letter}{len(table)}"] + [w for key, item in table.items() for w in words(key) + words(item)]


def cell(fact: Any) -> str:
    """A fact in the table: -, 0 or 1, 5, [2,3], float32."""
    if fact is None or fact == "":
        return "-"
    if isinstance(fact, list):
        return "[" + ",".join(str(item) for item in fact) + "]"
    return str(int(fact)) if isinstance(fact, bool) else str(fact)


def version_of(one: dict[str, str], libraries: dict[str, Any]) -> str:
    return f"{one['library']} {libraries[one['library']][one['known']] or '?'}"


def fixed_of(one: dict[str, str]) -> str:
    return f", until {one['fixed']}" if "fixed" in one else ""


def row_of(vector: Vector, libraries: dict[str, Any]) -> str:
    given = {key: check_vectors.value(item) for key, item in vector["input"].items()}
    facts = check_vectors.facts(vector.get("facts", {}))
    made = {key: ",".join(vector.get(key, [])) for key in ("needs", "rules", "entry")}
    made.update({key: vector[key] for key in ("id", "kind", "verdict", "note")})
    made["input"] = " ".join(words_of_table(given))
    made["mask_shape"] = facts["mask"]["shape"] if facts.get("mask") else None
    made["wrong"] = "; ".join(f"{version_of(one, libraries)} ({one['as']}) {one['does']}{fixed_of(one)}" for one in vector.get("wrong", []))
    return "\t".join(cell(made[key] if key in made else facts.get(key)) for key in COLUMNS)


def table_of(master: dict[str, Any]) -> str:
    head = "# Made from vectors.json. README.md describes it. SPDX-License-Identifier: MIT\n" + "\t".join(COLUMNS)
    return "\n".join([head, *(row_of(vector, master["libraries"]) for vector in master["vectors"])]) + "\n"


# ------------------------------------------------------------------------------------------------------- the page


def in_order(rules: set[str]) -> list[str]:
    return sorted(rules, key=lambda rule: ("RDSTX".index(rule[0]), int(rule[1:])))


def linked(rules: set[str]) -> str:
    pages = {"R": "rules.md#{}", "D": "conform.md#the-rules", "S": "conform.md#the-rules", "T": "conform.md#the-rules"}
    return " ".join(f"[{rule}]({pages[rule[0]].format(rule)})" if rule[0] == "R" else rule for rule in in_order(rules)) or "-"


def counts(master: dict[str, Any]) -> list[str]:
    lines = ["| kind | accepted | rejected | with a library that gets it wrong |", "|---|---|---|---|"]
    for kind, name in (("dictionary", "dictionaries"), ("stream", "streams"), ("dlpack", "DLPack tensors")):
        some = [vector for vector in master["vectors"] if vector["kind"] == kind]
        numbers = [sum(v["verdict"] == word for v in some) for word in ("accept", "reject")]
        lines.append(f"| {name} | {numbers[0]} | {numbers[1]} | {sum('wrong' in v for v in some)} |")
    return lines


def broken(master: dict[str, Any]) -> dict[tuple[str, str], set[str]]:
    """The rules that a library breaks, by how that is known."""
    found: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
    for vector in master["vectors"]:
        for one in vector.get("wrong", []):
            if "fixed" not in one:
                found[one["library"], one["known"]] |= set(vector["rules"])
    for (library, _), rules in conform_module("tests/python/check_conform.py").EXPECTED.items():
        found[library, "run"] |= set(rules.split())
    for library, rule in broken_by_consumers():
        found[library, "run"].add(rule)
    return found


def broken_by_consumers() -> list[tuple[str, str]]:
    """Libraries and rules, of what cai_conform --consumer finds."""
    consumers = conform_module("tests/python/check_consumers.py")
    tool = conform_module("tools/cai_conform_consumer.py")
    of_case = {case.name: case.rules.split() for case in tool.CASES}
    pairs = []
    for name in consumers.EXPECTED:
        for way, verdict, case in consumers.expected(name) if not name.startswith("cai,") else ():
            rules = of_case[case] if verdict != "refused" else []
            rule = rules[0 if way == consumers.DICTIONARY else -1] if rules else "-"
            pairs += [(name.partition(",")[0], rule)] if rule != "-" else []
    return pairs


def page_tables(master: dict[str, Any]) -> str:
    found, lines = broken(master), counts(master)
    lines += ["", "| library | source at | rules broken | run | rules broken |", "|---|---|---|---|---|"]
    for name, what in master["libraries"].items():
        cells = [f"{what[how] or '-'} | {linked(found[name, how])}" for how in ("source", "run")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def versions_are_those_of_conform(master: dict[str, Any]) -> list[str]:
    """What was run, by the tables of docs/results/conform.md, of arrays and of consumers."""
    text = (ROOT / "docs" / "results" / "conform.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w.-]+)(?:, \w+)? \| ([\w.]+) \|(?: \d+ \|){3,4}$", text, re.M)
    return [f"{name} {version} of docs/results/conform.md is not in libraries" for name, version in rows
            if master["libraries"].get(name, {}).get("run") != version]  # fmt: skip


def page_of(master: dict[str, Any]) -> str:
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return head + BEGIN + page_tables(master) + END + rest.partition(END)[2]


def main() -> int:
    old = MASTER.read_text(encoding="utf-8")
    master, bad = renewed(json.loads(old))
    bad = bad or versions_are_those_of_conform(master)
    if bad:
        print("\n".join(bad))
        return 1
    made = {MASTER: text_of(master), TABLE: table_of(master), PAGE: page_of(master)}
    for path, text in made.items():
        if "--write" in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            bad.append(f"{path.relative_to(ROOT)} is not what make_vectors.py --write makes")
    count = collections.Counter((v["kind"], v["verdict"]) for v in master["vectors"])
    print("\n".join(bad) or ", ".join(f"{kind} {verdict} {number}" for (kind, verdict), number in count.items()))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
