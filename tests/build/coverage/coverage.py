#!/usr/bin/env python3
"""Lines and branches of cai.h, or of another header, that the tests reach.

    coverage.py [--header cai_stream.h|cai_emm.h|cai_manager.h|cai_move.h|cai_place.h|cai_layout.h|cai_scaled.h|cai_small_view.h|cai_storage.h|cai_tensor_map.h|cai_transfer.h] [--gcc gcc] [--gcov gcov] [--list]

Builds the tests of the header with --coverage, runs them, and adds up what gcov saw of the header:
tests/*/test_*.c, for cai_stream.h and cai_manager.h tests/cases too, for the latter also the model of tests/emm.
Tests of cai_manager.h that are for cai_emm.h, too, are named here. A branch that no test takes must stand in the
list of the header beside this file (unreachable.txt, unreachable_stream.txt, ...), with the argument why it cannot
be taken; one that stands there and is taken is an error, too. Exit status 1 for either, for a line that is never
reached, or if more than 1 % of the branches are not taken. --list prints the uncovered ones in the form of that
file. Of cai_stream.h two parts are not counted: the driver behind the table (tests/stream/loader) and the guard (tests/threads).
"""

import argparse
import collections
import concurrent.futures
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
TESTS = ROOT / "tests"
LIMIT = 0.01
SECTION = re.compile(r"/\* [-=]+ >>([\w -]+?)(?: \*/|$)")

Program = collections.namedtuple("Program", "name sources arguments")
# Of each header: its list, or None if the tests take all branches, and sections (by their comments) that other tests
# are for.
HEADERS = {
    "cai.h": ("unreachable.txt", ()),
    "cai_stream.h": ("unreachable_stream.txt", ("guard", "driver table", "finding the driver")),
    "cai_emm.h": ("unreachable_emm.txt", ()),
    "cai_manager.h": ("unreachable_manager.txt", ()),
    "cai_place.h": ("unreachable_place.txt", ()),
    "cai_move.h": (None, ()),
    "cai_layout.h": (None, ()),
    "cai_scaled.h": (None, ()),
    "cai_small_view.h": (None, ()),
    "cai_storage.h": ("unreachable_storage.txt", ()),
    "cai_tensor_map.h": (None, ()),
    "cai_transfer.h": (None, ()),
}


# Runners of cases, the header that they are for, and their files
CASES = (("run_cases.c", "cai_stream.h", ("streams.txt", "pointers.txt")),
         ("run_memory.c", "cai_manager.h", ("memory.txt",)))
# Tests of a header that reach one below it, which others do not test in whole
ALSO = {"cai_emm.h": ("test_emm.c", "test_emm_contexts.c")}


def included_by(source):
    """The headers that a test includes, also by a header beside it."""
    found = re.findall(r'#include "(?:\.\./)*([\w/]+\.[ch])"', source.read_text())
    beside = [source.parent / name for name in found if (source.parent / name).exists()]
    return found + [name for each in beside for name in included_by(each)]


def programs_of(header):
    """The tests that reach a header. Those of the simulated CUDA itself reach neither, and what needs headers of
    other projects is left out."""
    found = []
    for test in sorted(TESTS.glob("*/test_*.c")):
        if test.parent.name == "driver":  # of libraries, not of headers
            continue
        included = included_by(test)
        if {"cai_dlpack.h", "cai_python_dlpack.h"}.intersection(included) or test.parent.name in ("hip", "mpi"):  # these need headers of other projects
            continue
        of = next((name for name in ("cai_move.h", "cai_scaled.h", "cai_small_view.h", "cai_storage.h", "cai_tensor_map.h", "cai_transfer.h", "cai_layout.h", "cai_place.h", "cai_manager.h", "cai_emm.h", "cai_stream.h") if name in included), None)
        if not of and not any(name.startswith("sim/") for name in included):
            of = "cai.h"
        if of == header or test.name in ALSO.get(header, ()):
            found.append(Program(test.stem, [test], []))
    cases, simulation = TESTS / "cases", ROOT / "sim" / "cai_sim.c"
    for runner, of, files in CASES:
        if header == of and (cases / runner).exists():
            found.append(Program(runner[:-2], [cases / runner, cases / "caller_per_thread.c", simulation],
                                 [str(cases / name) for name in files]))
    if header == "cai_manager.h":
        found.append(Program("model", [TESTS / "emm" / "model.c"], ["1", "50000", "--seeds", "4", "--quiet"]))
    return found


def measure(program, header, gcc, gcov, folder):
    """What gcov says of a header in one program: its list of lines."""
    work = pathlib.Path(folder) / program.name
    work.mkdir()
    flags = ["--coverage", "-fprofile-update=atomic", "-O0", "-std=c99", "-pthread", *(f"-I{path}" for path in (ROOT, TESTS / "support", ROOT / "ext", ROOT / "sim"))]
    subprocess.run([gcc, *flags, *map(str, program.sources), "-o", "program"], cwd=work, check=True)
    done = subprocess.run(["./program", *program.arguments], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)  # fmt: skip
    if done.returncode:
        print(f"{program.name} fails, with exit status {done.returncode}: ...{done.stdout[-500:]}")
    data = [path.name for path in work.glob("*.gcda")]
    subprocess.run([gcov, "--json-format", "--branch-counts", "--branch-probabilities", *data],
                   cwd=work, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lines = []
    for path in work.glob("*.gcov.json.gz"):
        report = json.loads(gzip.open(path).read())
        lines += [line for file in report["files"] if pathlib.Path(file["file"]).name == header for line in file["lines"]]
    return done.returncode, lines


def excluded_lines(source, sections):
    """The lines of the sections that are not counted: from the comment of each to the next one."""
    starts = [(number, match[1]) for number, line in enumerate(source, 1) if (match := SECTION.match(line))]
    excluded = set()
    for section in sections:
        places = [place for place, (_, name) in enumerate(starts) if name == section]
        if len(places) != 1:
            sys.exit(f"{len(places)} sections are called {section!r}, not 1")
        start = starts[places[0]][0]
        end = starts[places[0] + 1][0] if places[0] + 1 < len(starts) else len(source) + 1
        print(f"not counted: >>{section}, lines {start} to {end - 1}: other tests are for it")
        excluded.update(range(start, end))
    return excluded


def merge(reports, excluded):
    """Counts by line and by (function, line, branch), added up over the programs."""
    lines, branches = collections.Counter(), collections.Counter()
    for report in reports:
        for line in report:
            if line["line_number"] in excluded:
                continue
            lines[line["line_number"]] += line["count"]
            for number, branch in enumerate(line["branches"]):
                key = (line.get("function_name", ""), line["line_number"], number)
                branches[key] += branch["count"]
    return lines, branches


def names(branches, source):
    """Each uncovered branch as it stands in the list: function | source line | branch."""
    return {f"{function} | {source[line - 1].strip()} | {number}"
            for (function, line, number), count in branches.items() if count == 0}


def listed(name):
    """The branches of the list; above each or a group of them stands its argument, after #."""
    found, argument = {}, ""
    text = pathlib.Path(__file__).with_name(name).read_text() if name else ""
    for line in text.splitlines():
        if line.startswith("#"):
            argument = line
        elif line.strip():
            found[line.strip()] = argument
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--header", choices=sorted(HEADERS), default="cai.h")
    parser.add_argument("--gcc", default="gcc")
    parser.add_argument("--gcov", default="gcov")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    header, (list_name, sections) = options.header, HEADERS[options.header]
    source = next(path for path in (ROOT / header, ROOT / "ext" / header) if path.exists()).read_text().splitlines()
    excluded = excluded_lines(source, sections)
    programs = programs_of(header)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda p: measure(p, header, options.gcc, options.gcov, folder), programs))
    lines, branches = merge([report for _, report in done], excluded)
    uncovered, known = names(branches, source), listed(list_name)
    if options.list:
        print("\n".join(sorted(uncovered)))
    for name in sorted(uncovered - known.keys()):
        print(f"not taken, and not argued: {name}")
    for name in sorted(known.keys() - uncovered):
        print(f"argued, but taken or gone: {name}")
    unreached = [line for line, count in sorted(lines.items()) if count == 0]
    for line in unreached:
        print(f"line {line} is never reached: {source[line - 1].strip()}")
    missed = sum(count == 0 for count in branches.values())
    reached = len(lines) - len(unreached)
    print(f"{header}, {len(programs)} programs: lines {reached} of {len(lines)} ({100 * reached / len(lines):.2f} %), branches "
          f"{len(branches) - missed} of {len(branches)} ({100 - 100 * missed / len(branches):.2f} %), "
          f"uncovered {missed}, of them argued {len(uncovered & known.keys())}")
    failed = any(status for status, _ in done)
    bad = failed or unreached or uncovered ^ known.keys() or missed > LIMIT * len(branches)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
