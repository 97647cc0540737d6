"""The descriptor cases (vectors/vectors.json) against cai_inspect and against the reference.

    check_cases.py --inspect build/cai_inspect [--alter 20 --seed 1]

With --alter N, N cases have one expectation each altered, and exactly these N
must be found to differ: a check of the check. Without --inspect only the
reference is compared.
"""

from __future__ import annotations

import argparse
import copy
import random
import re
from typing import Any

import inspect_io
import reference
import vector_cases

FACTS = (
    "itemsize", "size", "nbytes", "strides", "c_contiguous", "f_contiguous",
    "extent", "read_only", "byte_swapped",
)  # fmt: skip
ENTRIES = ("shape", "typestr", "data", "version", "strides", "descr", "mask", "stream")


def reference_answer(line: str) -> dict[str, Any]:
    """The reference's verdict in the shape of cai_inspect's, `entry` being a set."""
    verdict = reference.judge_line(line)
    if verdict.accepted(lenient=False):
        return {"ok": True, **(verdict.facts or {})}
    return {"ok": False, "entry": verdict.entries(lenient=False)}


def compare(case: dict[str, Any], answer: dict[str, Any], who: str) -> tuple[int, list[str]]:
    """The number of keys compared and the differences. The rule is cai_inspect's alone."""
    accepted = case["verdict"] == "accept"
    if answer["ok"] != accepted:
        return 1, [f"{case['id']}: verdict: {who} {answer['ok']}, expected {case['verdict']}"]
    if not accepted:
        reported = answer["entry"]
        wanted = set(case["entry"].split("|"))
        good = reported & wanted if isinstance(reported, set) else reported in wanted
        found = [] if good else [f"{case['id']}: entry: {who} {reported!r}, expected {case['entry']!r}"]
        rules = re.findall(r"R(\d+)", case["basis"])
        if not rules or "rule" not in answer:
            return 2, found
        if str(answer["rule"]) not in rules:
            found.append(f"{case['id']}: rule: {who} {answer['rule']}, expected {case['basis']!r}")
        return 3, found
    keys = [key for key in FACTS if key in case]
    return 1 + len(keys), [
        f"{case['id']}: {key}: {who} {answer.get(key, 'absent')!r}, expected {case[key]!r}"
        for key in keys
        if key not in answer or answer[key] != case[key] or type(answer[key]) is not type(case[key])
    ]


def alter(case: dict[str, Any], rng: random.Random) -> None:
    """Alters one expectation of a case."""
    accepted = case["verdict"] == "accept"
    if rng.random() < 0.25:
        case["verdict"] = "reject" if accepted else "accept"
        case.setdefault("entry", "shape")
        return
    if not accepted:
        at_fault = reference.judge_line(case["input"]).entries(lenient=False)
        case["entry"] = rng.choice([e for e in ENTRIES if e not in at_fault | set(case["entry"].split("|"))])
        return
    key = rng.choice([k for k in FACTS if case.get(k) not in (None, [])])
    value = case[key]
    if isinstance(value, bool):
        case[key] = not value
    elif isinstance(value, int):
        case[key] = value + 1
    else:
        value[rng.randrange(len(value))] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Descriptor cases against cai_inspect and the reference.")
    parser.add_argument("--inspect", help="the program cai_inspect")
    parser.add_argument("--alter", type=int, default=0, help="alter that many expectations; they must be found")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    cases = vector_cases.cases()
    lines = [case["input"] for case in cases]
    answers = {"reference": [reference_answer(line) for line in lines]}
    if options.inspect:
        answers["cai_inspect"] = inspect_io.inspect(options.inspect, lines)

    altered: set[str] = set()
    if options.alter:
        cases = copy.deepcopy(cases)
        rng = random.Random(options.seed)
        for case in rng.sample(cases, options.alter):
            alter(case, rng)
            altered.add(case["id"])

    keys = 0
    good = True
    for who, given in answers.items():
        differences: list[str] = []
        differing: set[str] = set()
        for case, answer in zip(cases, given):
            count, found = compare(case, answer, who)
            keys += count
            differences += found
            if found:
                differing.add(case["id"])
        if differing != altered:
            good = False
            inspect_io.report("missed", sorted(altered - differing))
            inspect_io.report("differs", [d for d in differences if d.split(":")[0] not in altered])
        print(f"{who}: cases {len(cases)}, keys compared {keys}, differences {len(differing)}"
              + (f" (altered {len(altered)})" if altered else ""))  # fmt: skip
        keys = 0
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
