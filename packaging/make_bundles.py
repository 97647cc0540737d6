#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes one-file bundles: each header with the headers of cai that it includes, for the Compiler Explorer and mail.

    packaging/make_bundles.py [--root FOLDER] FOLDER

FOLDER gets a file for each header of packaging/files.txt, under the name of the header. Paste one into an editor,
and CAI_IMPLEMENTATION above it. One of these files alone goes into a translation unit.
"""

import argparse
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = re.compile(r'#include "(?:ext/)?(cai\w*\.h(?:pp)?)"')
WANTED = re.compile(r"^#define (CAI_PRIV_WANT_\w+)", re.MULTILINE)


def headers(root: pathlib.Path) -> dict[str, pathlib.Path]:
    """The headers of C and C++ by name, without the simulation."""
    listed = (root / "packaging" / "files.txt").read_text().split()
    return {pathlib.Path(line).name: root / line for line in listed if not line.startswith("sim/") and not line.endswith(".pxd")}


def inlined(name: str, files: dict[str, pathlib.Path], done: set[str]) -> list[str]:
    """The lines of a header. A header of cai stands where it is included first, and nowhere else."""
    done.add(name)
    lines = []
    for line in files[name].read_text().split("\n"):
        found = INCLUDE.match(line)
        if not found or found[1] not in files:
            lines.append(line)
        elif found[1] in done:
            lines.append(f"/* {found[1]} stands above */")
        else:
            lines += [f"/* ---- {found[1]} */", *inlined(found[1], files, done), f"/* ---- {name} */"]
    return lines


def bundle(name: str, files: dict[str, pathlib.Path]) -> str:
    """The shared parts that a second include would add are asked for before the first."""
    body = "\n".join(inlined(name, files, set()))
    wanted = sorted(set(WANTED.findall(body)))
    text = f"/* {name} and the headers that it includes, in one file. Made by packaging/make_bundles.py. */\n"
    if wanted:
        text += "#if defined(CAI_IMPLEMENTATION)\n" + "".join(f"#define {macro}\n" for macro in wanted) + "#endif\n"
    return text + body


def make(root: pathlib.Path, folder: pathlib.Path) -> list[pathlib.Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = headers(root)
    for name in files:
        (folder / name).write_text(bundle(name, files))
    return [folder / name for name in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parent)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    for path in make(options.root, options.folder):
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
