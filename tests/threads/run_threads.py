#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs many threads on one pool, on one manager of memory, on storages whose exports end on other threads, on caches
of streams, and on arrays that go from thread to thread, under ThreadSanitizer too, with and without the guard.

    tests/threads/run_threads.py [--cc CC] [--threads N] [--rounds N] [--root FOLDER]

The programs must be correct and clean; compiled with CAI_NO_THREADS, which takes the guards out,
they must be reported, or a clean report would mean nothing. Exit status 0: both so; 1: not; 77: no
compiler with ThreadSanitizer here.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EMPTY = """#include <pthread.h>
static int n;
static void *f(void *p) { n = 1; return p; }
int main(void) { pthread_t t; return pthread_create(&t, 0, f, 0) || pthread_join(t, 0) || n != 1; }
"""
RACE = """#include <pthread.h>
static int n;
static void *f(void *p) { n++; return p; }
int main(void) { pthread_t t; if (pthread_create(&t, 0, f, 0)) return 0; n++; return pthread_join(t, 0); }
"""


def build(cc, source, out, flags):
    command = [cc, "-std=c99", "-O1", "-g", *flags, str(source), "-o", str(out), "-pthread"]
    result = subprocess.run(command, capture_output=True, text=True)
    return None if result.returncode == 0 else f"{' '.join(command)}\n{result.stderr}"


def run(prefix, binary, arguments, seconds):
    """(exit status, output); a run that does not end counts as a failure. Where addresses are random, ThreadSanitizer
    may find its own taken before the program begins: that is tried again."""
    environment = dict(os.environ, TSAN_OPTIONS="halt_on_error=1:exitcode=66")
    for _ in range(20):
        try:
            done = subprocess.run([*prefix, str(binary), *map(str, arguments)], capture_output=True,
                                  text=True, errors="replace", timeout=seconds, env=environment)
        except subprocess.TimeoutExpired:
            return 124, "did not end"
        if "unexpected memory mapping" not in done.stderr:
            break
    return done.returncode, done.stdout + done.stderr


def sanitizer_prefix(cc, folder):
    """What goes before a program so that ThreadSanitizer works here, or None. Many kernels place programs at random,
    now and then where it does not want them, unless told not to."""
    programs = []
    for name, text in (("empty", EMPTY), ("race", RACE)):
        source = pathlib.Path(folder, name + ".c")
        source.write_text(text)
        programs.append(source.with_suffix(""))
        if build(cc, source, programs[-1], ["-fsanitize=thread"]):
            return None
    prefixes = ([["setarch", "-R"]] if shutil.which("setarch") else []) + [[]]
    for prefix in prefixes:
        if run(prefix, programs[0], [], 60)[0] == 0 and run(prefix, programs[1], [], 60)[0] == 66:
            return prefix
    return None


def race_of(log):
    """What the first report says, and where."""
    kind = re.search(r"WARNING: ThreadSanitizer: (.*?) \(pid", log)
    places = re.findall(r"(?:[Ww]rite|[Rr]ead) of size .*\n +#0 (\w+) \S*?([\w.]+:\d+)", log)
    where = " and ".join(f"{name} ({place})" for name, place in places[:2])
    return f"{kind.group(1)}, {where}" if kind else ""


def check(name, status, log, racy):
    """Prints one line; True if the run was as it should be."""
    if racy:
        good = status == 66 and bool(race_of(log))
        print(f"{name}: {'reported: ' + race_of(log) if good else f'NOT REPORTED, status {status}'}")
        return good
    good = status == 0 and "ThreadSanitizer" not in log
    print(f"{name}: {'clean: ' + log.strip() if good else f'FAILED, status {status}: {log[-4000:]}'}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--root", default=str(HERE.parents[1]), help="where the headers are")
    options = parser.parse_args()
    if not shutil.which(options.cc):
        print(f"run_threads.py: skipped, no {options.cc}")
        return 77
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        prefix = sanitizer_prefix(options.cc, folder)
        if prefix is None:
            print(f"run_threads.py: skipped, {options.cc} has no ThreadSanitizer that works here")
            return 77
        plain_build, guarded, without = [], ["-fsanitize=thread"], ["-fsanitize=thread", "-DCAI_NO_THREADS"]
        binary = pathlib.Path(folder, "threads")
        rounds = options.rounds
        for program, plain in (("threads.c", rounds * 10), ("emm.c", rounds * 10), ("storages.c", rounds),
                               ("caches.c", rounds), ("turns.c", rounds)):
            built = None
            for name, flags, table, count in (
                    ("plain", plain_build, "thin", plain),
                    ("plain, simulation", plain_build, "sim", rounds // 4),
                    ("ThreadSanitizer", guarded, "thin", rounds),
                    ("ThreadSanitizer, simulation", guarded, "sim", rounds // 8),
                    ("ThreadSanitizer without the guard", without, "thin", rounds)):
                if flags is not built:  # the tables have one program
                    folders = [f"-I{options.root}", f"-I{options.root}/ext", f"-I{HERE.parent / 'support'}"]
                    problem = build(options.cc, HERE / program, binary, [*flags, *folders])
                    if problem:
                        print(problem)
                        return 1
                    built = flags
                for _ in range(5 if flags is without else 1):  # threads may happen to come one after the other
                    status, log = run(prefix if flags else [], binary, [table, options.threads, count], 900)
                    if race_of(log):
                        break
                bad |= not check(f"{program}, {name}", status, log, flags is without)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
