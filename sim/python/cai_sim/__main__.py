# SPDX-License-Identifier: MIT
"""python -m cai_sim [--svg FILE] [--trace FILE] [--adversarial] [--devices N] [--memory BYTES] [--record[=FILE]]
                  [--strict] [--accept LEVELS] program.py [arguments]

Runs a Python program on a simulated CUDA driver, and says on the standard error stream where two libraries race.

  program.py, -m module, -c code   what to run, as python runs it
  --svg FILE       draw what ran, or of a long run the neighbourhood of its races
  --trace FILE     write one line for each operation
  --adversarial    the driver does the least that CUDA promises
  --devices N      how many devices, 1 to 64 (1)
  --memory BYTES   of each device; K, M and G may follow (8G)
  --record         run on the real driver, and say the same of that run
  --record=FILE    the same with this libcuda.so.1
  --strict         kernels that could not be read are not accepted
  --accept LEVELS  these are: possible, not-judged, unread; joined by commas

Exit status, the first that holds:
  4   a race that is certain
  5   use of a stream, event or other handle that was destroyed
  6   not judged to the end: an exception, the device failed, or a library was turned away
  7   a possible race
  8   something could not be judged, or nothing was queued
  9   with --strict: kernels could not be read
  0   no race, and no race if the kernels that could not be read follow only the pointers of their arguments
From 6 on, the program's own exit status comes first, if it is not 0. 2: an argument is wrong."""

from __future__ import annotations

import argparse
import linecache
import os
import re
import runpy
import sys
import threading
import types
from typing import Callable, NoReturn

import cai_sim

from ._sites import COMMAND

HERE = os.path.dirname(os.path.abspath(__file__))


def wrong(text: str) -> NoReturn:
    sys.stderr.write(f"cai_sim: {text}\n")
    sys.exit(2)


def number(text: str) -> int:
    """A count of bytes, such as 8G."""
    found = re.fullmatch(r"(\d+)([KMGkmg]?)", text)
    if not found:
        wrong(f"not a number: {text}")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2].upper()]


def arguments(given: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options, and what is left over: the program and its arguments."""
    options = argparse.Namespace(
        svg="", trace="", adversarial=False, devices="1", memory="0", record=False, strict=False, accept=""
    )  # fmt: skip
    rest = list(given)
    while rest and rest[0].startswith("--"):
        name, joined, value = rest.pop(0)[2:].partition("=")
        if name == "help":
            print(__doc__)
            sys.exit(0)
        if name in ("adversarial", "strict") and not joined:
            setattr(options, name, True)
            continue
        if name == "record":
            options.record = value if joined else True
            continue
        if name not in ("svg", "trace", "devices", "memory", "accept"):
            wrong(f"no such option: --{name}")
        if not joined and not rest:
            wrong(f"--{name} needs a value")
        setattr(options, name, value if joined else rest.pop(0))
    return options, rest


def begin(options: argparse.Namespace) -> None:
    """cai_sim.start with these options."""
    accept = [level for level in options.accept.split(",") if level]
    try:
        cai_sim.start(number(options.devices), number(options.memory), options.adversarial, options.record,
                      options.strict, accept)  # fmt: skip
    except (RuntimeError, ValueError) as error:
        wrong(str(error))


def run(program: list[str]) -> None:
    """Runs a program as python does."""
    if program[0] == "-m":
        sys.argv = program[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    elif program[0] == "-c":
        sys.argv = ["-c", *program[2:]]
        sys.path[0] = ""
        linecache.cache[COMMAND] = (len(program[1]), None, program[1].splitlines(True), COMMAND)
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(program[1], COMMAND, "exec"), main.__dict__)  # noqa: S102 - that is what -c is for
    else:
        sys.argv = program
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")


def status_of(program: list[str]) -> int:
    """Runs a program to its end, and returns its exit status."""
    try:
        run(program)
        return 0
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or 0
        sys.stderr.write(f"{leaving.code}\n")
        return 1
    except BaseException as error:  # noqa: B902 - as at the end of every program
        trace = error.__traceback__
        while trace and re.match(re.escape(HERE) + "|.*runpy", trace.tb_frame.f_code.co_filename):
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        cai_sim._running().exception = type(error).__name__
        return 130 if isinstance(error, KeyboardInterrupt) else 1


def finish(options: argparse.Namespace, title: str, status: int) -> int:
    """Reports, and returns the exit status."""
    sys.stdout.flush()
    text, found = cai_sim._reported()
    sys.stderr.write("\n" + text)
    if options.svg:
        cai_sim.write_svg(options.svg, title)
    if options.trace:
        cai_sim.write_trace(options.trace)
    return status if status and found.level not in ("races", "dead") else found.status or status


def report_before_exit(options: argparse.Namespace, title: str) -> Callable[[int], NoReturn]:
    """os._exit of this process reports, too. A process that it forked leaves without a report. Returns os._exit itself."""
    leave, process = os._exit, os.getpid()

    def leaving(status: int) -> NoReturn:
        if os.getpid() != process:
            leave(status)
        os._exit = leave
        try:
            status = finish(options, title, status)
            sys.stderr.flush()
        finally:
            leave(status)

    os._exit = leaving
    return leave


def main() -> int:
    options, program = arguments(sys.argv[1:])
    if not program or program[0] == "-h":
        print(__doc__)
        return 0 if program else 2
    if program[0] in ("-m", "-c") and len(program) == 1:
        wrong(f"{program[0]} needs a value")
    if program[0].startswith("-") and program[0] not in ("-m", "-c"):
        wrong(f"no such option: {program[0]}")
    if not program[0].startswith("-") and not os.path.exists(program[0]):
        wrong(f"there is no {program[0]}")
    begin(options)
    title = os.path.basename(program[0]) if not program[0].startswith("-") else program[1][:60]
    leave = report_before_exit(options, title)
    status = status_of(program)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    os._exit = leave
    status = finish(options, title, status)
    if cai_sim._running().device_failed():  # destructors of libraries that meet its error end the process
        sys.stderr.flush()
        leave(status)
    return status


if __name__ == "__main__":
    sys.exit(main())
