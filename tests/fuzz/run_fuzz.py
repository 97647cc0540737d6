#!/usr/bin/env python3
"""Builds the fuzz targets with clang and runs each for a bounded time.

    tests/fuzz/run_fuzz.py [SECONDS] [--target import|literal] [--seed N] [--corpus FOLDER] [--coverage]
    tests/fuzz/run_fuzz.py --self-test      planted overflows must be found

Prints executions, coverage and crashes. Exit status 0: no crash; 1: a crash (the input is printed
and, with --corpus, kept); 77: no clang with libFuzzer here.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGETS = ("import", "literal")
SANITIZERS = ["-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=fuzzer,address,undefined",
              "-fno-sanitize-recover=all"]

# A bug planted in a copy of a header: file, text, replacement. Neither depends on how the
# implementation is written: a limit and the array that it protects differ.
PLANTED = {
    "import": ("cai.h", "CAI_MAX_NDIM = 64,", "CAI_MAX_NDIM = 72,"),
    "literal": ("tools/cai_literal.h", "frames[CAI_LITERAL_DEPTH];",
                "frames[CAI_LITERAL_DEPTH - 40];"),
}


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


def build(clang, target, root, out, flags):
    command = [clang, "-std=c99", *flags, f"-I{root}",
               str(HERE / f"fuzz_{target}.c"), "-o", str(out)]
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
    command = [str(binary), str(corpus), str(seeds), f"-max_total_time={seconds}",
               f"-dict={HERE / 'cai.dict'}", "-print_final_stats=1", "-timeout=60", f"-seed={seed}",
               "-max_len=1024", f"-artifact_prefix={artifacts}/"]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace")
    return result.returncode != 0, result.stderr


def report(target, crashed, log, artifacts):
    print(f"fuzz_{target}: {last_number(r'stat::number_of_executed_units: *([0-9]+)', log)} "
          f"executions, {last_number(r'cov: ([0-9]+)', log)} edges, "
          f"{last_number(r'ft: ([0-9]+)', log)} features, "
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
              f"-I{root}", HERE / "replay.c", HERE / f"fuzz_{target}.c",
              "-o", binary)
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
    headers = [root / "cai.h", root / "tools" / "cai_literal.h"]
    print(output_of(tools[1], "report", binary, f"-instr-profile={merged}", *headers))
    header = headers[target == "literal"]
    shown = output_of(tools[1], "show", binary, f"-instr-profile={merged}", header)
    missed = [line for line in shown.splitlines() if re.match(r" *[0-9]+\| +0\|", line)]
    print(f"lines of {header.name} that no input reached:", *missed, sep="\n")


def run_target(clang, target, args, folder):
    binary, artifacts = folder / f"fuzz_{target}", folder / f"crashes_{target}"
    corpus = (pathlib.Path(args.corpus) if args.corpus else folder / "corpus") / target
    if args.corpus:
        artifacts = pathlib.Path(args.corpus) / f"crashes_{target}"
    seeds = folder / "seeds" / target
    build(clang, target, args.root, binary, SANITIZERS)
    crashed, log = fuzz(binary, target, args.seconds, corpus, seeds, artifacts, args.seed)
    report(target, crashed, log, artifacts)
    if args.coverage and not crashed:
        work = folder / f"coverage_{target}"
        work.mkdir()
        coverage(clang, target, args.root, [corpus, seeds], work)
    return crashed


def plant(target, headers, folder):
    """A copy of the headers with the planted bug of this target."""
    root = folder / f"planted_{target}"
    (root / "tools").mkdir(parents=True)
    for name in ("cai.h", "tools/cai_literal.h"):
        text = (headers / name).read_text()
        if name == PLANTED[target][0]:
            if text.count(PLANTED[target][1]) != 1:
                sys.exit(f"run_fuzz.py: {name}: the text to replace is not there once")
            text = text.replace(*PLANTED[target][1:])
        (root / name).write_text(text)
    return root


def self_test(clang, target, args, folder):
    root, binary = plant(target, args.root, folder), folder / f"planted_fuzz_{target}"
    build(clang, target, root, binary, SANITIZERS)
    crashed, log = fuzz(binary, target, args.seconds, folder / "planted" / target,
                        folder / "seeds" / target, folder / f"planted_crashes_{target}", 1)
    found = crashed and re.search(r"out of bounds|buffer-overflow", log)
    print(f"fuzz_{target}: the planted bug was {'found' if found else 'NOT FOUND'}")
    return not found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", nargs="?", type=int, default=60, help="for each target, at most")
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--seed", type=int, default=0, help="of what is random (0: another one each time)")
    parser.add_argument("--clang", help="the compiler (default: the first with libFuzzer)")
    parser.add_argument("--corpus", help="folder that keeps corpus and crashes between runs")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT,
                        help="where cai.h and examples/ are (default: this repository)")
    parser.add_argument("--coverage", action="store_true", help="line coverage by llvm-cov")
    parser.add_argument("--self-test", action="store_true", help="look for planted bugs")
    args = parser.parse_args()
    clang = find_clang(args.clang)
    if not clang:
        print("skipped: no clang with libFuzzer")
        return 77
    targets = [args.target] if args.target else TARGETS
    run = self_test if args.self_test else run_target
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_seeds(folder / "seeds")
        return int(any([run(clang, target, args, folder) for target in targets]))


if __name__ == "__main__":
    sys.exit(main())
