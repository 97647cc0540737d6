#!/usr/bin/env python3
"""Builds the fuzz targets with clang and runs each for a bounded time.

    tests/fuzz/run_fuzz.py [SECONDS] [--target NAME] [--seed N] [--corpus FOLDER] [--coverage]
    tests/fuzz/run_fuzz.py --self-test                 planted defects must be found
    tests/fuzz/run_fuzz.py --minimize --corpus FOLDER  FOLDER becomes tests/fuzz/corpus, without what adds nothing
    tests/fuzz/run_fuzz.py --record LOG...             adds runs to the table of docs/results/fuzzing.md
    tests/fuzz/run_fuzz.py --check                     the total of that table is the sum of its rows

A run begins with the inputs of tests/fuzz/corpus. It prints executions, coverage and crashes. With --corpus,
FOLDER keeps inputs, crashes and a log for --record. Exit status 0: no crash; 1: a crash (the input is printed
and, with --corpus, kept); 77: no clang with libFuzzer here.
"""

import argparse
import base64
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGETS = ("import", "literal", "dlpack", "layout")
PAGE = ROOT / "docs" / "results" / "fuzzing.md"
GOAL = 1_000_000_000
HEADERS = {"import": ("cai.h",), "literal": ("tools/cai_literal.h",), "dlpack": ("ext/cai_dlpack.h",),
           "layout": ("ext/cai_layout.h", "ext/cai_scaled.h", "ext/cai_small_view.h", "ext/cai_tensor_map.h",
                      "ext/cai_transfer.h")}
MAX_LEN = 256 # longer inputs find no more, and are slower

# Without trace-cmp a target runs twice as often, and finds more in the same time: its bytes are choices, not
# texts to compare with.
SANITIZERS = ["-g", "-O2", "-fno-omit-frame-pointer", "-fsanitize=fuzzer,address,undefined",
              "-fno-sanitize-recover=all", "-fno-sanitize-coverage=trace-cmp"]

# No stacks of allocations and little memory in quarantine: blocks live for one execution.
ASAN_OPTIONS = "malloc_context_size=0:quarantine_size_mb=1:detect_leaks=0"

# A defect planted in a copy of a header: target, file, text, replacement. Some write or read past the end of an
# array, the others only give a wrong result.
PLANTED = (
    ("import", "cai.h", "CAI_MAX_NDIM = 64,", "CAI_MAX_NDIM = 72,"),
    ("literal", "tools/cai_literal.h", "frames[CAI_LITERAL_DEPTH];", "frames[CAI_LITERAL_DEPTH - 40];"),
    ("dlpack", "ext/cai_dlpack.h", "if (in->version.major != 1)", "if (in->version.major > 7)"),
    ("layout", "ext/cai_layout.h", "(extent + (unit - 1)) / unit * unit", "extent / unit * unit"),
    ("layout", "ext/cai_tensor_map.h", "[dim] + upper <= lower", "[dim] + upper < lower"),
    ("layout", "ext/cai_transfer.h", "count < capacity && first", "count <= capacity && first"),
)


def find_clang(wanted):
    """The first clang that links libFuzzer, or None."""
    names = [wanted] if wanted else ["clang"] + [f"clang-{n}" for n in range(21, 10, -1)]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "empty.c")
        source.write_text("int LLVMFuzzerTestOneInput(const char *d, unsigned long n);\n"
                          "int LLVMFuzzerTestOneInput(const char *d, unsigned long n)\n"
                          "{ return d && n > 1u << 30; }\n")
        for name in names:
            command = [name, *SANITIZERS, str(source), "-o", str(source.with_suffix(""))]
            if shutil.which(name) and subprocess.run(command, capture_output=True).returncode == 0:
                return name
    return None


def includes(root):
    return [f"-I{folder}" for folder in (root, root / "ext", HERE.parent / "ext")]


def build(clang, target, root, out, flags):
    command = [clang, "-std=c99", *flags, *includes(root), str(HERE / f"fuzz_{target}.c"), "-o", str(out)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"run_fuzz.py: {' '.join(command)}\n{result.stderr}")


def make_seeds(folder):
    subprocess.run([sys.executable, str(HERE / "make_seeds.py"), str(folder)], check=True)


def last_number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def fuzz(binary, target, seconds, corpus, seeds, artifacts, seed):
    """Runs one target; returns (crashed, log). seed: of all that is random; 0: another one each time."""
    corpus.mkdir(parents=True, exist_ok=True)
    artifacts.mkdir(parents=True, exist_ok=True)
    command = [str(binary), str(corpus), str(seeds), f"-max_total_time={seconds}", "-print_final_stats=1",
               "-timeout=60", f"-seed={seed}", f"-max_len={MAX_LEN}", f"-artifact_prefix={artifacts}/"]
    if target == "literal":
        command.append(f"-dict={HERE / 'cai.dict'}")
    result = subprocess.run(command, capture_output=True, text=True, errors="replace",
                            env={**os.environ, "ASAN_OPTIONS": ASAN_OPTIONS})
    return result.returncode != 0, result.stderr


def keep_log(folder, target, log):
    """Writes the log of a run under the name that --record reads."""
    number = 1
    while (folder / f"{target}-{number}.log").exists():
        number += 1
    (folder / f"{target}-{number}.log").write_text(log)


def figures(log):
    """Executions, edges and features of a log."""
    return [last_number(pattern, log) for pattern in
            (r"stat::number_of_executed_units: *([0-9]+)", r"cov: ([0-9]+)", r"ft: ([0-9]+)")]


def report(target, crashed, log, artifacts):
    executions, edges, features = figures(log)
    print(f"fuzz_{target}: {executions} executions, {edges} edges, {features} features, "
          f"{'CRASH' if crashed else 'no crash'}")
    if not crashed:
        return
    told = [line for line in log.splitlines() if not re.match(r"#[0-9]+\t|\tNEW_FUNC|INFO:", line)]
    print("\n".join(told))
    found = re.search(r"Test unit written to (.*)", log)
    if found:
        path = artifacts / pathlib.Path(found.group(1)).name
        print(f"input {path.name}: {path.read_bytes()[:1024].hex()}")


def output_of(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True).stdout


def llvm_tools(clang):
    """llvm-profdata and llvm-cov of the same version, or None."""
    suffix = clang[len("clang"):]
    if not suffix:
        suffix = "-" + re.search(r"version ([0-9]+)", output_of(clang, "--version")).group(1)
    tools = [shutil.which(tool + suffix) for tool in ("llvm-profdata", "llvm-cov")]
    return None if None in tools else tools


def profile(clang, profdata, target, root, corpora, folder):
    """Replays the corpora; returns the program and its merged profile."""
    binary, merged = folder / "covered", folder / "merged"
    output_of(clang, "-std=c99", "-g", "-O1", "-fprofile-instr-generate", "-fcoverage-mapping",
              *includes(root), HERE / "replay.c", HERE / f"fuzz_{target}.c", "-o", binary)
    inputs = [str(path) for corpus in corpora for path in corpus.iterdir()]
    for start in range(0, len(inputs), 1000):
        subprocess.run([str(binary), *inputs[start:start + 1000]], check=True, capture_output=True,
                       env={"LLVM_PROFILE_FILE": f"{folder}/raw{start}"})
    output_of(profdata, "merge", *folder.glob("raw*"), "-o", merged)
    return binary, merged


def coverage(clang, target, root, corpora, folder):
    """Line coverage of the headers by all inputs, if llvm-cov is there."""
    tools = llvm_tools(clang)
    if not tools:
        print(f"fuzz_{target}: no coverage by lines: llvm-cov of {clang} not found")
        return
    binary, merged = profile(clang, tools[0], target, root, corpora, folder)
    headers = [root / name for name in HEADERS[target]]
    print(output_of(tools[1], "report", binary, f"-instr-profile={merged}", *headers))
    for header in headers:
        shown = output_of(tools[1], "show", binary, f"-instr-profile={merged}", header)
        missed = [line for line in shown.splitlines() if re.match(r" *[0-9]+\| +0\|", line)]
        print(f"lines of {header.name} that no input reached:", *missed, sep="\n")


def run_target(clang, target, args, folder):
    binary, artifacts = folder / f"fuzz_{target}", folder / f"crashes_{target}"
    corpus = (args.corpus or folder / "corpus") / target
    if args.corpus:
        artifacts = args.corpus / f"crashes_{target}"
    seeds = folder / "seeds" / target
    build(clang, target, args.root, binary, SANITIZERS)
    crashed, log = fuzz(binary, target, args.seconds, corpus, seeds, artifacts, args.seed)
    report(target, crashed, log, artifacts)
    if args.corpus:
        keep_log(args.corpus, target, log)
    if args.coverage and not crashed:
        work = folder / f"coverage_{target}"
        work.mkdir()
        coverage(clang, target, args.root, [corpus, seeds], work)
    return crashed


def minimize(clang, target, args, folder):
    """Writes the fewest inputs of the corpus that reach all its features, one a line."""
    binary, least = folder / f"fuzz_{target}", folder / f"least_{target}"
    least.mkdir()
    build(clang, target, args.root, binary, SANITIZERS)
    corpora = [str(path) for path in (args.corpus / target, folder / "seeds" / target) if path.is_dir()]
    command = [str(binary), "-set_cover_merge=1", f"-max_len={MAX_LEN}", str(least), *corpora]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace",
                            env={**os.environ, "ASAN_OPTIONS": ASAN_OPTIONS})
    inputs = sorted(base64.b64encode(path.read_bytes()).decode() for path in least.iterdir())
    if result.returncode or not inputs:
        sys.exit(f"run_fuzz.py: {' '.join(command)}\n{result.stderr}")
    (HERE / "corpus" / f"{target}.txt").write_text("".join(f"{line}\n" for line in inputs))
    print(f"fuzz_{target}: {len(inputs)} inputs in tests/fuzz/corpus/{target}.txt")
    return 0


def plant(number, headers, folder):
    """A copy of the headers with one of the planted defects."""
    _, name, text, replacement = PLANTED[number]
    root = folder / f"planted_{number}"
    shutil.copytree(headers / "ext", root / "ext")
    (root / "tools").mkdir()
    for header in ("cai.h", "tools/cai_literal.h"):
        shutil.copy(headers / header, root / header)
    before = (root / name).read_text()
    if before.count(text) != 1:
        sys.exit(f"run_fuzz.py: {name}: the text to replace is not there once: {text}")
    (root / name).write_text(before.replace(text, replacement))
    return root


def self_test(clang, number, args, folder):
    target, name = PLANTED[number][:2]
    root, binary = plant(number, args.root, folder), folder / f"planted_fuzz_{number}"
    build(clang, target, root, binary, [*SANITIZERS, "-O1"])
    crashed, log = fuzz(binary, target, args.seconds, folder / f"planted_corpus_{number}",
                        folder / "seeds" / target, folder / f"planted_crashes_{number}", 1)
    found = crashed and re.search(r"buffer-overflow|runtime error: |not so: ", log)
    print(f"fuzz_{target}: the planted defect of {name} was {'found' if found else 'NOT FOUND'}")
    return not found


# ------------------------------------------------------------------------------ the table of runs

ROW = re.compile(r"^\| (\d{4}-\d\d-\d\d) \| (\w+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| (\d+) \|$", re.M)
TOTAL = re.compile(r"^Total: \*\*([\d,]+)\*\* of .*$", re.M)


def number_of(text):
    return int(text.replace(",", ""))


def row_of(path):
    """The row of one log, TARGET-ANYTHING.log."""
    log, target = path.read_text(errors="replace"), path.name.partition("-")[0]
    executions, edges, features = figures(log)
    if target not in TARGETS or not executions:
        sys.exit(f"run_fuzz.py: {path}: no log of a run that has ended, TARGET-ANYTHING.log")
    day = datetime.date.fromtimestamp(path.stat().st_mtime)
    return f"| {day} | {target} | {executions:,} | {edges:,} | {features:,} | {int('SUMMARY: ' in log)} |"


def total_of(page):
    return sum(number_of(row[2]) for row in ROW.findall(page))


def record(logs):
    """Adds a row for each log that has none, and renews the total."""
    page = PAGE.read_text()
    for line in map(row_of, logs):
        if line not in page.splitlines():
            end = list(ROW.finditer(page))[-1].end()
            page = f"{page[:end]}\n{line}{page[end:]}"
            print(line)
    page = TOTAL.sub(f"Total: **{total_of(page):,}** of {GOAL:,} executions.", page)
    PAGE.write_text(page)
    return 0


def check():
    page = PAGE.read_text()
    told, total = number_of(TOTAL.search(page).group(1)), total_of(page)
    print(f"{len(ROW.findall(page))} runs, {total:,} executions; the page says {told:,}")
    lines = sum(line.startswith("| 20") for line in page.splitlines())
    return int(told != total or lines != len(ROW.findall(page)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", nargs="?", type=int, default=60, help="for each target, at most")
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--seed", type=int, default=0, help="of what is random (0: another one each time)")
    parser.add_argument("--clang", help="the compiler (default: the first with libFuzzer)")
    parser.add_argument("--corpus", type=pathlib.Path, help="folder that keeps inputs, crashes and logs between runs")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT,
                        help="where the headers are (default: this repository)")
    parser.add_argument("--coverage", action="store_true", help="line coverage by llvm-cov")
    parser.add_argument("--self-test", action="store_true", help="look for planted defects")
    parser.add_argument("--minimize", action="store_true", help="of --corpus and of tests/fuzz/corpus")
    parser.add_argument("--record", nargs="+", type=pathlib.Path, metavar="LOG", help="names: TARGET-ANYTHING.log")
    parser.add_argument("--check", action="store_true", help="the total of the table")
    args = parser.parse_args()
    if args.minimize and not args.corpus:
        parser.error("--minimize needs --corpus")
    return args


def main():
    args = arguments()
    if args.record:
        return record(args.record)
    if args.check:
        return check()
    clang = find_clang(args.clang)
    if not clang:
        print("skipped: no clang with libFuzzer")
        return 77
    work = [args.target] if args.target else TARGETS
    run = minimize if args.minimize else run_target
    if args.self_test:
        run, work = self_test, [n for n, planted in enumerate(PLANTED) if planted[0] in work]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_seeds(folder / "seeds")
        return int(any([run(clang, one, args, folder) for one in work]))


if __name__ == "__main__":
    sys.exit(main())
