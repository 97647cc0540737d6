# SPDX-License-Identifier: MIT
"""Runs the cai_inspect of this package: its arguments, its output, its exit status."""

import os
import subprocess
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "cai_inspect")


def main() -> int:
    if os.name == "nt":  # there exec does not keep the console
        return subprocess.run([PROGRAM + ".exe", *sys.argv[1:]]).returncode
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
