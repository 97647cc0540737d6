# SPDX-License-Identifier: MIT
"""Extension modules made of a few C files, for the Python that runs; exit status 77 where that cannot be."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "bindings" / "python"
INCLUDES = [ROOT, ROOT / "ext", ROOT / "sim"]
FLAGS = ["-std=c99", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion",
         "-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Werror"]


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def needs(numpy=True, cc=None):
    """Skips where NumPy 2, or what a build needs, is missing."""
    if sys.version_info < (3, 11):
        skip("Python 3.11 or later is needed, this is " + sys.version.split()[0])
    if numpy:
        try:
            import numpy as found
        except ImportError:
            skip("this Python has no NumPy")
        if int(found.__version__.split(".")[0]) < 2:
            skip("NumPy 2 is needed, this is " + found.__version__)
    if cc is None:
        return
    if os.name == "nt":
        skip("the module is built by --cc on POSIX systems; elsewhere give --module")
    if not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists():
        skip("this Python has no Python.h: " + sysconfig.get_path("include"))
    try:
        subprocess.run([cc, "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        skip(f"no compiler {cc}")


def build(cc, folder, name, sources, includes, flags=()):
    """Compiles a module into a folder; its path. Ends the program where it does not compile."""
    target = pathlib.Path(folder) / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    command = [cc, *FLAGS, *flags, *undefined, *(f"-I{path}" for path in includes),
               "-isystem", sysconfig.get_path("include"), *map(str, sources), "-o", str(target)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode or made.stderr:
        sys.exit(" ".join(command) + "\n" + made.stderr)
    return target


def build_example(cc, folder, flags=()):
    return build(cc, folder, "cai_saxpy", [EXAMPLE / "cai_saxpy.c", EXAMPLE / "saxpy_simulated.c"],
                 INCLUDES, flags)


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
