# SPDX-License-Identifier: MIT
"""What the scripts named planted.py have in common: a copy of some files with one defect, a program made of it, and
a verdict on what that prints."""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent
HEADERS = ("cai.h", "cai_stream.h", "cai_emm.h")


def parser(text):
    """The options that all have, with the first line of a documentation string."""
    made = argparse.ArgumentParser(description=text.splitlines()[0])
    made.add_argument("--cc", default=os.environ.get("CC", "cc"))
    made.add_argument("--root", type=pathlib.Path, default=TESTS.parent, help="where the headers are")
    made.add_argument("--only", default="", help="defects with this in their names")
    made.add_argument("--jobs", type=int, default=os.cpu_count())
    return made


def substitute(source, target, find, replace):
    """Copies a file with a defect; False if it does not apply. Without `find` a plain copy."""
    text = source.read_text()
    changed, count = re.subn(find, replace, text, count=1) if find else (text, 1)
    target.write_text(changed)
    return count == 1 and (changed != text or not find)


def copy_headers(root, folder, header, find, replace):
    """The headers in a folder, one of them with a defect; False if it does not apply."""
    for name in HEADERS:
        shutil.copy(root / name, folder / name)
    return substitute(root / header, folder / header, find, replace)


def compile_with(options, *arguments):
    """None, or what the compiler says."""
    command = [options.cc, "-std=c99", "-w", *map(str, arguments), "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    return f"{' '.join(command)}\n{done.stderr}" if done.returncode else None


def execute(command, seconds):
    """(exit status, output); the status of a program that does not end is None."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode(errors="replace") + "\ndid not end\n"
    return done.returncode, done.stdout + done.stderr


def judge_all(options, defects, judge, prepare=None):
    """Exit status. defects: of the form (name, ...); judge(options, folder, work, defect) says (good, what to print)
    of each, and of none: a name alone. prepare(options, work): what all have in common; an error, or None."""
    if not shutil.which(options.cc):
        print(f"planted.py: skipped, no {options.cc}")
        return 77
    chosen = [("no defect",)] + [defect for defect in defects if options.only in defect[0]]
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = pathlib.Path(name)
        error = prepare(options, work) if prepare else None
        if error:
            print(error)
            return 1

        def one(number, defect):
            folder = work / str(number)
            folder.mkdir()
            good, line = judge(options, folder, work, defect)
            return good, f"{defect[0]}: {line}"

        results = [job.result() for job in [pool.submit(one, *numbered) for numbered in enumerate(chosen)]]
    for _, line in results:
        print(line)
    bad = sum(not good for good, _ in results)
    print(f"{len(chosen) - 1} defects planted, {bad} of {len(chosen)} results are wrong")
    return 1 if bad else 0
