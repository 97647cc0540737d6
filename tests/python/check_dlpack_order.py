#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Is DLPack of cai_python_dlpack.h in order at both ends? On the simulated CUDA; races are found by cai_check.h.

    check_dlpack_order.py --dlpack FOLDER [--cc cc] [--root FOLDER]

FOLDER has dlpack/dlpack.h. dlpack_order.c is built in a temporary folder. A producer frees in the order of its
stream, as soon as the last reference goes; a consumer drops the tensor while its kernel is queued. Each case says
whether that may race: two that must, so that the test is not blind, and all others that must not. Exit status 0: all
is right; 1: not; 77: no compiler, no Python.h, or no dlpack.h that is new enough.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any, Callable

HERE = pathlib.Path(__file__).resolve().parent
STREAMS_LIVE, NO_CAPTURES = 1 << 5, 1 << 6  # CAI_DLPACK_...
MAX_VERSION = (1, 0)


class OnlyDLPack:
    """An array of a library that has nothing else."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def foreign(m: Any, x: Any, stream: int, said: Any) -> None:
    """A consumer that knows nothing of cai."""
    m.use(x.__dlpack__(stream=said, max_version=MAX_VERSION), stream)


def one_way(m: Any, producer: str, consumer: str, flags: int = 0, plain: int = 0) -> None:
    s1, s2 = m.streams(2)
    x = m.Array(0 if producer == "none" else s1, plain, flags)
    if consumer == "-1":
        m.wait(s1)
        foreign(m, x, s2, -1)
    elif consumer == "foreign":
        foreign(m, x, s2, s2)
    elif consumer == "destroys":  # its stream, before it drops the tensor
        m.use(x.__dlpack__(stream=s2, max_version=MAX_VERSION), s2, 1)
    elif consumer == "legacy":
        foreign(m, x, 1, None)
    elif consumer == "same":
        foreign(m, x, s1, s1)
    else:
        m.use(OnlyDLPack(x), s2, 1 if consumer == "after" else 0)
    del x


CASES: list[tuple[str, bool, Callable[[Any], None]]] = [
    ("a plain producer", True, lambda m: one_way(m, "stream", "foreign", plain=1)),
    ("a plain producer without a stream", True, lambda m: one_way(m, "none", "foreign", plain=1)),
    ("any consumer", False, lambda m: one_way(m, "stream", "foreign")),
    ("any consumer, no stream", False, lambda m: one_way(m, "none", "foreign")),
    ("any consumer, legacy stream", False, lambda m: one_way(m, "stream", "legacy")),
    ("any consumer, the array's stream", False, lambda m: one_way(m, "stream", "same")),
    ("any consumer, streams live", False, lambda m: one_way(m, "stream", "foreign", STREAMS_LIVE)),
    ("its stream is destroyed", False, lambda m: one_way(m, "stream", "destroys")),
    ("its stream is destroyed, no stream", False, lambda m: one_way(m, "none", "destroys")),
    ("its stream is destroyed, no captures", False, lambda m: one_way(m, "stream", "destroys", NO_CAPTURES)),
    ("a consumer that passes -1", False, lambda m: one_way(m, "stream", "-1")),
    ("both ends", False, lambda m: one_way(m, "stream", "exchange")),
    ("an exchange, a plain producer", False, lambda m: one_way(m, "stream", "exchange", plain=1)),
    ("an exchange, a plain producer without a stream", False, lambda m: one_way(m, "none", "exchange", plain=1)),
    ("release_after, a plain producer", False, lambda m: one_way(m, "stream", "after", plain=1)),
]


def check_unused(m: Any) -> str:
    """A capsule that nobody takes, and one that is refused, leave nothing."""
    s1, s2 = m.streams(2)
    x = m.Array(s1)
    before = sys.getrefcount(x)
    x.__dlpack__(stream=s2, max_version=MAX_VERSION)
    x.__dlpack__(stream=s2)
    y = m.Array(s1, 0, 1 << 20)
    for keywords in ({"stream": s2}, {"stream": s2, "max_version": MAX_VERSION}):
        try:
            y.__dlpack__(**keywords)
            return "unknown flags were taken"
        except ValueError:
            pass
    m.wait(s2)  # the deleters keep x until the stream of the consumer has passed
    return "" if sys.getrefcount(x) == before else "references are left"


def check_limit(m: Any) -> str:
    """Above the limit an export raises BufferError, which names the drain. Nothing is lost."""
    s1, s2 = m.streams(2)
    x, y = m.Array(0), m.Array(0)
    before = sys.getrefcount(x)
    parked = [m.limit(1)]
    for array, stream, said in ((x, s2, s2), (y, 1, None)):
        foreign(m, array, stream, said)
        parked.append(m.limit(1))
    try:
        x.__dlpack__(stream=None, max_version=MAX_VERSION)
        return "an export above the limit"
    except BufferError as error:
        said = str(error)
    m.wait(s1)
    foreign(m, x, 1, None)
    m.wait(s1)
    parked.append(m.limit(0))
    if "cai_keepalive_drain" not in said or sys.getrefcount(x) != before:
        return f"{said}, {sys.getrefcount(x) - before} references are left"
    return "" if parked == [0, 1, 2, 0] else f"{parked} were parked"


def check_graph(m: Any) -> str:
    """A capsule that nobody takes stays while a graph was asked to tell its end."""
    s1, s2 = m.streams(2)
    x = m.Array(0)
    before = sys.getrefcount(x)
    failed = m.capture(s2, 1)
    x.__dlpack__(stream=s2, max_version=MAX_VERSION)
    kept = sys.getrefcount(x) - before
    failed = failed or m.capture(s2, 0)
    m.wait(s1)
    left = sys.getrefcount(x) - before
    return "" if (failed, kept, left) == (0, 1, 0) else f"error {failed}, {kept} kept, {left} left"


def build(options: argparse.Namespace, folder: pathlib.Path, name: str = "dlpack_order") -> str | None:
    target = folder / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    places = (options.root, options.root / "ext", options.root / "sim", sysconfig.get_paths()["include"])
    command = [options.cc, "-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread",
               *(f"-I{place}" for place in places), f"-isystem{options.dlpack}",
               str(HERE / f"{name}.c"), "-o", str(target)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    return f"{' '.join(command)}\n{done.stderr}" if done.returncode else None


def load(folder: pathlib.Path, name: str = "dlpack_order") -> Any:
    path = next(folder.glob(f"{name}*"))
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def why_skipped(options: argparse.Namespace) -> str | None:
    if not shutil.which(options.cc):
        return f"no {options.cc}"
    if not (pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        return "no Python.h"
    header = options.dlpack and options.dlpack / "dlpack" / "dlpack.h"
    if not header or not header.exists() or "DLManagedTensorVersioned" not in header.read_text():
        return "no dlpack/dlpack.h of 1.0 or later"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1], help="where the headers are")
    parser.add_argument("--dlpack", type=pathlib.Path, help="where dlpack/dlpack.h is")
    options = parser.parse_args()
    reason = why_skipped(options)
    if reason:
        print(f"check_dlpack_order.py: skipped, {reason}")
        return 77
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        error = build(options, pathlib.Path(name))
        if error:
            print(error)
            return 1
        m = load(pathlib.Path(name))
        for what, races, case in CASES:
            case(m)
            said = m.close()
            right = said.startswith("race on") if races else not said
            print(f"{what}: {said or 'in order'}{'' if right else ': WRONG'}")
            bad += not right
        said = check_unused(m) or m.close()
        print(f"capsules that nobody takes: {said or 'nothing left'}")
        bad += bool(said)
        said = check_limit(m) or m.close()
        print(f"a limit: {said + ': WRONG' if said else 'BufferError, nothing lost'}")
        bad += bool(said)
        said = check_graph(m) or m.close()
        print(f"a graph: {said + ': WRONG' if said else 'keeps a capsule that nobody takes'}")
        bad += bool(said)
    print(f"{len(CASES) + 3} cases, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
