# SPDX-License-Identifier: MIT
"""Types that break one rule each, in plain Python and ctypes, for check_conform.py; and right ones.

CASES: (rule, what it is, the object). RIGHT: (what it is, the object). The memory is that of the host, which nobody
reads. Their structs are those of the tool; that these have the right layout shows with the types in C.
"""

from __future__ import annotations

import ctypes
import enum
import pathlib
import sys
import weakref
from ctypes import CFUNCTYPE, POINTER, PYFUNCTYPE, c_char_p, c_int, c_int32, c_int64, c_void_p, py_object
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import cai_conform as tool  # noqa: E402

MEMORY = ctypes.create_string_buffer(256)
ADDRESS = ctypes.addressof(MEMORY)
SHAPE, STRIDES = (2, 3), (12, 4)  # of float32
ENTRIES = {"shape": SHAPE, "typestr": "<f4", "data": (ADDRESS, False), "strides": None, "version": 3, "stream": None}
EMPTY = {**ENTRIES, "shape": (0, 3), "data": (0, False)}
KEPT: list[Any] = []  # what C has a pointer to

# ---------------------------------------------------------------------------------- the dictionary


class Dictionary:
    """entries: what stands in the dictionary."""

    entries: Any = ENTRIES

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.entries


def dictionary(without: str = "", **changes: Any) -> Dictionary:
    made = Dictionary()
    made.entries = {key: value for key, value in {**ENTRIES, **changes}.items() if key != without}
    return made


class Raises(Dictionary):
    @property
    def __cuda_array_interface__(self) -> Any:
        raise RuntimeError("not now")


class Moves(Dictionary):
    @property
    def __cuda_array_interface__(self) -> Any:
        self.entries = {**self.entries, "data": (self.entries["data"][0] + 4, False)}
        return self.entries


class Hoards(Dictionary):
    @property
    def __cuda_array_interface__(self) -> Any:
        KEPT.append(self)
        return self.entries


class Late(Dictionary):
    """Gives back what was read before, when it is 60 of them."""

    read: list[Any] = []

    @property
    def __cuda_array_interface__(self) -> Any:
        if len(self.read) >= 60:
            self.read.clear()
        self.read.append(self)
        return self.entries


class HoardsHalf(Dictionary):
    """Keeps every other one for ever."""

    odd = False

    @property
    def __cuda_array_interface__(self) -> Any:
        self.odd = not self.odd
        KEPT.extend([self] * self.odd)
        return self.entries


class ThirdTime(Dictionary):
    reads = 0

    @property
    def __cuda_array_interface__(self) -> Any:
        self.reads += 1
        return self.entries if self.reads < 3 else fail(self)


def fail(_: Any) -> Any:
    raise RuntimeError("not now")


class Broadcast(Dictionary):
    shape, strides = SHAPE, (0, 4)


def nested(depth: int) -> list[Any]:
    return [("a", nested(depth - 1) if depth else "<f4")]


def masked(**changes: Any) -> Dictionary:
    return dictionary(mask=dictionary(**{"typestr": "|b1", **changes}))


# ------------------------------------------------------------------------------------------ DLPack
raw = ctypes.PyDLL(None, handle=ctypes.pythonapi._handle)  # a capsule that goes has no reference left to count
raw.PyCapsule_IsValid.argtypes = raw.PyCapsule_GetPointer.argtypes = [c_void_p, c_char_p]
raw.PyCapsule_GetPointer.restype = c_void_p
raw.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
raw.PyCapsule_New.restype = py_object
raw.PyCapsule_SetContext.argtypes = [py_object, c_void_p]

LIVE: dict[int, Any] = {}  # the structs that were given away, with what they hold
NAMES = (b"dltensor", b"dltensor_versioned")


def address(function: Any) -> int:
    KEPT.append(function)
    return ctypes.cast(function, c_void_p).value or 0


@CFUNCTYPE(None, c_void_p)
def delete(pointer: int) -> None:
    del LIVE[pointer]


def destroy(capsule: int, names: tuple[bytes, ...] = NAMES) -> None:
    """Calls the deleter that stands in the struct."""
    for name in names:
        if raw.PyCapsule_IsValid(capsule, name):
            pointer = raw.PyCapsule_GetPointer(capsule, name)
            kind = tool.Legacy if name.endswith(b"dltensor") else tool.Versioned
            PYFUNCTYPE(None, c_void_p)(kind.from_address(pointer).deleter)(pointer)


DESTRUCTOR = PYFUNCTYPE(None, c_void_p)
RIGHT_END = address(DESTRUCTOR(destroy))
EVERY_END = address(DESTRUCTOR(lambda capsule: destroy(capsule, NAMES + tuple(b"used_" + name for name in NAMES))))


def fill(tensor: tool.Tensor, entries: dict[str, Any], changes: dict[str, Any]) -> list[Any]:
    """What the tensor points to must be kept."""
    shape = entries["shape"]
    numbers = [(c_int64 * 2)(*shape), (c_int64 * 2)(shape[1], 1)]
    tensor.data, tensor.device_type, tensor.device_id = entries["data"][0], 2, 0
    tensor.ndim, tensor.code, tensor.bits, tensor.lanes = 2, 2, 32, 1
    tensor.shape, tensor.strides = numbers
    for name, value in changes.items():
        setattr(tensor, name, value)
    return numbers


def managed(of: Any, versioned: bool, changes: dict[str, Any], head: dict[str, Any]) -> int:
    """A struct, by its address; it owns a reference to the object."""
    struct: Any = (tool.Versioned if versioned else tool.Legacy)()
    held = [of, struct, fill(struct.tensor, of.entries, changes)]
    struct.deleter = address(delete) if getattr(of, "deletes", True) else None
    if versioned:
        struct.major, struct.minor, struct.flags = 1, 3, int(of.entries["data"][1])
        for name, value in head.items():
            setattr(struct, name, value)
    LIVE[ctypes.addressof(struct)] = held
    return ctypes.addressof(struct)


class Dlpack(Dictionary):
    """tensor, head: what is changed in the tensor and before it. end: the destructor of capsules."""

    tensor: dict[str, Any] = {}
    head: dict[str, Any] = {}
    end: int | None = RIGHT_END

    def capsule(self, max_version: Any, **changes: Any) -> Any:
        versioned = bool(max_version) and max_version[0] >= 1
        pointer = managed(self, versioned, {**self.tensor, **changes}, self.head)
        return raw.PyCapsule_New(pointer, NAMES[versioned], self.end)

    def __dlpack_device__(self) -> Any:
        return 2, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):  # type: ignore[no-untyped-def]
        if stream == 0 or dl_device not in (None, (2, 0)) or copy:
            raise BufferError("not that")
        return self.capsule(max_version)


def dlpack(base: type = Dlpack, **members: Any) -> Any:
    return type("Dlpack", (base,), members)()


class Positional(Dlpack):
    def __dlpack__(self, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        return Dlpack.__dlpack__(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


class Older(Dlpack):
    def __dlpack__(self, *, stream: Any = None) -> Any:
        return Dlpack.__dlpack__(self, stream=stream)


class Asks(Dlpack):
    """Does not refuse what its members name."""

    ignored: tuple[str, ...] = ()

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):  # type: ignore[no-untyped-def]
        given = {"stream": stream, "dl_device": dl_device, "copy": copy}
        given.update((name, None) for name in self.ignored)
        return Dlpack.__dlpack__(self, max_version=max_version, **given)


class Refuses(Dlpack):
    """refuses(keywords) says what it raises."""

    def refuses(self, **keywords: Any) -> Exception | None:
        return None

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):  # type: ignore[no-untyped-def]
        error = self.refuses(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        if error:
            raise error
        return Dlpack.__dlpack__(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


class Answers(Dlpack):
    """answer(keywords): the capsule."""

    def answer(self, **keywords: Any) -> Any:
        return self.capsule(keywords["max_version"])

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):  # type: ignore[no-untyped-def]
        Dlpack.__dlpack__(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        return self.answer(stream=stream, max_version=max_version)


class ReadOnlyError(Refuses):
    """A TypeError says that it is read-only, if no version with flags is asked for; flagged: not even then."""

    flagged = True

    def refuses(self, **keywords: Any) -> Exception | None:
        return None if self.flagged and keywords["max_version"] else TypeError("read-only")


class Copies(Dlpack):
    """Each export is a copy, which the flag says; copy=False is refused. entries is what the dictionary says."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):  # type: ignore[no-untyped-def]
        if stream == 0 or dl_device not in (None, (2, 0)) or copy is False or not max_version:
            raise BufferError("not that")
        self.at = 8 - getattr(self, "at", 0)
        head = {"flags": tool.COPIED}
        pointer = managed(self, True, {"data": ADDRESS + 64 + self.at, "strides": (c_int64 * 2)(1, 2)}, head)
        return raw.PyCapsule_New(pointer, NAMES[1], self.end)


class Proxy:
    """Passes attributes on, as lazy objects do. Its type has no table."""

    def __init__(self, of: Any) -> None:
        self.__dict__["of"] = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)


class Sizes(tuple):  # type: ignore[type-arg]
    """A subclass of tuple, as torch.Size is."""

    __slots__ = ()


class Places(list):  # type: ignore[type-arg]
    """A subclass of list, which is no tuple."""


class Device(enum.IntEnum):
    CUDA, MANAGED = 2, 13


def of_device(*own: int) -> Any:
    def asks(self: Any, *, stream=None, max_version=None, dl_device=None, copy=None):  # type: ignore[no-untyped-def]
        given = None if dl_device == own else dl_device
        return Dlpack.__dlpack__(self, stream=stream, max_version=max_version, dl_device=given, copy=copy)

    return {"__dlpack_device__": lambda self: own, "__dlpack__": asks}


def refuses_all(self: Any, *, stream=None, max_version=None, dl_device=None, copy=None):  # type: ignore[no-untyped-def]
    raise BufferError("not now")


def no_none(self: Any, *, stream=None, dl_device=None, copy=None, max_version=(0, 8)):  # type: ignore[no-untyped-def]
    return Dlpack.__dlpack__(self, stream=stream, max_version=max_version[:2], dl_device=dl_device, copy=copy)


class Stream:
    """gives: what __cuda_stream__ returns."""

    def __init__(self, *gives: Any) -> None:
        self.gives = list(gives)

    def __cuda_stream__(self) -> Any:
        return self.gives[0] if len(self.gives) == 1 else self.gives.pop(0)


class Handle(int):
    """An int, as libraries have for handles."""


def lazily(base: type = Dictionary, **flags: bool) -> Any:
    """An object with methods that say so."""
    return type("Lazy", (base,), {name: lambda self, flag=flag: flag for name, flag in flags.items()})()


def no_streams(self: Any, **keywords: Any) -> Exception | None:
    return None if keywords["stream"] is None else RuntimeError("only None")


def own_streams(self: Any, **keywords: Any) -> Exception | None:
    return None if keywords["stream"] in (None, 2) else BufferError("not that one")


def unsure(self: Any, **keywords: Any) -> Exception | None:
    return BufferError("one must be named") if keywords["stream"] is None else None


class OwnView(Dictionary):
    """Its attributes are those of another shape than the one it exports, or methods."""

    def __init__(self, shape: Any, strides: Any) -> None:
        self.shape, self.strides = shape, strides


def moved_by_2(self: Any, stream: Any, max_version: Any) -> Any:
    return self.capsule(max_version, byte_offset=4) if stream == 2 else self.capsule(max_version)


def flagged(self: Any, max_version: Any) -> Any:
    return raw.PyCapsule_New(managed(self, True, {}, {"flags": tool.COPIED}), NAMES[1], self.end)


class OnHost(Dlpack):
    """In host memory, without a dictionary; takes any stream."""

    __cuda_array_interface__ = None
    tensor = {"device_type": 1}

    def __dlpack_device__(self) -> Any:
        return 1, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):  # type: ignore[no-untyped-def]
        if dl_device not in (None, (1, 0)) or copy or stream is not None and self.strict:
            raise BufferError("not that")
        return self.capsule(max_version)

    strict = True

    def __getattribute__(self, name: str) -> Any:
        if name == "__cuda_array_interface__":
            raise AttributeError(name)
        return super().__getattribute__(name)


class Exchanged(Dictionary):
    pass


class Alone(Exchanged):
    """Without a dictionary, so that nothing is compared with it."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__cuda_array_interface__":
            raise AttributeError(name)
        return super().__getattribute__(name)


class OnHostToo(OnHost):
    """With a dictionary all the same."""

    def __getattribute__(self, name: str) -> Any:
        return self.entries if name == "__cuda_array_interface__" else object.__getattribute__(self, name)


# -------------------------------------------------------------------------------- the table of a type
TO_TENSOR = PYFUNCTYPE(c_int, py_object, POINTER(tool.Tensor))
TO_MANAGED = PYFUNCTYPE(c_int, py_object, POINTER(c_void_p))
TO_STREAM = PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))
ANYTHING = PYFUNCTYPE(c_int)
FAILS = address(ANYTHING(lambda: -1))  # and sets no exception
SUCCEEDS = address(ANYTHING(lambda: 0))  # and does nothing
RAISES = ctypes.cast(ctypes.pythonapi.PyObject_AsFileDescriptor, c_void_p).value  # TypeError and -1


def to_managed(**changes: Any) -> int:
    head = {name: changes.pop(name) for name in ("flags", "major", "minor") if name in changes}

    def function(obj: Any, out: Any) -> int:
        out[0] = managed(obj, True, changes, head)
        return 0

    return address(TO_MANAGED(function))


def to_tensor(**changes: Any) -> int:
    def function(obj: Any, out: Any) -> int:
        obj.numbers = fill(out[0], obj.entries, changes)
        return 0

    return address(TO_TENSOR(function))


def hoard(obj: Any, out: Any) -> int:
    KEPT.append(obj)
    obj.numbers = fill(out[0], obj.entries, {})
    return 0


def kept(struct: Any) -> int:
    KEPT.append(struct)
    return ctypes.addressof(struct)


def table(**changes: Any) -> tool.Table:
    made = tool.Table(1, 3, None, SUCCEEDS, to_managed(), SUCCEEDS, to_tensor(), SUCCEEDS)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def table_capsule(of: tool.Table, name: bytes = b"dlpack_exchange_api") -> Any:
    KEPT.append(name)
    return raw.PyCapsule_New(kept(of), name, None)


def tabled(of: Any = None, **changes: Any) -> Any:
    """An object whose type has a table, or `of` in its place."""
    return dlpack(__dlpack_c_exchange_api__=of if of is not None else table_capsule(table(**changes)))


def tabled_alone() -> Any:
    """A table, and a __dlpack__ that refuses."""
    return type("Alone", (Alone, Dlpack), {tool.TABLE: table_capsule(table()), "__dlpack__": refuses_all})()


def chained(*majors: int) -> Any:
    """Tables of these major versions, each the previous one of the one before."""
    at = None
    for major in reversed(majors):
        at = kept(table(major=major, previous=at))
    return raw.PyCapsule_New(at, b"dlpack_exchange_api", None)


class OfInstance(Dlpack):
    def __init__(self) -> None:
        self.__dlpack_c_exchange_api__ = table_capsule(table())


# ---------------------------------------------------------------------------------- the exchange in C
DESCRIBE = PYFUNCTYPE(c_int, py_object, POINTER(tool.Array))
EXCHANGE = b"__cai_exchange__"


def array(entries: dict[str, Any], changes: dict[str, Any]) -> tool.Array:
    x = tool.Array(tool.ABI, ctypes.sizeof(tool.Array))
    x.flags, x.version, x.data, x.code, x.itemsize, x.alignment = 1 | 2, 3, entries["data"][0], 0x6604, 4, 4
    x.device, x.memory, x.sync, x.ndim, x.size, x.nbytes, x.hi = 0, 4, tool.NO_SYNC, 2, 6, 24, 24
    x.packed_axis = -1
    x.shape[0], x.shape[1], x.strides[0], x.strides[1] = 2, 3, 12, 4
    for name, value in changes.items():
        if name in ("shape", "strides"):
            getattr(x, name)[:2] = value
        else:
            setattr(x, name, value)
    return x


def describing(before: Any = None, **changes: Any) -> int:
    def function(obj: Any, out: Any) -> int:
        if before:
            before(obj)
        out[0] = array(obj.entries, changes)
        return 0

    return address(DESCRIBE(function))


@tool.RELEASE
def release(x: Any) -> None:
    x[0].release = None


@tool.RELEASE
def forgets(x: Any) -> None:
    pass


@tool.ADOPT
def takes(kind: Any, x: Any) -> Any:
    return kind()


def move(obj: Any) -> None:
    entries = obj.entries
    obj.entries = {**entries, "data": (entries["data"][0] + 4, False)}


def exchanged(base: type = Exchanged, name: bytes = EXCHANGE, proves: Any = "itself", entries: Any = ENTRIES,
              **changes: Any) -> Any:  # fmt: skip
    """An object whose type has an exchange. proves: the type of the context; None: it has none."""
    kind = type("Exchanged", (base,), {"entries": entries})
    offer = tool.Exchange(tool.ABI, 24, describing(), None)
    for member, value in changes.items():
        setattr(offer, member, value)
    KEPT.append(name)
    capsule = raw.PyCapsule_New(kept(offer), name, None)
    if proves:
        weak = weakref.ref(kind if proves == "itself" else proves)
        KEPT.append(weak)
        raw.PyCapsule_SetContext(capsule, id(weak))
    kind.__cai_exchange__ = capsule  # type: ignore[attr-defined]
    return kind()


def described(entries: Any = ENTRIES, before: Any = None, base: type = Exchanged, **changes: Any) -> Any:
    return exchanged(base, entries=entries, describe=describing(before, **changes))


def packs(**changes: Any) -> Any:
    """2 x 3 elements of int4_x2: 5 values in each row."""
    facts = {"code": 28 << 16 | ord("i") << 8 | 1, "itemsize": 1, "bits": 4, "alignment": 1, "strides": (3, 1), "nbytes": 6,
             "hi": 6, "packed_axis": 1, "packed_extent": 5}  # fmt: skip
    return described({**ENTRIES, "typestr": "|V1"}, **{**facts, **changes})


# --------------------------------------------------------------------------------------------- the lists
def with_entries(entries: dict[str, Any], base: type = Dlpack, **members: Any) -> Any:
    return dlpack(base, entries={**ENTRIES, **entries}, **members)


HANDLE = {**ENTRIES, "stream": 4096}
RECORD = {"typestr": "|V8", "shape": (2,), "data": (ADDRESS, False)}

RIGHT: list[tuple[str, Any]] = [
    ("a dictionary", dictionary()),
    ("one that gives back at a later call", Late()),
    ("one without what is optional", dictionary("strides")),
    ("strides", dictionary(strides=(64, -4))),
    ("a read-only scalar on a stream", dictionary(shape=(), data=(ADDRESS, True), stream=2, strides=())),
    ("an empty array", dictionary(shape=(0, 3), data=(0, False))),
    ("version 2, without a stream", dictionary("stream", version=2)),
    ("swapped times", dictionary(typestr=">M8[25s]")),
    ("records", dictionary(**RECORD, descr=[("a", "<f4"), ("", "|V2"), ("b", "<i1", (2,))])),
    ("nested records", dictionary(**RECORD, descr=[("a", [("x", "<i2"), ("y", "<i2")], (2,))])),
    ("a mask", masked(shape=(1, 3), stream=1)),
    ("text, bits, words", dictionary(typestr="<U5")),
    ("bits", dictionary(typestr="|t1")),
    ("strides of the object's own", type("Own", (Dictionary,), {"shape": SHAPE, "strides": STRIDES})()),
    ("strides of the object's own, in elements", type("Own", (Dictionary,), {"shape": SHAPE, "strides": (3, 1)})()),
    ("DLPack", dlpack()),
    ("DLPack, empty", dlpack(entries=EMPTY)),
    ("DLPack, read-only", with_entries({"data": (ADDRESS, True)}, Refuses,
                                       refuses=lambda self, **k: None if k["max_version"] else BufferError("no"))),
    ("DLPack on the host", OnHost()),
    ("DLPack, each export is a copy", Copies()),
    ("DLPack without a deleter", dlpack(end=None, deletes=False)),
    ("DLPack, managed memory, an enumeration", dlpack(tensor={"device_type": 13}, **of_device(Device.MANAGED, 0))),
    ("DLPack, an offset in bytes", dlpack(entries={**ENTRIES, "data": (ADDRESS + 8, False)},
                                          tensor={"data": ADDRESS, "byte_offset": 8})),
    ("DLPack before 1.2, no strides", dlpack(tensor={"strides": None}, head={"minor": 1})),
    ("DLPack, one extent is 1 and its stride 0", with_entries({"shape": (1, 3)},
                                                              tensor={"strides": (c_int64 * 2)(0, 1)})),
    ("DLPack, 4 bits, packed", dlpack(OnHost, tensor={"device_type": 1, "code": 17, "bits": 4})),
    ("DLPack, 4 bits, packed, beside a dictionary of bytes",
     dlpack(entries={**ENTRIES, "typestr": "|V1"}, tensor={"code": 17, "bits": 4, "shape": (c_int64 * 2)(2, 6),
                                                           "strides": (c_int64 * 2)(6, 1)})),
    ("DLPack, a later minor version and an unknown flag", dlpack(head={"minor": 9, "flags": 1 << 7})),
    ("all ways at once", type("All", (type(exchanged(Dlpack)),), {tool.TABLE: table_capsule(table())})()),
    ("a stream object", Stream((0, 4096))),
    ("a stream object, the default stream, of ints of its own", Stream((0, Handle(0)))),
    ("DLPack, with one stream besides None", dlpack(Refuses, refuses=own_streams)),
    ("DLPack, with no other than None on the host", OnHost()),
    ("real values, nothing is pending", lazily(is_conj=False, is_neg=False)),
    ("conjugated values that are refused", lazily(type("Hidden", (OnHost,), {"__dlpack__": refuses_all}),
                                                  is_conj=True)),
    ("a window that moves by one element", dictionary(shape=(4, 3), strides=(4, 4))),
    ("a field of a record, and the byte in it", dictionary(shape=(4,), strides=(5,))),
    ("strides of one element that says nothing", dictionary(shape=(1, 3), strides=(1, 4))),
    ("bytes", dictionary(typestr="|u1", strides=(3, 1))),
    ("pinned memory", dlpack(tensor={"device_type": 3}, **of_device(3, 0))),
    ("a proxy of it", Proxy(tabled())),
    ("a shape of a subclass of tuple", dictionary(shape=Sizes((2, 3)), strides=Sizes((12, 4)))),
    ("attributes of another shape", OwnView((3, 2), (4, 12))),
    ("attributes that are methods", OwnView(len, (4, 12))),
    ("the legacy stream, read-only", dictionary(stream=1, data=(ADDRESS, True))),
    ("the stream of this thread, and a mask of another one", dictionary(stream=2, mask=dictionary(typestr="|b1", stream=1))),
    ("an empty mask", dictionary(shape=(0, 3), data=(0, False), mask=dictionary(typestr="|b1", shape=(0, 1),
                                                                               data=(0, False)))),
    ("DLPack that refuses", dlpack(Refuses, refuses=lambda self, **k: BufferError("no"))),
    ("a table", tabled()),
    ("a table without borrowing", tabled(to_tensor=None)),
    ("a chain of tables", tabled(chained(3, 2, 1))),
    ("an exchange", exchanged()),
    ("an exchange, inherited", type("Derived", (type(exchanged()),), {})()),
    ("an owned array", described(release=address(release))),
    ("a packed dtype", packs()),
    ("a packed dtype whose elements are full", packs(packed_extent=6)),
    ("int4, a value in a byte", packs(code=12 << 16 | ord("i") << 8 | 1, packed_axis=-1, packed_extent=0)),
    ("a packed dtype of a later version", packs(code=0x34 << 16 | ord("i") << 8 | 1, bits=2, packed_extent=11)),
    ("a packed dtype, along the first axis", packs(packed_axis=0, packed_extent=3)),
    ("a stream", described(HANDLE, sync=tool.SYNC_STREAM, stream=4096)),
    ("an event", described(sync=tool.SYNC_EVENT, event=1)),
]  # fmt: skip

CASES: list[tuple[str, str, Any]] = [
    ("R1", "a list", type("Broken", (Dictionary,), {"entries": [("shape", SHAPE)]})()),
    ("S3", "another error", Raises()),
    ("R2", "no typestr", dictionary("typestr")),
    ("R2", "no version", dictionary("version")),
    ("R3", "a list", dictionary(shape=[2, 3])),
    ("R3", "a float", dictionary(shape=(2.0, 3))),
    ("R3", "a bool", dictionary(shape=(True, 3))),
    ("R4", "bytes", dictionary(typestr=b"<f4")),
    ("R5", "a list", dictionary(data=[ADDRESS, False])),
    ("R5", "an int", dictionary(data=ADDRESS)),
    ("R5", "text", dictionary(data=(hex(ADDRESS), False))),
    ("R5", "below 0", dictionary(data=(-4096, False))),
    ("R5", "2^64", dictionary(data=(1 << 64, False))),
    ("R6", "None", dictionary(data=(ADDRESS, None))),
    ("R8", "text", dictionary(version="3")),
    ("R12", "an address", dictionary(shape=(0, 3))),
    ("R14", "no address", dictionary(data=(0, False))),
    ("R17", "below 0", dictionary(shape=(2, -3))),
    ("R18", "elements", dictionary(shape=(1 << 40, 1 << 40))),
    ("R18", "with an extent of 0", dictionary(shape=(1 << 62, 0, 1 << 62), data=(0, False))),
    ("R19", "a list", dictionary(strides=[12, 4])),
    ("R20", "broadcast", Broadcast()),
    ("R22", "too few", dictionary(strides=(4,))),
    ("R22", "none at all", dictionary(strides=())),
    ("R28", "below 0", dictionary(shape=(100, 1), data=(64, False), strides=(-4, 4))),
    ("R28", "above 2^64", dictionary(data=((1 << 64) - 8, False))),
    ("R29", "65 extents", dictionary(shape=(1,) * 65)),
    ("R30", "native", dictionary(typestr="=f4")),
    ("R30", "a name", dictionary(typestr="float32")),
    ("R30", "a leading zero", dictionary(typestr="<f04")),
    ("R30", "a line", dictionary(typestr="<f4\n")),
    ("R30", "a unit of a float", dictionary(typestr="<f4[s]")),
    ("R32", "3 bytes", dictionary(typestr="<f3")),
    ("R32", "4 bytes of time", dictionary(typestr="<M4[s]")),
    ("R33", "bits with strides", dictionary(typestr="|t1", strides=(3, 1))),
    ("R34", "a unit", dictionary(typestr="<M8[min]")),
    ("R37", "objects", dictionary(typestr="|O8")),
    ("R37", "objects in a record", dictionary(**RECORD, descr=[("a", "|O8")])),
    ("R38", "no byte", dictionary(typestr="|V0")),
    ("R40", "a tuple", dictionary(**RECORD, descr=(("a", "<f8"),))),
    ("R40", "a tuple of 1", dictionary(**RECORD, descr=[("a",)])),
    ("R41", "too few bytes", dictionary(**RECORD, descr=[("a", "<f4")])),
    ("R43", "a number", dictionary(**RECORD, descr=[("a", 8)])),
    ("R43", "a repeat that is no tuple", dictionary(**RECORD, descr=[("a", "<f4", 2)])),
    ("R44", "twice", dictionary(**RECORD, descr=[("a", "<f4"), ("a", "<f4")])),
    ("R44", "a number", dictionary(**RECORD, descr=[(1, "<f8")])),
    ("R45", "33 lists", dictionary(typestr="|V4", descr=nested(32))),
    ("R50", "a dict", dictionary(mask=ENTRIES)),
    ("R51", "another shape", masked(shape=(2, 2))),
    ("R51", "more extents", masked(shape=(1, 2, 3))),
    ("R71", "0", dictionary(stream=0)),
    ("R71", "0, of the mask", masked(stream=0)),
    ("R74", "-1", dictionary(stream=-1)),
    ("R74", "a bool", dictionary(stream=True)),
    ("R74", "text", dictionary(stream="1")),
    ("S1", "an address that moves", Moves()),
    ("S1", "describe that moves", described(base=Alone, before=move)),
    ("S2", "a dictionary", Hoards()),
    ("S2", "a dictionary, every other time", HoardsHalf()),
    ("S2", "a capsule", dlpack(Answers, answer=lambda self, **k: KEPT.append(self) or self.capsule(k["max_version"]))),
    ("S2", "a borrowed tensor", tabled(to_tensor=address(TO_TENSOR(hoard)))),
    ("S2", "describe", described(before=KEPT.append)),
    ("S1", "a stream that changes", Stream((0, 4096), (0, 8192), (0, 8192), (0, 8192))),
    ("S5", "conjugated, a dictionary", lazily(is_conj=True)),
    ("S5", "negated, DLPack", lazily(OnHost, is_neg=True)),
    ("S5", "negated, an exchange", lazily(type(exchanged(Alone)), is_neg=True)),
    ("S5", "negated, a table", lazily(type(tabled_alone()), is_neg=True)),
    ("S6", "elements for bytes", dictionary(typestr="<f8", shape=(5, 5), strides=(5, 1))),
    ("S6", "elements for bytes, F order, backwards", dictionary(strides=(-1, 2))),
    ("C1", "an attribute", type("Attribute", (), {"__cuda_stream__": (0, 4096)})()),
    ("C1", "an int", Stream(4096)),
    ("C1", "a list", Stream([0, 4096])),
    ("C1", "three items", Stream((0, 4096, 0))),
    ("C1", "raises", type("Broken", (), {"__cuda_stream__": lambda self: fail(self)})()),
    ("C2", "version 1", Stream((1, 4096))),
    ("C2", "a bool", Stream((False, 4096))),
    ("C3", "an object", Stream((0, object()))),
    ("C3", "None", Stream((0, None))),
    ("C3", "-1", Stream((0, -1))),
    ("C3", "2^64", Stream((0, 1 << 64))),
    ("S4", "an attribute that raises", type("Broken", (Dictionary,), {"strides": property(fail)})()),
    ("S4", "a dictionary that raises the third time", ThirdTime()),
    ("D1", "no device", dlpack(__dlpack_device__=None)),
    ("D1", "no tensor", dlpack(__dlpack__=None)),
    ("D2", "a list", dlpack(__dlpack_device__=lambda self: [2, 0])),
    ("D2", "below 0", dlpack(__dlpack_device__=lambda self: (2, -1))),
    ("D3", "a stream without its name", Positional()),
    ("D4", "only a stream", Older()),
    ("D5", "None", dlpack(Answers, answer=lambda self, **k: None)),
    ("D5", "another capsule", dlpack(Answers, answer=lambda self, **k: table_capsule(table()))),
    ("D6", "always with a version", dlpack(Answers, answer=lambda self, **k: self.capsule((1, 3)))),
    ("D7", "a later version", dlpack(head={"major": 2})),
    ("D8", "no shape", dlpack(tensor={"shape": None})),
    ("D8", "ndim below 0", dlpack(tensor={"ndim": -1})),
    ("D8", "an extent below 0", dlpack(tensor={"shape": (c_int64 * 2)(-2, 3)})),
    ("D9", "no strides", dlpack(tensor={"strides": None})),
    ("D10", "no lanes", dlpack(tensor={"lanes": 0})),
    ("D10", "no such code", dlpack(tensor={"code": 99})),
    ("D13", "two lanes of 4 bits are a byte", dlpack(tensor={"code": 17, "bits": 4, "lanes": 2})),
    ("D13", "4 bits, padded, are a byte", dlpack(tensor={"code": 17, "bits": 4}, head={"flags": 4})),
    ("D11", "an address without elements", dlpack(entries=EMPTY, tensor={"data": ADDRESS})),
    ("D12", "another device", dlpack(tensor={"device_id": 1})),
    ("D13", "another address", dlpack(tensor={"byte_offset": 4})),
    ("D13", "another dtype", dlpack(tensor={"code": 0})),
    ("D13", "other strides", dlpack(tensor={"strides": (c_int64 * 2)(12, 4)})),
    ("D13", "swapped", with_entries({"typestr": ">f4"})),
    ("D13", "a record", with_entries({"typestr": "|V4"})),
    ("D14", "may be written to", with_entries({"data": (ADDRESS, True)}, head={"flags": 0})),
    ("D14", "may not", dlpack(head={"flags": tool.READ_ONLY})),
    ("D14", "never with a version", with_entries({"data": (ADDRESS, True)}, Answers,
                                                answer=lambda self, **k: self.capsule(None))),
    ("D15", "no destructor", dlpack(end=None)),
    ("D16", "a destructor that always deletes", dlpack(end=EVERY_END)),
    ("D17", "a copy that is none", dlpack(Asks, ignored=("copy",))),
    ("D17", "marked as a copy", dlpack(Answers, answer=lambda self, **k: flagged(self, None)
                                      if k["max_version"] else self.capsule(None))),
    ("D18", "0", dlpack(Asks, ignored=("stream",))),
    ("D18", "a stream of the host", type("Broken", (OnHost,), {"strict": False})()),
    ("D19", "another tensor", dlpack(Answers, answer=moved_by_2)),
    ("D20", "any device", dlpack(Asks, ignored=("dl_device",))),
    ("D20", "not its own", dlpack(Refuses, refuses=lambda self, **k: BufferError("no") if k["dl_device"] else None)),
    ("D4", "the right version, but not None", dlpack(__dlpack__=no_none)),
    ("D21", "a TypeError for read-only memory without a version", with_entries({"data": (ADDRESS, True)},
                                                                              ReadOnlyError)),
    ("D21", "a TypeError for read-only memory", with_entries({"data": (ADDRESS, True)}, ReadOnlyError, flagged=False)),
    ("D21", "a ValueError for its dtype", with_entries({"typestr": "<M8[ns]"}, Refuses,
                                                     refuses=lambda self, **k: ValueError("no such dtype"))),
    ("R3", "a subclass of list", dictionary(shape=Places((2, 3)))),
    ("D21", "a RuntimeError", dlpack(Refuses, refuses=lambda self, **k: RuntimeError("not now"))),
    ("D21", "a ValueError for a copy", dlpack(Refuses, refuses=lambda self, **k: ValueError("no") if k["copy"] else None)),
    ("D13", "elements for bytes, that look contiguous", with_entries({"strides": (12, 4)},
                                                                     tensor={"strides": (c_int64 * 2)(12, 4)})),
    ("D22", "no stream but None", dlpack(Refuses, refuses=no_streams)),
    ("D23", "the dictionary of host memory", dlpack(OnHostToo)),
    ("T1", "another capsule", tabled(table_capsule(table(), b"another"))),
    ("T1", "an int", tabled(kept(table()))),
    ("T1", "of an instance", OfInstance()),
    ("T2", "no version 1", tabled(chained(3, 2))),
    ("T2", "in the wrong order", tabled(chained(2, 3, 1))),
    *(("T3", f"no {name}", tabled(**{name: None}))
      for name in ("allocator", "to_managed", "from_managed", "current_stream")),
    ("T4", "fails without a word", tabled(to_managed=FAILS)),
    ("T4", "fails with a TypeError", tabled(to_managed=RAISES)),
    ("T4", "no tensor", tabled(to_managed=SUCCEEDS)),
    ("T5", "another address", tabled(to_managed=to_managed(byte_offset=4))),
    ("T5", "no strides", tabled(to_managed=to_managed(strides=None))),
    ("T5", "read-only", tabled(to_managed=to_managed(flags=tool.READ_ONLY))),
    ("T5", "a later version", tabled(to_managed=to_managed(major=2))),
    ("T6", "another address", tabled(to_tensor=to_tensor(byte_offset=4))),
    ("T6", "fails without a word", tabled(to_tensor=FAILS)),
    ("T6", "fails with a TypeError", tabled(to_tensor=RAISES)),
    ("T7", "fails without a word", tabled(current_stream=FAILS)),
    ("X1", "another name", exchanged(name=b"another")),
    ("X1", "no context", exchanged(proves=None)),
    ("X1", "a copy", exchanged(proves=Broadcast)),
    ("X2", "another layout", exchanged(abi=0x43414930)),
    ("X2", "a short struct", exchanged(struct_size=16)),
    ("X2", "no describe", exchanged(describe=None)),
    ("X3", "fails without a word", exchanged(describe=FAILS)),
    ("X3", "fails with a TypeError", exchanged(describe=RAISES)),
    ("X4", "another layout", described(abi=0)),
    ("X4", "a short struct", described(struct_size=1024)),
    ("X4", "65 axes", described(ndim=65)),
    ("X4", "reserved", described(reserved=1)),
    ("X4", "a bit of a later version", described(must_understand=1)),
    ("X4", "a packed axis that does not exist", described(packed_axis=2)),
    ("X4", "a packed axis of float32", described(packed_axis=0, packed_extent=2)),
    ("X4", "a packed axis of -5", described(packed_axis=-5)),
    ("X4", "an extent without a packed axis", described(packed_extent=-3)),
    ("X4", "a packed axis of -5 of a packed dtype", packs(packed_axis=-5, packed_extent=5)),
    ("X4", "int4 without its bits", packs(code=12 << 16 | ord("i") << 8 | 1, packed_axis=-1, packed_extent=0, bits=0)),
    ("X4", "a packed dtype of other bits", packs(bits=2, packed_extent=12)),
    ("X4", "a packed dtype of other bytes", packs(itemsize=2, bits=8, packed_extent=5)),
    ("X5", "bytes of int4", packs(code=12 << 16 | ord("i") << 8 | 1, packed_axis=-1, packed_extent=0, nbytes=3)),
    ("X4", "a packed dtype without its axis", packs(packed_axis=-1, packed_extent=0)),
    ("X4", "a negative packed extent", packs(packed_extent=-5)),
    ("X4", "a packed extent of fewer elements", packs(packed_extent=4)),
    ("X4", "a packed extent of more elements", packs(packed_extent=7)),
    ("X5", "size", described(size=5)),
    ("X5", "bytes", described(nbytes=25)),
    ("X5", "the extent", described(hi=23)),
    ("X5", "an extent below 0", described({**ENTRIES, "shape": (-2, 3)}, base=Alone, shape=(-2, 3), size=-6, nbytes=-24,
                                          hi=-28 + 4 + 8)),
    ("X5", "a flag", described(flags=1 | 2 | 4)),
    ("X6", "another address", described(data=ADDRESS + 4)),
    ("X6", "another dtype", described(code=0x6904)),
    ("X6", "read-only", described(flags=2)),
    ("X6", "no stream", described(HANDLE)),
    ("X6", "another stream", described(HANDLE, sync=tool.SYNC_STREAM, stream=8192)),
    ("X7", "the stream 0", described(base=Alone, sync=tool.SYNC_STREAM)),
    ("X7", "no event", described(sync=tool.SYNC_EVENT)),
    ("X8", "a release that forgets", described(release=address(forgets))),
    ("X9", "takes a borrowed array", exchanged(adopt=address(takes))),
    ("X9", "refuses with a TypeError", exchanged(adopt=ctypes.cast(ctypes.pythonapi.PyObject_GetIter, c_void_p).value)),
]  # fmt: skip
