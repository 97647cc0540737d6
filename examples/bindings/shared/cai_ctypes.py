"""cai from Python by ctypes: interface dictionaries judged by libcai, which is cai.h as a shared library.

    python3 cai_ctypes.py [--library build/libcai.so] [--lenient] ["{'shape': (2, 3), ...}"]

prints the array in one line, or what is wrong with the dictionary. As a module:

    cai_ctypes.load("build/libcai.so")
    array = cai_ctypes.import_array(x.__cuda_array_interface__, owner=x)
    array.shape, array.strides, array.writable, array.text()

It shows what a binding of any language does: mirror the structs, tag the values of a dictionary
(a reader judges nothing), and turn a status into an exception. Standard library only.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import operator
import pathlib
import sys
from ctypes import POINTER, c_char, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from typing import Any

# ------------------------------------------------------------------------ the structs of cai.h


class Dtype(ctypes.Structure):  # cai_dtype_v0
    _fields_ = [(name, c_int32) for name in "code itemsize bits unit unit_count alignment".split()]


class Field(ctypes.Structure):  # cai_field_v0
    _fields_ = [
        ("name", c_void_p), ("title", c_void_p), ("name_length", c_uint32), ("title_length", c_uint32),
        ("dtype", Dtype), ("offset", c_int64), ("nbytes", c_int64), ("parent", c_int32),
        ("child_count", c_int32), ("ndim", c_int32), ("reserved", c_int32), ("shape", c_int64 * 8),
    ]  # fmt: skip


class ArrayV0(ctypes.Structure):  # cai_array_v0
    pass


ArrayV0._fields_ = [
    ("abi", c_uint32), ("struct_size", c_uint32), ("release", c_void_p), ("owner", c_void_p),
    ("flags", c_uint32), ("version", c_int32), ("data", c_uint64), ("dtype", Dtype),
    ("device", c_int32), ("memory", c_int32), ("sync", c_int32), ("ndim", c_int32),
    ("stream", c_uint64), ("event", c_uint64), ("thread", c_uint64), ("size", c_int64),
    ("nbytes", c_int64), ("lo", c_int64), ("hi", c_int64), ("fields", POINTER(Field)),
    ("mask", POINTER(ArrayV0)), ("field_count", c_int64), ("reserved", c_uint64 * 4),
    ("shape", c_int64 * 64), ("strides", c_int64 * 64),
]  # fmt: skip


class Error(ctypes.Structure):  # cai_error
    _fields_ = [(name, c_int32) for name in "code native entry index rule".split()] + [("message", c_char * 240)]


class Token(ctypes.Structure):  # cai_token
    _fields_ = [("kind", c_int32), ("length", c_uint32), ("number", c_uint64), ("text", c_char_p)]


class Interface(ctypes.Structure):  # cai_interface
    pass


ENTRIES = "shape typestr data version strides stream descr mask".split()
Interface._fields_ = [(name, POINTER(Token)) for name in ENTRIES] + [("mask_interface", POINTER(Interface))]


class ImportOptions(ctypes.Structure):  # cai_import_options
    _fields_ = [
        ("flags", c_uint32), ("mask", POINTER(ArrayV0)), ("fields", POINTER(Field)), ("field_capacity", c_int64),
    ]  # fmt: skip


def check_layout() -> None:
    """Sizes and offsets as cai.h asserts them (tests/build/abi/layout.txt)."""
    word = ctypes.sizeof(c_void_p)
    wide = word == 8
    sizes = {Dtype: 24, Field: 144 if wide else 136, ArrayV0: 1216 if wide else 1200, Error: 260, Interface: 9 * word}
    for struct, size in sizes.items():
        if ctypes.sizeof(struct) != size:
            raise ImportError(f"{struct.__name__} has {ctypes.sizeof(struct)} bytes here, {size} in cai.h")
    offsets = {
        Field.dtype: 24 if wide else 16, Field.shape: 80 if wide else 72,
        ArrayV0.data: 32 if wide else 24, ArrayV0.stream: 80 if wide else 72, ArrayV0.fields: 136 if wide else 128,
        ArrayV0.shape: 192 if wide else 176, Error.message: 20, Token.number: 8, Token.text: 16,
    }  # fmt: skip
    for member, offset in offsets.items():
        if member.offset != offset:
            raise ImportError(f"{member} is at {member.offset} here, at {offset} in cai.h")


check_layout()

# ------------------------------------------------------------------------------- the library

ABI = 0x43414930  # CAI_ABI
FLOAT32 = ord("f") << 8 | 4  # CAI_FLOAT32
LENIENT = 1  # CAI_LENIENT
FLAGS = {"writable": 1, "c_contiguous": 2, "f_contiguous": 4, "aligned": 8, "byte_swapped": 128}
PLAIN = ("data", "version", "ndim", "size", "nbytes", "device", "memory")
SYNC = ("unknown", "none", "stream", "event")
OTHER_EXCEPTIONS = {2: TypeError, 4: TypeError, 13: BufferError, 14: BufferError, 17: BufferError,
                    **dict.fromkeys((18, 19, 20, 21, 23, 24, 27, 29), RuntimeError), 25: MemoryError, 28: BufferError}

_library: Any = None


def default_path() -> pathlib.Path:
    """libcai where the README's commands build it."""
    suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    return pathlib.Path(__file__).resolve().parents[2] / "build" / ("libcai" + suffix)


def load(path: str | pathlib.Path | None = None) -> None:
    """Loads libcai, and lets it make an array to see that both mean the same struct."""
    global _library
    library = ctypes.CDLL(str(path or default_path()))
    library.cai_import.argtypes = [POINTER(Interface), POINTER(ImportOptions), POINTER(ArrayV0), POINTER(Error)]
    library.cai_array_init.argtypes = [
        POINTER(ArrayV0), c_int32, c_int32, POINTER(c_int64), POINTER(c_int64), c_void_p, POINTER(Error),
    ]  # fmt: skip
    library.cai_array_text.argtypes = [POINTER(ArrayV0), c_char_p, c_int32]
    library.cai_dtype_typestr.argtypes = [POINTER(Dtype), c_char_p, c_int32]
    for name in ("cai_dtype_name", "cai_status_name", "cai_entry_name"):
        getattr(library, name).argtypes = [c_int32]
        getattr(library, name).restype = c_char_p
    probe, error = ArrayV0(), Error()
    library.cai_array_init(probe, FLOAT32, 2, (c_int64 * 2)(2, 3), None, 4096, error)
    made = (probe.abi, probe.struct_size, probe.data, probe.hi, *probe.shape[:2], *probe.strides[:2])
    if made != (ABI, ctypes.sizeof(ArrayV0), 4096, 24, 2, 3, 12, 4):
        raise ImportError(f"{path or default_path()} has another layout than this module: {made}")
    _library = library


def lib() -> Any:
    if _library is None:
        load()
    return _library


def exception_of(error: Error) -> Exception:
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
    run: list[Token] = []

    def add(item: Any, depth: int) -> None:
        if depth > MAX_DEPTH or len(run) >= MAX_TOKENS:
            raise ValueError("an entry is nested too deeply or too long")
        run.append(Token(*tag(item)))
        if isinstance(item, (tuple, list)):
            for inner in item:
                add(inner, depth + 1)

    add(value, 0)
    return (Token * len(run))(*run)


def read(dictionary: dict, is_mask: bool = False) -> Interface:
    """Tags the entries of a dictionary and those of its mask. A mask has no mask: cai refuses it."""
    interface = Interface()
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

    def __init__(self, struct: ArrayV0, keep: Any) -> None:
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


def typestr(dtype: Dtype) -> str:
    buffer = ctypes.create_string_buffer(40)
    lib().cai_dtype_typestr(dtype, buffer, len(buffer))
    return buffer.value.decode()


def name_of(row: Field) -> str:
    return ctypes.string_at(row.name, row.name_length).decode("utf-8", "replace") if row.name_length else ""


def import_array(dictionary: dict, lenient: bool = False, owner: Any = None) -> Array:
    """Judges an __array_interface__ or __cuda_array_interface__ dictionary. `owner` lives as long as
    the result. Raises what the header says is wrong."""
    if not isinstance(dictionary, dict):
        raise TypeError(f"the interface must be a dict, not {type(dictionary).__name__}")
    interface = read(dictionary)
    rows = min(len(tokens_of(dictionary.get("descr"))), 4096)  # a row takes more tokens than one
    fields, mask, array, error = (Field * rows)(), ArrayV0(), ArrayV0(), Error()
    options = ImportOptions(LENIENT if lenient else 0, ctypes.pointer(mask), fields, rows)
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
