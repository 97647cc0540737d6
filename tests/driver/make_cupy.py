#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes CuPy run on the simulated driver: its wheel has a static libcudart, which finds no driver of its maker there.

    make_cupy.py --toolkit FOLDER [--back] PYTHON

PYTHON: the interpreter of a virtual environment that has a wheel of CuPy (cupy-cuda13x or 12x) and the package cai_sim.
One module of CuPy, cupy_backends.cuda.api.runtime, is built anew from the source of the same version on PyPI, and
linked with the libcudart of cai_sim. Nothing else changes. --back puts the module of the wheel back. FOLDER: a CUDA
toolkit, for its headers. It takes about a minute. After that cupy runs by `python -m cai_sim` alone.

CUB and Thrust in CuPy keep their static libcudart: what uses them (sort, some sums) is not served.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

MODULE = "cupy_backends.cuda.api.runtime"

# What the environment is: the files to replace and to link with.
ASK = """
import importlib.metadata, importlib.util, json, pathlib, sysconfig
import cai_sim
name = next(d.name for d in importlib.metadata.distributions() if d.name.startswith("cupy-cuda"))
root = pathlib.Path(importlib.util.find_spec("cupy_backends").origin).parent
print(json.dumps({
    "version": importlib.metadata.version(name),
    "major": name.removeprefix("cupy-cuda").rstrip("x"),
    "module": str(root / "cuda" / "api" / ("runtime" + sysconfig.get_config_var("EXT_SUFFIX"))),
    "libraries": str(pathlib.Path(cai_sim.__file__).parent / "lib"),
}))
"""

# Runs in the folder of CuPy's source. The constants are those that its own setup.py gives to Cython.
BUILD = """
import sys
import Cython, Cython.Build, setuptools
from setuptools.command.build_ext import build_ext
module, headers, runtime, major = sys.argv[1:]
extension = setuptools.Extension(module, [module.replace(".", "/") + ".pyx"], language="c++", extra_objects=[runtime],
                                 include_dirs=[headers, "cupy_backends", "."])
constants = {"CUPY_USE_CUDA_PYTHON": False, "CUPY_CUFFT_STATIC": False, "CUPY_CYTHON_VERSION": Cython.__version__,
             "CUPY_CUDA_VERSION": int(major) * 1000, "CUPY_HIP_VERSION": 0}
directives = {"binding": False, "embedsignature": True, "c_api_binop_methods": True, "freethreading_compatible": True,
              "warn.deprecated.IF": False}
made = Cython.Build.cythonize([extension], language_level=3, compiler_directives=directives, compile_time_env=constants)
command = build_ext(setuptools.Distribution({"name": "runtime", "ext_modules": made}))
command.build_lib, command.build_temp = "out", "temporary"
command.ensure_finalized()
command.run()
"""


def run(what: str, command: list[str], folder: pathlib.Path | None = None, **environment: str) -> str:
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"make_cupy: {what}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def build(python: str, about: dict[str, str], toolkit: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The module, built in `folder`. Cython and setuptools come into `folder`, not into the environment."""
    version, major = about["version"], about["major"]
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    tools = str(folder / "tools")
    run("Cython", [*pip, "install", "--quiet", "--target", tools, "Cython>=3.2,<3.3,!=3.2.6", "setuptools"])
    run("source", [*pip, "download", "--quiet", "--no-deps", "--no-binary", "cupy", "--dest", str(folder), f"cupy=={version}"])
    with tarfile.open(folder / f"cupy-{version}.tar.gz") as source:
        source.extractall(folder, filter="data")
    source_folder = folder / f"cupy-{version}"
    runtime = f"{about['libraries']}/libcudart.so.{major}"
    run("build", [python, "-c", BUILD, MODULE, f"{toolkit}/include", runtime, major], source_folder, PYTHONPATH=tools)
    return next((source_folder / "out").rglob("runtime*.so"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="of the virtual environment")
    parser.add_argument("--toolkit", type=pathlib.Path, default=pathlib.Path("/usr/local/cuda"), help="a CUDA toolkit's folder")
    parser.add_argument("--back", action="store_true", help="puts the module of the wheel back")
    options = parser.parse_args()
    if not options.back and not (options.toolkit / "include" / "cuda_runtime_api.h").exists():
        parser.error(f"--toolkit: {options.toolkit} has no include/cuda_runtime_api.h")
    python = os.path.abspath(options.python)  # not what it links to: that is outside the environment
    about = json.loads(run("environment", [python, "-c", ASK]))
    module = pathlib.Path(about["module"])
    shipped = module.with_suffix(".shipped")
    if options.back:
        if shipped.exists():
            shipped.replace(module)
        print(f"{module.name}: as in the wheel")
        return 0
    with tempfile.TemporaryDirectory() as name:
        built = build(python, about, options.toolkit, pathlib.Path(name))
        if not shipped.exists():
            module.replace(shipped)
        shutil.copy(built, module)
    print(f"cupy {about['version']}: {module.name} uses the libcudart of cai_sim")
    return 0


if __name__ == "__main__":
    sys.exit(main())
