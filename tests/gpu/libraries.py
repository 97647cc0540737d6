#!/usr/bin/env python3
"""tests/python/test_libraries.py on the device: a crash of one test does not hide the others.

    libraries.py [--processes 6]

Shares the tests out to some processes of pytest. If one is killed, the test that it was in is named, and the
rest of its share goes on. Prints one line for each test that did not pass. Exit status 0: all passed or were
skipped.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = "tests/python/test_libraries.py"
CALL = [sys.executable, "-B", "-X", "faulthandler", "-m", "pytest", "-p", "no:cacheprovider", "--tb=short"]
LINE = re.compile(r"^(\S+::.*?) (PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS)\b", re.M)
STARTED = re.compile(r"^(tests/\S+::\S.*?\]|tests/\S+::\w+)(?= )", re.M)


def collected():
    """The tests, in the order of the file."""
    said = subprocess.run([*CALL, "-q", "--collect-only", "-k", "device or ours", TESTS], cwd=ROOT, text=True,
                          capture_output=True)
    names = [line for line in said.stdout.splitlines() if line.startswith(TESTS + "::")]
    if not names:
        print(said.stdout[-3000:], said.stderr[-2000:])
    return names


def shares(names, count):
    """Tests with the same first library go to one share, as its import costs time."""
    made = [[] for _ in range(count)]
    by_first = collections.defaultdict(list)
    for name in names:
        first = re.search(r"\[([^-\]]*)", name)
        by_first[first.group(1) if first else ""].append(name)
    for some in sorted(by_first.values(), key=len, reverse=True):
        min(made, key=len).extend(some)
    return [some for some in made if some]


def run(names):
    """What became of each test."""
    found = {}
    while names:
        said = subprocess.run([*CALL, "-v", "-rf", *names], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        found.update({name: what for name, what in LINE.findall(said.stdout) if name in names})
        rest = [name for name in names if name not in found]
        if said.returncode >= 0:
            found.update({name: "NOT RUN" for name in rest})
            print(*re.findall(r"^(?:E  |FAILED ).*", said.stdout, re.M), sep="\n", flush=True)
            return found
        if not rest:
            return {**found, names[-1]: f"killed by signal {-said.returncode} at the end"}
        begun = [name for name in STARTED.findall(said.stdout) if name in rest]
        found[begun[-1] if begun else rest[0]] = f"killed by signal {-said.returncode}"
        names = [name for name in rest if name not in found]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=min(6, os.cpu_count() or 1))
    options = parser.parse_args()
    names = collected()
    if not names:
        return 1
    results = {}
    with concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
        waiting = [pool.submit(run, some) for some in shares(names, options.processes)]
        for one in concurrent.futures.as_completed(waiting):
            results.update(one.result())
            print(f"{len(results)} of {len(names)} tests", flush=True)
    bad = {name: what for name, what in results.items() if what not in ("PASSED", "SKIPPED", "XFAIL")}
    for name in sorted(bad):
        print(f"{bad[name]}: {name}")
    counts = collections.Counter(results.values())
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
