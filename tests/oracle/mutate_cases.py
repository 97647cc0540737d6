"""Mutants of the descriptor cases: cai_inspect against the reference, strict and lenient.

    mutate_cases.py --inspect build/cai_inspect [--count 50000] [--seed 1]

A mutant is a case with one or two changes: an entry dropped or None, the type of
a value swapped, a number put beside a limit, a typestr edited, a descr or a mask
put in, unknown keys, broken text. Verdicts must be equal, the entry reported must
be one of those at fault, and all facts of an accepted mutant must be equal.
"""

from __future__ import annotations

import argparse
import ast
import collections
import random
from typing import Any, Callable, Dict

import inspect_io
import reference
import vector_cases

Table = Dict[Any, Any]
Random = random.Random

KEYS = ("shape", "typestr", "data", "version", "strides", "descr", "mask", "stream")
ATOMS: list[Any] = [
    None, True, False, 0, 1, 2, 3, -1, 2**31, 2**63, 2**64, -(2**63), -(2**64), 10**30, -(10**30), 10**400,
    0.0, 1.0, -2.5, 1e300, 1e-7, "", "3", "<f4", "it's", '"', "\n\\\t", "\x00", "\u00fc", "\U0001f600", b"", b"<f4",
    b"\xff'", (), [], {}, (1,), [1], {"a": 1}, ((), ()), (None,), [[]],
]  # fmt: skip


def near(rng: Random, *limits: int) -> int:
    """A number beside one of the limits."""
    return rng.choice(limits) + rng.choice((-2, -1, -1, 0, 0, 1, 1, 2))


def paths(value: object, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value within a value."""
    found = [at]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += paths(inner, at + (key,))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value[:70]):
            found += paths(inner, at + (index,))
    return found


def get(value: Any, path: tuple[Any, ...]) -> Any:
    """The value at a path."""
    for step in path:
        value = value[step]
    return value


def put(value: Any, path: tuple[Any, ...], new: object) -> Any:
    """The value with another one at a path."""
    if not path:
        return new
    inner = put(value[path[0]], path[1:], new)
    if isinstance(value, dict):
        return {**value, path[0]: inner}
    items = list(value)
    items[path[0]] = inner
    return type(value)(items)


def swapped(rng: Random, value: Any) -> Any:
    """The value in another type."""
    choices: list[Any] = [rng.choice(ATOMS), [value], (value,), str(value)]
    if isinstance(value, tuple):
        choices += [list(value)] * 6
    elif isinstance(value, list):
        choices += [tuple(value)] * 6
    elif isinstance(value, bool):
        choices += [int(value), 2, -1, None, "", "x", (), (0,), 0.0, 0.5, b"", {}, [], {"a": 1}]
    elif isinstance(value, int):
        choices += [bool(value), float(value) if abs(value) < 2**60 else 1e30, None, hex(value), -value, value + 2**64]
    elif isinstance(value, str):
        choices += [value.encode("utf-8")] * 6 + [list(value), tuple(value), None]
    elif isinstance(value, dict):
        choices += [list(value.items()), tuple(value), None, list(value)]
    return rng.choice(choices)


def dtype_of(table: Table) -> reference.DType | None:
    """The type of a table, however faulty the rest is."""
    return reference.parse_typestr(table.get("typestr"), "typestr", reference.Verdict())


def shape_of(table: Table) -> tuple[int, ...]:
    """The shape of a table, () when it is faulty."""
    shape, _ = reference.judge_shape(table.get("shape"), reference.Verdict())
    return shape or ()


# Mutations: each changes the table in place.


def drop(rng: Random, table: Table) -> None:
    """An entry less."""
    del table[rng.choice(list(table))]


def none(rng: Random, table: Table) -> None:
    """An entry None."""
    table[rng.choice(KEYS)] = None


def atom(rng: Random, table: Table) -> None:
    """An entry of any type."""
    table[rng.choice(KEYS)] = rng.choice(ATOMS)


def swap(rng: Random, table: Table) -> None:
    """The type of one value, at any depth, swapped."""
    path = rng.choice([p for p in paths(table) if p])
    table[path[0]] = put(table[path[0]], path[1:], swapped(rng, get(table, path)))


def limit_dim(rng: Random, table: Table) -> None:
    """A dimension at a limit; the strides kept, left out or zero."""
    shape = list(shape_of(table)) or [1]
    itemsize = getattr(dtype_of(table), "itemsize", None) or 1
    fill = (2**63 - 1) // (itemsize * max(1, reference.product(d for d in shape[1:] if d)))
    for _ in range(rng.choice((1, 1, 1, 2))):
        new = near(rng, 0, 0, 1, 2**31, 2**32, 2**62, 2**63, 2**64, fill, fill)
        if rng.random() < 0.3:
            shape.insert(rng.randrange(len(shape) + 1), new)
        else:
            shape[rng.randrange(len(shape))] = new
    table["shape"] = tuple(shape)
    strides = rng.choice(("keep", "none", "zero", "itemsize", "small"))
    if strides == "none":
        table.pop("strides", None)
    elif strides != "keep":
        step = {"zero": 0, "itemsize": itemsize, "small": rng.choice((-1, 1, -4, 7))}[strides]
        table["strides"] = (step,) * len(shape)


def limit_pointer(rng: Random, table: Table) -> None:
    """An address at a limit, also the last that the extent allows."""
    pointer = near(rng, 0, 0, 1, 2**63, 2**64, 2**64)
    facts = reference.judge(table).facts
    if facts is not None and rng.random() < 0.6:
        low, high = facts["extent"]
        pointer = near(rng, -low, 2**64 - high)
    flag = rng.choice((True, False, False, 0, 1, 2, None))
    table["data"] = rng.choice(((pointer, False),) * 6 + ((pointer, flag), [pointer, flag], (pointer, flag, None)))
    if rng.random() < 0.1:
        table["data"] = (None, False)
    if rng.random() < 0.15:
        table["shape"] = put(shape_of(table) or (1,), (0,), 0)
        table.pop("strides", None)


def limit_stride(rng: Random, table: Table) -> None:
    """A stride at a limit, dimensions at a few small numbers."""
    shape = list(shape_of(table))[: rng.choice((1, 2, 3))] or [2]
    if max(shape) > 10**6 or rng.random() < 0.4:
        shape = [rng.choice((1, 1, 2, 2, 3, 0)) for _ in shape]
    itemsize = getattr(dtype_of(table), "itemsize", None) or 1
    strides = []
    for dim in shape:
        share = (2**63 - 1 - itemsize) // max(1, dim - 1)
        limits = (2**63, -(2**63), 0, itemsize, -itemsize, share, -share, 2**62, -(2**62), 2**31, -(2**31), 2**64)
        strides.append(near(rng, *limits) if rng.random() < 0.7 else rng.choice((itemsize, 0, -itemsize, 1)))
    table["shape"] = tuple(shape)
    table["strides"] = tuple(strides)
    if rng.random() < 0.5:
        table["data"] = (rng.choice((2**63, 2**63 - 1, 2**64 - 1 - itemsize, 2**62, 2**63 + 2**62)), False)


def limit_ndim(rng: Random, table: Table) -> None:
    """63, 64 or 65 dimensions, or as many strides more or less."""
    ndim = rng.choice((62, 63, 64, 64, 65, 66, 100, 136, 300))
    dims = [1] * ndim
    for _ in range(rng.randrange(5)):
        dims[rng.randrange(ndim)] = rng.choice((2, 3, 2, 1, 0 if rng.random() < 0.1 else 2))
    if rng.random() < 0.1:
        dims = [2] * ndim  # 2^62 and more elements
    table["shape"] = tuple(dims)
    table.pop("strides", None)
    if rng.random() < 0.5:
        table["strides"] = tuple(rng.choice((0, 1, 4, 8, -4)) for _ in range(ndim + rng.choice((0, 0, 0, -1, 1))))


def limit_itemsize(rng: Random, table: Table) -> None:
    """An itemsize at a limit."""
    kind = rng.choice("VVSSUUtttifcubmM")
    limits = (2**31, 2**31 - 1) if kind in "VSt" else (2**29, 2**29, 2**31) if kind == "U" else (2**31, 16, 32, 2**32, 2**64)
    n = near(rng, *(limits + (0, 1)))
    table["typestr"] = rng.choice("<>|") + kind + str(n)
    if rng.random() < 0.5:
        table["shape"] = (near(rng, (2**63 - 1) // max(1, n), (2**66) // max(1, n), 2**32, 2**30),)
    elif rng.random() < 0.3:  # about 2^63 elements, which are few bytes if they are bits
        table["shape"] = (near(rng, 2**31), near(rng, 2**32)) + rng.choice(((), (0,)))
        table["typestr"] = rng.choice("<|") + "t" + rng.choice("1234578")
    if kind == "t" or rng.random() < 0.5:
        table.pop("strides", None)
    if rng.random() < 0.5:
        table.pop("descr", None)


def any_typestr(rng: Random) -> str:
    """A typestr that may be right."""
    kind = rng.choice("tbiufcmMOSUViufcmMqex")
    sizes: dict[str, tuple[int, ...]] = {"m": (8,), "M": (8,), "b": (1,), "c": (4, 8, 16, 20, 24, 32)}
    n = rng.choice(sizes.get(kind, (1, 2, 4, 8, 10, 12, 16))) if rng.random() < 0.8 else rng.randrange(40)
    text = rng.choice(("<", "<", ">", "|", "=", "")) + kind + str(n)
    if rng.random() < (0.7 if kind in "mM" else 0.05):
        multiple = rng.choice(("", "", "1", "25", "0", "01", "-1", "2147483647", "2147483648", "99999999999999999999"))
        unit = rng.choice(reference.UNITS + ["generic", "generic", "", "d", "y", "H", "S", "nss", "n", "NS", "B", "[ns]"])
        text += f"[{multiple}{unit}]"
    return text


def typestr(rng: Random, table: Table) -> None:
    """Another typestr, or the old one edited; maybe as bytes."""
    text = table.get("typestr")
    if not isinstance(text, str) or rng.random() < 0.6:
        text = any_typestr(rng)
    if rng.random() < 0.4:
        at = rng.randrange(len(text) + 1)
        extra = rng.choice(["<", ">", "|", "=", "0", "9", " ", "f", "[", "]", "[ns]", "\x00", "+", "-", "\uff14", "\n", "é"])
        text = text[:at] + rng.choice((extra, extra, "")) + text[at + rng.choice((0, 0, 1)) :]
    table["typestr"] = text.encode("utf-8") if rng.random() < 0.15 else text
    if rng.random() < 0.6:
        table.pop("strides", None)
        table.pop("descr", None)


def any_name(rng: Random, index: int) -> Any:
    """The name of a field."""
    name = rng.choice((f"f{index}",) * 8 + ("x", "", "a b", "\u00fc", "q'\"\\"))
    wild = rng.random()
    if wild < 0.15:
        return (rng.choice(("A title", "", "f0")), name)
    return rng.choice(ATOMS) if wild > 0.99 else name


def any_repeat(rng: Random) -> Any:
    """The repeat of a field."""
    wild = rng.random()
    if wild < 0.04:
        return rng.choice(ATOMS)
    if wild < 0.08:
        return tuple(near(rng, 0, 2**31, 2**32, 2**62, 2**63) for _ in range(rng.choice((1, 1, 2, 3))))
    if wild < 0.12:
        return (1,) * rng.choice((7, 8, 9))
    if wild < 0.2:
        return rng.randrange(4)
    return tuple(rng.choice((1, 2, 3, 2, 0 if rng.random() < 0.2 else 4)) for _ in range(rng.randrange(4)))


def any_descr(rng: Random, depth: int = 1) -> Any:
    """A descr with nested lists; most are right."""
    items: list[Any] = []
    for index in range(rng.choice((1, 2, 2, 3, 4))):
        if depth < 4 and rng.random() < 0.25:
            second: Any = any_descr(rng, depth + 1)
        else:
            second = rng.choice(("<i4", ">f8", "|V3", "|S5", "<U2", "<m8[ns]", "|b1", "<c8", "<f2"))
            if rng.random() < 0.06:
                second = any_typestr(rng)
            if rng.random() < 0.03:
                second = second.encode()
        item: Any = (any_name(rng, index), second)
        if rng.random() < 0.3:
            item += (any_repeat(rng),)
        if rng.random() < 0.01:
            item = rng.choice((list(item), item[:1], item + ((), ()), None, "<f4", {}))
        items.append(item)
    if rng.random() < 0.01:
        items = []
    return tuple(items) if rng.random() < 0.05 else items


def deep_descr(rng: Random) -> list[Any]:
    """A descr at the limit of depth, maybe with repeats on the way."""
    value: Any = "<i4"
    for level in range(near(rng, 32)):
        item: tuple[Any, ...] = (rng.choice(("x", "y", "")), value)
        if rng.random() < 0.05:
            item += (rng.choice(((1,), (2,), (), 1)),)
        value = [item] if level % 5 or rng.random() < 0.6 else [("before", "|i1"), item]
    return value


def wide_descr(rng: Random) -> list[Any]:
    """A descr at the limit of the number of fields, flat or in two lists."""
    count = rng.choice((4095, 4096, 4097))
    flat = [(f"f{i}", "|i1") for i in range(count)]
    if rng.random() < 0.5:
        return flat
    half = rng.randrange(1, count - 1)
    return [("inner", flat[: half - 1])] + flat[half:] if half > 1 else flat


def big_repeat(rng: Random) -> list[Any]:
    """Repeats whose product passes 2^63 or wraps to the right number."""
    factors = [rng.choice((2**16, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 0, 1, 3)) for _ in range(rng.choice((1, 2, 3)))]
    inner: Any = rng.choice(("|i1", "<i4", [("a", "<f8", (2**30,))], [("a", "<i4", (2**40,)), ("b", "<i4")]))
    return [("x", inner, tuple(factors))] + ([("y", "<i4")] if rng.random() < 0.5 else [])


def descr(rng: Random, table: Table) -> None:
    """A descr, and most often a typestr of as many bytes, or one more or less."""
    wild = rng.random()
    if wild < 0.1:
        value: Any = deep_descr(rng)
    elif wild < 0.11:
        value = wide_descr(rng)
    elif wild < 0.2:
        value = big_repeat(rng)
    elif wild < 0.25:
        value = [("", table.get("typestr"))]
    else:
        value = any_descr(rng)
    table["descr"] = value
    if wild < 0.25 and wild >= 0.2:
        return
    reader = reference.DescrReader(reference.Verdict())
    total = reader.items(value, 1, None)
    if total > 2**31 and rng.random() < 0.5:
        total %= 2 ** rng.choice((31, 32, 64))
    if rng.random() < 0.15:
        total += rng.choice((-1, 1, 4))
    kind = rng.choice(("|V", "|V", "|V", "|S", ">i" if total in (1, 2, 4, 8) else "<V"))
    if rng.random() < 0.95:
        table["typestr"] = f"{kind}{total}"
        table["shape"] = rng.choice(((3,), (2,), (), (2, 2), (0,)))
        table.pop("strides", None)


def small_array(rng: Random, table: Table) -> None:
    """Small shape and strides of all sorts, most of them right."""
    ndim = rng.choice((0, 1, 1, 2, 2, 3, 4))
    shape = tuple(rng.choice((1, 2, 3, 4, 5, 2, 3, 0 if rng.random() < 0.3 else 1)) for _ in range(ndim))
    itemsize = getattr(dtype_of(table), "itemsize", None) or 1
    order = list(range(ndim))
    rng.shuffle(order)
    step, strides = itemsize * rng.choice((1, 1, 1, 2, 3)), [0] * ndim
    for axis in order:
        strides[axis] = step * rng.choice((1, 1, 1, -1))
        step *= shape[axis] or 1
    for _ in range(rng.choice((0, 0, 1, 1, 2)) if ndim else 0):
        strides[rng.randrange(ndim)] = rng.choice((0, 1, -1, itemsize - 1, itemsize + 1, 2 * itemsize, -itemsize, 999))
    table["shape"] = shape
    table["strides"] = tuple(strides) if rng.random() < 0.9 else None


def mask(rng: Random, table: Table) -> None:
    """A mask that fits or nearly fits, itself maybe mutated."""
    shape = list(shape_of(table))
    for _ in range(rng.choice((0, 1, 1, 2))):
        if shape:
            at = rng.randrange(len(shape))
            shape[at] = rng.choice((1, 1, 2, 0, shape[at] + 1))
    shape = shape[rng.choice((0, 0, 0, 1, 2)) :]
    if rng.random() < 0.05:
        shape.insert(0, 1)
    kind = rng.choice(("|b1", "|b1", "<t1", "|i1", "|u1", "<f4"))
    pointer = 139637976731648 if reference.product(shape) or rng.random() < 0.3 else 0
    inner: Table = {"shape": tuple(shape), "typestr": kind, "data": (pointer, False), "version": rng.choice((0, 2, 3, 3))}
    if rng.random() < 0.2:
        inner["stream"] = rng.choice((None, 1, 2, 7, 0, 2**64 - 1))
    if rng.random() < 0.1:
        inner["mask"] = rng.choice((None, None, {}, True, dict(inner)))
    if rng.random() < 0.4:
        rng.choice((drop, none, atom, swap, swap, limit_dim, limit_pointer, limit_stride, small_array, typestr))(rng, inner)
    table["mask"] = inner


def stream(rng: Random, table: Table) -> None:
    """A stream, and a version that may not know it."""
    table["stream"] = rng.choice((near(rng, 0, 0, 1, 2**31, 2**63, 2**64, -(2**63)), None, rng.choice(ATOMS)))
    table["version"] = rng.choice((0, 1, 2, 3, 3, 4))
    if rng.random() < 0.2:
        del table["stream"]


def version(rng: Random, table: Table) -> None:
    """A version at a limit."""
    table["version"] = near(rng, 0, 0, 3, 2**31, 2**63, 2**64) if rng.random() < 0.8 else rng.choice(ATOMS)


def unknown(rng: Random, table: Table) -> None:
    """Keys that nobody knows."""
    for _ in range(rng.choice((1, 2))):
        key = rng.choice(("offset", "owner", "", "Shape", "shape ", "ma\u00dfk", "dat", "strides2", "x'y", "x" * 300, 7, None))
        table[key] = rng.choice(ATOMS + [dict(table)])
    if rng.random() < 0.5:
        items = list(table.items())
        rng.shuffle(items)
        table.clear()
        table.update(items)


MUTATIONS: dict[str, tuple[int, Callable[[Random, Table], None]]] = {
    "drop": (1, drop),
    "none": (2, none),
    "atom": (3, atom),
    "swap": (12, swap),
    "limit_dim": (8, limit_dim),
    "limit_pointer": (8, limit_pointer),
    "limit_stride": (10, limit_stride),
    "limit_ndim": (3, limit_ndim),
    "limit_itemsize": (6, limit_itemsize),
    "typestr": (10, typestr),
    "descr": (14, descr),
    "small_array": (14, small_array),
    "mask": (9, mask),
    "stream": (4, stream),
    "version": (2, version),
    "unknown": (3, unknown),
}


def broken_text(rng: Random, line: str) -> str:
    """A line that is no dictionary any more, or the same one written otherwise."""
    wild = rng.randrange(8)
    if wild == 0:
        return line[: rng.randrange(1, len(line))]
    if wild == 1:
        return line + rng.choice((",", "}", " {}", "x", "'", "\x01"))
    if wild == 2:
        return rng.choice(("[", "(", "x", "'", "{")) + line
    if wild == 3:
        return rng.choice(("{}", "[" + line + "]", "(" + line + ",)", "1", "None", "''", "{'shape'}", "{'a': }", "{1 2}")) + " " * rng.randrange(99)
    if wild == 4:
        return line.replace(", ", rng.choice((",", " ,  ", ",\t")))
    if wild == 5:
        return line.replace("}", rng.choice((",}", " }", " , }"))) if "{}" not in line else line + "  "
    if wild == 6:
        return line.replace("'", '"') if '"' not in line and "\\" not in line else line + " "
    at = rng.randrange(len(line))
    return line[:at] + rng.choice("?$!`;") + line[at:] if "'" not in line[at:] else line[:1] + "!" + line[1:]


def mutant(rng: Random, tables: list[Table]) -> tuple[str, str]:
    """The class of a mutant and its line."""
    names = list(MUTATIONS)
    weights = [MUTATIONS[name][0] for name in names]
    table = dict(rng.choice(tables))
    rounds = rng.choice((1, 1, 1, 2, 2))
    chosen = rng.choices(names, weights, k=rounds)
    for name in chosen:
        if table:
            MUTATIONS[name][1](rng, table)
    line = repr(table)
    if rng.random() < 0.03:
        return "text", broken_text(rng, line)
    return chosen[0] if rounds == 1 else "two at once", line


def differences(line: str, answer: dict[str, Any], verdict: reference.Verdict, lenient: bool) -> list[str]:
    """What cai_inspect says otherwise than the reference."""
    if answer["ok"]:
        if not verdict.accepted(lenient):
            return [f"accepted; the reference finds {verdict.of(lenient)}"]
        return inspect_io.compare_facts(answer, verdict.facts or {})
    said = f"{answer['entry']!r} {answer['message']!r}"
    if verdict.accepted(lenient):
        return [f"rejected: {said}; the reference accepts"]
    found = []
    if answer["entry"] not in verdict.entries(lenient):
        found.append(f"entry: {said}; the reference finds {verdict.of(lenient)}")
    marked = answer["message"].endswith(inspect_io.FORGIVABLE)
    if marked and (lenient or not any(f.forgivable for f in verdict.faults)):
        found.append(f"marked as forgivable: {said}; the reference finds {verdict.of(lenient)}")
    if not marked and not lenient and verdict.accepted(lenient=True):
        found.append(f"not marked as forgivable: {said}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutants of the cases: cai_inspect against the reference.")
    parser.add_argument("--inspect", help="the program cai_inspect; without it only the reference runs")
    parser.add_argument("--count", type=int, default=50000, help="distinct mutants")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    tables = [ast.literal_eval(text) for text in vector_cases.inputs()]
    right = [table for table in tables if reference.judge(table).accepted(lenient=False)]
    rng = random.Random(options.seed)
    lines: dict[str, str] = {}
    while len(lines) < options.count:
        name, line = mutant(rng, right if rng.random() < 0.8 else tables)
        if "\n" not in line and "\r" not in line:
            lines.setdefault(line, name)

    verdicts = [reference.judge_line(line) for line in lines]
    per_class = collections.Counter(lines.values())
    print(", ".join(f"{name} {count}" for name, count in sorted(per_class.items())))
    wrong: list[str] = []
    summary = []
    for lenient in (False, True):
        profile = "lenient" if lenient else "strict"
        accepted = sum(verdict.accepted(lenient) for verdict in verdicts)
        summary.append(f"{profile} accepted {accepted} rejected {len(lines) - accepted}")
        if options.inspect:
            answers = inspect_io.inspect(options.inspect, list(lines), lenient)
            for line, answer, verdict in zip(lines, answers, verdicts):
                found = differences(line, answer, verdict, lenient)
                wrong += [f"{profile}, {lines[line]}: {text}\n    {line[:700]}" for text in found]
    inspect_io.report("differs", wrong)
    print(f"mutants {len(lines)}, {', '.join(summary)}, differences {len(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
