#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real libraries on the simulated driver, each with each, through cai and directly: the tests of the device in
tests/python/test_libraries.py, and a table of what they saw.

    sim/tests/driver/check_matrix.py [--table FILE] [--least PAIRS] [--adversarial] [-- ARGUMENTS OF PYTEST]
    sim/tests/driver/check_matrix.py --against sim/tests/driver/h100_pairs.txt
    sim/tests/driver/check_matrix.py --planted

Through cai no pair may race. What two libraries do without cai is recorded in the table, and fails nothing.
--least: how many pairs through cai must have run. --table: the table goes to this file, too. --adversarial: the
driver does the least that CUDA promises. --against: what a GPU said of the pairs without cai. Each that differs is
printed, and is a failure if EXPLAINED has no reason for it. --planted: leaves each wait out of cai_stream.h in turn. Races of real
libraries must be the result.
Exit status 77: there is no package cai_sim (pip install ./sim/python), no pytest, or no library.
"""

from __future__ import annotations

import argparse
import collections
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[3]
PYTHON_TESTS = ROOT / "tests" / "python"
SELECTED = " or ".join((
    "pair_on_device", "order_left_out_on_device", "in_place_on_device", "captured_on_device", "streams_of_libraries",
))  # fmt: skip

WAIT = r"cai_priv_stream_wait\(call, %s, point(?:\.|->)event\)"
DEFECTS = {  # what stands in cai_stream.h once, of which CAI_OK takes the place
    "the wait for the producer is left out": WAIT % r"ex->stream, ex->context" + r";\n    return cai_priv_event_give",
    "the back edge is left out": WAIT % r"edge->stream, edge->context",
}

try:
    import cai_sim
    import pytest
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


DISTRIBUTIONS = "numpy numba-cuda cuda-core cuda-bindings pycuda torch cupy cupy-cuda13x warp-lang".split()


def versions() -> str:
    """What is installed of the libraries that can be a producer or a consumer."""
    found = []
    for name in DISTRIBUTIONS:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


# Pairs whose verdict is another one than that of the GPU, by a pattern, and why.
EXPLAINED = {
    r"^cuda.core Buffer -> (CuPy|PyTorch|JAX)": "the program that asked the GPU compared bytes with floats, and took that "
    "for a refusal",
}
ALIKE = {"right": "in order", "WRONG": "race", "refused": "refused"}


def compared(directly: list[tuple[str, str]], file: pathlib.Path) -> bool:
    """Compares what was seen with what a GPU said, pair by pair."""
    lines = [line.split(": ", 1) for line in file.read_text().splitlines() if " -> " in line]
    said = {pair: ALIKE[verdict.split(" ")[0]] for pair, verdict in lines}
    seen = {pair: re.sub(r" \(.*", "", verdict) for pair, verdict in directly}
    both = sorted(seen.keys() & said.keys())
    counts = collections.Counter((said[pair], seen[pair]) for pair in both)
    right = True
    for pair in both:
        if seen[pair] == said[pair]:
            continue
        why = next((reason for pattern, reason in EXPLAINED.items() if re.search(pattern, pair)), "")
        right &= bool(why)
        print(f"differs: {pair}: GPU {said[pair]}, here {seen[pair]}{': ' if why else ''}{why}")
    alike = sum(count for (there, here), count in counts.items() if there == here)
    print(f"{len(both)} pairs of {len(said)} that the GPU ran: {alike} alike, {len(both) - alike} differ")
    for (there, here), count in sorted(counts.items()):
        print(f"  GPU {there}, here {here}: {count}")
    return right


class Table:
    """What the tests recorded, and what was skipped."""

    def __init__(self) -> None:
        self.pairs: dict[str, list[tuple[str, str]]] = {"through cai": [], "directly": [], "captured": []}
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.skipped: collections.Counter[str] = collections.Counter()

    @staticmethod
    def pytest_collection_modifyitems(items: list[Any]) -> None:
        """What races on purpose comes last, as memory that was freed too early ends in an error of the device."""
        items.sort(key=lambda item: "direct" in item.name or "left_out" in item.name)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.skipped[reason.removeprefix("Skipped: ")] += 1
        if report.skipped or report.when == "call" or report.failed:
            self.outcomes[report.outcome] += 1
        if report.when == "call":
            for name, value in report.user_properties:
                self.pairs[name].append(value)

    def lines(self) -> list[str]:
        out = [f"installed: {versions()}"]
        for title, pairs in self.pairs.items():
            out.append(f"{title}: {len(pairs)} pairs")
            out += [f"  {what}: {said}" for what, said in pairs]
        out.append("")
        for title, pairs in self.pairs.items():
            kinds = collections.Counter(re.sub(r" \(.*", "", said) for _, said in pairs)
            out.append(f"{title}: {len(pairs)} pairs" + "".join(f", {n} {kind}" for kind, n in sorted(kinds.items())))
        out.append("tests: " + ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items())))
        out += [f"  {count} skipped: {reason}" for reason, count in self.skipped.most_common()]
        return out


def found(name: str, pattern: str) -> bool:
    """Whether a pair of real libraries races with this defect."""
    text = (ROOT / "cai_stream.h").read_text(encoding="utf-8")
    match = re.findall(pattern, text)
    if len(match) != 1:
        print(f"{name}: stands {len(match)} times in cai_stream.h, once is expected")
        return False
    tail = match[0].partition(";")
    with tempfile.TemporaryDirectory() as folder:
        planted = text.replace(match[0], "CAI_OK" + tail[1] + tail[2])
        (pathlib.Path(folder) / "cai_stream.h").write_text(planted, encoding="utf-8")
        command = [sys.executable, __file__, "--", "--include", folder, "-k", "test_pair_on_device"]
        run = subprocess.run(command, capture_output=True, text=True)
    failed = sorted(set(re.findall(r"^FAILED .*\[(.*?)\]", run.stdout, re.M)))
    races = re.findall(r"AssertionError: (.*race on .*)", run.stdout, re.M)
    print(f"{name}: {len(races)} races in {len(failed)} pairs ({', '.join(failed)})")
    print("\n".join("  " + race[:200] for race in races[:1]))
    return run.returncode == 1 and bool(races)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=pathlib.Path, help="write the table to this file")
    parser.add_argument("--least", type=int, default=1, help="pairs through cai that must have run")
    parser.add_argument("--adversarial", action="store_true", help="the driver does the least that CUDA promises")
    parser.add_argument("--against", type=pathlib.Path, help="compare with what a GPU said")
    parser.add_argument("--planted", action="store_true", help="leave each wait out; races must be found")
    parser.add_argument("rest", nargs="*", help="arguments of pytest")
    options = parser.parse_args()
    if options.planted:
        return 0 if all([found(*defect) for defect in DEFECTS.items()]) else 1
    cai_sim.start(adversarial=options.adversarial)
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    table = Table()
    arguments = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "--tb=line", "-k", SELECTED]
    status = int(pytest.main([*arguments, str(PYTHON_TESTS / "test_libraries.py"), *options.rest], plugins=[table]))
    text = "\n".join(table.lines()) + "\n"
    print(text)
    if options.table:
        options.table.write_text(text, encoding="utf-8")
    through = len(table.pairs["through cai"])
    if options.against and not compared(table.pairs["directly"], options.against):
        return 1
    if status:
        return status
    if not through:
        print("skipped: no library ran on the simulated driver")
        return 77
    if through < options.least:
        print(f"only {through} pairs ran through cai, {options.least} are expected")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
