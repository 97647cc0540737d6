# SPDX-License-Identifier: MIT
"""pip install ./sim/python, in a checkout of cai or in its sdist: compiles the simulated libcuda and libcudart.

It needs a C compiler (CC, or cc) and headers of CUDA 13 and 12. These come from PyPI (pyproject.toml), or from
folders in CAI_SIM_HEADERS_13 and CAI_SIM_HEADERS_12, joined by colons. No nvcc, and nothing of CUDA is linked.

The sources are those of the checkout, two folders up. An sdist has a copy of them in the folder `sources`.
"""

import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
COPY = HERE / "sources"
ROOT = COPY if COPY.is_dir() else HERE.parents[1]
SIM = ROOT / "sim"
DRIVER = SIM / "driver"
SOURCES = ("cai.h", "cai_stream.h", "LICENSE", "sim/*.[hc]", "sim/libraries/*.[hc]", "sim/driver/**/*.[hc]", "sim/driver/**/*.py", "sim/driver/**/*.map")
COMPILER = shlex.split(os.environ.get("CC", "cc"))
FLAGS = ["-std=gnu99", "-O2", "-g1", "-fPIC", "-shared", "-pthread"]
PLACES = {"13": ["nvidia/cu13/include"], "12": ["nvidia/cuda_runtime/include", "nvidia/cu13/include"]}  # in packages


def headers(major):
    """The folders with the headers of a CUDA."""
    given = os.environ.get(f"CAI_SIM_HEADERS_{major}")
    if given:
        return [pathlib.Path(folder) for folder in given.split(os.pathsep)]
    every = [pathlib.Path(path, place) for place in PLACES[major] for path in sys.path if path]
    found = [folder for folder in every if folder.is_dir()]
    if not found or not (found[0] / "cuda_runtime_api.h").exists():
        raise SystemExit(f"cai_sim: no headers of CUDA {major}: see setup.py, or set CAI_SIM_HEADERS_{major}")
    return found


def run(command):
    command = [str(word) for word in command]
    print(" ".join(command), flush=True)
    subprocess.run(command, check=True)


def build_driver(folder, work, record=False):
    """libcuda.so.1, with the simulation in it. It exports CUDA's functions and those of this project. record: it is in
    front of a real one."""
    made, include = work / ("record" if record else "driver"), headers("13")
    made.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    sources = sorted(DRIVER.glob("*.c")) + [DRIVER / "record" / "record.c"] * record
    run([sys.executable, DRIVER / "make_tables.py", *["--record"] * record, include[0], made, *sources])
    paths = [made, DRIVER, SIM, ROOT, *include]
    linking = ["-Wl,-soname,libcuda.so.1,-Bsymbolic", f"-Wl,--version-script,{DRIVER / 'driver.map'}"]
    files = [*sources, *sorted(made.glob("*.c")), *(SIM / f"cai_{name}.c" for name in ("sim", "check", "timeline"))]
    run([*COMPILER, *FLAGS, "-D_GNU_SOURCE", *(f"-I{path}" for path in paths), *linking, *files, "-o", folder / "libcuda.so.1", "-ldl"])


def build_runtime(major, folder, work):
    """libcudart.so.MAJOR, over the libcuda.so.1 of the folder."""
    sources, made, name = DRIVER / "runtime", work / f"runtime{major}", f"libcudart.so.{major}"
    made.mkdir(parents=True, exist_ok=True)
    includes = headers(major)
    options = [word for include in includes for word in ("--include", include)]
    run([sys.executable, sources / "make_runtime.py", "--cc", shlex.join(COMPILER), *options, "--out", made])
    paths = [made, sources, DRIVER, SIM, ROOT, *includes]
    linking = [f"-Wl,-soname,{name}", f"-Wl,--version-script,{made / 'runtime.map'}"]
    files = [*sorted(sources.glob("*.c")), *sorted(made.glob("*.c")), folder / "libcuda.so.1"]
    run([*COMPILER, *FLAGS, *(f"-I{path}" for path in paths), *linking, *files, "-o", folder / name, "-ldl"])


def build_compiler(library, major, folder, work):
    """lib{LIBRARY}.so.MAJOR, a stand-in that forwards to the real one (sim/driver/compilers)."""
    name = f"lib{library}.so.{major}"
    exports = work / f"{name}.map"
    exports.write_text(f"{name} {{ global: *nvrtc*; *nvJitLink*; cai_*; local: *; }};\n")
    source = DRIVER / "compilers" / f"{library.lower()}.c"
    linking = [f"-Wl,-soname,{name}", f"-Wl,--version-script,{exports}"]
    run([*COMPILER, *FLAGS, "-D_GNU_SOURCE", f"-DCOMPILER_MAJOR={major}", *linking, source, "-o", folder / name, "-ldl"])


def build_stand_ins(folder):
    """What is behind the stand-ins of cuBLAS and others, over the libcuda.so.1 of the folder."""
    includes = [SIM / "libraries", DRIVER, SIM, ROOT, *headers("13")]
    files = [*sorted((SIM / "libraries").glob("*.c")), folder / "libcuda.so.1"]
    linking = ["-fvisibility=hidden", "-Wl,-soname,libcai_libraries.so"]
    run([*COMPILER, *FLAGS, *linking, *(f"-I{path}" for path in includes), *files, "-o", folder / "libcai_libraries.so"])


def build_libraries(folder, work):
    """All libraries of the package, into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build_driver(folder, work)
    build_driver(folder / "record", work, record=True)
    for major in ("13", "12"):
        build_runtime(major, folder, work)
        build_compiler("nvrtc", major, folder, work)
        build_compiler("nvJitLink", major, folder, work)
    build_stand_ins(folder)
    run([*COMPILER, *FLAGS, f"-I{SIM}", f"-I{ROOT}", HERE / "cai_sites.c", "-o", folder / "libcai_sites.so"])
    (folder / "sources.txt").write_text("".join(f"{digest}  {name}\n" for name, digest in sources()))


def sources():
    """What the libraries were made from, each file with its digest, so that a test knows an old package."""
    files = {file.relative_to(ROOT).as_posix(): file for pattern in SOURCES for file in ROOT.glob(pattern)}
    files["sim/python/cai_sites.c"] = HERE / "cai_sites.c"
    return [(name, hashlib.sha256(file.read_bytes()).hexdigest()) for name, file in sorted(files.items())]


class Build(build_py):
    """Python's files, and the libraries beside them."""

    def run(self):
        super().run()
        place = HERE if self.editable_mode else pathlib.Path(self.build_lib)
        work = pathlib.Path(self.get_finalized_command("build").build_temp)
        build_libraries(place.resolve() / "cai_sim" / "lib", work.resolve())


class Source(sdist):
    """The sources of the libraries, too: an sdist stands alone."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for pattern in SOURCES:
            for file in sorted(ROOT.glob(pattern)):
                place = pathlib.Path(base_dir, "sources", file.relative_to(ROOT))
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, place)


class Wheel(bdist_wheel):
    """One wheel serves every CPython of a machine."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class Native(Distribution):
    def has_ext_modules(self):
        return True


setup(distclass=Native, cmdclass={"build_py": Build, "sdist": Source, "bdist_wheel": Wheel})
