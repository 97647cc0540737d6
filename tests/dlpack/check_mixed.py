#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""May a library have units with dlpack.h and units without it?

    check_mixed.py --dlpack FOLDER [--gcc GCC] [--gxx GXX] [--clang CLANG] [--clangxx CLANGXX]

Links the two units of mixed.c at -O3 -flto, in C, in C++, and in both, and runs them. The same units without may_alias
must fail, or the test is blind. clang's checks of function pointers must find no deleter of another type.
Exit status 0: all is right; 1: not; 77: no compiler.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLIND = "-Dmay_alias=unused"
LANGUAGES = {"C": ("c", "c"), "C++": ("c++", "c++"), "C++ with dlpack.h, C without": ("c++", "c")}
CHECKED = ("-fsanitize=function", "-fno-sanitize-recover=all"), ("-fsanitize=cfi-icall", "-fvisibility=hidden")


def build(options, compilers, languages, flags, folder):
    """Compiles and links the two units, and returns the program."""
    flags = ["-O3", "-flto", *flags]
    if "clang" in compilers["c++"]:
        flags += ["-fuse-ld=lld", "-Qunused-arguments"]
    units = []
    for language, unit in zip(languages, ("with", "without")):
        made = folder / f"{unit}.o"
        found = [f"-I{ROOT}", f"-I{ROOT / 'ext'}", "-isystem", options.dlpack]
        only = ["-DMIXED_WITH"] if unit == "with" else []
        source = pathlib.Path(__file__).with_name("mixed.c")
        command = [compilers[language], "-x", language, *flags, *only, *found, "-c", source, "-o", made]
        subprocess.run(command, check=True)
        units.append(made)
    program = folder / "mixed"
    subprocess.run([compilers["c++"], *flags, *units, "-o", program], check=True)
    return program


def judge(options, compilers, name, flags, must_fail=False):
    """Runs one program. Returns whether it did what it must."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([build(options, compilers, LANGUAGES[name], flags, pathlib.Path(folder))],
                              capture_output=True, text=True, check=False)  # fmt: skip
    good = bool(done.returncode) == must_fail
    print(f"{'ok' if good else 'FAILED'}: {compilers['c++']}, {name} {' '.join(flags)}")
    if not good:
        print(done.stdout + done.stderr)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dlpack", required=True, help="a folder with dlpack/dlpack.h of 1.0 or later")
    for name in ("gcc", "gxx", "clang", "clangxx"):
        parser.add_argument(f"--{name}", default=shutil.which(name.replace("xx", "++")))
    options = parser.parse_args()
    pairs = [{"c": options.gcc, "c++": options.gxx}]
    if shutil.which("ld.lld"):
        pairs.append({"c": options.clang, "c++": options.clangxx})
    else:
        print("left out: clang, as there is no ld.lld")
    pairs = [pair for pair in pairs if all(pair.values())]
    good = []
    for compilers in pairs:
        good += [judge(options, compilers, name, ()) for name in LANGUAGES]
        good += [judge(options, compilers, "C++", (BLIND,), must_fail=True)]
        if "clang" in compilers["c++"]:
            good += [judge(options, compilers, "C++", flags) for flags in CHECKED]
    if not good:
        print("skipped: no compiler")
        return 77
    return not all(good)


if __name__ == "__main__":
    sys.exit(main())
