#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the installed package cai_sim was built from the sources of this tree.

    check_package.py [--python PYTHON]

Tests that use the installed package need this one (CAI_SIM of cai_test in cmake/tests.cmake). An old package would
give verdicts on old code. Exit status 0: it is of this tree, or PYTHON has none; 1: not.
"""

from __future__ import annotations

import argparse
import hashlib
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PYTHON = ROOT / "sim" / "python"
WHERE = "import importlib.util as u; found = u.find_spec('cai_sim'); print(found.origin if found else '')"
MOST = 5  # files that are named
COMPILED = ("sim/*.c", "sim/driver/**/*.c", "sim/libraries/*.c")


def stale(package: pathlib.Path) -> list[str]:
    """The files of the tree that the package was not built from."""
    listed = package / "lib" / "sources.txt"  # written by setup.py
    if not listed.exists():
        return ["it has no lib/sources.txt"]
    known = {name: digest for digest, name in (line.split("  ", 1) for line in listed.read_text().splitlines())}
    used = {path.relative_to(ROOT).as_posix() for pattern in COMPILED for path in ROOT.glob(pattern)}
    differ = [name for name in sorted(used | set(known)) if digest_of(ROOT / name) != known.get(name)]
    pairs = [(path, package / path.name) for path in sorted((PYTHON / "cai_sim").glob("*.py"))]
    pairs.append((PYTHON / "cai_sim_pytest.py", package.parent / "cai_sim_pytest.py"))
    differ += [tree.relative_to(ROOT).as_posix() for tree, copy in pairs if digest_of(tree) != digest_of(copy)]
    return differ


def digest_of(file: pathlib.Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    done = subprocess.run([options.python, "-c", WHERE], capture_output=True, text=True, check=True)
    if not done.stdout.strip():
        print("no package cai_sim: tests that need it are skipped")
        return 0
    package = pathlib.Path(done.stdout.strip()).parent
    differ = stale(package)
    if differ:
        more = f" and {len(differ) - MOST} more" if differ[MOST:] else ""
        print(f"stale package: {package} was not built from this tree: {', '.join(differ[:MOST])}{more}")
        print(f"  {options.python} -m pip install --force-reinstall --no-deps {PYTHON.relative_to(ROOT)}")
        return 1
    print(f"{package} was built from this tree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
