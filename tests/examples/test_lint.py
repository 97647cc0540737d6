"""cai_inspect --lint: each rule of tools/cai_lint.h fires for one dictionary and not for its twin.

Strides in elements and unknown keys are no rules of the table; they have dictionaries and twins of their own.
Then --all, JSON, dictionaries of several lines, and the words of messages.

    test_lint.py --inspect build/cai_inspect
"""

from __future__ import annotations

import argparse
import json
import pathlib
import pprint
import re
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import vector_cases  # noqa: E402

RULE = re.compile(r'\{cai_lint_\w+, CAI_ENTRY_(\w+), "([^"]*)",')
CLEAN = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3}
MASK = {"shape": (2, 3), "typestr": "|b1", "data": (8192, False), "version": 3}
RECORD = [("x", "<f4"), ("y", "<f4")]

# Rule, what differs from CLEAN where it fires, and in the twin where it does not
CASES: list[tuple[tuple[str, str], dict[str, Any], dict[str, Any]]] = [
    (("shape", "an array without dimensions"), {"shape": ()}, {"shape": (1,)}),
    (("typestr", "the byte order"), {"typestr": ">f4"}, {}),
    (("typestr", "the byte order"), {"typestr": ">i2"}, {"typestr": "|i1"}),
    (("typestr", "the type, if it is bfloat16"), {"typestr": "<V2"}, {"typestr": "<V3"}),
    (("typestr", "the type, if it is bfloat16"), {"typestr": "|V2", "descr": [("", "|V2")]},
     {"typestr": "|V2", "descr": [("re", "|i1"), ("im", "|i1")]}),
    (("typestr", "the whole array"), {"typestr": "|t1"}, {"typestr": "|b1"}),
    (("data", "the read-only flag"), {"data": (4096, True)}, {}),
    (("data", "that elements share memory"), {"strides": (4, 4)}, {"strides": (4, 4), "data": (4096, True)}),
    (("data", "elements that are not aligned"), {"data": (4098, False)}, {"data": (4100, False)}),
    (("data", "an empty array that has an address"), {"shape": (0, 3)}, {"shape": (0, 3), "data": (0, False)}),
    (("version", "the whole array"), {"version": 2, "stream": 1}, {"stream": 1}),
    (("version", "the whole array"), {"version": 0, "stream": 1}, {"stream": 1}),
    (("version", "the whole array"), {"version": 4}, {}),
    (("strides", "negative strides"), {"strides": (12, -4)}, {"shape": (2, 1), "strides": (12, -4)}),
    (("strides", "negative strides"), {"strides": (-16, 4)}, {"strides": (16, 4)}),
    (("strides", "strides of 0"), {"strides": (0, 4)}, {"shape": (1, 3), "strides": (0, 4)}),
    (("strides", "strides that the itemsize does not divide"), {"typestr": "<c8", "strides": (28, 8)},
     {"typestr": "<c8", "strides": (32, 8)}),
    (("strides", "that it is C-contiguous"), {"strides": (12, 4)}, {"strides": (16, 4)}),
    (("strides", "that it is C-contiguous"), {"strides": (12, 4)}, {"strides": None}),
    (("typestr", "times"), {"typestr": "<M8[ns]"}, {"typestr": "<i8"}),
    (("typestr", "times"), {"typestr": "<m8[25s]"}, {}),
    (("typestr", "text"), {"typestr": "<U4"}, {"typestr": "|V16"}),
    (("typestr", "text"), {"typestr": "|S5"}, {}),
    (("strides", "an array whose axes are not in C order"), {"strides": (4, 8)}, {"strides": (16, 4)}),
    (("strides", "an array whose axes are not in C order"), {"shape": (1, 512, 512, 3), "strides": (3145728, 2048, 4, 1048576)},
     {"shape": (1, 512), "strides": (4, 4)}),
    (("strides", "an array whose axes are not in C order"), {"strides": (4, -8)}, {"strides": (0, 4)}),
    (("strides", "an array with gaps"), {"shape": (3, 48), "typestr": "<f8", "strides": (432, 8)},
     {"shape": (3, 48), "typestr": "<f8", "strides": (384, 8)}),
    (("strides", "an array with gaps"), {"strides": (4, 16)}, {"strides": (4, 8)}),
    (("strides", "an array with gaps"), {"shape": (3,), "strides": (-8,)}, {"shape": (3,), "strides": (-4,)}),
    (("strides", "an array with gaps"), {"strides": (24, 8)}, {"strides": (4, 4), "data": (4096, True)}),
    (("stream", "that work may be pending"), {"version": 2}, {"version": 2, "stream": 7}),
    (("stream", "that work may be pending"), {"version": 2}, {"version": 2, "shape": (0,), "data": (0, False)}),
    (("stream", "whose stream 2 is"), {"stream": 2}, {"stream": 1}),
    (("descr", "the fields"), {"typestr": "|V8", "descr": RECORD}, {"typestr": "|V8", "descr": [("", "|V8")]}),
    (("descr", "the fields"), {"typestr": "|V4", "descr": [("x", "<f4")]}, {"typestr": "|V4", "descr": None}),
    (("mask", "the mask"), {"mask": MASK}, {"mask": None}),
]  # fmt: skip

# What differs from CLEAN where strides look like elements, the strides in bytes, and the twin where they do not
ELEMENTS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"strides": (3, 1)}, "(12, 4)", {"strides": (12, 4)}),
    ({"strides": (1, 2)}, "(4, 8)", {"typestr": "|u1", "strides": (1, 2)}),
    ({"strides": (-3, 1)}, "(-12, 4)", {"strides": (-12, 4)}),
    ({"strides": (0, 1)}, "(0, 4)", {"strides": (0, 4)}),
    ({"shape": (2, 3), "strides": (0, 1)}, "(0, 4)", {"shape": (2, 3), "strides": (0, 6)}),
    ({"strides": (8, 2)}, "(32, 8)", {"strides": (8, 4)}),
    ({"strides": (3, 1), "data": (4096, True)}, "(12, 4)", {"strides": (3, 1), "typestr": "|i1"}),
    ({"shape": (5,), "strides": (1,)}, "(4,)", {"shape": (1,), "strides": (1,)}),
    ({"shape": (5,), "strides": (1,), "typestr": "<c8"}, "(8,)", {"shape": (5,), "strides": (4,), "typestr": "<c8"}),
    ({"shape": (5, 3), "strides": (3, 1), "typestr": "|V12"}, "(36, 12)", {"shape": (5, 3), "strides": (1, 1)}),
    ({"shape": (5, 3), "strides": (6, 1)}, "(24, 4)", {"shape": (5, 3), "strides": (4, 4)}),
    ({"shape": (4, 3), "strides": (1, 4)}, "(4, 16)", {"shape": (4, 3), "strides": (1, 4), "typestr": "|u1"}),
]  # fmt: skip

# An unknown key, the entry that is asked for ("": none), and a key about which nothing is said
UNKNOWN = [("stride", "strides", "strides"), ("shpae", "shape", "shape"), ("Typestr", "typestr", "typestr"),
           ("dtype", "typestr", "_dtype"), ("streams", "stream", "stream"), ("date", "data", "data"),
           ("descriptor", "", "descr"), ("mast", "mask", "mask"), ("ptr", "data", "_ptr"), ("verison", "version", "version"),
           ("rate", "", "_rate"), ("dtaa", "data", "data"), ("device", "", "__device"), ("offsets", "", "offset"), ("sycl", "", "syclobj")]  # fmt: skip

failures: list[str] = []


def check(condition: bool, text: str) -> None:
    if not condition:
        failures.append(text)


class Program:
    """cai_inspect; feeds lines, returns lines."""

    def __init__(self, path: str) -> None:
        self.path = path

    def run(self, lines: list[str], *options: str) -> str:
        text = "".join(line + "\n" for line in lines)
        done = subprocess.run([self.path, *options], input=text, capture_output=True, encoding="utf-8", check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"cai_inspect {options}: exit status {done.returncode}: {done.stderr}")
        return done.stdout

    def judge(self, lines: list[str], *options: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run(lines, *options).splitlines()]


def check_rules(program: Program) -> None:
    """Every rule of the source has a case; it fires there, for the twin it does not."""
    source = (ROOT / "tools" / "cai_lint.h").read_text(encoding="utf-8")
    rules = {(entry.lower(), loses) for entry, loses in RULE.findall(source)}
    check(len(rules) > 10, "the rules of cai_lint.h were not found")
    check({rule for rule, _, _ in CASES} == rules, f"without a case: {sorted(rules - {r for r, _, _ in CASES})}")
    pairs = [repr({**CLEAN, **difference}) for _, fires, twin in CASES for difference in (fires, twin)]
    answers = program.judge(pairs, "--lint")
    for (rule, _, _), line, answer, twin_line, twin in zip(CASES, pairs[::2], answers[::2], pairs[1::2], answers[1::2]):
        check(answer["ok"] and twin["ok"], f"rejected: {line} or {twin_line}")
        found, twins = ([(item["entry"], item["loses"]) for item in a.get("lint", [])] for a in (answer, twin))
        check(found.count(rule) == 1, f"{rule} does not fire once: {line}: {found}")
        check(rule not in twins, f"{rule} fires: {twin_line}")
        for item in answer.get("lint", []):
            check(list(item) == ["entry", "loses", "advice"], f"keys of {item}")
            two = re.fullmatch(r"[A-Z].*\. [A-Z].*\.", item["advice"])
            check(two is not None, f"not two sentences: {item['advice']}")
    check(program.judge([repr(CLEAN)], "--lint")[0].get("lint") == [], "a clean dictionary has remarks")


def check_rest(program: Program) -> None:
    """--lint adds its key, the last one of an accepted dictionary, and changes nothing else."""
    lines = vector_cases.inputs()
    for options in ([], ["--lenient"]):
        plain = program.run(lines, *options).splitlines()
        linted = program.run(lines, *options, "--lint").splitlines()
        check(len(plain) == len(linted) == len(lines), "a line is missing")
        for line, before, after in zip(lines, plain, linted):
            kept = re.sub(r', "lint": \[.*\]\}$', "}", after)
            check(kept == before, f"--lint changes more than the lint of {line}")
            check(kept != after, f"no lint of {line}")
            check("lint" not in json.loads(before), f"lint without --lint: {line}")


def check_table(program: Program) -> None:
    """The lines below a row, and the help."""
    line = repr({**CLEAN, "data": (4096, True), "version": 2})
    plain, linted = program.run([line], "--table"), program.run([line], "--table", "--lint")
    check("consumers lose" not in plain, "lint in a table without --lint")
    check(plain.splitlines()[:2] == linted.splitlines()[:2], "--lint changes the row of a table")
    for item in program.judge([line], "--lint")[0]["lint"]:
        text = f"{item['entry']}: consumers lose {item['loses']}. {item['advice']}"
        check(text in " ".join(linted.split()), f"not in the table: {text}")
    check("consumers lose" not in program.run([repr({**CLEAN, "version": -1})], "--table", "--lint"),
          "lint of a rejected dictionary in a table")  # fmt: skip
    usage = program.run([], "--help")
    for option in ("--lenient", "--all", "--lint", "--table", "--help"):
        count = len(re.findall(rf"^  {option} ", usage, re.M))
        check(count == 1, f"the usage text has {count} lines of {option}")


def advice(answer: dict[str, Any]) -> list[str]:
    return [item["advice"] for item in answer["lint"]]


def check_elements(program: Program) -> None:
    """Strides in elements are named once, in place of what follows from them; for a twin nothing is."""
    for fires, in_bytes, twin in ELEMENTS:
        given = repr(fires["strides"])
        text = f"strides {given} look like elements; in bytes they are {in_bytes}"
        line, other = repr({**CLEAN, **fires}), repr({**CLEAN, **twin})
        answer, answer_of_twin = program.judge([line, other], "--lint")
        check(advice(answer).count(text) == 1, f"strides in elements are not named: {line}: {advice(answer)}")
        for rule in ("that elements share memory", "strides that the itemsize does not divide"):
            check(rule not in [item["loses"] for item in answer["lint"]], f"{rule}: {line}")
        check("look like elements" not in str(answer_of_twin), f"strides in elements are named: {other}")
        check(text in program.run([line], "--table"), f"not in the table: {text}")
        check("look like elements" not in program.run([other], "--table"), f"in the table: {other}")
        check("look like elements" not in program.run([line]), f"without --lint: {line}")
    refused = repr({**CLEAN, "data": (1, False), "shape": (5,), "strides": (-1,)})
    text = "strides (-1,) look like elements; in bytes they are (-4,)"
    check(program.judge([refused], "--lint")[0]["message"].endswith(f"; {text}"), f"not in the message: {text}")
    check(text in " ".join(program.run([refused], "--table").split()), f"not in the table: {text}")
    check("look like" not in program.run([refused]), "a message without --lint names elements")


def check_unknown(program: Program) -> None:
    for key, entry, silent in UNKNOWN:
        answer, other, whole = program.judge([repr({**CLEAN, key: 1}), repr({**CLEAN, silent: CLEAN.get(silent)}),
                                              repr({key: 1})], "--lint")  # fmt: skip
        said = f"unknown key '{key}'" + (f": did you mean '{entry}'?" if entry else ": no consumer reads it")
        check(advice(answer) == [said] and answer["lint"][0]["entry"] == entry, f"{key}: {answer['lint']}")
        check("unknown key" not in str(other["lint"]), f"{silent}: {other['lint']}")
        check(not whole["ok"] and advice(whole) == [said], f"{key} of a rejected dictionary: {whole}")
        check(said in program.run([repr({**CLEAN, key: 1})], "--table", "--lint"), f"not in the table: {said}")
        check("unknown key" not in program.run([repr({**CLEAN, key: 1})], "--table"), "unknown keys without --lint")
    check(advice(program.judge([repr({**CLEAN, "mask": {**MASK, "stride": 1}})], "--lint")[0])[0]
          == "unknown key 'stride': did you mean 'strides'?", "the unknown key of a mask")  # fmt: skip


def check_all(program: Program) -> None:
    """--all names every entry that is wrong, once; the first is the one without --all."""
    bad = {"shape": (2, 3.5), "typestr": "f4", "data": 7, "version": -1, "strides": (4, "x"), "stream": 0, "descr": 5,
           "mask": True}  # fmt: skip
    keys = list(bad)
    subsets = [[key for bit, key in enumerate(keys) if number >> bit & 1] for number in range(1 << len(keys))]
    lines = [repr({**CLEAN, **{key: bad[key] for key in subset}}) for subset in subsets]
    for subset, line, plain, answer in zip(subsets, lines, program.judge(lines), program.judge(lines, "--all")):
        found = answer.pop("errors")
        check(answer == plain, f"--all changes more than the errors of {line}")
        check(sorted(item["entry"] for item in found) == sorted(subset), f"{line}: {found}")
        check(not found or found[0] == {key: plain[key] for key in ("entry", "status", "rule", "message")}, f"{line}: {found}")
    both = {"shape": (-1, 3), "typestr": "V", "descr": RECORD, "mask": MASK, "data": (0, False), "strides": (4,)}
    entries = {
        repr({**CLEAN, **both}): {"shape", "typestr", "strides"},  # the rest is not known to be wrong
        repr({**CLEAN, **both, "mask": {**MASK, "typestr": "f"}}): {"shape", "typestr", "strides", "mask"},
        repr({**CLEAN, "typestr": "V", "descr": [("x", "q")]}): {"typestr", "descr"},
        repr({**CLEAN, "typestr": "|V9", "descr": RECORD, "stream": -1}): {"descr", "stream"},
        repr({}): {"shape", "typestr", "data", "version"},
        "{'shape': (": {""},
    }
    for line, answer in zip(entries, program.judge(list(entries), "--all")):
        check({item["entry"] for item in answer["errors"]} == entries[line], f"{line}: {answer['errors']}")
    table = program.run(lines[-1:], "--table", "--all")
    for item in program.judge(lines[-1:], "--all")[0]["errors"]:
        check(item["message"] in " ".join(table.split()), f"not in the table: {item['message']}")


def check_json(program: Program) -> None:
    """A dictionary as JSON is judged as what it was made of, on one line or on many."""
    nested = [(("title", "pos"), [("x", "<f4", (2,)), ("y", "<f4")]), ("", "|V4")]
    for difference in ({}, {"strides": (12, 4)}, {"strides": None, "stream": 7}, {"mask": {**MASK, "mask": None}},
                       {"data": (4096, True)}, {"shape": (3,), "strides": (4,)}, {"shape": ()},
                       {"typestr": "|V16", "descr": nested}, {"typestr": "|V4", "descr": [("\u20ac\U0001f600/", "<f4")]},
                       {"shape": (2, -1)}, {"stream": 0}, {"data": None}, {"x": [{}, (1, 2)]}):  # fmt: skip
        python = {**CLEAN, **difference}
        expected = program.judge([repr(python)])
        for text in (json.dumps(python), json.dumps(python, indent=2), json.dumps(python, indent="\t"),
                     json.dumps(python).replace("/", "\\/"), pprint.pformat(python, width=20)):  # fmt: skip
            check(program.judge([text]) == expected, f"{text}: {program.judge([text])}, not {expected}")
    mixed = ['{"shape": [2, 3], "typestr": "<f4", "data": (4096, False), "version": 3}',
             "{'shape': (2, 3), 'typestr': '<f4', 'data': (4096, false), 'version': 3}",
             '{"shape": [2, 3], "typestr": "<f4", "data": [4096, false], "version": 3, "strides": (12, 4)}',
             '{"shape": [2, 3], "typestr": "<f4", "data": [4096, false], "version": 3, "stream": None}']  # fmt: skip
    check(not any(answer["ok"] for answer in program.judge(mixed)), "a dictionary that is half JSON is accepted")


def check_lines(program: Program) -> None:
    """What is broken ends where the next dictionary begins, whatever of it is spread over lines."""
    good = repr(CLEAN)
    spread = pprint.pformat(CLEAN, width=20)
    broken = ["{'shape': (2, 3", "{'shape': (2,\n           3,\n 'typestr': '<f4'}", "{'shape': (2, 3), 'typestr': '<f4",
              "{'shape': (2, 3)\n 'typestr': '<f4'}", "{'shape': (2, 3]}", "[{'shape': [", "{\n  'shape': 5,", "}", "{'a': 1}}", "{'shape': '2,\n 'typestr': 3}",
              "{'a': \"b\\\""]  # fmt: skip
    for text in broken:
        for other in (good, spread, json.dumps(CLEAN, indent=1), f"# a comment\n{good}", f"\n{good}"):
            for indent in ("", "  "):
                lines = "\n".join(indent + line if line else line for line in f"{text}\n{other}".split("\n"))
                if "#" in lines and indent:
                    continue
                judged = [answer["ok"] for answer in program.judge([good, lines, good])]
                check(judged == [True, False, True, True], f"{text!r} before {other!r}: {judged}")
    for text in ("{'shape': (", "{'shape': (2,\n 3", good):
        check(len(program.judge([text])) == 1, f"the last dictionary: {text}")
    said = program.judge(["{'shape': (2,\n           3),\n 'data' 5}"])[0]["message"]
    check(said == "line 3, column 9: expected ':' after a key", said)
    check(program.judge(["{'shape' 5}"])[0]["message"] == "column 10: expected ':' after a key", "the column of one line")
    check("\n  line 3 " in program.run(["", "", spread], "--table"), "the line that a dictionary begins at")


def check_words(program: Program) -> None:
    """Messages use the words of the command line, and of text."""
    answers = program.judge([repr({**CLEAN, "shape": [2]}), repr({**CLEAN, "mask": True}),
                             repr({**CLEAN, "mask": 0})[:-2] + "<A at 1>}"])  # fmt: skip
    said = [answer["message"] for answer in answers]
    check(said == ["shape must be a tuple, not a list (accepted with --lenient)",
                   "mask must be None or the dictionary of a mask, not a bool",
                   "mask must be None or the dictionary of a mask, not an object"], str(said))  # fmt: skip


def check_tuples(program: Program) -> None:
    """Subclasses of tuple, as they print themselves, are tuples; lists and arrays are not."""
    for name in ("torch.Size([2, 3])", "torch.Size((2, 3))", "Size([2, 3])", "tuple([2, 3])", "tuple((2, 3))"):
        line = repr({**CLEAN, "strides": (12, 4)}).replace("(2, 3)", name)
        expected = repr({**CLEAN, "strides": (12, 4)})
        check(program.judge([line]) == program.judge([expected]), f"{name}: {program.judge([line])}")
    one = program.judge([repr(CLEAN).replace("(2, 3)", shape) for shape in ("torch.Size([5])", "torch.Size([])", "(5,)", "()")])
    check(one[0] == one[2] and one[1] == one[3], f"one extent, and none: {one}")
    for name in ("list([2, 3])", "array([2, 3])", "torch.tensor([2, 3])", "torch.Size([2, 3], 4)", "Size(2)", "tuple"):
        answer = program.judge([repr(CLEAN).replace("(2, 3)", name)])[0]
        check(not answer["ok"] and answer["entry"] == "shape", f"{name}: {answer}")
    cut = program.judge([repr(CLEAN).replace("(2, 3)", "torch.Size([2, 3]")])[0]
    check(not cut["ok"] and cut["entry"] in ("", None), f"a bracket that is not closed: {cut}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Tests cai_inspect --lint.")
    parser.add_argument("--inspect", required=True, help="the program cai_inspect")
    program = Program(parser.parse_args().inspect)
    check_rules(program)
    check_rest(program)
    check_table(program)
    check_elements(program)
    check_unknown(program)
    check_all(program)
    check_json(program)
    check_lines(program)
    check_words(program)
    check_tuples(program)
    for failure in failures[:10]:
        print(failure[:1000])
    print(f"rules {len({rule for rule, _, _ in CASES})}, pairs {len(CASES)}, failures {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
