#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how many defects the tier quick finds by itself.

    tests/support/quick_share.py [--planted PERCENT] [--mutants PERCENT] [--share N] [--count N] [--sample TEXT] [--only TEXT]
        [--cc CC] [--dlpack FOLDER] [--longest SECONDS] [--jobs N] [--work FOLDER] [--verbose]

The defects are one of N of each table of planted defects (planted*.py), and N random mutants of operators in the
headers, in proportion to the lines of their functions. TEXT, without it the version of the project, says which ones.

A copy of the project is configured as quick and built once with all defects, each switched on at run time
(mutants.py). A first run without a defect tells how long each test takes, and which functions with defects it calls.
Each defect is then shown to the tests that call its function, the shortest first but for the one that found another
defect of its table, up to the first that fails or that takes eight times as long as without a defect, and two seconds. A
defect that is not in one function has builds of its own, program by program. Tests that fail without a defect in the
copy, or take longer than --longest, are left out by name. At the end the tests that found something run without a
defect once more.

Prints found / of for each table and header, and each defect that was not found with its place. EQUIVALENT names mutants
that change nothing, each with the reason; they are not counted. Exit status 0; 1: a share is below its limit, or a
test found something where there was nothing; 2: the copy cannot be built; 77: no C compiler, or no CMake.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import hashlib
import importlib.util
import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"  # where planting.py and mutants.py are
sys.path.insert(0, str(SUPPORT))
from mutants import SWITCH, functions_of, plant_together  # noqa: E402
from planting import VARIABLE, changes_of  # noqa: E402

TRACE = "CAI_PLANTED_TRACE"  # a file for the numbers of functions that were called
FASTER = (["--first", "--here"], ["--first"], [])  # options of parts.py, not all of which all parts bear

OTHERS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
    "&&": ("||",), "||": ("&&",), "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("*",), "&": ("|",),
    "|": ("&",), "^": ("|",), "<<": (">>",), ">>": ("<<",), "+=": ("-=",), "-=": ("+=",), "|=": ("&=",), "&=": ("|=",),
    "++": ("--",), "--": ("++",), "!": ("",),
}  # fmt: skip
OPERATOR = re.compile(r"(?<= )(?:[<>=!]=|<<|>>|[-+|&]=|&&|\|\||[-<>+*/%&|^])(?=\s)|\+\+|--|!(?=[\w(])")
NO_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|^[ \t]*#(?:\\\n|[^\n])*",
                     re.S | re.M)  # fmt: skip

# The file, the change, the line without blanks around it, and why it changes nothing that anybody could see
EQUIVALENT = [
    ("cai.h", "'>=' to '>'", "const int over = data >= below;",
     "where they are equal, the elements end below 2^64, unless data is NULL, which has a message of its own"),
    ("cai_stream.h", "'<' to '<='",
     "if (stream - 3 >= UINT64_MAX - 3 || !ex || !pool || !pool->cuda || !arrays || count < 1 ||",
     "one array goes the way of all others, which makes the same calls; bench.budgets counts the instructions"),
    ("ext/cai_ipc.h", "'<=' to '<'", "if (start <= nbytes && in->size <= nbytes - start) return CAI_OK;",
     "it is asked of arrays with elements alone, which are not inside if they start at the end"),
    ("ext/cai_python.h", "'<' to '<='", "for (i = 0; i < CAI_PYTHON_NAMES; ++i) Py_CLEAR(py->names[i]);",
     "what comes behind the names is mro_of, which is cleared as well"),
]  # fmt: skip

# What comes instead of mutants.SWITCH: the same, and a note of each function that is called
TRACING = """#if __INCLUDE_LEVEL__
#pragma GCC system_header /* no warnings: some tests make them errors */
#endif
#ifndef CAI_PLANTED_SWITCH
#define CAI_PLANTED_SWITCH
#ifdef __cplusplus
extern "C" {
#endif
/* under names that no source has */
extern char *cai_planted_getenv(const char *name) __asm__("getenv");
extern int cai_planted_atoi(const char *text) __asm__("atoi");
extern int cai_planted_open(const char *path, int flags, ...) __asm__("__open");
extern long cai_planted_write(int file, const void *bytes, unsigned long count) __asm__("__write");
extern int cai_planted_close(int file) __asm__("__close");
#ifdef __cplusplus
}
#endif
static int cai_planted;
static const char *cai_planted_trace;
static char cai_planted_seen[MOST];
__attribute__((constructor)) static void cai_planted_read(void)
{
    const char *text = cai_planted_getenv("CAI_PLANTED");
    if (text) cai_planted = cai_planted_atoi(text);
    cai_planted_trace = cai_planted_getenv("CAI_PLANTED_TRACE");
}
static int cai_planted_in(int function)
{
    if (cai_planted_trace && !cai_planted_seen[function]) {
        char line[8];
        int at = 8, file = cai_planted_open(cai_planted_trace, 02001 | 0100, 0600), rest = function;
        cai_planted_seen[function] = 1;
        for (line[--at] = 10; at; rest /= 10) line[--at] = (char)(48 + rest % 10);
        if (file >= 0 && cai_planted_write(file, line, 8) == 8) {}
        if (file >= 0) cai_planted_close(file);
    }
    return cai_planted;
}
#endif
"""


@dataclasses.dataclass
class Planted:
    """A defect: of which table or header, what it is, and the whole text of its file with it."""

    table: str
    name: str
    file: str
    begin: int
    end: int
    changed: str
    place: str  # for people
    random: bool = False
    numbers: frozenset[int] = frozenset()  # of the defects of its function; none: not switched on at run time


@dataclasses.dataclass
class Test:
    """One of the tier. reached: numbers of functions, or None if that is not known."""

    name: str
    commands: list[list[str]]  # the first that passes without a defect is taken, and is the only one then
    environment: dict[str, str]
    folder: str
    built: list[str] | None = None  # the command that builds its module
    seconds: float = 0
    reached: set[int] | None = None


Results = dict[int, tuple["str | None", int]]  # by the number of the defect: who found it, how many could have

# ------------------------------------------------------------------------------- the defects


def tables(options: argparse.Namespace) -> dict[str, list[typing.Any]]:
    """The defects of each table, which are what it would hand to planting.py."""
    made = {}
    for path in sorted((ROOT / "tests").glob("**/planted*.py")):
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(f"table_{path.parent.name}_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        got: list[typing.Any] = []
        for name in ("judge_all", "judge_parts"):
            if hasattr(module, name):
                setattr(module, name, lambda options, defects, *_: got.extend(defects) or 0)
        if hasattr(module, "main"):
            takes = options.dlpack and '"--dlpack"' in path.read_text()
            sys.argv = [str(path), "--cc", options.cc, *(["--dlpack", str(options.dlpack)] if takes else [])]
            module.main()
        if got:
            made[str(path.relative_to(ROOT))] = got
    return made


def drawn(sample: str, table: str, texts: typing.Iterable[str], count: int) -> list[int]:
    """Which of the texts: the first ones in the order of a hash."""
    keys = [hashlib.sha256(f"{sample}\n{table}\n{text}".encode()).digest() for text in texts]
    return sorted(range(len(keys)), key=lambda at: keys[at])[:count]


def place_of(file: str, text: str, at: int) -> str:
    return f"{file}:{text.count(chr(10), 0, at) + 1}"


def planted_ones(options: argparse.Namespace) -> list[Planted]:
    """The sample of the tables."""
    made = []
    for table, defects in tables(options).items():
        changes, texts = changes_of(argparse.Namespace(root=ROOT), defects)
        for defect in (one for one in defects if one.name not in changes):
            print(f"{table}: {defect.name}: does not apply")
        apply = [one for one in defects if one.name in changes and options.only in one.name]
        count = math.ceil(len(apply) / options.share)
        for at in drawn(options.sample, table, (one.name for one in apply), count):
            begin, end, changed = changes[apply[at].name]
            place = place_of(apply[at].file, texts[apply[at].file], begin)
            made.append(Planted(table, apply[at].name, apply[at].file, begin, end, changed, place))
    return made


def includes(options: argparse.Namespace, root: pathlib.Path) -> list[str]:
    folders = [root, root / "ext", root / "sim", sysconfig.get_path("include"), options.dlpack]
    return [f"-I{folder}" for folder in folders if folder]


def compile_unit(options: argparse.Namespace, root: pathlib.Path, text: str, *arguments: str) -> tuple[int, str, str]:
    """(exit status, output, errors) of the compiler for a text."""
    command = [options.cc, "-x", "c", "-std=gnu99", "-w", "-DCAI_NO_CUDART", *includes(options, root), *arguments, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def unit_of(root: pathlib.Path, files: list[str]) -> str:
    """All headers in one, what the others include first."""
    return "#define CAI_IMPLEMENTATION\n" + "".join(f'#include "{root / file}"\n' for file in files)


def headers_here(options: argparse.Namespace) -> list[str]:
    """Those that can be compiled on this machine."""
    every = [str(path.relative_to(ROOT)) for folder in (ROOT, ROOT / "ext") for path in sorted(folder.glob("*.h"))]
    good = [header for header in every if not compile_unit(options, ROOT, unit_of(ROOT, [header]), "-fsyntax-only")[0]]
    for header in sorted(set(every) - set(good)):
        print(f"{header}: left out, it does not compile here")
    return good


def lines_compiled(options: argparse.Namespace, headers: list[str]) -> dict[str, set[int]]:
    """The lines of each header that the compiler sees: not those for other machines."""
    found: dict[str, set[int]] = {header: set() for header in headers}
    by_name = {str(ROOT / header): lines for header, lines in found.items()}
    lines, at = None, 0
    for line in compile_unit(options, ROOT, unit_of(ROOT, headers), "-E")[1].splitlines():
        marker = re.match(r'# (\d+) "([^"]*)"', line)
        if marker:
            lines, at = by_name.get(os.path.normpath(marker.group(2))), int(marker.group(1))
            continue
        if lines is not None and line.strip():
            lines.add(at)
        at += 1
    return found


def candidates(header: str, text: str, seen: set[int]) -> list[Planted]:
    """All mutants of operators in functions of a header."""
    code = NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group(0)), text)
    made = []
    for function in functions_of(text):
        for found in OPERATOR.finditer(code, text.index("{", function.begin), function.end):
            line = text.count("\n", 0, found.start()) + 1
            for other in OTHERS[found.group(0)] if line in seen else ():
                changed = text[: found.start()] + other + text[found.end() :]
                stripped = text.splitlines()[line - 1].strip()
                name = f"{function.name}: '{found.group(0)}' to '{other}' in: {stripped}"
                column = found.start() - text.rfind("\n", 0, found.start())
                made.append(Planted(header, name, header, found.start(), found.end(), changed,
                                    f"{header}:{line}:{column}", True))  # fmt: skip
    return made


def is_equivalent(mutant: Planted) -> bool:
    return any(mutant.file == file and f": {change} in: {line}" in mutant.name for file, change, line, _ in EQUIVALENT)


def random_ones(options: argparse.Namespace) -> list[Planted]:
    """The sample of mutants."""
    headers = headers_here(options)
    seen = lines_compiled(options, headers)
    texts = {header: (ROOT / header).read_text() for header in headers}
    lines = {header: sum(text.count("\n", one.begin, one.end) for one in functions_of(text))
             for header, text in texts.items()}  # fmt: skip
    made = []
    for header, text in texts.items():
        every = [one for one in candidates(header, text, seen[header]) if options.only in one.name]
        count = round(options.count * lines[header] / sum(lines.values()))
        made += [every[at] for at in drawn(options.sample, header, (f"{one.name}{one.begin}" for one in every), count)]
    left = [one for one in made if is_equivalent(one)]
    for one in left:
        print(f"{one.place}: {one.name}: equivalent, not counted")
    return [one for one in made if one not in left]


# ----------------------------------------------------------------------- the copy, and its build


def copy_of(root: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The files that are newer than their copies, so that a folder of --work is not built anew."""

    def ignored(at: str, names: list[str]) -> set[str]:
        top = pathlib.Path(at) == root
        return {name for name in names if name in (".git", "__pycache__") or top and name.startswith("build")}

    def copy(source: str, target: str) -> None:
        if not os.path.exists(target) or os.path.getmtime(source) > os.path.getmtime(target):
            shutil.copy2(source, target)

    return pathlib.Path(shutil.copytree(root, folder, ignore=ignored, copy_function=copy, dirs_exist_ok=True))


def write_if_other(path: pathlib.Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def trace_calls(text: str, most: int) -> str:
    """Every dispatcher notes that it was called, under the first number that it knows."""
    text = re.sub(r"switch \(cai_planted\) \{\n    case (\d+):", r"switch (cai_planted_in(\1)) {\n    case \1:", text)
    return text.replace(SWITCH, TRACING.replace("MOST", str(most + 1)))


def plant_all(options: argparse.Namespace, tree: pathlib.Path, numbered: dict[int, Planted]) -> dict[int, Planted]:
    """Writes the files with all defects that compile; returns those that are left. What does not compile is no mutant;
    a planted defect that does not compile so has a build of its own."""
    headers = headers_here(options)
    kept = dict(numbered)
    for attempt in range(6):
        bad = set()
        for file in {one.file for one in numbered.values()}:
            of_file = [(number, one.begin, one.end, one.changed) for number, one in kept.items() if one.file == file]
            made = plant_together((ROOT / file).read_text(), of_file)
            groups = re.findall(r"switch \(cai_planted\) \{\n((?:    case \d+:.*\n)+)", made.text)
            for group in groups:
                numbers = frozenset(map(int, re.findall(r"^    case (\d+):", group, re.M)))
                for number in numbers:
                    kept[number].numbers = numbers
            write_if_other(tree / file, trace_calls(made.text, max(numbered)))
            unit = unit_of(tree, headers if file in headers else [file])
            # what TRACING is longer than SWITCH
            more = TRACING.count("\n") - SWITCH.count("\n")
            errors = compile_unit(options, tree, unit, "-fsyntax-only")[2] if attempt < 5 else ""
            for line in re.findall(re.escape(str(tree / file)) + r":(\d+):\d+: error", errors):
                bad |= set(made.numbers_at(int(line) - more))
        if not bad:
            break
        for number in bad:
            numbered[number].numbers = frozenset()
        kept = {number: one for number, one in kept.items() if number not in bad}
    return {number: one for number, one in numbered.items() if one.numbers or not one.random}


def run_quietly(command: list[str], folder: pathlib.Path | None = None) -> str | None:
    """None, or the end of what a command says that fails."""
    done = subprocess.run(list(map(str, command)), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)  # fmt: skip
    return None if not done.returncode else done.stdout[-4000:]


def build(options: argparse.Namespace, tree: pathlib.Path, folder: pathlib.Path) -> str | None:
    arguments = ["-DCAI_TESTS=quick", f"-DCMAKE_C_COMPILER={options.cc}", "-DCMAKE_C_FLAGS=-w", "-DCMAKE_CXX_FLAGS=-w",
                 f"-DPython3_EXECUTABLE={sys.executable}"]  # fmt: skip
    if options.dlpack:
        arguments.append(f"-DCAI_DLPACK_INCLUDE={options.dlpack}")
    return (run_quietly(["cmake", "-S", tree, "-B", folder, *arguments])
            or run_quietly(["cmake", "--build", folder, "-j", options.jobs, "--", "-k"]))  # fmt: skip


def tests_of(tree: pathlib.Path, folder: pathlib.Path) -> list[Test]:
    """The tests of the tier that can be run here."""
    done = subprocess.run(["ctest", "--show-only=json-v1"], cwd=folder, capture_output=True, text=True, check=True)
    made = []
    for test in json.loads(done.stdout)["tests"]:
        has = {one["name"]: one["value"] for one in test["properties"]}
        if "command" not in test or "SKIP_REGULAR_EXPRESSION" in has or "WILL_FAIL" in has:
            continue
        environment = dict(one.split("=", 1) for one in has.get("ENVIRONMENT", []))
        made.append(Test(test["name"], [test["command"]], environment, has.get("WORKING_DIRECTORY", str(folder))))
        script = next((one for one in test["command"] if one.endswith(".py") and "/python/check_" in one), None)
        help_of = [sys.executable, script or "-c", "--help"]
        if script and "--built" in subprocess.run(help_of, capture_output=True, text=True).stdout:
            module = folder / f"module_{pathlib.Path(script).stem}"
            made[-1].built = [*test["command"], "--optimize", "0", "--build", str(module)]
            made[-1].commands = [[*test["command"], "--built", str(module), *more] for more in FASTER]
    return made


# ----------------------------------------------------------------------------------- runs


def no_core() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def execute(test: Test, seconds: float, environment: dict[str, str]) -> int | None:
    """The exit status; None: it did not end."""
    variables = {**os.environ, "ASAN_OPTIONS": "hard_rss_limit_mb=3000", **test.environment, **environment}
    none = subprocess.DEVNULL
    with subprocess.Popen(test.commands[0], cwd=test.folder, env=variables, stdin=none, stdout=none, stderr=none,
                          start_new_session=True, preexec_fn=no_core) as run:  # fmt: skip
        try:
            return run.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            return None


def try_commands(options: argparse.Namespace, test: Test, trace: pathlib.Path) -> int | None:
    """The exit status of the first command of a test that passes; the test knows then what it reaches."""
    status = None
    for traced in (True, False):  # the trace itself may be what a test does not bear
        for command in list(test.commands):
            trace.unlink(missing_ok=True)
            begun, test.commands = time.monotonic(), [command, *(one for one in test.commands if one != command)]
            status = execute(test, options.longest, {TRACE: str(trace)} if traced else {})
            test.seconds = time.monotonic() - begun
            if status == 0:
                seen = trace.read_text().split() if trace.exists() else []
                test.reached = {int(line) for line in seen} if traced else None
                return 0
            if status is None:
                return None
    return status


def try_without(options: argparse.Namespace, tests: list[Test], work: pathlib.Path) -> list[Test]:
    """The tests that pass without a defect, with their times and what they reach, the shortest first."""
    good, left = [], []
    for test in tests:
        error = run_quietly(test.built) if test.built else None
        if error:
            left.append(f"{test.name} (does not build)")
            continue
        status = try_commands(options, test, work / "trace")
        if status == 0:
            good.append(test)
        else:
            left.append(f"{test.name} ({'too long' if status is None else f'exit status {status}'})")
        if options.verbose:
            print(f"{test.name}: {test.seconds:.2f} s, status {status}, functions "
                  f"{'unknown' if test.reached is None else len(test.reached)}", flush=True)  # fmt: skip
    if left:
        print(f"tests left out: {', '.join(left)}")
    return sorted(good, key=lambda test: test.seconds)


def found_by(tests: list[Test], number: int, planted: Planted, before: dict[str, str]) -> tuple[str | None, int]:
    """The test that finds a defect, and how many reach it. before: by the table, which one found the last one."""
    reaching = [test for test in tests if test.reached is None or test.reached & planted.numbers]
    for test in sorted(reaching, key=lambda test: test.name != before.get(planted.table)):
        if execute(test, 8 * test.seconds + 2, {VARIABLE: str(number)}) != 0:
            before[planted.table] = test.name
            return test.name, len(reaching)
    return None, len(reaching)


def targets_of(test: Test, folder: pathlib.Path) -> list[str]:
    """What CMake builds for a test."""
    files = [pathlib.Path(one) for one in test.commands[0]]
    built = [path.stem for path in files if folder in path.parents and path.is_file()]
    return [name[3:] if name.startswith("lib") else name for name in built]


def found_alone(options: argparse.Namespace, tests: list[Test], planted: Planted, tree: pathlib.Path,
                folder: pathlib.Path) -> tuple[str | None, int]:  # fmt: skip
    """The same of a defect that is not switched on at run time: what a test needs is built before it runs."""
    path = tree / planted.file
    before = path.read_text()
    path.write_text(planted.changed)
    done: set[str] = set()
    finder = None
    for test in tests:
        for target in targets_of(test, folder):
            if target not in done:
                run_quietly(["cmake", "--build", folder, "-j", options.jobs, "--target", target])
                done.add(target)
        error = run_quietly(test.built) if test.built else None
        if error or execute(test, 8 * test.seconds + 2, {}) != 0:
            finder = test.name
            break
    path.write_text(before)
    return finder, len(tests)


# ----------------------------------------------------------------------------------- report


def measure(options: argparse.Namespace, tests: list[Test], numbered: dict[int, Planted], tree: pathlib.Path,
            folder: pathlib.Path) -> Results:  # fmt: skip
    """Which test finds each defect."""
    together = {number: one for number, one in numbered.items() if one.numbers}
    before: dict[str, str] = {}
    results = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(found_by, tests, number, one, before): number for number, one in together.items()}
        for job in concurrent.futures.as_completed(jobs):
            results[jobs[job]] = job.result()
            say(options, numbered[jobs[job]], *job.result())
    for number, one in numbered.items():
        if number not in together:
            results[number] = found_alone(options, tests, one, tree, folder)
            say(options, one, *results[number])
    return results


def fails_without(tests: list[Test], results: Results) -> list[str]:
    """The tests that found something, and now fail without a defect: what they found may be chance."""
    finders = {finder for finder, _ in results.values()}
    return [test.name for test in tests if test.name in finders and execute(test, 8 * test.seconds + 2, {}) != 0]


def say(options: argparse.Namespace, planted: Planted, finder: str | None, reaching: int) -> None:
    if options.verbose:
        print(f"{planted.place}: {planted.name}: {finder or f'NOT FOUND by {reaching} tests'}", flush=True)


def report(options: argparse.Namespace, numbered: dict[int, Planted], results: Results) -> int:
    """Exit status."""
    tables_here = list(dict.fromkeys(one.table for one in numbered.values()))
    for table in tables_here:
        of_table = [number for number, one in numbered.items() if one.table == table]
        print(f"{table}: {sum(1 for number in of_table if results[number][0])} / {len(of_table)}")
    for number, one in numbered.items():
        if not results[number][0]:
            tests = results[number][1]
            print(f"not found: {one.place}: {one.name} ({f'{tests} tests call it' if tests else 'no test calls it'})")
    failed = False
    for text, random, limit in (("planted defects", False, options.planted), ("random mutants", True, options.mutants)):
        of_kind = [number for number, one in numbered.items() if one.random == random]
        found = sum(1 for number in of_kind if results[number][0])
        share = 100 * found / len(of_kind) if of_kind else 100
        failed |= share < limit
        print(f"{text}: quick finds {found} of {len(of_kind)}, {share:.1f} % (at least {limit:g} % asked for)")
    return 1 if failed else 0


def version() -> str:
    return ".".join(re.findall(r"#define CAI_VERSION_\w+\s+(\d+)$", (ROOT / "cai.h").read_text(), re.M))


def parse() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--cc", default=os.environ.get("CC", "cc"))
    made.add_argument("--planted", type=float, default=0, metavar="PERCENT", help="of planted defects, at least")
    made.add_argument("--mutants", type=float, default=0, metavar="PERCENT", help="of random mutants, at least")
    made.add_argument("--share", type=int, default=3, metavar="N", help="one of N planted defects of each table")
    made.add_argument("--count", type=int, default=180, metavar="N", help="random mutants")
    made.add_argument("--sample", default=version(), metavar="TEXT", help="which ones")
    made.add_argument("--only", default="", metavar="TEXT", help="defects with this in their names")
    made.add_argument("--dlpack", type=pathlib.Path, help="where dlpack/dlpack.h is")
    made.add_argument("--longest", type=float, default=60, metavar="SECONDS", help="longer tests are left out")
    made.add_argument("--jobs", type=int, default=2)
    made.add_argument("--work", type=pathlib.Path, help="for the copy and its build, which stay, and are used again")
    made.add_argument("--verbose", action="store_true", help="a line for each test and each defect")
    return made.parse_args()


def main() -> int:
    options = parse()
    for program in (options.cc, "cmake", "ctest"):
        if not shutil.which(program):
            print(f"quick_share.py: skipped, no {program}")
            return 77
    with tempfile.TemporaryDirectory() as name:
        work = options.work or pathlib.Path(name)
        work.mkdir(parents=True, exist_ok=True)
        tree, folder = copy_of(ROOT, work / "tree"), work / "build"
        every = dict(enumerate([*planted_ones(options), *random_ones(options)], 1))
        print(f"{len(every)} defects drawn by --sample {options.sample}", flush=True)
        numbered = plant_all(options, tree, every)
        error = build(options, tree, folder)
        if error:
            print(error)
            return 2
        tests = try_without(options, tests_of(tree, folder), work)
        results = measure(options, tests, numbered, tree, folder)
        doubtful = fails_without(tests, results)
        if doubtful:
            print(f"tests that also fail without a defect: {', '.join(doubtful)}")
        return report(options, numbered, results) or (1 if doubtful else 0)


if __name__ == "__main__":
    sys.exit(main())
