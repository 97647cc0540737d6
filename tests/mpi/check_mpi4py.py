#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fields of the example module through mpi4py, on two ranks with a simulated device each (mpi4py_fields.py).

    tests/mpi/check_mpi4py.py --cc CC --dlpack FOLDER --mpicc mpicc.openmpi

Each program runs under both settings of the driver. The one that forgets to wait for the stream must receive wrong
elements. Exit status 77: no package cai_sim, mpi4py, Numba or NumPy, or mpi4py finds another MPI than that of --mpicc.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "examples" / "python")]

from build_module import build, needs, skip  # noqa: E402
from run_mpi import environment  # noqa: E402

LIMIT = 120
FORGETS = "forgets"  # and ends with exit status 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--mpicc", required=True)
    args = parser.parse_args()
    needs(cc=args.cc)
    for name in ("cai_sim", "mpi4py", "numba"):
        if not importlib.util.find_spec(name):
            skip(f"this Python has no {name}")
    mpiexec = args.mpicc.replace("mpicc", "mpiexec")
    ask = "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"
    asked = subprocess.run([mpiexec, "-n", "2", sys.executable, "-W", "ignore", "-c", ask], env=environment(),
                           capture_output=True, text=True, timeout=LIMIT)  # fmt: skip
    if "".join(asked.stdout.split()) != "22":
        skip(f"mpi4py does not run under {mpiexec}: {asked.stdout}{asked.stderr[-300:]}")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        sources = [ROOT / "examples" / "storage" / "python" / "cai_field.c"]
        build(args.cc, folder, "cai_field", sources, [ROOT, ROOT / "ext"])
        path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        for name in ("waits", FORGETS, "refuses"):
            for setting in ([], ["--adversarial"]):
                command = [mpiexec, "-n", "2", sys.executable, "-W", "ignore", "-m", "cai_sim", *setting,
                           str(HERE / "mpi4py_fields.py"), name]  # fmt: skip
                done = subprocess.run(command, env={**environment(), "PYTHONPATH": path}, capture_output=True,
                                      text=True, timeout=LIMIT)  # fmt: skip
                wrong = f"{name}: 0 wrong" not in done.stdout
                good = wrong == (name == FORGETS) == (done.returncode != 0) and f"{name}: " in done.stdout
                failures += not good
                label = " ".join([name, *setting])
                print(f"{label}: {'as it must be' if good else f'FAILED, {done.returncode}: {done.stdout}{done.stderr}'}")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
