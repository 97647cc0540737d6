#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The smallest binding: exactly cai.h and cai_python.h in an empty folder, and the module that docs/python.md shows.

    check_smallest.py --cc COMPILER

Exit status 1 if something is not so, 77 with a reason where what the build needs is missing.
"""

import argparse
import pathlib
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
from build_module import ROOT, build, load, needs  # noqa: E402

FLAGS = ["-Wno-missing-prototypes"]


def snippet():
    page = (ROOT / "docs" / "python.md").read_text()
    return re.search(r"^```c\n(/\* smallest\.c.*?)^```$", page, re.M | re.S)[1]


class Array:
    def __init__(self, **changes):
        right = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3}
        self.__cuda_array_interface__ = {**right, **changes}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cc", required=True)
    options = parser.parse_args()
    needs(numpy=False, cc=options.cc)
    text = snippet()
    with tempfile.TemporaryDirectory() as folder:
        for path in (ROOT / "cai.h", ROOT / "ext" / "cai_python.h"):
            shutil.copy(path, folder)
        source = pathlib.Path(folder) / "smallest.c"
        source.write_text(text)
        copied = sorted(path.name for path in pathlib.Path(folder).iterdir())
        smallest = load(build(options.cc, folder, "smallest", [source], [folder], FLAGS), "smallest")
        failures = [] if copied == ["cai.h", "cai_python.h", "smallest.c"] else [f"the folder has {copied}"]
        array = Array()
        before = sys.getrefcount(array)
        for given, wanted in ((array, ((2, 3), "float32")), (Array(shape=(), typestr="<c16"), ((), "complex128")),
                              (Array(shape=(0, 5), data=(0, True)), ((0, 5), "float32"))):
            if smallest.facts(given) != wanted:
                failures.append(f"{given.__cuda_array_interface__}: {smallest.facts(given)}, not {wanted}")
        for given, wanted in ((Array(shape=(2, -1)), "ValueError: shape[1] = -1 is negative"),
                              (b"", "TypeError: the object has no __cuda_array_interface__"),
                              (Array(mask=Array()), "ValueError: ")):
            try:
                said = f"no error: {smallest.facts(given)}"
            except (TypeError, ValueError) as error:
                said = f"{type(error).__name__}: {error}"
            if not said.startswith(wanted):
                failures.append(f"{said}, not {wanted}")
        if sys.getrefcount(array) != before:
            failures.append("a reference was left")
    for failure in failures:
        print(failure)
    print(f"lines {len(text.splitlines())}, failures {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
