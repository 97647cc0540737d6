#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Has docs/dlpack.md the table of decisions that test_dlpack_table.c checks?

    check_table.py PROGRAM [--write]
"""

import pathlib
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "dlpack.md"
BEGIN, END = "<!-- by tests/dlpack/check_table.py --write -->\n", "<!-- end -->\n"


def main():
    made = subprocess.run([sys.argv[1], "rules"], capture_output=True, text=True, check=True).stdout
    before, rest = PAGE.read_text().split(BEGIN)
    there, after = rest.split(END)
    if sys.argv[2:] == ["--write"]:
        PAGE.write_text(before + BEGIN + made + END + after)
    elif there != made:
        print(f"{PAGE.name} has another table. Run check_table.py PROGRAM --write")
        return 1
    print(f"{made.count(chr(10)) - 2} rules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
