#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in ext/cai_mpi.h, one at a time; a test of this folder must see each of them.

    tests/mpi/planted.py --mpicc mpicc.openmpi|mpicc.mpich [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

Prints one line per defect: the first check that fails. A defect that is not found, or that does not apply to the
header any more, is a failure, and so is a failing check without a defect. Exit status 0: all found; 1: not; 77: no
such MPI.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, Defect, Subject, compile_with, execute, folders_of, judge_all, parser  # noqa: E402
from run_mpi import environment, mpiexec_of  # noqa: E402

# What it is, where it is, what stands there instead
HOST = [
    ("a pool is asked for on the host", r" : options->engine != CAI_MPI_DIRECT\)", r" : 1)"),
    ("no pool is asked for", r" : options->engine != CAI_MPI_DIRECT\)", r" : 0)"),
    ("a pool that is not made is taken", r"\? !options->pool->cuda :", r"? 0 :"),
    ("without a pool pending work is not seen", r"if \(!status && !orders\) status = cai_priv_mpi_idle[^;]*;", r""),
    ("without a pool an event is idle", r"if \(array->sync == CAI_SYNC_NONE \|\| ",
     r"if (array->sync == CAI_SYNC_NONE || array->sync == CAI_SYNC_EVENT || "),
    ("without a pool what is not known is idle", r"if \(array->sync == CAI_SYNC_NONE \|\| ",
     r"if (array->sync == CAI_SYNC_NONE || !array->sync || "),
    ("without a pool the host waits", r"    if \(pool\) \{\n", r"    {\n"),
]  # fmt: skip


class Programs(Subject):
    """test_host.c."""

    def build(self, options, tree, folder):
        return compile_with(options, "-O0", "-D_GNU_SOURCE", *folders_of(tree), HERE / "test_host.c", "-o", folder / "host")

    def run(self, options, tree, folder, variables, defect):
        mpiexec = mpiexec_of(options.cc)
        status, output = execute([mpiexec, "-n", "1", folder / "host"], 60, {**environment(), **variables})
        found = re.findall(r"\.c:(\d+: .*)|([Ss]ignal.*)", output)
        if defect is NONE:
            return status == 0, "good" if status == 0 else f"FAILED: {output}"
        if not status or not found:
            return False, f"NOT FOUND: {output}"
        return True, found[0][0] or found[0][1]


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--mpicc", dest="cc")
    defects = [Defect(name, "ext/cai_mpi.h", find, replace) for name, find, replace in HOST]
    return judge_all(arguments.parse_args(), defects, Programs())


if __name__ == "__main__":
    sys.exit(main())
