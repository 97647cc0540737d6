"""cai from Python by ctypes: interface dictionaries judged by libcai (docs/ffi.md).

    python3 cai_ctypes.py [--library build/libcai.so] [--lenient] ["{'shape': (2, 3), ...}"]

prints the array in one line, or what is wrong with the dictionary. As a module:

    cai_ctypes.load("build/libcai.so")
    array = cai_ctypes.import_array(x.__cuda_array_interface__, owner=x)
    array.shape, array.strides, array.writable, array.text()

It shows what a reader of any language does: tag the values of a dictionary (a reader judges nothing), and turn a
status into an exception. The structs are those of cai_abi.py. Standard library only.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import operator
import pathlib
import sys
from typing import Any

import cai_abi as abi

# ------------------------------------------------------------------------------- the library

FLAGS = {name: getattr(abi, "CAI_" + name.upper())
         for name in ("writable", "c_contiguous", "f_contiguous", "aligned", "byte_swapped")}
ENTRIES = "shape typestr data version strides stream descr mask".split()
LAYOUT = (abi.CAI_ABI, ctypes.sizeof(abi.cai_array), 4096, 24, 2, 3, 12, 4)
PLAIN = ("data", "version", "ndim", "size", "nbytes", "device", "memory")
SYNC = ("unknown", "none", "stream", "event")
OTHER_EXCEPTIONS = {2: TypeError, 4: TypeError, 13: BufferError, 14: BufferError, 17: BufferError,
                    **dict.fromkeys((18, 19, 20, 21, 23, 24, 27, 29), RuntimeError), 25: MemoryError, 28: BufferError}

_library: Any = None


def default_path() -> pathlib.Path:
    """libcai where the README's commands build it."""
    suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    return pathlib.Path(__file__).resolve().parents[3] / "build" / ("libcai" + suffix)


def load(path: str | pathlib.Path | None = None) -> None:
    """Loads libcai, and lets it make an array to see that both mean the same struct."""
    global _library
    library = ctypes.CDLL(str(path or default_path()))
    abi.declare(library, abi.FUNCTIONS)
    probe, error = abi.cai_array(), abi.cai_error()
    library.cai_array_init(probe, abi.CAI_FLOAT32, 2, (ctypes.c_int64 * 2)(2, 3), None, 4096, error)
    made = (probe.abi, probe.struct_size, probe.data, probe.hi, *probe.shape[:2], *probe.strides[:2])
    if library.cai_version() != abi.CAI_H_INCLUDED or abi.layout_fault() or made != LAYOUT:
        raise ImportError(f"{path or default_path()} has another layout than this module: {made}")
    _library = library


def lib() -> Any:
    if _library is None:
        load()
    return _library


def exception_of(error: abi.cai_error) -> Exception:
    """The exception that CAI_STATUS_LIST names, with the message, and with .status, .entry and .rule."""
    exception = OTHER_EXCEPTIONS.get(error.code, ValueError)(error.message.decode("utf-8", "replace"))
    exception.status = lib().cai_status_name(error.code).decode()
    exception.entry = lib().cai_entry_name(error.entry).decode()
    exception.rule = error.rule
    return exception


# ------------------------------------------------------------------------------- the reader

NONE, BOOL, INT, UINT, BIG_INT, INDEX, FLOAT, STR, BYTES, TUPLE, LIST, DICT, OBJECT, OTHER = range(1, 15)
MAX_DEPTH, MAX_TOKENS = 200, 1000000  # a list may hold itself


def fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


def truth(value: Any) -> bool | None:
    """bool(value), or None where that fails, as for an array of several elements."""
    try:
        return bool(value)
    except Exception:
        return None


def index_of(value: Any) -> int | None:
    """What __index__ of a NumPy integer or the like returns; None for what has none."""
    try:
        return operator.index(value)
    except Exception:
        return None


def tag(value: Any) -> tuple[Any, ...]:
    """kind, length, number and text of a value, without those of its items."""
    if value is None:
        return NONE, 0, 0, None
    if isinstance(value, bool):
        return BOOL, 0, value, None
    if isinstance(value, int):
        kind = INT if fits(value) else UINT if 0 <= value < 2**64 else BIG_INT
        return kind, 0, value % 2**64 if kind != BIG_INT else 1, None
    if isinstance(value, float):
        return FLOAT, 0, value != 0, None
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        return STR if isinstance(value, str) else BYTES, len(text), 0, text
    if isinstance(value, (tuple, list)):
        return TUPLE if isinstance(value, tuple) else LIST, len(value), 0, None
    if isinstance(value, dict):
        return DICT, 0, len(value) > 0, None
    number, true = index_of(value), truth(value)
    if number is not None and fits(number):
        return INDEX, 0, number % 2**64, None
    return OTHER if true is None else OBJECT, 0, true or 0, None


def tokens_of(value: Any) -> ctypes.Array:
    """The run of tokens of a value, items in place."""
    run: list[abi.cai_token] = []

    def add(item: Any, depth: int) -> None:
        if depth > MAX_DEPTH or len(run) >= MAX_TOKENS:
            raise ValueError("an entry is nested too deeply or too long")
        run.append(abi.cai_token(*tag(item)))
        if isinstance(item, (tuple, list)):
            for inner in item:
                add(inner, depth + 1)

    add(value, 0)
    return (abi.cai_token * len(run))(*run)


def read(dictionary: dict, is_mask: bool = False) -> abi.cai_interface:
    """Tags the entries of a dictionary and those of its mask. A mask has no mask: cai refuses it."""
    interface = abi.cai_interface()
    for name in ENTRIES:
        if name in dictionary:
            setattr(interface, name, tokens_of(dictionary[name]))
    nested = getattr(dictionary.get("mask"), "__cuda_array_interface__", None)
    if isinstance(nested, dict) and not is_mask:
        interface.mask_interface = ctypes.pointer(read(nested, is_mask=True))
    return interface


# ------------------------------------------------------------------------------- arrays


class Array:
    """A dictionary that was found right. Borrowed: it keeps `owner`, not the memory, alive."""

    def __init__(self, struct: abi.cai_array, keep: Any) -> None:
        self.struct = struct
        self._keep = keep  # what pointers in the struct point to

    def __getattr__(self, name: str) -> Any:
        if name in FLAGS:
            return bool(self.struct.flags & FLAGS[name])
        if name in PLAIN:
            return getattr(self.struct, name)
        raise AttributeError(name)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.struct.shape[: self.struct.ndim])

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(self.struct.strides[: self.struct.ndim])

    @property
    def extent(self) -> tuple[int, int]:
        return self.struct.lo, self.struct.hi

    @property
    def itemsize(self) -> int:
        return self.struct.dtype.itemsize

    @property
    def dtype(self) -> str:
        return lib().cai_dtype_name(self.struct.dtype.code).decode()

    @property
    def typestr(self) -> str:
        return typestr(self.struct.dtype)

    @property
    def sync(self) -> str:
        return SYNC[self.struct.sync]

    @property
    def stream(self) -> int | None:
        return self.struct.stream if self.sync == "stream" else None

    @property
    def mask(self) -> Array | None:
        return Array(self.struct.mask.contents, self._keep) if self.struct.mask else None

    @property
    def fields(self) -> list[tuple[str, str, int, tuple[int, ...]]] | None:
        """Name, typestr, offset in its record and shape of each row of a descr."""
        if not self.struct.fields:
            return None
        rows = self.struct.fields[: self.struct.field_count]
        return [(name_of(row), typestr(row.dtype), row.offset, tuple(row.shape[: row.ndim])) for row in rows]

    def text(self) -> str:
        buffer = ctypes.create_string_buffer(4096)  # 64 extents and strides of 20 digits fit
        length = lib().cai_array_text(self.struct, buffer, len(buffer))
        return buffer.raw[:length].decode()


def typestr(dtype: abi.cai_dtype) -> str:
    buffer = ctypes.create_string_buffer(40)
    lib().cai_dtype_typestr(dtype, buffer, len(buffer))
    return buffer.value.decode()


def name_of(row: abi.cai_field) -> str:
    return ctypes.string_at(row.name, row.name_length).decode("utf-8", "replace") if row.name_length else ""


def import_array(dictionary: dict, lenient: bool = False, owner: Any = None) -> Array:
    """Judges an __array_interface__ or __cuda_array_interface__ dictionary. `owner` lives as long as
    the result. Raises what the header says is wrong."""
    if not isinstance(dictionary, dict):
        raise TypeError(f"the interface must be a dict, not {type(dictionary).__name__}")
    interface = read(dictionary)
    rows = min(len(tokens_of(dictionary.get("descr"))), 4096)  # a row takes more tokens than one
    fields, mask, array, error = (abi.cai_field * rows)(), abi.cai_array(), abi.cai_array(), abi.cai_error()
    options = abi.cai_import_options(abi.CAI_LENIENT if lenient else 0, ctypes.pointer(mask), fields, rows)
    if lib().cai_import(interface, options, array, error):
        raise exception_of(error)
    return Array(array, (interface, fields, mask, owner))


# ------------------------------------------------------------------------------- main


class Exporter:
    """An object that exports the interface, as the mask of an array has to be."""

    def __init__(self, dictionary: dict) -> None:
        self.__cuda_array_interface__ = dictionary


def from_literal(text: str) -> dict:
    """A dictionary as repr prints it; the dict of a mask, which text has for the object, becomes one."""

    def with_mask(dictionary: Any) -> Any:
        if isinstance(dictionary, dict) and isinstance(dictionary.get("mask"), dict):
            return {**dictionary, "mask": Exporter(with_mask(dictionary["mask"]))}
        return dictionary

    return with_mask(ast.literal_eval(text))


def main() -> int:
    parser = argparse.ArgumentParser(description="Judges an interface dictionary.")
    parser.add_argument("dictionary", nargs="?", help="as Python prints it; default: one of NumPy's arrays")
    parser.add_argument("--library", help=f"libcai; default: {default_path().name} in the folder build")
    parser.add_argument("--lenient", action="store_true", help="forgive what CAI_LENIENT forgives")
    options = parser.parse_args()
    load(options.library)
    owner = None
    if options.dictionary is not None:
        dictionary = from_literal(options.dictionary)
    else:
        try:
            import numpy
        except ImportError:
            parser.error("a dictionary is needed where there is no NumPy")
        owner = numpy.arange(6, dtype=">f4").reshape(2, 3)[:, ::-1]
        dictionary = owner.__array_interface__
    try:
        print(import_array(dictionary, options.lenient, owner).text())
    except (BufferError, TypeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
