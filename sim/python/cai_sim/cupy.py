# SPDX-License-Identifier: MIT
"""python -m cai_sim.cupy [--back] [--toolkit FOLDER]

Makes the CuPy of this environment run on the simulated driver. Its wheel (cupy-cuda13x or 12x) has a static libcudart,
which finds no driver of its maker here. One module of CuPy, cupy_backends.cuda.api.runtime, is built anew from the
source of the same version on PyPI, and finds a shared libcudart when it is loaded. Nothing else of CuPy changes. It
takes half a minute, and needs a C++ compiler. A CuPy outside of this environment (sys.prefix) stays as it is.

  --back            puts the module of the wheel back
  --toolkit FOLDER  the headers of this CUDA toolkit. Else those of PyPI

Then CuPy runs by `python -m cai_sim` alone. On a GPU it runs as before, if the system has a libcudart.so.13 or .12.
CuPy's Thrust and CUB keep their static libcudart: what uses them (sort, unique, median, some sums) is not served."""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from typing import Any, NoReturn

from . import _native

MODULE = "cupy_backends.cuda.api.runtime"
TOOLS = ["Cython>=3.2,<3.3,!=3.2.6", "setuptools"]
# The compiler's headers (crt/) of CUDA 13 serve both.
HEADERS = {
    "13": ["nvidia-cuda-runtime>=13,<14", "nvidia-cuda-crt>=13,<14", "nvidia-cuda-cccl>=13,<14",
           "nvidia-cuda-profiler-api>=13,<14"],
    "12": ["nvidia-cuda-runtime-cu12>=12.9,<13", "nvidia-cuda-crt>=13,<14", "nvidia-cuda-cccl-cu12",
           "nvidia-cuda-profiler-api>=13,<14"],
}  # fmt: skip

# Runs in the folder of CuPy's source. The constants are those that its own setup.py gives to Cython.
BUILD = """
import sys
import Cython, Cython.Build, setuptools
from setuptools.command.build_ext import build_ext
module, runtime, major, *headers = sys.argv[1:]
extension = setuptools.Extension(module, [module.replace(".", "/") + ".pyx"], language="c++", extra_objects=[runtime],
                                 include_dirs=[*headers, "cupy_backends", "."])
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


def fail(text: str) -> NoReturn:
    raise SystemExit(f"cai_sim.cupy: {text}")


def run(what: str, command: list[str], folder: pathlib.Path | None = None, **environment: str) -> None:
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        fail(f"{what} failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def installed() -> tuple[str, str]:
    """The version of CuPy's wheel, and the major one of its CUDA."""
    names = [found.metadata["Name"] or "" for found in importlib.metadata.distributions()]
    name = next((name for name in names if name.startswith("cupy-cuda")), None)
    if name is None:
        fail("there is no wheel of CuPy (cupy-cuda13x or cupy-cuda12x) in this environment")
    return importlib.metadata.version(name), name[len("cupy-cuda") :].rstrip("x")


def module_file() -> pathlib.Path:
    found = importlib.util.find_spec("cupy_backends")
    if found is None or not found.origin:
        fail("there is no module cupy_backends in this environment")
    suffix = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
    return pathlib.Path(found.origin).parent / "cuda" / "api" / f"runtime{suffix}"


def check_place(module: pathlib.Path) -> None:
    """Other environments may use a CuPy that this one only finds by its path."""
    if not module.resolve().is_relative_to(pathlib.Path(sys.prefix).resolve()):
        fail(f"{module} is outside of this environment ({sys.prefix}): install CuPy here, "
             "or run the Python of the environment that has it")


def replace(module: pathlib.Path, made: pathlib.Path) -> None:
    """Puts `made` in place of the module, by a rename: a process that has the old one keeps it."""
    beside = module.with_suffix(".new")
    shutil.copy(made, beside)
    os.replace(beside, module)


def is_built(module: pathlib.Path, stamp: str = "") -> bool:
    """Whether the module is one that was built here, from what `stamp` says."""
    noted = module.with_suffix(".built")
    made = noted.read_text(encoding="utf-8") if noted.exists() else ""
    return made.startswith(stamp) and made.endswith(f" {digest(module)}")


def digest(file: pathlib.Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def unpack(file: pathlib.Path, folder: pathlib.Path) -> None:
    """Python before 3.10.12 and 3.11.4, such as Debian's 3.11.2, has no filters."""
    safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(file) as source:
        source.extractall(folder, **safe)


def headers(toolkit: pathlib.Path | None, major: str, pip: list[str], folder: pathlib.Path) -> list[str]:
    """The folders with CUDA's headers."""
    if toolkit is not None:
        if not (toolkit / "include" / "cuda_runtime_api.h").exists():
            fail(f"{toolkit} has no include/cuda_runtime_api.h")
        return [str(toolkit / "include")]
    run("the headers of CUDA", [*pip, "install", "--quiet", "--no-deps", "--target", str(folder), *HEADERS[major]])
    first = "nvidia/cuda_runtime/include" if major == "12" else "nvidia/cu13/include"
    return [str(path) for path in [folder / first, *sorted(folder.glob("nvidia/*/include"))] if path.is_dir()]


def build(version: str, major: str, toolkit: pathlib.Path | None, folder: pathlib.Path) -> pathlib.Path:
    """The module, built in `folder`. Cython, setuptools and headers come into `folder`, not into the environment."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    tools = str(folder / "tools")
    run("Cython", [*pip, "install", "--quiet", "--target", tools, *TOOLS])
    run("CuPy's source", [*pip, "download", "--quiet", "--no-deps", "--no-build-isolation", "--no-binary", "cupy",
                          "--dest", str(folder), f"cupy=={version}"], PYTHONPATH=tools)  # fmt: skip
    unpack(folder / f"cupy-{version}.tar.gz", folder)
    source = folder / f"cupy-{version}"
    runtime = _native.folder() / f"libcudart.so.{major}"
    if not runtime.exists():
        fail(f"there is no {runtime}")
    places = headers(toolkit, major, pip, folder / "headers")
    run("the build", [sys.executable, "-c", BUILD, MODULE, str(runtime), major, *places], source, PYTHONPATH=tools)
    return next((source / "out").rglob("runtime*.so"))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cai_sim.cupy", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--toolkit", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--back", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    version, major = installed()
    module = module_file()
    check_place(module)
    shipped, built_from = module.with_suffix(".shipped"), f"{version} {major}"
    if options.back:
        if shipped.exists() and not is_built(module):
            fail(f"{module} is not what was built here: CuPy was installed anew, so there is nothing to put back")
        if shipped.exists():
            shipped.replace(module)
        print(f"cupy {version}: {module} is as in the wheel")
        return 0
    if is_built(module, built_from):
        print(f"cupy {version}: {module} is built already")
        return 0
    print(f"cupy {version}: builds {module} anew", flush=True)
    with tempfile.TemporaryDirectory() as name:
        built = build(version, major, options.toolkit, pathlib.Path(name))
        if not shipped.exists() or not is_built(module):  # the file of another version may be there
            shutil.copy(module, shipped)
        module.with_suffix(".built").write_text(f"{built_from} {digest(built)}", encoding="utf-8")
        replace(module, built)
    print(f"cupy {version}: {module} is built, for `python -m cai_sim`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
