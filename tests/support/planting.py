# SPDX-License-Identifier: MIT
"""What the lists of planted defects have in common: sources with many defects that are switched on one at a time at
run time (mutants.py), programs made of them, and a verdict on what these print.

A list is a table of defects and a Subject that says how its programs are made and run. A defect that cannot be
switched on at run time has sources and programs of its own. A defect that does not apply to the sources any more is a
failure, whether it is run or not.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import typing

from mutants import plant_together

SUPPORT = pathlib.Path(__file__).resolve().parent
VARIABLE = "CAI_PLANTED"


@dataclasses.dataclass(frozen=True)
class Defect:
    """What it is, in which file, what stands there, what stands there instead, and what else a list knows of it."""

    name: str
    file: str
    find: str
    replace: str
    more: typing.Any = None


NONE = Defect("no defect", "", "", "")


class Subject:
    """How the programs of a list are made and run."""

    def build(self, options, tree, folder):
        """Makes all programs in a folder, of the sources in a tree; an error, or None."""
        raise NotImplementedError

    def run(self, options, tree, folder, environment, defect):
        """(good, what to print) of one defect, or of NONE; the environment switches it on."""
        raise NotImplementedError


def parser(text):
    """The options that all have, with the first line of a documentation string."""
    made = argparse.ArgumentParser(description=text.splitlines()[0])
    made.add_argument("--cc", default=os.environ.get("CC", "cc"))
    made.add_argument("--root", type=pathlib.Path, default=SUPPORT.parents[1], help="where the headers are")
    made.add_argument("--only", default="", help="defects with this in their names")
    made.add_argument("--share", type=int, default=1, metavar="N", help="one of N defects")
    made.add_argument("--sample", default="", metavar="TEXT", help="which ones; the commit that is checked out, without it")
    made.add_argument("--jobs", type=int, default=2)
    made.add_argument("--alone", action="store_true", help="build each defect by itself")
    return made


def compile_with(options, *arguments):
    """None, or what the compiler says. What is not in a folder of the arguments comes from options.root."""
    folders = [f"-I{at}" for at in (options.root, options.root / "ext", options.root / "sim", SUPPORT)]
    command = [options.cc, "-std=c99", "-w", *map(str, arguments), *folders, "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    return f"{' '.join(command)}\n{done.stderr}" if done.returncode else None


def compile_each(options, folder, sources, *arguments):
    """A program of each source, with its name, in a folder; what the compiler says of the first that fails, or None."""
    for source in sources:
        error = compile_with(options, *arguments, source, "-o", folder / source.stem)
        if error:
            return error
    return None


def folders_of(tree):
    """Arguments of compile_with: what is in a tree comes from there."""
    return [f"-I{tree}", f"-I{tree / 'ext'}", f"-I{tree / 'sim'}"]


def execute(command, seconds, environment=None):
    """(exit status, output); the status of a program that does not end is None."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", timeout=seconds,
                              env={**os.environ, **(environment or {})})  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode(errors="replace") + "\ndid not end\n"
    return done.returncode, done.stdout + done.stderr


def execute_until(command, seconds, mark, environment=None):
    """The same of a program that is ended, with status 1, at its first line with a mark."""
    run = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           errors="replace", env={**os.environ, **(environment or {})})  # fmt: skip
    late = threading.Timer(seconds, run.kill)
    late.start()
    output = ""
    with run:
        for line in run.stdout:
            output += line
            if re.search(mark, line):
                run.kill()
                break
        else:
            mark = None
    ended = not late.finished.is_set()
    late.cancel()
    return 1 if mark else run.returncode if ended else None, output


# ------------------------------------------------------------------------------- which ones


def commit_of(root):
    """The commit that is checked out; nothing where there is none."""
    if not shutil.which("git"):
        return ""
    done = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def choose(options, defects):
    """Those of --only, and of these one of --share, others with each commit; says which sample it is."""
    named = [defect for defect in defects if options.only in defect.name]
    if options.share <= 1:
        return named
    sample = options.sample or commit_of(options.root) or "no commit"
    drawn = sorted(named, key=lambda defect: hashlib.sha256(f"{sample}\n{defect.name}".encode()).digest())
    drawn = set(drawn[: math.ceil(len(named) / options.share)])
    print(f"{len(drawn)} of {len(named)} defects, drawn by --share {options.share} --sample {sample}")
    return [defect for defect in named if defect in drawn]


# ------------------------------------------------------------------------------------ trees


def make_tree(root, folder, changed):
    """A folder with the sources of root; changed: texts that are other ones, by the path."""
    root = root.resolve()
    for at in [*root.glob("*.h"), *root.glob("ext/*"), *root.glob("sim/*")]:
        path = at.relative_to(root)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if str(path) in changed:
            (folder / path).write_text(changed[str(path)])
        else:
            (folder / path).symlink_to(at)
    return folder


def changes_of(options, defects):
    """By the name of each defect that applies (begin, end, the whole text with it), and the texts by their files."""
    texts = {file: (options.root / file).read_text() for file in {defect.file for defect in defects}}
    changes = {}
    for defect in defects:
        found = re.search(defect.find, texts[defect.file])
        changed = re.sub(defect.find, defect.replace, texts[defect.file], count=1)
        if found and changed != texts[defect.file]:
            changes[defect.name] = (found.start(), found.end(), changed)
    return changes, texts


def build_together(options, subject, work, numbered, changes, texts):
    """Programs with all defects that can be switched on at run time; an error or None, and the numbers of these.

    What does not compile is left out: it has programs of its own, and says there what is wrong with it."""
    numbers = set(numbered)
    for attempt in range(4):
        made = {}
        for file, text in texts.items():
            of_file = [(n, *changes[numbered[n].name]) for n in sorted(numbers) if numbered[n].file == file]
            made[file] = plant_together(text, of_file)
        numbers = {number for one in made.values() for number in one.lines}
        tree = make_tree(options.root, work / f"tree{attempt}", {file: one.text for file, one in made.items()})
        folder = work / f"together{attempt}"
        folder.mkdir()
        error = subject.build(options, tree, folder)
        if not error:
            return None, numbers, tree, folder
        bad = {number for file, one in made.items()
               for line in re.findall(re.escape(pathlib.Path(file).name) + r":(\d+):", error) for number in one.numbers_at(int(line))}  # fmt: skip
        numbers = numbers - bad if bad else set()
    return error, set(), None, None


# ------------------------------------------------------------------------------------ judge


def judge_alone(options, subject, work, number, defect, changed):
    """(good, what to print) of a defect that has programs of its own."""
    tree = make_tree(options.root, work / f"tree_{number}", {defect.file: changed})
    folder = work / f"alone_{number}"
    folder.mkdir()
    error = subject.build(options, tree, folder)
    if error:
        return False, f"DOES NOT COMPILE: {error[:800]}"
    return subject.run(options, tree, folder, {}, defect)


def judge_all(options, defects, subject):
    """Exit status."""
    if not shutil.which(options.cc):
        print(f"planted.py: skipped, no {options.cc}")
        return 77
    changes, texts = changes_of(options, defects)
    stale = [defect for defect in defects if defect.name not in changes]
    for defect in stale:
        print(f"{defect.name}: DOES NOT APPLY any more: {defect.find}")
    chosen = [defect for defect in choose(options, defects) if defect not in stale]
    if options.only and not chosen:
        print(f"no defect that applies has {options.only!r} in its name")
        return 1
    numbered = dict(enumerate(chosen, 1))
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = pathlib.Path(name)
        asked = {} if options.alone else numbered
        error, together, tree, folder = build_together(options, subject, work, asked, changes, texts)
        if error:
            print(error)
            return 1

        def one(number, defect):
            if number and number not in together:
                return judge_alone(options, subject, work, number, defect, changes[defect.name][2])
            return subject.run(options, tree, folder, {VARIABLE: str(number)}, defect)

        jobs = [(defect, pool.submit(one, number, defect)) for number, defect in {0: NONE, **numbered}.items()]
        bad = 0
        for defect, job in jobs:
            good, line = job.result()
            bad += not good
            print(f"{defect.name}: {line}", flush=True)
    print(f"{len(chosen)} defects planted, {len(together)} of them in one build; {bad} of {len(jobs)} results are wrong"
          + (f"; {len(stale)} do not apply" if stale else ""))  # fmt: skip
    return 1 if bad or stale else 0
