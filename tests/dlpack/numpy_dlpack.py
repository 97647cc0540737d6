#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ext/cai_dlpack.h against NumPy's DLPack: random arrays both ways, with and without version.

    numpy_dlpack.py --driver build/libdlpack_driver.so [--count 20000] [--seed 1]

Imports what ndarray.__dlpack__ gives, and has np.from_dlpack take what the header exports. Compares shape, strides,
dtype, address, elements and read-only, and counts deleters. Exit status 0: all the same; 1: not; 77: no NumPy 2.1.
"""

import argparse
import ctypes
import gc
import random
import sys

try:
    import numpy as np
except ImportError:
    np = None

NAMES = {0: (b"dltensor", b"used_dltensor"), 1: (b"dltensor_versioned", b"used_dltensor_versioned")}
DTYPES = [np.dtype(name) for name in (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
).split()] if np else []  # fmt: skip
CPU, HOST, NONE = 1, 1, 1  # kDLCPU, CAI_MEMORY_HOST, CAI_SYNC_NONE

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]

failures = []


def check(good, *what):
    if not good:
        failures.append(" ".join(map(str, what)))
        if len(failures) > 20:
            raise SystemExit(report())


def report():
    for failure in failures:
        print(failure)
    return 1 if failures else 0


def load(path):
    driver = ctypes.CDLL(path)
    pointer, number, numbers = ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64)
    for name, result, arguments in (
        ("take", pointer, [pointer, number]), ("error", ctypes.c_char_p, []),
        ("describe", number, [pointer, ctypes.c_char_p, number]), ("gather", None, [pointer, ctypes.c_char_p]),
        ("drop", None, [pointer]), ("delete", None, [pointer, number]),
        ("set_major", None, [pointer, ctypes.c_uint32]), ("count", ctypes.c_int64, [number]),
        ("give", pointer, [ctypes.c_char_p, number, numbers, numbers, ctypes.c_uint64, number, number]),
    ):  # fmt: skip
        function = getattr(driver, f"driver_{name}")
        function.restype, function.argtypes = result, arguments
        setattr(driver, name, function)
    return driver


# -------------------------------------------------------------------------------------- arrays


def random_array(dice):
    """An array over memory of its own, with elements that tell where they are."""
    dtype = dice.choice(DTYPES)
    ndim = dice.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5))
    shape = [dice.randint(1, 4) for _ in range(ndim)]
    if ndim and dice.random() < 0.06:
        shape[dice.randrange(ndim)] = 0
    whole = [extent * dice.randint(1, 2) + dice.randint(0, 1) for extent in shape]
    items = int(np.prod(whole))
    if dtype.kind == "b":
        base = np.frombuffer(bytearray(dice.getrandbits(1) for _ in range(items)), np.bool_)
    else:
        base = np.frombuffer(bytearray(dice.randbytes(items * dtype.itemsize)), dtype)
    array = base.reshape(whole, order=dice.choice("CF"))
    for axis, extent in enumerate(shape):
        step = 2 if whole[axis] >= 2 * extent and dice.random() < 0.7 else 1
        index = [slice(None)] * ndim
        index[axis] = slice(0, extent * step, step)
        array = array[tuple(index)]
        if dice.random() < 0.3:
            array = np.flip(array, axis)
    array = array.transpose(dice.sample(range(ndim), ndim))
    if ndim and dice.random() < 0.1:
        array = np.broadcast_to(array[..., :1], (*array.shape[:-1], 3)) if array.shape[-1] else array
    if array.flags.writeable and dice.random() < 0.3:
        array.flags.writeable = False
    return array


def moving(shape, strides):
    """The strides along which something moves: the others may be any number."""
    return [stride for extent, stride in zip(shape, strides) if extent > 1] if 0 not in shape else []


# -------------------------------------------------------------------------------------- NumPy -> cai


def take(driver, array, versioned, live):
    """Imports an array; False: NumPy does not export it."""
    try:
        capsule = array.__dlpack__(max_version=(1, 0)) if versioned else array.__dlpack__()
    except BufferError:
        check(not versioned and not array.flags.writeable, "NumPy refused", array.dtype, array.flags)
        return False
    fresh, used = NAMES[versioned]
    handle = driver.take(api.PyCapsule_GetPointer(capsule, fresh), versioned)
    if not handle:
        check(False, array.shape, array.strides, array.dtype, "refused:", driver.error().decode())
        return False
    api.PyCapsule_SetName(capsule, used)
    text = ctypes.create_string_buffer(4000)
    driver.describe(handle, text, len(text))
    name, *rest = text.value.decode().split()
    writable, memory, device, sync, data, size, ndim, *numbers = map(int, rest)
    shape, strides = tuple(numbers[:ndim]), numbers[ndim:]
    about = (array.shape, array.strides, array.dtype, "arrives as", text.value.decode())
    check(name == array.dtype.name and shape == array.shape and size == array.size, *about)
    check(moving(shape, strides) == moving(shape, array.strides), *about)
    check(writable == (array.flags.writeable if versioned else 1), "read-only:", *about)
    check((memory, device, sync) == (HOST, -1, NONE), *about)
    check(data == (array.ctypes.data if size else 0), "address:", *about)
    live.append((handle, array.tobytes()))
    return True


def drop(driver, live, dice):
    """Releases one of the arrays that live, after a look at its elements: NumPy may have no other reference."""
    handle, wanted = live.pop(dice.randrange(len(live)))
    got = ctypes.create_string_buffer(max(len(wanted), 1))
    driver.gather(handle, got)
    check(got.raw[: len(wanted)] == wanted, "elements differ")
    before = driver.count(0)
    driver.drop(handle)
    check(driver.count(0) == before + 1, "the deleter was called", driver.count(0) - before, "times")


def check_imports(driver, count, dice):
    live, taken, refused = [], 0, 0
    for number in range(count):
        array = random_array(dice)
        if take(driver, array, number % 2, live):
            taken += 1
        else:
            refused += 1
        del array
        while len(live) > dice.randint(0, 12):
            drop(driver, live, dice)
    while live:
        drop(driver, live, dice)
    check(driver.count(0) == taken, "deleters:", driver.count(0), "imports:", taken)
    array = np.arange(12.0)
    references = sys.getrefcount(array)
    for versioned in (0, 1):
        take(driver, array, versioned, live)
        check(sys.getrefcount(array) == references + 1, "an import holds no reference")
        drop(driver, live, dice)
        check(sys.getrefcount(array) == references, "a release leaves a reference")
    print(f"NumPy -> cai: {taken} arrays, {refused} not exported by NumPy (read-only without version)")


def check_refused(driver):
    """What fails leaves the tensor to its capsule, whose destructor then calls the deleter."""
    array = np.arange(3)
    references, before = sys.getrefcount(array), driver.count(0)
    capsule = array.__dlpack__(max_version=(1, 0))
    pointer = api.PyCapsule_GetPointer(capsule, NAMES[1][0])
    ctypes.c_uint16.from_address(pointer + 4 * 8 + 8 + 8 + 4 + 2).value = 2  # dl_tensor.dtype.lanes
    check(not driver.take(pointer, 1) and b"lanes = 2" in driver.error(), "lanes:", driver.error())
    check(sys.getrefcount(array) == references + 1, "a refused import has released the array")
    del capsule
    check(sys.getrefcount(array) == references, "the capsule has not released the array")
    capsule = array.__dlpack__(max_version=(1, 0))
    pointer = api.PyCapsule_GetPointer(capsule, NAMES[1][0])
    driver.set_major(pointer, 2)
    check(not driver.take(pointer, 1) and b"version 2." in driver.error(), "major version:", driver.error())
    check(sys.getrefcount(array) == references, "another major version: the deleter was not called")
    api.PyCapsule_SetName(capsule, NAMES[1][1])
    del capsule
    check(sys.getrefcount(array) == references and driver.count(0) == before, "deleted twice")


# -------------------------------------------------------------------------------------- cai -> NumPy


class Exporter:
    """An object with __dlpack__, over one tensor of the driver."""

    def __init__(self, pointer, versioned):
        self.capsule = api.PyCapsule_New(pointer, NAMES[versioned][0], None)

    def __dlpack__(self, *, max_version=None, dl_device=None, copy=None, stream=None):
        return self.capsule

    def __dlpack_device__(self):
        return CPU, 0


def give(driver, array, versioned, name=None):
    numbers = ctypes.c_int64 * max(array.ndim, 1)
    return driver.give((name or array.dtype.name).encode(), array.ndim, numbers(*array.shape),
                       numbers(*array.strides), array.ctypes.data, not array.flags.writeable, versioned)


def check_export(driver, array, versioned):
    """One array to NumPy and back to its deleter; False: the header does not export it so."""
    pointer, before = give(driver, array, versioned), [driver.count(1), driver.count(2)]
    if not pointer:
        read_only = not array.flags.writeable and not versioned and b"read-only" in driver.error()
        check(read_only, array.shape, array.strides, array.dtype, "refused:", driver.error().decode())
        return False
    got = np.from_dlpack(Exporter(pointer, versioned))
    about = (array.shape, array.strides, array.dtype, "arrives as", got.shape, got.strides, got.dtype)
    check(got.shape == array.shape and got.dtype == array.dtype, *about)
    check(moving(got.shape, got.strides) == moving(array.shape, array.strides), *about)
    if array.size:  # for NULL NumPy has memory of its own, which is writable
        check(got.flags.writeable == bool(versioned and array.flags.writeable), "read-only:", *about)
    check(not array.size or got.ctypes.data == array.ctypes.data, "address:", *about)
    check(got.tobytes() == array.tobytes(), "elements:", *about)
    again = got[...]
    del got
    check([driver.count(1), driver.count(2)] == before, "released while NumPy has it")
    del again
    check([driver.count(1), driver.count(2)] == [n + 1 for n in before], "not released once:", before)
    return True


def check_exports(driver, count, dice):
    given, refused = 0, 0
    for number in range(count):
        array = random_array(dice)
        if check_export(driver, array, number % 2):
            given += 1
        else:
            refused += 1
    print(f"cai -> NumPy: {given} arrays, {refused} not exported by cai (read-only without version)")


def check_refused_by_numpy(driver):
    """What NumPy does not take: the capsule's owner calls the deleter, once."""
    array, narrow = np.arange(4.0), np.arange(4, dtype=np.uint8)
    cases = [("major version", array, None, 2), ("float8_e4m3fn", narrow, "float8_e4m3fn", 1),
             ("bfloat16", narrow.view(np.uint16), "bfloat16", 1)]  # fmt: skip
    for what, source, name, major in cases:
        before = driver.count(1)
        pointer = give(driver, source, 1, name)
        if not pointer:
            check(False, what, driver.error().decode())
            continue
        driver.set_major(pointer, major)
        exporter = Exporter(pointer, 1)
        try:
            np.from_dlpack(exporter)
            check(False, what, "was taken by NumPy")
        except (BufferError, RuntimeError, TypeError):
            pass
        check(api.PyCapsule_IsValid(exporter.capsule, NAMES[1][0]), what, "was renamed")
        check(driver.count(1) == before, what, "was deleted by NumPy")
        driver.delete(pointer, 1)
        check(driver.count(1) == before + 1, what, "was not released")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--driver", required=True)
    arguments.add_argument("--count", type=int, default=20000, help="arrays each way")
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    if not np or tuple(map(int, np.__version__.split(".")[:2])) < (2, 1):
        print("skipped: no NumPy 2.1 or later")
        return 77
    driver, dice = load(options.driver), random.Random(options.seed)
    print(f"NumPy {np.__version__}")
    gc.disable()
    check_imports(driver, options.count, dice)
    check_refused(driver)
    check_exports(driver, options.count, dice)
    check_refused_by_numpy(driver)
    check(driver.count(1) == driver.count(2), "releases:", driver.count(1), "storages:", driver.count(2))
    print(f"deleters called: {driver.count(0)} of NumPy, {driver.count(2)} of cai; {len(failures)} failures")
    return report()


if __name__ == "__main__":
    sys.exit(main())
