# SPDX-License-Identifier: MIT
"""Judges a consumer of arrays: part of cai_conform.py, which see. `python tools/cai_conform.py --consumer M:FUNCTION`.

The function gets one hard producer after the other, each by all ways that it takes: DLPack on the host and on a
device, and the dictionary. It returns an array, or a dict of what it knows: data, shape, strides in bytes, typestr,
read_only. It uses the legacy default stream, or names its own as "stream" in that dict.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import sys
import weakref
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p, py_object
from itertools import product
from math import prod
from typing import Any, Callable, Iterator, NamedTuple

import cai_conform as tool

HOST, DEVICE, DICTIONARY = "DLPack on the host", "DLPack on a device", "the dictionary"
WAYS = (HOST, DEVICE, DICTIONARY)
BOTH = (HOST, DEVICE)
BYTES = 1024  # of the memory of a producer
START = 256  # where its first element is, if nothing else is said
NEWEST = (1, 3)
CALLS = 100  # at most so many more, before something counts as never given back

tool.api.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
tool.api.PyCapsule_New.restype = py_object


class Case(NamedTuple):
    """An array, and how it is given. Strides are in bytes."""

    name: str
    shape: tuple[int, ...] = (2, 3)
    strides: tuple[int, ...] | None = None
    typestr: str = "<f4"
    ways: tuple[str, ...] = WAYS
    at: int = START
    read_only: bool = False
    refuse: str = ""  # why nobody may take it
    rules: str = ""  # the rule that a consumer breaks that has it wrong; or two, by the dictionary and by DLPack
    dtype: tuple[int, int, int] | None = None  # of DLPack, if typestr does not say it
    null: tuple[str, ...] = ()  # members of the tensor that are NULL
    offset: int = 0  # byte_offset
    version: tuple[int, int] = NEWEST
    flags: int = 0
    asks: str = ""  # how __dlpack__ differs: older, typeerror, buffererror, used, named, copied, undeletable
    entries: dict[str, Any] = {}
    pending: bool = False
    ordinal: int = 0


SIX = {"descr": [("a", "<f4"), ("b", "<i2")]}
CASES = [
    Case("plain"),
    Case("an offset of 8 bytes", at=START + 8, offset=8),
    Case("an offset of half an element", shape=(3,), typestr="<f8", at=START + 4, offset=4),
    Case("an extent of 1 with stride 0", (1, 3, 1), (0, 4, 0)),
    Case("an extent of 1 with a huge stride", (1, 3), (1 << 40, 4)),
    Case("empty, at 0", (0, 3), at=0),
    Case("empty, at an address", (0, 3)),
    Case("empty, an extent of 2^40", (1 << 40, 0), at=0),
    Case("0-D", ()),
    Case("0-D, shape and strides are NULL", (), null=("shape", "strides"), ways=BOTH),
    Case("strides are NULL, before 1.2", null=("strides",), version=(1, 1), ways=BOTH),
    Case("strides are None", ways=(DICTIONARY,), entries={"strides": None}),
    Case("transposed", (3, 2), (4, 12)),
    Case("every other element", (3,), (8,)),
    Case("backwards", (3,), (-4,), at=START + 8),
    Case("broadcast", (4, 3), (0, 4), rules="R25"),
    Case("padded rows", (2, 3), (16, 4)),
    Case("windows that overlap", (4, 3), (4, 4)),
    Case("a view of a view", (2, 2), (-8, 48), at=START + 128, offset=40),
    Case("32 dimensions", (1,) * 30 + (2, 3)),
    Case("read-only", read_only=True, rules="R6 D14"),
    Case("read-only, a TypeError without a version", read_only=True, asks="typeerror", ways=BOTH, rules="D14"),
    Case("read-only, a BufferError without a version", read_only=True, asks="buffererror", ways=BOTH, rules="D14"),
    Case("bool", typestr="|b1"),
    Case("complex", typestr="<c8"),
    Case("half", typestr="<f2"),
    Case("int64", typestr="<i8", rules="R32 D10"),
    Case("bfloat16", dtype=(4, 16, 1), typestr="<V2", ways=BOTH),
    Case("4 lanes", shape=(2,), dtype=(2, 32, 4), typestr="|V16", ways=BOTH),
    Case("4 bits", shape=(4,), dtype=(17, 4, 1), typestr="|V1", ways=BOTH),
    Case("records", shape=(3,), typestr="|V6", ways=(DICTIONARY,), entries=SIX),
    Case("swapped bytes", typestr=">f4", ways=(DICTIONARY,), rules="R30"),
    Case("times", typestr="<M8[ns]", ways=(DICTIONARY,)),
    Case("text", typestr="<U2", ways=(DICTIONARY,)),
    Case("a mask", ways=(DICTIONARY,), entries={"mask": True}, rules="R52"),
    Case("a struct without versions", version=(0, 0), ways=BOTH),
    Case("a later minor version, an unknown flag", version=(1, 9), flags=1 << 9, ways=BOTH),
    Case("__dlpack__ takes stream alone", asks="older", ways=BOTH),
    Case("a copy of its own", asks="copied", flags=tool.COPIED, ways=BOTH),
    Case("no deleter", asks="undeletable", ways=BOTH),
    Case("version 2.0", version=(2, 0), refuse="the major version is later", ways=BOTH, rules="D7"),
    Case("a capsule that was used", asks="used", refuse="the tensor is somebody else's", ways=BOTH),
    Case("a capsule of another name", asks="named", refuse="it is none of DLPack", ways=BOTH),
    Case("version 2, no stream", ways=(DICTIONARY,), entries={"version": 2, "stream": NotImplemented}),
    Case("the stream 1", ways=(DICTIONARY,), entries={"stream": 1}),
    Case("the stream 2", ways=(DICTIONARY,), entries={"stream": 2}),
    Case("a stream with pending work", ways=(DEVICE, DICTIONARY), pending=True, rules="R75 -"),
    Case("on another device", ways=(DEVICE, DICTIONARY), ordinal=1),
    Case("a shape of a subclass of tuple", ways=(DICTIONARY,), entries={"shape": type("Sizes", (tuple,), {})((2, 3))}),
    Case("the stream 0", ways=(DICTIONARY,), entries={"stream": 0}, refuse="R71", rules="R71"),
    Case("the stream -1", ways=(DICTIONARY,), entries={"stream": -1}, refuse="R74", rules="R74"),
    Case("a negative extent", ways=(DICTIONARY,), entries={"shape": (-2, 3)}, refuse="R17", rules="R17"),
    Case("strides of another length", ways=(DICTIONARY,), entries={"strides": (4,)}, refuse="R22", rules="R22"),
]  # fmt: skip
DTYPES = {"f": 2, "i": 0, "u": 1, "c": 5, "b": 6}


# ------------------------------------------------------------------------------------------------------ memory
class Driver:
    """CUDA's driver with a context, as ctypes has it. None is loaded for the ways of the host alone."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        count, context = c_int(), c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGetCount", byref(count))
        self.count = count.value
        self.call("cuDevicePrimaryCtxRetain", byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.contexts = {0: context}
        self.call("cuStreamCreate", byref(stream := c_void_p()), 1)
        self.call("cuEventCreate", byref(event := c_void_p()), 2)
        self.stream, self.event = stream, event

    def call(self, name: str, *arguments: Any) -> None:
        error = getattr(self.library, name)(*arguments)
        if error:
            raise OSError(f"{name} returns {error}")

    def memory(self, content: bytes, ordinal: int) -> int:
        pointer = c_uint64()
        if ordinal not in self.contexts:
            self.call("cuDevicePrimaryCtxRetain", byref(other := c_void_p()), ordinal)
            self.contexts[ordinal] = other
        self.call("cuCtxSetCurrent", self.contexts[ordinal])
        self.call("cuMemAlloc_v2", byref(pointer), c_size_t(BYTES))
        self.call("cuMemcpyHtoD_v2", pointer, content, c_size_t(BYTES))
        self.call("cuCtxSetCurrent", self.contexts[0])
        return pointer.value

    def synchronize(self) -> None:
        """Waits for all work, on each device that has memory of a producer."""
        for context in reversed(self.contexts.values()):  # the first one stays current
            self.call("cuCtxSetCurrent", context)
            self.call("cuCtxSynchronize")

    def read(self, address: int, count: int) -> bytes:
        out = ctypes.create_string_buffer(count)
        self.call("cuMemcpyDtoH_v2", out, c_uint64(address), c_size_t(count))
        return out.raw

    def work(self, memory: int, content: bytes) -> None:
        """Work of 0.1 s on the stream, which writes the memory."""
        self.source, self.memory_of_work = self.memory(content, 0), memory
        sleep = ctypes.cast(ctypes.CDLL(None).usleep, c_void_p)
        self.call("cuLaunchHostFunc", self.stream, sleep, c_void_p(100_000))
        self.copy(memory, self.source, self.stream)
        self.since = simulation().position() if simulation() else 0

    def copy(self, to: int, source: int, stream: c_void_p) -> None:
        self.call("cuMemcpyDtoDAsync_v2", c_uint64(to), c_uint64(source), c_size_t(BYTES), stream)

    def order(self, stream: int) -> None:
        """What is queued on `stream` from now on waits for the pending work."""
        self.call("cuEventRecord", self.event, self.stream)
        self.call("cuStreamWaitEvent", c_void_p(stream), self.event, 0)

    def in_order(self, stream: int) -> bool:
        """Whether the pending work has ended, or `stream` waits for it. The simulation knows; on a GPU time tells."""
        after, to = c_void_p(), self.memory(bytes(BYTES), 0)
        if not simulation():
            self.call("cuEventCreate", byref(after), 2)
            self.call("cuEventRecord", after, c_void_p(stream))
            ready = self.library.cuEventQuery(after) == 0
            late = self.library.cuStreamQuery(self.stream) != 0
            self.call("cuStreamSynchronize", self.stream)
            return not (ready and late)
        self.copy(to, self.memory_of_work, c_void_p(stream))
        raced = bool(simulation().races(self.since))
        self.call("cuStreamSynchronize", self.stream)
        self.call("cuStreamSynchronize", c_void_p(stream))
        return not raced


def simulation() -> Any:
    """cai_sim, if this process runs on it."""
    module = sys.modules.get("cai_sim")
    return module if module and module.started() else None


def content(case: Case) -> bytes:
    return bytes(i % 2 for i in range(BYTES)) if case.typestr == "|b1" else bytes(i * 7 % 251 for i in range(BYTES))


def elements(facts: tool.Facts, read: Callable[[int, int], bytes]) -> Iterator[bytes]:
    """In C order, each by its address."""
    for index in product(*map(range, facts.shape)) if prod(facts.shape) else ():
        yield read(facts.data + sum(i * stride for i, stride in zip(index, facts.strides)), facts.itemsize)


# --------------------------------------------------------------------------------------------------- producers
LIVE: dict[int, Any] = {}  # structs that were given away


@ctypes.CFUNCTYPE(None, c_void_p)
def delete(pointer: int) -> None:
    if pointer in LIVE:
        LIVE[pointer][0].deleted.append(pointer)


class State:
    """What stays when the producer is gone."""

    def __init__(self, case: Case, way: str, driver: Driver | None) -> None:
        self.case, self.way, self.driver = case, way, driver
        self.asked: list[dict[str, Any]] = []
        self.capsules: list[tuple[Any, int]] = []
        self.deleted: list[int] = []
        self.content = content(case)
        if way == HOST:
            self.buffer = ctypes.create_string_buffer(BYTES + 256)
            self.memory = (ctypes.addressof(self.buffer) + 255) // 256 * 256  # some refuse what is not aligned
            ctypes.memmove(self.memory, self.content, BYTES)
        else:
            assert driver
            self.memory = driver.memory(self.content, case.ordinal)
        kind, itemsize = tool.check_typestr(tool.Report(), case.typestr)
        strides = case.strides if case.strides is not None else tool.c_order(case.shape, itemsize)
        data = self.memory + case.at if case.at else 0
        self.facts = tool.Facts(data, case.shape, strides, "" if case.dtype else kind, itemsize, case.read_only)
        self.device = (1, 0) if way == HOST else (2, case.ordinal)

    def read(self, address: int, count: int) -> bytes:
        if self.way == HOST:
            return ctypes.string_at(address, count)
        assert self.driver
        return self.driver.read(address, count)

    def expected(self) -> list[bytes]:
        def read(address: int, count: int) -> bytes:
            at = address - self.memory
            return self.content[at : at + count]

        return list(elements(self.facts, read))


class Producer:
    """What all have: the state, and a weak reference."""

    def __init__(self, state: State) -> None:
        self._state = state


class OfDlpack(Producer):
    def __dlpack_device__(self) -> tuple[int, int]:
        return self._state.device

    def __dlpack__(self, **keywords: Any) -> Any:
        state, case = self._state, self._state.case
        state.asked.append(keywords)
        version = keywords.get("max_version")
        if case.asks == "older" and keywords.keys() - {"stream"}:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        if not version and case.asks in ("typeerror", "buffererror"):
            raise {"t": TypeError, "b": BufferError}[case.asks[0]]("read-only")
        if keywords.get("dl_device") not in (None, state.device) or keywords.get("copy"):
            raise BufferError("another device, or a copy")
        if case.pending and state.driver and keywords.get("stream") != -1:
            state.driver.order(keywords.get("stream") or 1)
        versioned = bool(version and version[0] >= 1 and case.version[0] and case.asks != "older")
        name = b"dltensor_versioned" if versioned else b"dltensor"
        name = {"used": b"used_" + name, "named": b"tensor"}.get(case.asks, name)
        pointer = self.struct(versioned)
        capsule = tool.api.PyCapsule_New(pointer, keep(name), None)
        if case.asks not in ("used", "named", "undeletable"):
            state.capsules.append((capsule, pointer))  # the state deletes what nobody uses, and no destructor
        return capsule

    def struct(self, versioned: bool) -> int:
        state, case, facts = self._state, self._state.case, self._state.facts
        struct: Any = (tool.Versioned if versioned else tool.Legacy)()
        kind = case.typestr[1]
        code, bits, lanes = case.dtype or (DTYPES[kind], 8 * facts.itemsize, 1)
        ndim, itemsize = len(facts.shape), (bits * lanes + 7) // 8
        in_elements = [stride // itemsize for stride in facts.strides]
        numbers = [(c_int64 * max(ndim, 1))(*values) for values in (facts.shape, in_elements)]
        tensor = struct.tensor
        tensor.data, tensor.byte_offset = facts.data - case.offset or None, case.offset
        tensor.device_type, tensor.device_id = state.device
        tensor.ndim, tensor.code, tensor.bits, tensor.lanes = ndim, code, bits, lanes
        tensor.shape, tensor.strides = numbers
        for member in case.null:
            setattr(tensor, member, None)
        struct.deleter = None if case.asks == "undeletable" else ctypes.cast(delete, c_void_p).value
        if versioned:
            struct.major, struct.minor = case.version
            struct.flags = case.flags | (tool.READ_ONLY if case.read_only else 0)
        LIVE[ctypes.addressof(struct)] = (state, struct, numbers)
        return ctypes.addressof(struct)


KEPT: list[Any] = []


def keep(what: Any) -> Any:
    KEPT.append(what)
    return what


class OfDictionary(Producer):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        state, case, facts = self._state, self._state.case, self._state.facts
        entries = {"shape": facts.shape, "typestr": case.typestr, "data": (facts.data, case.read_only), "version": 3,
                   "strides": None if case.strides is None else facts.strides, "stream": None}  # fmt: skip
        if case.pending and state.driver:
            entries["stream"] = state.driver.stream.value
        entries.update(case.entries)
        if "mask" in entries:
            entries["mask"] = OfDictionary(State(Case("mask", typestr="|b1"), state.way, state.driver))
        return {key: value for key, value in entries.items() if value is not NotImplemented}


# ------------------------------------------------------------------------------------------------------ judging
class Outcome(NamedTuple):
    way: str
    case: str
    verdict: str  # right, copied, refused, wrong, out of order
    found: str

    def __str__(self) -> str:
        return f"{self.way}, {self.case}: {self.verdict}{': ' if self.found else ''}{self.found}"


def said_by(result: Any) -> dict[str, Any] | None:
    """The dictionary of a result, if it has one; a result that may not be read raises."""
    if isinstance(result, dict):
        return result
    return getattr(result, "__cuda_array_interface__", None) or getattr(result, "__array_interface__", None)


def taken_facts(result: Any) -> tool.Facts | None:
    """What a result says of itself."""
    entries = said_by(result)
    if entries is None:
        asked = tool.Asked(result, max_version=tool.MAX_VERSION)
        asked = tool.Asked(result) if isinstance(asked.error, TypeError) else asked
        facts = asked.facts() if asked.readable() else None
        return facts._replace(read_only=None) if facts and asked.name == b"dltensor" else facts
    data, read_only = entries["data"], entries.get("read_only")
    if isinstance(data, tuple):
        data, read_only = data
    kind, itemsize = tool.check_typestr(tool.Report(), entries["typestr"])
    shape, strides = tuple(entries["shape"]), entries.get("strides")
    strides = tuple(strides) if strides is not None else tool.c_order(shape, itemsize)
    return tool.Facts(int(data or 0), shape, strides, kind, itemsize, read_only)


def is_packed(case: Case, facts: tool.Facts) -> bool:
    """Whether it took values of a part of a byte as elements that are bytes: the same memory, in other words."""
    bits = case.dtype[1] * case.dtype[2] if case.dtype else 0
    return bits % 8 != 0 and 8 * prod(facts.shape) * facts.itemsize == prod(case.shape) * bits


def judge_facts(state: State, result: Any) -> tuple[str, str]:
    """The verdict, and what was found."""
    facts = taken_facts(result)
    if facts is None:
        return "wrong", f"it returns a {type(result).__name__} that does not say what it took"
    right = state.facts
    if is_packed(state.case, facts) and facts.data == right.data:
        return "right", ""
    if state.case.dtype:  # the kind has no name in NumPy: the numbers must be right
        facts = facts._replace(kind="")
    copied = bool(prod(right.shape)) and facts.data != right.data
    told = facts._replace(data=right.data, strides=right.strides) if copied else facts
    told = told._replace(read_only=right.read_only if facts.read_only is not False or copied else False)
    found = tool.differences(right._replace(read_only=None), told._replace(read_only=None))
    found = found.replace(" and ", " given, taken is ", 1)
    if not found and right.read_only and told.read_only is False:
        found = "read-only memory becomes writable"
    if not found and "mask" in state.case.entries and not isinstance(result, dict):
        found = "" if (getattr(result, "__cuda_array_interface__", {}).get("mask")) else "the mask is left out"
    if not found and list(elements(facts, state.read)) != state.expected():
        apart = facts.data - right.data
        near = f", from {abs(apart)} bytes {'before' if apart < 0 else 'behind'} the array"
        found = "other bytes" + (near if 0 < abs(apart) < BYTES else "")
    return ("wrong" if found else "copied" if copied else "right"), found


def judge_order(state: State, result: Any) -> str:
    """What the object can see of the order."""
    streams = [keywords.get("stream") for keywords in state.asked]
    if state.way == HOST:
        passed = [stream for stream in streams if stream is not None]
        return f"stream={passed[0]} for memory of the host" if passed else ""
    said = said_by(result) or {}
    own = said.get("stream") or 1  # a result may name the stream on which the work is still pending
    if state.way == DEVICE:
        if 0 in streams:
            return "stream=0, which is disallowed"
        own = streams[-1] or 1 if streams and streams[-1] != -1 else own
    if not state.case.pending:
        return ""
    assert state.driver
    asked = f", and it passes stream={streams[-1]}" if streams else ""
    return "" if state.driver.in_order(own) else f"nobody waits for the pending work{asked}"


def used(capsule: Any) -> bool:
    return any(tool.api.PyCapsule_IsValid(capsule, name) for name in tool.NAMES.values())


def made(state: State) -> Producer:
    return (OfDictionary if state.way == DICTIONARY else OfDlpack)(state)


def call_again(function: Callable[[Any], Any], state: State) -> None:
    """With other arrays, when all work has passed: some give back what they took before at a later call."""
    if state.driver:
        state.driver.synchronize()
    for case in (state.case, CASES[0]):
        with contextlib.suppress(Exception):
            function(made(keep(State(case, state.way, state.driver))))


def settled_after(state: State, weak: Any, holds: bool, again: Callable[[], None]) -> str:
    """What is wrong with the end, after all is dropped: a used capsule is deleted once, and no other one. `again`
    calls the consumer with other arrays."""

    def settled(right: Callable[[], bool]) -> bool:
        for _ in range(CALLS):
            if right():
                return True
            again()
        return tool.settled(right)

    for capsule, pointer in state.capsules:
        wanted = int(used(capsule))
        settled(lambda: state.deleted.count(pointer) >= wanted)
        if state.deleted.count(pointer) != wanted:
            return f"{'' if wanted else 'not '}marked as used, and deleted {state.deleted.count(pointer)} times"
    return "" if not holds or settled(lambda: weak() is None) else "a reference to the object stays"


def give(function: Callable[[Any], Any], case: Case, way: str, driver: Driver | None) -> Outcome:
    """One producer, given to the function."""
    state = keep(State(case, way, driver))
    producer = made(state)
    weak = weakref.ref(producer)
    again = functools.partial(call_again, function, state)
    if case.pending and driver:
        driver.work(state.memory, state.content)
    result, refusal = None, ""
    try:
        result = function(producer)
        said_by(result)  # a refusal that comes late
    except Exception as error:
        refusal = " ".join(f"{type(error).__name__}: {error}".split())[:160]
    del producer
    if refusal:
        result = None
        late = settled_after(state, weak, False, again)
        if case.pending and driver:
            driver.call("cuStreamSynchronize", driver.stream)
        return Outcome(way, case.name, "wrong" if late else "right" if case.refuse else "refused",
                       late or refusal * (not case.refuse))  # fmt: skip
    if case.refuse:
        return Outcome(way, case.name, "wrong", f"it takes what it must refuse: {case.refuse}")
    order = judge_order(state, result)
    verdict, found = judge_facts(state, result)
    if verdict == "right" and state.capsules and not any(used(capsule) for capsule, _ in state.capsules):
        verdict, found = "wrong", "it does not mark the capsule as used"
    if verdict == "right" and way == DICTIONARY and not isinstance(result, dict) and prod(case.shape):
        gc.collect()
        if weak() is None:
            verdict, found = "wrong", "it keeps no reference to the object"
    del result
    if verdict in ("right", "copied"):
        late = settled_after(state, weak, way == DICTIONARY, again)
        verdict, found = ("wrong", late) if late else (verdict, found)
    if order and verdict != "wrong":
        verdict, found = ("out of order" if case.pending else "wrong"), order
    return Outcome(way, case.name, verdict, found)


def judge(function: Callable[[Any], Any], say: Callable[[str], None] = lambda line: None,
          wanted: Callable[[str], bool] = lambda name: True) -> Iterator[Outcome]:  # fmt: skip
    """All cases whose name is wanted. `say` gets a line for each way that is left out."""
    driver: Driver | None = None
    try:
        driver = Driver()
    except (OSError, AttributeError) as error:
        say(f"{DEVICE}, {DICTIONARY}: left out, there is no driver of CUDA ({error})")
    for way in WAYS:
        if way != HOST and not driver:
            continue
        first = give(function, CASES[0], way, driver)
        if first.verdict == "refused":
            say(f"{way}: left out, the plain array is refused: {first.found}")
            continue
        for case in CASES:
            if way in case.ways and not (case.ordinal and driver and driver.count <= case.ordinal):
                if wanted(case.name):
                    yield give(function, case, way, driver)


VERDICTS = {"right": "right", "copied": "copied, and right", "refused": "refused", "wrong": "wrong",
            "out of order": "out of order"}  # fmt: skip


def main(name: str, function: Callable[[Any], Any]) -> int:
    """0: nothing is wrong; 1: something is; 2: it takes no array."""
    outcomes = []
    for outcome in judge(function, lambda line: print(f"{name}: {line}", flush=True)):
        outcomes.append(outcome)
        if outcome.verdict not in ("right", "copied"):
            print(f"{name}: {outcome}", flush=True)
    counts = [f"{sum(outcome.verdict == v for outcome in outcomes)} {words}" for v, words in VERDICTS.items()]
    print(f"{name}: {len(outcomes)} producers, {', '.join(counts)}")
    if not outcomes:
        return 2
    return int(any(outcome.verdict in ("wrong", "out of order") for outcome in outcomes))
