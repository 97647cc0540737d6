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
from planting import NONE, Defect, Subject, compile_each, execute, folders_of, judge_all, parser  # noqa: E402
from run_mpi import environment, mpiexec_of  # noqa: E402

# What it is, where it is, what stands there instead
HOST = [
    ("a pool is asked for on the host", r" : options->engine != CAI_MPI_DIRECT\)", r" : 1)"),
    ("no pool is asked for", r" : options->engine != CAI_MPI_DIRECT\)", r" : 0)"),
    ("a pool that is not made is taken", r"\? !options->pool->cuda :", r"? 0 :"),
    ("without a pool pending work is not seen", r"if \(!status && !pool\) status = cai_priv_mpi_idle[^;]*;", r""),
    ("without a pool an event is idle", r"if \(array->sync == CAI_SYNC_NONE \|\| ",
     r"if (array->sync == CAI_SYNC_NONE || array->sync == CAI_SYNC_EVENT || "),
    ("without a pool what is not known is idle", r"if \(array->sync == CAI_SYNC_NONE \|\| ",
     r"if (array->sync == CAI_SYNC_NONE || !array->sync || "),
    ("without a pool the host waits", r"    if \(pool\) \{\n", r"    {\n"),
]  # fmt: skip

# The same in cai_mpi_halo; found by two ranks
HALO = [
    ("a halo is sent to where it comes from", r"message->tag = options->tag \+ \(receives \? cart->directions - 1 - direction : direction\);",
     r"message->tag = options->tag + direction;"),
    ("all directions have one tag", r"\(receives \? cart->directions - 1 - direction : direction\)", r"0"),
    ("low and high of what is sent are changed", r"if \(side < 0\) length = receives \? low : high;", r"if (side < 0) length = low;"),
    ("low and high of what is sent behind are changed", r"if \(side > 0\) length = receives \? high : low;", r"if (side > 0) length = high;"),
    ("the halo before is sent, not the inside", r"if \(side < 0 && receives\) start = 0;", r"if (side < 0) start = 0;"),
    ("the inside is received", r"if \(side < 0 && receives\) start = 0;", r""),
    ("what is sent behind is the halo", r"start = receives \? end : end - length;", r"start = end - (receives ? 0 : length - high);"),
    ("the inside begins at 0", r"int64_t start = low, length = end - low;", r"int64_t start = 0, length = end;"),
    ("edges are left out", r"\(sides == 1 \|\| !options->faces\)", r"sides == 1"),
    ("edges are not left out", r" && \(sides == 1 \|\| !options->faces\)", r""),
    ("an edge is periodic", r"if \(!cart->periods\[i\] && \(at\[i\] < 0[^;]*;", r""),
    ("a periodic edge is one", r"if \(!cart->periods\[i\] && ", r"if ("),
    ("the axes are those of the communicator", r"options->axes \? options->axes\[i\] : i;", r"i;"),
    ("the order of the dimensions is changed", r"at\[i\] = cart->at\[i\] \+ side;", r"at[cart->count - 1 - i] = cart->at[i] + side;"),
    ("a width may be as wide as the field", r", limit = inside > 0 \? inside : 0;", r", limit = extent + 0 * inside;"),
    ("a limit may be negative", r", limit = inside > 0 \? inside : 0;", r", limit = inside;"),
    ("a negative width behind", r"if \(high >= 0 && high <= limit\)", r"if (high <= limit)"),
    ("a negative width before", r"if \(low < 0 \|\| low > limit\)", r"if (low > limit)"),
    ("widths wrap", r"const int fits = low >= 0 && high >= 0 && low <= extent && high <= extent;", r"const int fits = 1;"),
    ("an axis twice", r"if \(axis == cart->axes\[before\]\)", r"if (0)"),
    ("an axis may be negative", r"if \(axis < 0 \|\| axis >= field->ndim\)", r"if (axis >= field->ndim)"),
    ("an axis that is not there", r"if \(axis < 0 \|\| axis >= field->ndim\)", r"if (axis < 0)"),
    ("any communicator is one", r"if \(!code && kind != MPI_CART\)", r"if (0)"),
    ("more dimensions than axes", r"if \(!code && cart->count > limit\)", r"if (!code && cart->count > CAI_MPI_HALO_DIMS)"),
    ("more dimensions than tags", r"field->ndim < CAI_MPI_HALO_DIMS \? field->ndim : CAI_MPI_HALO_DIMS;", r"field->ndim;"),
    ("more messages than places", r"if \(n\+\+ >= capacity\) continue;", r"if (n++ > capacity) continue;"),
    ("what is needed is not told", r"    \*count = n;\n    if \(n <= capacity\)", r"    if (n <= capacity) *count = n;\n    if (n <= capacity)"),
    ("empty messages are listed", r"message\.peer == MPI_PROC_NULL \|\| !part\.size\)", r"message.peer == MPI_PROC_NULL)"),
    ("messages to nobody are listed", r"message\.peer == MPI_PROC_NULL \|\| !part\.size\)", r"!part.size)"),
    ("any tag", r"if \(options->tag < 0 \|\| options->tag > [^)]*\)", r"if (0)"),
    ("the own index of an error", r"    if \(err\) err->index = index;\n    return status;\n\}\n\nstatic cai_status cai_priv_mpi_widths",
     r"    return status;\n}\n\nstatic cai_status cai_priv_mpi_widths"),
]  # fmt: skip


FOUND = r"\.c:(\d+: .*)|([Ss]ignal.*|did not end|case .* wrong|MPI_ERR_.*|Fatal error.*)"


class Programs(Subject):
    """test_host.c, and test_halo.c without CUDA."""

    def build(self, options, tree, folder):
        sources = [HERE / "test_host.c", HERE / "test_halo.c"]
        return compile_each(options, folder, sources, "-O0", "-D_GNU_SOURCE", *folders_of(tree))

    def run(self, options, tree, folder, variables, defect):
        ranks, program = (2, "test_halo") if defect.more == "halo" or defect is NONE else (1, "test_host")
        command = [mpiexec_of(options.cc), "-n", str(ranks), folder / program]
        for _ in range(2):  # MPI_Abort may lose what was printed
            status, output = execute(command, 60, {**environment(), **variables})
            found = re.findall(FOUND, output)
            if not status or found:
                break
        if defect is NONE:
            return status == 0, "good" if status == 0 else f"FAILED: {output}"
        if not status or not found:
            return False, f"NOT FOUND: {output}"
        return True, found[0][0] or found[0][1]


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--mpicc", dest="cc")
    defects = [Defect(name, "ext/cai_mpi.h", find, replace, of) for of, entries in (("host", HOST), ("halo", HALO))
               for name, find, replace in entries]  # fmt: skip
    return judge_all(arguments.parse_args(), defects, Programs())


if __name__ == "__main__":
    sys.exit(main())
