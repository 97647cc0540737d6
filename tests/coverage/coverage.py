#!/usr/bin/env python3
"""Lines and branches of cai.h that the unit tests reach.

    coverage.py [--gcc gcc] [--gcov gcov] [--list]

Builds each tests/test_*.c with --coverage, runs it, and adds up what gcov saw of cai.h. A branch that
no test takes must stand in unreachable.txt beside this file, with the argument why it cannot be
taken; one that stands there and is taken is an error, too. Exit status 1 for either, or if more than
1 % of the branches are not taken. --list prints the uncovered ones in the form of that file.
"""

import argparse
import collections
import concurrent.futures
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = pathlib.Path(__file__).with_name("unreachable.txt")
LIMIT = 0.01


def measure(test, gcc, gcov, folder):
    """What gcov says of cai.h in one test program: its list of lines."""
    work = pathlib.Path(folder) / test.stem
    work.mkdir()
    flags = ["--coverage", "-O0", "-std=c99", "-I", str(ROOT), "-I", str(ROOT / "tests")]
    subprocess.run([gcc, *flags, str(test), "-o", "program"], cwd=work, check=True)
    subprocess.run(["./program"], cwd=work, check=True, stdout=subprocess.DEVNULL)
    data = next(work.glob("*.gcda"))
    subprocess.run([gcov, "--json-format", "--branch-counts", "--branch-probabilities", data.name],
                   cwd=work, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report = json.loads(gzip.open(next(work.glob("*.gcov.json.gz"))).read())
    return next(f["lines"] for f in report["files"] if pathlib.Path(f["file"]).name == "cai.h")


def merge(reports):
    """Counts by line and by (function, line, branch), added up over the programs."""
    lines, branches = collections.Counter(), collections.Counter()
    for report in reports:
        for line in report:
            lines[line["line_number"]] += line["count"]
            for number, branch in enumerate(line["branches"]):
                key = (line.get("function_name", ""), line["line_number"], number)
                branches[key] += branch["count"]
    return lines, branches


def names(branches, source):
    """Each uncovered branch as it stands in the list: function | source line | branch."""
    return {f"{function} | {source[line - 1].strip()} | {number}"
            for (function, line, number), count in branches.items() if count == 0}


def listed():
    """The branches of unreachable.txt; above each or a group of them stands its argument, after #."""
    found, argument = {}, ""
    for line in LIST.read_text().splitlines():
        if line.startswith("#"):
            argument = line
        elif line.strip():
            found[line.strip()] = argument
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gcc", default="gcc")
    parser.add_argument("--gcov", default="gcov")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    tests = sorted((ROOT / "tests").glob("test_*.c"))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        lines, branches = merge(pool.map(lambda t: measure(t, options.gcc, options.gcov, folder), tests))
    source = (ROOT / "cai.h").read_text().splitlines()
    uncovered, known = names(branches, source), listed()
    if options.list:
        print("\n".join(sorted(uncovered)))
    for name in sorted(uncovered - known.keys()):
        print(f"not taken, and not argued: {name}")
    for name in sorted(known.keys() - uncovered):
        print(f"argued, but taken or gone: {name}")
    for line, count in sorted(lines.items()):
        if count == 0:
            print(f"line {line} is never reached: {source[line - 1].strip()}")
    missed = sum(count == 0 for count in branches.values())
    reached = sum(count > 0 for count in lines.values())
    print(f"cai.h: lines {reached} of {len(lines)} ({100 * reached / len(lines):.2f} %), branches "
          f"{len(branches) - missed} of {len(branches)} ({100 - 100 * missed / len(branches):.2f} %), "
          f"uncovered {missed}, of them argued {len(uncovered & known.keys())}")
    bad = uncovered ^ known.keys() or missed > LIMIT * len(branches)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
