#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/cai_conform.py --consumer: consumers with a defect, and real libraries (consumers.py).

    check_consumers.py --planted
    check_consumers.py [--python PYTHON]... [--only NAME] [--least N] [--write]

--planted: a consumer in plain Python takes all producers; each of its defects is found. Without it: each library runs
in a process of its own, on the simulated driver. EXPECTED and docs/results/conform.md say what is found, in later
versions, too. --python: another Python, for what this one lacks. --write renews the page.
Exit status 0: all is so; 1: not; 77: too few libraries are here, or no package cai_sim.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from typing import Any

sys.dont_write_bytecode = True

import consumers  # noqa: E402
import library_support as support  # noqa: E402
from check_conform import TOOL, answer, compare_page  # noqa: E402

BEGIN, END = "<!-- tests/python/check_consumers.py --write -->\n", "<!-- end of consumers -->\n"
FATAL = {"JAX, from_dlpack": "no deleter"}  # the case that ends the process
HOST, DEVICE, DICTIONARY = "DLPack on the host", "DLPack on a device", "the dictionary"

# What is not right, by consumer: the ways, the verdict, and the cases. A difference in a later version is a failure.
EXPECTED: dict[str, list[tuple[tuple[str, ...], str, str]]] = {
    "NumPy, from_dlpack": [
        ((HOST,), "refused", "4 bits; 4 lanes; bfloat16"),
    ],
    "JAX, from_dlpack": [
        ((HOST,), "wrong", "an offset of half an element; int64; version 2.0"),
        ((HOST,), "refused",
         "4 bits; 4 lanes; a view of a view; backwards; broadcast; every other element; padded rows; read-only, a "
         "BufferError without a version; read-only, a TypeError without a version; windows that overlap"),
        ((HOST,), "fatal", "no deleter"),
    ],
    "tvm_ffi, from_dlpack": [
        ((HOST,), "wrong", "read-only; version 2.0"),
        ((HOST,), "refused", "read-only, a BufferError without a version; read-only, a TypeError without a version"),
    ],
    "numba-cuda, as_cuda_array": [
        ((DICTIONARY,), "wrong", "a negative extent; broadcast; read-only; the stream 0"),
        ((DICTIONARY,), "refused", "a mask"),
    ],
    "cuda.core, StridedMemoryView": [
        ((HOST, DEVICE), "refused", "4 bits; 4 lanes"),
        ((HOST, DEVICE), "wrong", "version 2.0"),
        ((DICTIONARY,), "refused", "a mask; a shape of a subclass of tuple; version 2, no stream"),
    ],
    "cai, libraries.c": [
        ((HOST, DEVICE), "refused", "4 lanes; a later minor version, an unknown flag"),
        ((DICTIONARY,), "refused", "a mask; version 2, no stream"),
    ],
    "cai, cai_caster.h": [
        ((DEVICE,), "refused", "4 lanes; a later minor version, an unknown flag"),
        ((DICTIONARY,), "refused", "a mask; version 2, no stream"),
    ],
    "CuPy, asarray": [
        ((DICTIONARY,), "wrong", "read-only; the stream 0"),
        ((DICTIONARY,), "refused", "a mask; a shape of a subclass of tuple; swapped bytes"),
    ],
    "CuPy, from_dlpack": [
        ((DEVICE,), "wrong",
         "read-only; read-only, a BufferError without a version; read-only, a TypeError without a version"),
        ((DEVICE,), "refused", "4 bits; 4 lanes; bfloat16"),
    ],
    "PyTorch, as_tensor": [
        ((HOST, DEVICE), "refused", "4 bits; 4 lanes; a view of a view; an offset of half an element; backwards"),
        ((DEVICE,), "wrong",
         "read-only; read-only, a BufferError without a version; read-only, a TypeError without a version"),
        ((DICTIONARY,), "refused", "a view of a view; backwards; read-only; records; text; times"),
        ((DICTIONARY,), "wrong", "a mask; swapped bytes; the stream -1; the stream 0"),
        ((DICTIONARY,), "out of order", "a stream with pending work"),
    ],
    "PyTorch, from_dlpack": [
        ((HOST, DEVICE), "refused", "4 bits; 4 lanes; a view of a view; an offset of half an element; backwards"),
        ((HOST, DEVICE), "wrong",
         "read-only; read-only, a BufferError without a version; read-only, a TypeError without a version"),
    ],
}  # fmt: skip


def look_at(name: str) -> dict[str, Any]:
    """What a consumer makes of all cases, in this process."""
    import cai_conform_consumer as tool

    make, packages = consumers.CONSUMERS[name]
    try:
        function = make()
    except support.Missing as missing:
        return {"missing": str(missing)}
    outcomes = list(tool.judge(function, wanted=lambda case: case != FATAL.get(name)))
    version = support.version(*packages) if packages else "of this tree"
    return {"version": version, "outcomes": outcomes}


def look_apart(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The same, in a process of its own, by the first Python that has the library."""
    seen: dict[str, Any] = {}
    for python in [sys.executable, *options.python]:
        seen = answer([python, "-B", __file__, "--consumer", name])
        if "missing" in seen:
            continue
        if name in FATAL and "outcomes" in seen:
            done = subprocess.run([python, "-B", __file__, "--fatal", name], capture_output=True, text=True)
            seen["outcomes"] += [[HOST, FATAL[name], "fatal", ""]] if done.returncode < 0 else []
        break
    return seen


Finding = tuple[str, str, str]  # the way, the verdict, the case


def found(seen: dict[str, Any]) -> set[Finding]:
    return {(way, verdict, case) for way, case, verdict, _ in seen["outcomes"] if verdict not in ("right", "copied")}


def expected(name: str) -> set[Finding]:
    rows = EXPECTED.get(name, [])
    return {(way, verdict, case) for ways, verdict, cases in rows for way in ways for case in cases.split("; ")}


def judge(name: str, seen: dict[str, Any]) -> int:
    """Compares with what is expected; prints the differences."""
    if "failed" in seen or "missing" in seen:
        print(f"{name}: {seen['failed']}: WRONG" if "failed" in seen else f"{name}: skipped, {seen['missing']}")
        return int("failed" in seen)
    here, wanted = found(seen), expected(name)
    texts = {(way, case): text for way, case, _, text in seen["outcomes"]}
    for way, verdict, case in sorted(here - wanted):
        print(f"{name} {seen['version']}: {way}, {case}: {verdict}: {texts[way, case]}: WRONG, not expected")
    for way, verdict, case in sorted(wanted - here):
        print(f"{name} {seen['version']}: {way}, {case}: WRONG, is not {verdict} any more")
    print(f"{name} {seen['version']}: {len(seen['outcomes'])} producers")
    return len(here ^ wanted)


def check_main() -> int:
    """The command line, by its output and exit status, with what is on the host."""
    right, wrong = "consumers:plain()", "consumers:plain('deletes twice')"
    cases = [
        ([right], 0, r"plain\(\): (\d+) producers, \1 right, 0 copied, and right, 0 refused, 0 wrong,"),
        ([right, wrong], 1, r"plain\('deletes twice'\): DLPack on the host, plain: wrong: .*deleted 2 times\n"),
        (["consumers:plain('forgets the offset in bytes')"], 1, r"wrong: other bytes, from 8 bytes before the array\n"),
        (["math:sqrt"], 2, r"math:sqrt: DLPack on the host: left out, .*TypeError(.*\n)*math:sqrt: 0 producers"),
        (["math:no"], 2, r"cannot be made: "),
        (["math"], 2, r"^math: MODULE:FUNCTION is wanted\n$"),
    ]
    bad = 0
    for arguments, status, pattern in cases:
        command = [sys.executable, "-B", TOOL, "--consumer", *arguments]
        environment = {**support.os.environ, "LD_LIBRARY_PATH": ""}
        done = subprocess.run(command, capture_output=True, text=True, cwd=support.HERE, env=environment)
        right_so = done.returncode == status and re.search(pattern, done.stdout)
        bad += not right_so
        print("" if right_so else f"{arguments}: status {done.returncode}, {done.stdout}{done.stderr}: WRONG\n", end="")
    return bad


def check_planted() -> int:
    """How many defects are not found."""
    import cai_conform_consumer as tool

    consumers.simulated()
    bad = 0
    for defect, case in {"": "", **consumers.DEFECTS}.items():
        cases = {case, "plain"} if defect else {case.name for case in tool.CASES}
        outcomes = list(tool.judge(consumers.plain(defect), wanted=cases.__contains__))
        wrong = [str(outcome) for outcome in outcomes if outcome.verdict not in ("right", "copied")]
        right = any(f", {case}: " in line for line in wrong) if defect else not wrong
        bad += not right
        print("" if right else f"{defect or 'no defect'}: found is {wrong}: WRONG\n", end="")
        if not defect:
            print(f"{len(outcomes)} producers, {len(tool.CASES)} cases")
    some = {"plain", "the stream 1", "a stream with pending work", "version 2.0"}.__contains__
    wrong = [str(outcome) for outcome in tool.judge(consumers.late(), wanted=some) if outcome.verdict != "right"]
    bad += bool(wrong)
    print("" if not wrong else f"gives back at a later call: found is {wrong}: WRONG\n", end="")
    print(f"{len(consumers.DEFECTS)} defects, {bad} wrong")
    return bad


# ------------------------------------------------------------------------------------------------------ the page


def tables(all_seen: dict[str, Any]) -> str:
    lines = ["| consumer | version | producers | right | refused | wrong or out of order |", "|---|---|---|---|---|---|"]
    rows = []
    for name, seen in all_seen.items():
        verdicts = [verdict for _, _, verdict, _ in seen["outcomes"]]
        right, refused = sum(v in ("right", "copied") for v in verdicts), verdicts.count("refused")
        counts = f"{len(verdicts)} | {right} | {refused} | {len(verdicts) - right - refused}"
        lines.append(f"| {name} | {seen['version']} | {counts} |")
        grouped: dict[tuple[str, str], dict[str, list[str]]] = {}
        for way, case, verdict, text in seen["outcomes"]:
            if verdict in ("wrong", "out of order", "fatal"):
                text = text or "the process ends"
                grouped.setdefault((case, text), {}).setdefault(way, [])
        rows += [f"| {name} | {case} | {', '.join(ways)} | {text} |" for (case, text), ways in grouped.items()]
    return "\n".join([*lines, "", "| consumer | producer | given by | found |", "|---|---|---|---|", *rows]) + "\n"


def check_page(all_seen: dict[str, Any], write: bool) -> int:
    return compare_page(BEGIN, END, tables({name: seen for name, seen in all_seen.items() if "outcomes" in seen}), 4, write)


def check_libraries(options: argparse.Namespace) -> int:
    """The exit status."""
    names = [options.only] if options.only else list(consumers.CONSUMERS)
    all_seen = {name: look_apart(name, options) for name in names}
    bad = sum(judge(name, seen) for name, seen in all_seen.items())
    bad += 0 if options.only else check_page(all_seen, options.write)
    here = sum("outcomes" in seen for seen in all_seen.values())
    print(f"{here} consumers, {bad} wrong")
    if not bad and here < options.least:
        print(f"skipped: {options.least} consumers are wanted")
        return 77
    return int(bad > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--planted", action="store_true", help="consumers with a defect")
    parser.add_argument("--python", action="append", default=[], help="another one that has libraries; repeatable")
    parser.add_argument("--only", help="one consumer")
    parser.add_argument("--least", type=int, default=1, help="how many consumers must be here")
    parser.add_argument("--write", action="store_true", help="renews docs/results/conform.md")
    parser.add_argument("--consumer", help=argparse.SUPPRESS)
    parser.add_argument("--fatal", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.consumer:
        print(json.dumps(look_at(options.consumer)), flush=True)
        return 0
    if options.fatal:
        import cai_conform_consumer as tool

        list(tool.judge(consumers.CONSUMERS[options.fatal][0](), wanted=FATAL[options.fatal].__eq__))
        return 0
    if options.planted:
        try:
            return int(check_planted() + check_main() > 0)
        except support.Missing as missing:
            print(f"skipped: {missing}")
            return 77
    return check_libraries(options)


if __name__ == "__main__":
    sys.exit(main())
