"""ext/cai_array_struct.h against NumPy: live __array_struct__ capsules, and back into NumPy.

    array_struct.py --driver build/array_struct_driver [--count 20000] [--seed 1]

Each random array of numpy_arrays.py gives its struct, bit for bit, to array_struct_driver. What
the import says must be what NumPy says of the array; what the export makes must be NumPy's struct,
in every number; and NumPy must make the same array of it.

Where NumPy's structs differ from NumPy's arrays (each counted, and asserted to be just this):
* The trap: structured arrays have flags 0 (`flags &= NPY_ARR_HAS_DESCR`). The import must be
  read-only, of kind V, with the other facts right. The test says whether NumPy still has it. Where
  it has not, the struct announces a descr: refused without tokens, taken with the flag cleared.
* Units of datetimes are left out: no import has one.
* NumPy reads kind U without a descr four times as wide as it wrote it.
* An empty array has data 0 in cai; given that, NumPy makes one of memory and strides of its own.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import random
import subprocess

import numpy as np
from numpy.lib.array_utils import byte_bounds

import inspect_io
from numpy_arrays import CLASSES, Array, classes_of, random_array, self_overlap

C, F, ALIGNED, NATIVE, WRITABLE, HAS_DESCR = 0x1, 0x2, 0x100, 0x200, 0x400, 0x800
CAI_WRITABLE, CAI_C, CAI_F, CAI_ALIGNED, CAI_SWAPPED = 1, 2, 4, 8, 128
CAI_ERR_MISSING = 3
FACTS = "kind itemsize unit flags memory sync version size nbytes lo hi".split()


class Struct(ctypes.Structure):
    """PyArrayInterface."""

    _fields_ = [
        ("two", ctypes.c_int), ("nd", ctypes.c_int), ("typekind", ctypes.c_char), ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)), ("data", ctypes.c_void_p), ("descr", ctypes.c_void_p),
    ]  # fmt: skip


pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
capsule_of = ctypes.pythonapi.PyCapsule_New
capsule_of.restype, capsule_of.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def numbers_of(a: Array) -> list[int]:
    """The struct of an array as the driver reads it."""
    capsule = a.__array_struct__
    s = Struct.from_address(pointer_of(capsule, None))
    head = [s.two, s.nd, s.typekind[0], s.itemsize, s.flags]
    return head + s.shape[: s.nd] + s.strides[: s.nd] + [s.data or 0]


class Exporter:
    """An object whose __array_struct__ is a struct of these numbers."""

    def __init__(self, numbers: list[int]) -> None:
        nd = numbers[1]
        self.rows = (ctypes.c_ssize_t * (2 * nd))(*numbers[5:-1])
        start = ctypes.addressof(self.rows)
        pointer = ctypes.POINTER(ctypes.c_ssize_t)
        self.struct = Struct(
            numbers[0], nd, bytes([numbers[2]]), numbers[3], numbers[4], ctypes.cast(start, pointer),
            ctypes.cast(start + 8 * nd, pointer), numbers[-1], None,
        )  # fmt: skip

    @property
    def __array_struct__(self) -> object:
        return capsule_of(ctypes.addressof(self.struct), None, None)


def flags_of(a: Array) -> int:
    """The flags that an array should have in its struct; no descr goes with them."""
    swapped = not a.dtype.isnative and a.dtype.names is None
    flags = C * a.flags.c_contiguous | F * a.flags.f_contiguous | ALIGNED * a.flags.aligned
    return flags | (0 if swapped else NATIVE) | WRITABLE * a.flags.writeable


def facts_of(a: Array, flags: int) -> dict[str, int]:
    """What the import must say of an array whose struct has these flags."""
    start = a.__array_interface__["data"][0]
    low, high = byte_bounds(a) if a.size else (start, start)
    pairs = ((C, CAI_C), (F, CAI_F), (ALIGNED, CAI_ALIGNED), (WRITABLE, CAI_WRITABLE))
    cai_flags = sum(bit for numpy_bit, bit in pairs if flags & numpy_bit) | (0 if flags & NATIVE else CAI_SWAPPED)
    return dict(
        kind=ord(a.dtype.kind), itemsize=a.itemsize, unit=0, flags=cai_flags, memory=1, sync=1, version=3, size=a.size,
        nbytes=a.size * a.itemsize, lo=low - start, hi=high - start,
    )  # fmt: skip


def differences(a: Array, numbers: list[int], flags: int, answer: str) -> list[str]:
    """What the driver says of a struct against the array, whose flags should be these."""
    said = [int(word) for word in answer.split()]
    if said[0]:
        return [f"refused with status {said[0]}"]
    facts = dict(zip(FACTS, said[1:]))
    facts["flags"] &= CAI_WRITABLE | CAI_C | CAI_F | CAI_ALIGNED | CAI_SWAPPED
    wanted = facts_of(a, flags)
    wrong = [f"{key}: cai {facts[key]}, NumPy {wanted[key]}" for key in FACTS if facts[key] != wanted[key]]
    status, *made = said[1 + len(FACTS) :]
    if status:
        return wrong + [f"export refused with status {status}"]
    expected = numbers[:4] + [flags] + numbers[5:-1] + [numbers[-1] if a.size else 0]
    if made != expected:
        wrong.append(f"export: cai {made}, NumPy {expected}")
    return wrong + back_differences(a, made)


def back_differences(a: Array, made: list[int]) -> list[str]:
    """What NumPy makes of an exported struct against the array it came from."""
    back = np.asarray(Exporter(made))
    dtype = a.dtype if a.dtype.kind not in "mM" else np.dtype(a.dtype.str[:3])
    if a.dtype.names is not None:
        dtype = np.dtype(f"V{a.itemsize}")
    if a.dtype.kind == "U":  # NumPy's itemsize is in bytes where it writes, in characters where it reads
        dtype = np.dtype(f"{a.dtype.str[0]}U{a.itemsize}")
    wrong = []
    for what, got, wanted in (
        ("dtype", back.dtype, dtype), ("shape", back.shape, a.shape), ("strides", back.strides, a.strides),
        ("data", back.__array_interface__["data"][0], made[-1]),
        ("writable", back.flags.writeable, bool(made[4] & WRITABLE)),
    ):  # fmt: skip
        if got != wanted and (a.size or what in ("dtype", "shape")):
            wrong.append(f"back in NumPy: {what} {got}, not {wanted}")
    return wrong


def ask(driver: str, lines: list[list[int]]) -> list[str]:
    """One process over all structs."""
    text = "".join(" ".join(map(str, numbers)) + "\n" for numbers in lines)
    done = subprocess.run([driver], input=text, capture_output=True, text=True, check=False)
    answers = done.stdout.splitlines()
    if done.returncode or len(answers) != len(lines):
        counts = f"{len(answers)} answers of {len(lines)}"
        raise SystemExit(f"{driver}: exit status {done.returncode}, {counts}: {done.stderr}")
    return answers


def check(driver: str, count: int, seed: int) -> bool:
    """All arrays; prints what was found."""
    rng = random.Random(seed)
    arrays = [random_array(rng) for _ in range(count)]
    structs = [numbers_of(a) for a in arrays]
    classes: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []
    trapped = announced = 0
    requests = []  # (array, struct, the flags it should have)
    for a, numbers in zip(arrays, structs):
        classes.update(classes_of(a, self_overlap(a)))
        classes["kind U"] += a.dtype.kind == "U"
        classes["with a unit"] += "[" in a.dtype.str
        flags = flags_of(a)
        wanted = flags | (HAS_DESCR if a.dtype.names is not None else 0)
        if numbers[4] == wanted:
            announced += bool(wanted & HAS_DESCR)
            requests.append((a, numbers, None if wanted & HAS_DESCR else flags))
        elif a.dtype.names is not None and numbers[4] == 0:  # the trap: the import believes it, ...
            trapped += 1
            requests.append((a, numbers, flags & ~WRITABLE))
        else:
            wrong.append(f"NumPy's flags are {numbers[4]:#x}, not {wanted:#x}: neither right nor the trap: {a.dtype}")
            continue
        if a.dtype.names is not None:  # ... and a caller who knows better gets what the array is
            requests.append((a, numbers[:4] + [flags] + numbers[5:], flags))
    for (a, numbers, flags), answer in zip(requests, ask(driver, [numbers for _, numbers, _ in requests])):
        if flags is None:  # a descr is announced, and no tokens are given
            found = [] if answer == str(CAI_ERR_MISSING) else [f"status {answer}, not CAI_ERR_MISSING"]
        else:
            found = differences(a, numbers, flags, answer)
        wrong += [f"{text}\n    {numbers} {a.dtype}" for text in found]
    if (trapped and announced) or not trapped + announced:
        wrong.append(f"structured arrays: {trapped} with flags 0, {announced} with a descr")
    inspect_io.report("differs", wrong)
    print("classes: " + ", ".join(f"{name} {classes[name]}" for name in (*CLASSES, "empty", "kind U", "with a unit")))
    verdict = "still exports" if trapped else "no longer exports"
    print(f"NumPy {np.__version__} {verdict} structured arrays with flags 0: {trapped}")
    print(f"arrays {count}, structs {len(requests)}, differences {len(wrong)}")
    return not wrong and not any(classes[name] * 50 < count for name in (*CLASSES, "empty", "kind U", "with a unit"))


def main() -> int:
    parser = argparse.ArgumentParser(description="ext/cai_array_struct.h against NumPy.")
    parser.add_argument("--driver", required=True, help="the program array_struct_driver")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    good = ctypes.sizeof(Struct) == 56 and check(options.driver, options.count, options.seed)
    print("array_struct: " + ("no differences" if good else "differences"))
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
