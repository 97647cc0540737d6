#!/usr/bin/env python3
"""Checks tests/gpu/run without a GPU: what fails, crashes or hangs is named, and the exit status says so.

    check_run.py --build FOLDER [--facts PROGRAM]

Shell scripts stand for the programs. With --facts its questions are asked of the simulated driver.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

RUN = pathlib.Path(__file__).resolve().parent / "run"
STANDS = {"conformance_cuda": "echo fine", "saxpy": "echo wrong; exit 1", "stencil_gpu": "kill -SEGV $$",
          "pack": "echo begun $$; exec sleep 60", "exchange": "echo 'skipped: no device'; exit 77",
          "cai_inspect": "exit 1"}
EXPECTED = ["conformance: right", "saxpy: failed, exit status 1", "stencil: crashed, signal 11", "pack: hung",
            "exchange: skipped: no device", "demo: right", "3 steps failed, crashed or hung"]


def run(out, build, *options):
    call = [sys.executable, "-B", str(RUN), "--out", str(out), "--build", build, *options]
    said = subprocess.run(call, capture_output=True, text=True, timeout=300)
    return said.returncode, said.stdout + said.stderr


def stand_ins(folder):
    folder.mkdir()
    for name, body in STANDS.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)


def check_ended(words, failures):
    """What hung has left a log with its number, and is gone."""
    if words[:1] != [b"begun"]:
        failures.append("the log of what hung is lost")
        return
    try:
        os.kill(int(words[1]), 0)
    except ProcessLookupError:
        return
    failures.append("what hung still runs")


def check_verdicts(work, build, failures):
    stand_ins(work / "programs")
    programs = str(work / "programs")
    options = ["--only", "conformance,examples", "--most", "2"]
    status, said = run(work / "out", build, "--programs", programs, *options)
    summary = (work / "out" / "summary.txt").read_text()
    failures += [f"not in the summary: {text}\n{said}" for text in EXPECTED if text not in summary]
    if status != 1:
        failures.append(f"exit status {status}, not 1")
    if "facts" in summary:
        failures.append("--only does not keep out the facts")
    with tarfile.open(work / "out" / "logs.tgz") as logs:
        check_ended(logs.extractfile("said/pack.txt").read().split(), failures)
    status, said = run(work / "good", build, "--programs", programs, "--only", "conformance")
    if status != 0:
        failures.append(f"nothing failed, and the exit status is {status}\n{said}")
    status, said = run(work / "none", build, "--programs", programs, "--only", "nothing")
    if status == 0 or "no such part" not in said:
        failures.append("a part that is not there is taken")


def check_facts(work, build, facts, failures):
    status, said = run(work / "facts", build, "--programs", str(facts.parent), "--only", "facts")
    if status != 0 or "facts: right" not in said or "differ from those of facts_h100.txt" not in said:
        failures.append(f"the facts are not asked: exit status {status}\n{said}")
    if "facts: 0 answers" in said:
        failures.append("no question was answered")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--facts", type=pathlib.Path)
    options = parser.parse_args()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        check_verdicts(pathlib.Path(folder), options.build, failures)
        if options.facts:
            check_facts(pathlib.Path(folder), options.build, options.facts, failures)
    for failure in failures:
        print(failure)
    print("run names what fails, crashes and hangs" if not failures else f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
