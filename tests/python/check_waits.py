#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does a call of cai_python.h or cai_python_dlpack.h that waits let the GIL go? And no call that cannot wait?

    check_waits.py --dlpack FOLDER [--cc cc] [--root FOLDER] [--planted]

FOLDER has dlpack/dlpack.h. waits.c is built in a temporary folder. Its host functions, on the simulated CUDA, need
the GIL while a call waits for them: a dead-lock, which ends after 2 seconds, if the call keeps the GIL. The calls that
cannot wait must keep it, because to let it go may cost a switch of threads. --planted: defects that are put into the
headers, one at a time, are found. Exit status 0: all is right; 1: not; 77: no
compiler, no Python.h, or no dlpack.h that is new enough.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any, Callable

from check_dlpack_order import HERE, build, load, why_skipped

sys.path.insert(0, str(HERE.parent / "support"))
from planting import make_tree  # noqa: E402

NONE, STREAM, UNKNOWN = 1, 2, 0  # CAI_SYNC_...
EVENT_MODE, HOST_MODE = 0, 1


def release(m: Any, s: int, t: int) -> None:
    """The release of an array of other code waits."""
    m.block(s)
    m.release(s)


def full_list(m: Any, s: int, t: int) -> None:
    """Two places for three arrays: the host waits until the first have passed."""
    m.block(s)
    m.release_after(s, 3, 0)


def full_before(m: Any, s: int, t: int) -> None:
    m.block(s)
    m.release_after(s, 2, 0)
    m.release_after(t, 1, 0)


def on_host(m: Any, s: int, t: int) -> None:
    """The pool has the mode in which the host waits."""
    m.mode(HOST_MODE)
    m.block(s)
    try:
        m.release_after(s, 1, 0)
    finally:
        m.mode(EVENT_MODE)


def passed(m: Any, s: int, t: int) -> None:
    """An array that waited for t has passed. Its release, in a poll, waits for s."""
    m.release_after(t, 1, s)
    m.pass_(t)
    m.block(s)
    m.release_after(t, 0, 0)


def passed_in_export(m: Any, s: int, t: int) -> None:
    """The same in an export that orders."""
    m.release_after(t, 1, s)
    m.pass_(t)
    m.block(s)
    m.export(None, STREAM, t, m.stream())


def unknown(m: Any, s: int, t: int) -> None:
    """Nobody knows where work on the array is pending: the export waits for all."""
    m.block(s)
    m.export(None, UNKNOWN, 0, t)


# What waits: it calls one host function, which is not late
WAITS = [release, full_list, full_before, on_host, passed, passed_in_export, unknown]


# What does not, and keeps the GIL
KEEPS: list[tuple[str, Callable[[Any, int, int], None]]] = [
    ("release of an object", lambda m, s, t: m.release_own(object())),
    ("release_after, nothing to keep", lambda m, s, t: m.release_after(s, 0, 0)),
    ("import by the exchange of a type, and release", lambda m, s, t: m.take(m.Array())),
    ("export of an empty array", lambda m, s, t: m.export(None, NONE, 0, t, 0)),
]


# What it is, where, what stands there, what stands there instead, and the case that finds it
PLANTED = [
    ("the release of other code has the GIL", "ext/cai_python.h", r"let_go \? NULL : PyEval_SaveThread\(\);", "let_go ? NULL : NULL;", "release:"),
    ("a release of an object lets the GIL go", "ext/cai_python.h", r"    array->release = NULL; /\* dropped now",
     r"    PyEval_RestoreThread(PyEval_SaveThread());\n\g<0>", "import by the exchange"),
    ("release_after keeps the GIL", "ext/cai_python.h", r"    thread = PyEval_SaveThread\(\);\n(    if \(!count\)[\s\S]*?)"
     r"    PyEval_RestoreThread\(thread\);\n", r"    thread = NULL;\n\1", "full_list:"),
    ("an empty list is polled without the GIL", "ext/cai_python.h", r"    if \(!count && pool && pool->cuda && .*", "", "release_after, nothing"),
    ("what waits is not polled", "ext/cai_python.h", r" && !pool->waiting\) return CAI_OK;", ") return CAI_OK;", "passed:"),
    ("an ordered export keeps the GIL", "ext/cai_python_dlpack.h", r"calls_cuda \? PyEval_SaveThread\(\) : NULL;", "calls_cuda ? NULL : NULL;", "unknown:"),
    ("an empty export lets the GIL go", "ext/cai_python_dlpack.h", r"calls_cuda = array->size && ", "calls_cuda = ", "export of an empty"),
]  # fmt: skip


def planted(options: argparse.Namespace) -> int:
    """Exit status."""
    bad = 0
    for name, file, find, replace, case in PLANTED:
        text = (options.root / file).read_text()
        changed = re.sub(find, replace, text, count=1)
        with tempfile.TemporaryDirectory() as folder:
            root = make_tree(options.root, pathlib.Path(folder), {file: changed})
            command = [sys.executable, __file__, "--cc", options.cc, "--dlpack", options.dlpack, "--root", root]
            done = subprocess.run(command, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith(case) and "WRONG" in line]
        good = changed != text and done.returncode == 1 and lines
        print(f"{name}: {lines[0] if good else 'NOT FOUND: ' + done.stdout + done.stderr}")
        bad += not good
    print(f"{len(PLANTED)} defects, {bad} not found")
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1], help="where the headers are")
    parser.add_argument("--dlpack", type=pathlib.Path, help="where dlpack/dlpack.h is")
    parser.add_argument("--planted", action="store_true")
    options = parser.parse_args()
    reason = why_skipped(options)
    if reason:
        print(f"check_waits.py: skipped, {reason}")
        return 77
    if options.planted:
        return planted(options)
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        error = build(options, pathlib.Path(name), "waits")
        if error:
            print(error)
            return 1
        m = load(pathlib.Path(name), "waits")
        for case in WAITS:
            case(m, m.stream(), m.stream())
            called, late, let_go, _ = m.counts()
            right = called == 1 and not late and let_go
            print(f"{case.__name__}: {called} host function called, {late} late{'' if right else ': WRONG'}")
            bad += not right
        for what, run in KEEPS:
            run(m, m.stream(), m.stream())
            let_go = m.counts()[2]
            print(f"{what}: the GIL was let go {let_go} times{': WRONG' if let_go else ''}")
            bad += let_go != 0
    print(f"{len(WAITS) + len(KEEPS)} cases, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
