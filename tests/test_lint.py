"""cai_inspect --lint: each rule of examples/cai_lint.h fires for one dictionary and not for its twin.

    test_lint.py --inspect build/cai_inspect
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
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
    (("stream", "that work may be pending"), {"version": 2}, {"version": 2, "stream": 7}),
    (("stream", "that work may be pending"), {"version": 2}, {"version": 2, "shape": (0,), "data": (0, False)}),
    (("stream", "whose stream 2 is"), {"stream": 2}, {"stream": 1}),
    (("descr", "the fields"), {"typestr": "|V8", "descr": RECORD}, {"typestr": "|V8", "descr": [("", "|V8")]}),
    (("descr", "the fields"), {"typestr": "|V4", "descr": [("x", "<f4")]}, {"typestr": "|V4", "descr": None}),
    (("mask", "the mask"), {"mask": MASK}, {"mask": None}),
]  # fmt: skip

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
    source = (ROOT / "examples" / "cai_lint.h").read_text(encoding="utf-8")
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
    cases = (ROOT / "tests" / "data" / "descriptor_cases.jsonl").read_text(encoding="utf-8").splitlines()
    lines = [json.loads(case)["input"] for case in cases]
    for options in ([], ["--lenient"]):
        plain = program.run(lines, *options).splitlines()
        linted = program.run(lines, *options, "--lint").splitlines()
        check(len(plain) == len(linted) == len(lines), "a line is missing")
        for line, before, after in zip(lines, plain, linted):
            accepted = json.loads(before)["ok"]
            kept = re.sub(r', "lint": \[.*\]\}$', "}", after)
            check(kept == before, f"--lint changes more than the lint of {line}")
            check(accepted == (kept != after), f"lint of what is {'' if accepted else 'not '}accepted: {line}")
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
    check("--lint" in program.run([], "--help"), "the usage text does not mention --lint")


def main() -> int:
    parser = argparse.ArgumentParser(description="Tests cai_inspect --lint.")
    parser.add_argument("--inspect", required=True, help="the program cai_inspect")
    program = Program(parser.parse_args().inspect)
    check_rules(program)
    check_rest(program)
    check_table(program)
    for failure in failures[:10]:
        print(failure[:1000])
    print(f"rules {len({rule for rule, _, _ in CASES})}, pairs {len(CASES)}, failures {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
