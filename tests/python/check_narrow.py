#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Arrays of values below 8 bits: from a library to cai and back, all nine kinds, their bytes compared.

    check_narrow.py [--cc CC] [--table]

NumPy has the kinds of ml_dtypes, one value in a byte. PyTorch and JAX have some of them, packed. TVM FFI makes none, but
holds what DLPack gives it. CuPy is asked where it can make arrays (python -m cai_sim tests/python/check_narrow.py). What
a library cannot make, export or take back is counted with its own words; bytes or a dtype that differ are an error. Our
own exports go round in all three forms of DLPack, whatever is installed. --table prints the table of
docs/results/narrow.md. Exit status 77: nothing can be built.
"""

import argparse
from typing import Any, Callable, Iterator

import parts

KINDS = "int1 uint1 int2 uint2 int4 uint4 float6_e2m3fn float6_e3m2fn float4_e2m1fn".split()
CODES = dict(zip(KINDS, ((0, 1), (1, 1), (0, 2), (1, 2), (0, 4), (1, 4), (15, 6), (16, 6), (17, 4))))
VALUES = {1: 8, 2: 4, 4: 2, 6: 4}  # of an element, by the bits of a value

probe: Any = None
check = parts.check


def packed(kind: str) -> str:
    return f"{kind}_x{VALUES[CODES[kind][1]]}"


def words(error: Exception) -> str:
    """The first sentence of an error."""
    return " ".join(str(error).split()).split(". ")[0].split(": Executable")[0]


class Only:
    """DLPack alone of an array that has more."""

    def __init__(self, held: Any) -> None:
        self.__dlpack__, self.__dlpack_device__ = held.__dlpack__, held.__dlpack_device__


class Refused(Exception):
    """By a library."""


def attempt(call: Callable[[], Any]) -> str:
    """What it raises, or nothing."""
    try:
        call()
    except Exception as error:
        return words(error)
    return ""


def ask(what: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        raise Refused(f"{what} {words(error)}") from None


def in_low_bits(values: Any, bits: int) -> bytes:
    """The first value in the lowest bits of the first byte, without gaps."""
    whole = sum(int(value) << bits * i for i, value in enumerate(values))
    return whole.to_bytes((len(values) * bits + 7) // 8, "little")


# ---------------------------------------------------------------------------------------------------- libraries
def round_of_numpy(np: Any, kind: str) -> str:
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, kind))
    values = (np.arange(24) % (1 << CODES[kind][1])).astype("u1").reshape(4, 6).view(dtype)
    for array in (values, values.T, values[::2, 1:]):
        held = probe.take(array, probe.HOST | probe.NARROW)
        check(held.facts()[:4] == (kind, 1, 2, -1), f"NumPy, {kind}: {held.facts()}")
        back = np.asarray(held).view(dtype)
        same = back.shape == array.shape and back.strides == array.strides and back.ctypes.data == array.ctypes.data
        check(same and back.tobytes() == array.tobytes(), f"NumPy, {kind}: {back} of {array}")
        check((back.astype("f4") == array.astype("f4")).all(), f"NumPy, {kind}: values {back} of {array}")
        again = probe.take(Only(held), probe.HOST)  # padded
        check(again.facts()[:4] == (kind, 1, 2, -1), f"NumPy, {kind}, by DLPack: {again.facts()}")
    return "by `__array_interface__`"


def round_of_torch(torch: Any, kind: str) -> str:
    names = [name for name in (kind, packed(kind)) if hasattr(torch, name)]
    if not names:
        raise Refused(f"it has no {kind}")
    octets = torch.arange(24, dtype=torch.uint8).reshape(4, 6) * 11
    tensor = ask("view:", lambda: octets.view(getattr(torch, names[-1])))
    held = ask("export:", lambda: probe.take(tensor, probe.HOST))
    if held.facts()[0] in ("int8", "uint8"):
        check(held.tobytes() == bytes(octets.flatten().tolist()), f"PyTorch, {kind}: {held.tobytes()!r}")
        raise Refused(f"it exports `{tensor.dtype}` as {held.facts()[0]}, the bytes are equal")
    check(held.facts()[:4] == (packed(kind), VALUES[CODES[kind][1]], 2, 1), f"PyTorch, {kind}: {held.facts()}")
    for way in (tensor, tensor[1:, ::2], tensor.T):
        held = probe.take(way, probe.HOST)
        back = ask("import:", lambda held=held: torch.from_dlpack(held))
        check(back.dtype == tensor.dtype and back.stride() == way.stride(), f"PyTorch, {kind}: {back.dtype}")
        same = torch.equal(back.view(torch.uint8), way.view(torch.uint8)) and back.data_ptr() == way.data_ptr()
        check(same, f"PyTorch, {kind}: {back.view(torch.uint8)} of {way.view(torch.uint8)}")
    held = probe.take(tensor, probe.HOST)
    held.flags = probe.ONE_LANE
    refusal = attempt(lambda: torch.from_dlpack(held))
    return "by DLPack, two lanes" + (f" (of one lane it says: {refusal})" if refusal else "")


def round_of_jax(jax: Any, kind: str) -> str:
    import ml_dtypes
    import numpy as np

    values = (np.arange(24) % (1 << CODES[kind][1])).astype("u1").reshape(4, 6).view(getattr(ml_dtypes, kind))
    array = ask("array:", lambda: jax.numpy.asarray(values).block_until_ready())
    held = ask("export:", lambda: probe.take(array, probe.HOST))
    bits = CODES[kind][1]
    check(held.facts()[:5] == (packed(kind), VALUES[bits], 2, 1, 6), f"JAX, {kind}: {held.facts()}")
    want = in_low_bits(values.view("u1").flatten(), bits)
    check(held.tobytes() == want, f"JAX, {kind}: {held.tobytes().hex()} is not {want.hex()}")
    refused = []
    for flags in (0, probe.ONE_LANE):
        held.flags = flags | probe.DROP_READ_ONLY  # JAX asks for no version, and its arrays are read-only
        try:
            back = jax.dlpack.from_dlpack(held)
        except Exception as error:
            refused.append(words(error))
            continue
        same = str(back.dtype) == kind and (np.asarray(back).view("u1") == values.view("u1")).all()
        check(same, f"JAX, {kind}, flags {flags}: {back}")
    if len(refused) == 2:
        own = attempt(lambda: jax.dlpack.from_dlpack(array))
        raise Refused(f"read with equal bytes; import: {refused[-1]}" + (" (so it answers its own export)" if own else ""))
    return "by DLPack, one lane" if refused else "by DLPack"


def round_of_cupy(cupy: Any, kind: str) -> str:
    import ml_dtypes

    array = ask("empty:", lambda: cupy.empty((4, 6), getattr(ml_dtypes, kind)))
    held = ask("export:", lambda: probe.take(array, probe.NARROW))
    check(held.facts()[0] == kind and held.facts()[6] == array.data.ptr, f"CuPy, {kind}: {held.facts()}")
    back = ask("import:", lambda: cupy.asarray(held).view(array.dtype))  # from "|V1"
    check(back.dtype == array.dtype and back.data.ptr == array.data.ptr, f"CuPy, {kind}: {back.dtype}")
    return "by the dictionary"


def round_of_tvm(tvm_ffi: Any, kind: str) -> str:
    import ctypes

    values = VALUES[CODES[kind][1]]
    memory = (ctypes.c_ubyte * 72)(*range(72))
    made = full_of(memory, kind)
    for lanes, flags in ((values, 0), (1, probe.ONE_LANE)):
        made.flags = flags
        tensor = ask("import:", lambda: tvm_ffi.from_dlpack(made))
        dtype = tensor.dtype
        said = (dtype.type_code, dtype.bits, dtype.lanes, tuple(tensor.shape), tensor.data_ptr())
        want = (*CODES[kind], lanes, (4, 6 * values // lanes), ctypes.addressof(memory))
        check(said == want, f"TVM FFI, {kind}: {said}")
        held = ask("export:", lambda tensor=tensor: probe.take(Only(tensor), probe.HOST))
        check(held.facts() == made.facts(), f"TVM FFI, {kind}: {held.facts()} of {made.facts()}")
        check(held.tobytes() == bytes(range(made.facts()[5])), f"TVM FFI, {kind}: {held.tobytes()!r}")
    return "by DLPack, with all lanes and with one"


def libraries() -> Iterator[tuple[str, Any, Callable[[Any, str], str]]]:
    """(name with version, module, round) of those that are here."""
    for name, needs, round_of in (("NumPy", ("numpy", "ml_dtypes"), round_of_numpy), ("PyTorch", ("torch",), round_of_torch),
                                  ("CuPy", ("cupy", "ml_dtypes"), round_of_cupy), ("JAX", ("jax", "ml_dtypes"), round_of_jax),
                                  ("TVM FFI", ("tvm_ffi",), round_of_tvm)):
        try:
            modules = [__import__(need) for need in needs]
            if name == "CuPy":
                modules[0].zeros(1)
        except Exception as error:
            print(f"{name}: skipped, {words(error)}")
            continue
        more = f" with ml_dtypes {modules[1].__version__}" if len(modules) > 1 else ""
        yield f"{name} {modules[0].__version__}{more}", modules[0], round_of


# -------------------------------------------------------------------------------------------------------- parts
def part_libraries(options: argparse.Namespace) -> None:
    """Each library in turn."""
    for name, module, round_of in libraries():
        went, refused = {}, {}
        for kind in KINDS:
            try:
                went[kind] = round_of(module, kind)
            except Refused as error:
                refused[kind] = str(error)
        print(f"{name}: {len(went)} of 9 kinds went round, {len(refused)} did not")
        if name.startswith(("NumPy", "TVM")):
            check(not refused, f"{name}: {refused}")
        if name.startswith("PyTorch") and hasattr(module, "float4_e2m1fn_x2"):
            check("float4_e2m1fn" in went, f"PyTorch: {refused}")
        if options.table:
            print("".join(rows_of(name, went, refused)), end="")


def rows_of(name: str, went: dict[str, str], refused: dict[str, str]) -> Iterator[str]:
    """Rows of the table: kinds of one outcome stand together."""
    for title, outcomes in (("yes", went), ("no", refused)):
        general: dict[str, list[str]] = {}
        for kind, text in outcomes.items():
            general.setdefault(text.replace(kind, "KIND"), []).append(kind)
        for text, kinds in general.items():
            yield f"| {name} | {', '.join(kinds)} | {title}: {text.replace('KIND', kinds[0])} |\n"


class Octets:
    """Memory of `|u1`, whose dtype has a name."""

    def __init__(self, memory: Any, name: str, size: int, shape: tuple[int, ...]) -> None:
        import ctypes

        self.memory, self.dtype = memory, type("Named", (), {"name": name})()
        self.__array_interface__ = {"shape": shape, "typestr": f"|V{size}", "data": (ctypes.addressof(memory), False), "version": 3}


def full_of(memory: Any, kind: str) -> Any:
    """4 x 6 packed elements. No exporter has a name for 3 bytes."""
    if not kind.startswith("float6"):
        return probe.take(Octets(memory, packed(kind), 1, (4, 6)), probe.HOST | probe.NARROW)
    held = probe.take(Octets(memory, "void8", 1, (4, 18)), probe.HOST)
    held.become(packed(kind))
    return held


def part_forms(options: argparse.Namespace) -> None:
    """Our own exports, taken by ourselves: the lanes, one lane, and padded."""
    import ctypes

    del options
    memory = (ctypes.c_ubyte * 96)(*range(96))
    for kind in KINDS:
        values = VALUES[CODES[kind][1]]
        padded = probe.take(Octets(memory, kind, 1, (4, 6)), probe.HOST | probe.NARROW)
        again = probe.take(Only(padded), probe.HOST)
        check(again.facts() == padded.facts() and again.facts()[:2] == (kind, 1), f"{kind}: {again.facts()}")
        check(again.tobytes() == bytes(range(24)), f"{kind}: {again.tobytes()!r}")
        try:
            padded.__dlpack__()
            check(False, f"{kind}: without a version")
        except BufferError as error:
            check("has a byte for each value" in str(error), f"{kind}: {error}")
        full = full_of(memory, kind)
        nbytes = 24 * (3 if kind.startswith("float6") else 1)
        check(full.facts()[:5] == (packed(kind), values, 2, 1, 6 * values), f"{packed(kind)}: {full.facts()}")
        for flags in (0, probe.ONE_LANE):
            full.flags = flags
            again = probe.take(Only(full), probe.HOST)
            check(again.facts() == full.facts(), f"{packed(kind)}, flags {flags}: {again.facts()}")
            check(again.tobytes() == bytes(range(nbytes)), f"{packed(kind)}, flags {flags}: {again.tobytes()!r}")


def part_onnx(options: argparse.Namespace) -> None:
    """ONNX packs in the same order of bits. It has no elements: 5 values of 6 bits are 4 bytes, not 2 times 3."""
    del options
    try:
        import ml_dtypes
        import numpy as np
        from onnx import numpy_helper
    except ImportError as error:
        print(f"ONNX: skipped, {words(error)}")
        return
    for kind in "int2 uint2 int4 uint4 float6_e2m3fn float6_e3m2fn float4_e2m1fn".split():
        for count in range(50):
            octets = (np.arange(count) * 11 % (1 << CODES[kind][1])).astype("u1")
            raw = numpy_helper.from_array(octets.view(getattr(ml_dtypes, kind))).raw_data
            check(raw == in_low_bits(octets, CODES[kind][1]), f"ONNX, {kind}, {count} values: {raw.hex()}")


SUITE = parts.Suite(globals(), "cai_narrow", ("narrow.c",))


def main() -> int:
    parser = SUITE.parser()
    parser.add_argument("--table", action="store_true", help="print rows of docs/results/narrow.md")
    return SUITE.main(parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
