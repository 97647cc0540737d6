#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Storages from Python: the module examples/storage/python/cai_field.c with NumPy, Numba, cuda.core, PyTorch and CuPy on
the simulated driver.

    sim/tests/driver/check_field.py --cc CC [--python PYTHON] [--self-test | --real]

PYTHON has the package cai_sim and the libraries. Each program of field_programs.py, field_others.py and field_gt4py.py,
and the example fields.py, runs under both settings of the driver. One of them has a race, which must be found. A program whose library
is missing is skipped, with its name. --self-test plants defects in the module, one at a time. With --real the programs
run on a GPU, which finds no races.

Exit status 0: each program that ran ended as it must, or each defect was found. 1: not so. 77: there is no package
cai_sim, or no program could run.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MODULE = ROOT / "examples" / "storage" / "python"
sys.path.insert(0, str(ROOT / "tests" / "examples" / "python"))

from build_module import build, needs, skip  # noqa: E402

RACE = 4
RACES = {"forgets_its_stream"}
SETTINGS = {"": ["-m", "cai_sim"], " adversarial": ["-m", "cai_sim", "--adversarial"]}
REAL = {" on a GPU": []}

# What is changed in cai_field.c, and into what.
PLANTED = [
    ("the end of a side does not end the access", "    cai_array_release(&side->array);\n", ""),
    ("a stream is not passed on", "side, mode, stream, &((side_object *)out)",
     "side, mode, stream ? field->storage.options.home : 0, &((side_object *)out)"),
    ("a side does not keep the field", "->field = Py_NewRef(self)", "->field = self"),
    ("a field does not keep its home", "Py_XNewRef(home)", "home ? NULL : NULL"),
    ("a side does not keep its stream", "Py_XNewRef(owner)", "owner ? NULL : NULL"),
    ("DLPack without an order", "if (array->sync == CAI_SYNC_NONE) return", "request.flags |= CAI_DLPACK_ORDERED;\n    return"),
    ("write is read", 'if (!strcmp(name, "write")) return CAI_WRITE;', 'if (!strcmp(name, "write")) return CAI_READ;'),
    ("write is overwrite", 'if (!strcmp(name, "write")) return CAI_WRITE;',
     'if (!strcmp(name, "write")) return CAI_OVERWRITE;'),
    ("two threads in one storage", "if (field->busy)", "if (field->busy < 0)"),
    ("GT4Py's origin in the order of the array", "    gt_order(field->dims, layout->ndim, axes);",
     "    gt_order(NULL, layout->ndim, axes);"),
    ("an origin is read in the order of the array", "gt_order(halo ? NULL : dims,", "gt_order(halo || dims ? NULL : dims,"),
    ("axes of data before those of space", "(int)(letter - '0') + 3", "(int)(letter - '0') - 10"),
    ("device memory is the host's", "    if (array->memory == CAI_MEMORY_DEVICE)\n", "    if (array->memory < 0)\n"),
    ("the halo is not in the domain", "layout->shape[i] - layout->halo_high[i]", "layout->shape[i]"),
]  # fmt: skip


def programs() -> list[list[str]]:
    """The commands, without Python and its options."""
    found = [[str(MODULE / "fields.py")]]
    for name in ("field_programs.py", "field_others.py", "field_gt4py.py"):
        main = (HERE / name).read_text(encoding="utf-8")
        found += [[str(HERE / name), one] for one in re.findall(r'^def (\w+)\(\) -> None:$', main, re.MULTILINE)]
    return found


def run(python: str, folder: str, setting: list[str], program: list[str]) -> tuple[str, str]:
    """The verdict ("", "skipped" or what is wrong), and the output."""
    path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    command = [python, "-W", "ignore", *setting, *program]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path})
    except subprocess.TimeoutExpired:
        return "no end after 120 seconds", ""
    text = done.stdout + done.stderr
    missing = re.search(r"^ModuleNotFoundError: No module named '(\w+)", text, re.MULTILINE)
    if missing and missing[1] != "cai_field":
        return "skipped", missing[1]
    expected = RACE if program[-1] in RACES else 0
    if done.returncode != expected:
        return f"exit status {done.returncode}, not {expected}", text
    if "Exception ignored" in text:
        return "an exception that nobody saw", text
    if setting and not expected and "cai_sim: no race" not in text:
        return "no verdict", text
    return "", text


def run_all(python: str, folder: str, settings: dict[str, list[str]], quiet: bool = False) -> tuple[int, int]:
    """How many programs ran, and how many were wrong."""
    ran = wrong = 0
    for program in programs():
        for label, setting in settings.items():
            name = pathlib.Path(program[-1]).stem + label
            if program[-1] in RACES and not setting:
                continue
            verdict, text = run(python, folder, setting, program)
            if verdict == "skipped":
                print(f"skipped: {name}: no {text}", flush=True)
                break
            ran += 1
            wrong += verdict != ""
            if not quiet:
                print(f"{name}: {verdict or 'as it must be'}", flush=True)
                print(text if verdict else "", end="")
            elif wrong:
                return ran, wrong
    return ran, wrong


def module(cc: str, folder: str, source: pathlib.Path = MODULE / "cai_field.c") -> None:
    build(cc, folder, "cai_field", [source], [ROOT, ROOT / "ext"])


def self_test(cc: str, python: str) -> int:
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        module(cc, folder)
        if run_all(python, folder, SETTINGS, quiet=True)[1]:
            sys.exit("the module as it is fails")
    source = (MODULE / "cai_field.c").read_text(encoding="utf-8")
    for name, old, new in PLANTED:
        if source.count(old) != 1:
            sys.exit(f"{name}: {old!r} stands {source.count(old)} times in cai_field.c")
        with tempfile.TemporaryDirectory() as folder:
            changed = pathlib.Path(folder, "cai_field.c")
            changed.write_text(source.replace(old, new), encoding="utf-8")
            module(cc, folder, changed)
            _, wrong = run_all(python, folder, SETTINGS, quiet=True)
        missed += not wrong
        print(f"{name}: {'found' if wrong else 'NOT FOUND'}", flush=True)
    print(f"defects {len(PLANTED)}, missed {missed}")
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--real", action="store_true")
    options = parser.parse_args()
    needs(numpy=False, cc=options.cc)
    if not options.real and subprocess.run([options.python, "-c", "import cai_sim"], capture_output=True).returncode:
        skip("no package cai_sim (pip install ./sim/python)")
    if options.self_test:
        return self_test(options.cc, options.python)
    with tempfile.TemporaryDirectory() as folder:
        module(options.cc, folder)
        ran, wrong = run_all(options.python, folder, REAL if options.real else SETTINGS)
    if not ran:
        skip("no program could run")
    print(f"runs {ran}, wrong {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
