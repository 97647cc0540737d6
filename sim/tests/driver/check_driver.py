#!/usr/bin/env python3
"""Checks that sim/docs/driver.md lists the functions that libcuda.so.1 serves.

    check_driver.py --library PATH [--write]

Exit status 1 if the list differs. --write renews it.
"""
import argparse
import ctypes
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parents[3] / "sim" / "docs" / "driver.md"
BEGIN, END = "<!-- served: begin -->\n", "<!-- served: end -->\n"


class Function(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("calls", ctypes.c_int64), ("asked", ctypes.c_int32),
                ("served", ctypes.c_int32)]


def served_by(library):
    """The served symbols, without the per-thread forms; and how many there are of all."""
    one, names, index = Function(), [], 0
    while library.cai_driver_function_get(index, ctypes.byref(one)):
        index += 1
        if one.served and not re.search(r"_pt[sd][sz]$", one.name.decode()):
            names.append(one.name.decode())
    return names


def area_of(name):
    for area, start in (("devices", "cuDevice"), ("contexts", "cuCtx"), ("streams", "cuStream|cuThread|cuLaunchHost"),
                        ("events", "cuEvent"), ("graphs", "cuGraph"), ("copies", "cuMemcpy|cuMemset"),
                        ("code", "cuModule|cuLibrary|cuKernel|cuFunc|cuLaunch|cuLink|cuOccupancy"),
                        ("memory", "cuMem|cuPointer|cuIpc"), ("the driver", "cu")):
        if re.match(start, name):
            return area
    return "others"


def table_of(names):
    areas = {}
    for name in names:
        areas.setdefault(area_of(name), []).append(f"`{name}`")
    rows = ["| area | functions |", "|---|---|"]
    rows += [f"| {area} | {', '.join(areas[area])} |" for area in sorted(areas)]
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    expected = table_of(served_by(ctypes.CDLL(arguments.library)))
    text = PAGE.read_text()
    start, stop = text.index(BEGIN) + len(BEGIN), text.index(END)
    if text[start:stop] == expected:
        return 0
    if arguments.write:
        PAGE.write_text(text[:start] + expected + text[stop:])
        return 0
    print(f"{PAGE}: the list of served functions is not that of the library: check_driver.py --write renews it")
    return 1


if __name__ == "__main__":
    sys.exit(main())
