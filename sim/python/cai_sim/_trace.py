# SPDX-License-Identifier: MIT
"""The trace of a run and its races, read with the functions of cai_sim.h and cai_check.h."""

from __future__ import annotations

import ast
import bisect
import ctypes
import dataclasses
import re
from typing import Any, Iterator

from . import _native
from ._sites import Frame, Sites, distribution_of, library_of

MOST_RACES = 100_000  # that are read at once
MOST_BACK = 50  # operations to look back for a call
MOST_FORTH = 5_000  # operations to look for waits
MOST_AGAIN = 100  # races to look for waits
MOST_STREAMS = 4_000  # that are looked at for their names


@dataclasses.dataclass(frozen=True)
class Call:
    """An operation of the trace and the call that made it."""

    operation: int  # its number in the trace
    kind: str  # "launch", "copy", "free", ...
    name: str  # the function, such as "cuLaunchKernel"; "" if no call of CUDA made it
    kernel: str  # of a launch, or ""
    label: str  # what the trace calls it
    stream: str  # "s1", "legacy", "host"
    opaque: bool  # a launch whose accesses are not known
    caller: str  # the library that called, with its version
    frames: tuple[Frame, ...]  # the Python stack, the innermost line first
    thread: int

    @property
    def on_host(self) -> bool:
        """Whether a host thread did it, in no stream."""
        return self.stream.startswith(("the host", "host thread"))

    @property
    def line(self) -> Frame | None:
        """The innermost line outside of installed packages, or the innermost at all."""
        own = [frame for frame in self.frames if not frame.installed]
        return (own or list(self.frames) or [None])[0]

    @property
    def library(self) -> str:
        """The library whose Python code called, if it is installed, and the one that called CUDA."""
        through = distribution_of(self.frames[0].file) if self.frames and self.frames[0].installed else ""
        return f"{through}, by {self.caller}" if through and through != self.caller else self.caller

    def that(self, does: str = "") -> str:
        """What it is, what it does, and where."""
        what = f'kernel "{self.kernel}"' if self.kernel else self.label or self.kind
        return f"{what} {does} on {self.stream}".replace("  ", " ") + (f" at {self.line}" if self.line else "")

    def __str__(self) -> str:
        return self.that()


@dataclasses.dataclass(frozen=True)
class Stream:
    """A stream, and the call that made it."""

    name: str  # "s1", "legacy", "host"
    made: Call | None = None  # None: a default stream, a host thread, or not known
    place: int = 0  # of the streams that the same line made, which one, from 0
    count: int = 1  # how many the same line made

    @property
    def is_default(self) -> bool:
        return re.match(r"s\d", self.name) is None

    @property
    def variable(self) -> str:
        """What the line that made it names it, such as "s" or "self.stream", or "". It made one stream per name."""
        line = self.made.line if self.made and self.made.caller != "ctypes" else None
        names = targets(line.source) if line else []
        return names[self.place] if len(names) == self.count else ""


@dataclasses.dataclass(frozen=True)
class Race:
    """Two accesses of the same memory that nothing orders, one of which writes or may write."""

    certain: bool  # one writes, and nothing that is not seen could order them
    why_possible: str  # "" if it is certain
    memory: str  # "m1[0, 1024)"
    address: int
    bytes: int
    first: Call
    second: Call
    first_does: str  # "reads", "writes", "may write", "allocates", "frees"
    second_does: str
    missing: str  # "nothing makes s2 wait for s1"
    allocated: Call | None  # the call that allocated the memory
    allocated_bytes: int
    mark: str  # the last mark before the second call, or ""
    streams: tuple[Stream, Stream]  # of the two
    again: str = ""  # what has the handle of a stream or an event that was destroyed, or ""

    @property
    def likely(self) -> bool:
        """Whether it is certain, or between a launch and a copy, or between a launch and one that writes."""
        sides = ((self.first, self.first_does), (self.second, self.second_does))
        launches = [does for call, does in sides if call.kind == "launch"]
        copies = any(call.kind == "copy" for call, _ in sides)
        return self.certain or bool(launches and copies) or "writes" in launches

    @property
    def array(self) -> str:
        """What the line that allocated the memory names it, such as "x", or "". Of a pool's memory only the
        beginning can have that name."""
        begins = re.search(r"\[0, \d+\)$|^m\d+$", self.memory)
        known = self.allocated and self.allocated.caller != "ctypes" and begins
        line = self.allocated.line if self.allocated and known else None
        single = line if line and ";" not in line.source else None
        found = re.match(r"([A-Za-z_][\w.]*)\s*(?::[^=]*)?=(?!=)", single.source) if single else None
        return found[1] if found else ""

    def __str__(self) -> str:
        kind = "race" if self.certain else "possible race"
        sides = f"{self.first.that(self.first_does)}; {self.second.that(self.second_does)}"
        return f"{kind} on {self.memory}: {sides}; {self.missing}"


class Trace:
    """The trace of the driver's simulation."""

    def __init__(self, driver: ctypes.CDLL, runtimes: list[ctypes.CDLL], sites: Sites, recorded: bool = False) -> None:
        self.driver = driver
        self.recorded = recorded  # a real driver did the work
        self.exception = ""  # that ended the program
        self.runtimes = runtimes
        self.sites = sites
        self.marks: list[tuple[int, str]] = []
        self.allocations: dict[int, tuple[int, int]] = {}  # of a memory: operation, bytes
        self.host: list[int] = []  # the operations of host threads
        self.functions: list[int] = []  # the host functions
        self.events: dict[int, int] = {}  # handles of events that were recorded, to the number of the first one
        self.events_again_left = 0  # races to look at for a handle that came again; 0: none did
        self.read = 0  # up to here these are filled
        self.found: tuple[tuple[int, int], list[Race]] = ((0, 0), [])  # how many operations, since which, and the races

    @property
    def sim(self) -> int:
        return self.driver.cai_driver_sim()

    def errors(self) -> str:
        """The errors of CUDA that nobody has taken, of contexts and of host threads."""
        found = ctypes.create_string_buffer(_native.TEXT)
        return text(found.value) if self.driver.cai_sim_errors(self.sim, found, _native.TEXT) else ""

    def device_failed(self) -> int:
        """The error with which a context has failed for good, or 0."""
        broken = re.search(r"context c\d+: error (\d+)", self.errors())
        return int(broken[1]) if broken else 0

    def count(self) -> int:
        return self.driver.cai_sim_operation_count(self.sim)

    def operations(self, first: int = 1, last: int | None = None) -> Iterator[_native.Operation]:
        """The operations, each in the same struct."""
        sim, out = self.sim, _native.Operation()
        reference, get = ctypes.byref(out), self.driver.cai_sim_operation_get
        for number in range(first, (self.count() if last is None else last) + 1):
            if get(sim, number, reference):
                yield out

    def call(self, tag: int) -> _native.DriverCall | None:
        """The call of a tag."""
        out = _native.DriverCall()
        return out if tag and self.driver.cai_driver_call_of(tag, ctypes.byref(out)) else None

    def stream(self, operation: _native.Operation) -> str:
        """The name of its stream, or of its host thread."""
        if not operation.stream:
            number = operation.thread & 0xFFFFFFFF
            return f"host thread {number}" if number > 1 else "the host"
        return self.stream_name(operation.stream)

    def stream_name(self, number: int) -> str:
        """The name of a stream, by its id."""
        name = ctypes.create_string_buffer(_native.NAME)
        self.driver.cai_sim_stream_name(self.sim, number, name, _native.NAME)
        return text(name.value)

    def memory(self, access: _native.Access) -> str:
        """The name of the memory of an access, "m1[0, 1024)"."""
        name = ctypes.create_string_buffer(_native.NAME)
        self.driver.cai_sim_access_name(self.sim, ctypes.byref(access), name, _native.NAME)
        return text(name.value)

    def caller(self, tag: int) -> Call | None:
        """The call of a tag, which need not have made an operation."""
        call = self.call(tag)
        if call is None:
            return None
        return Call(
            operation=0, kind="call", name=text(call.name), kernel=readable(text(call.kernel)), label="", stream="", opaque=False,
            caller=library_of(_native.file_of(call.caller)), frames=self.sites.frames(call.site), thread=0,
        )  # fmt: skip

    def streams(self) -> dict[int, Stream]:
        """The streams by their ids. Those of default streams and host threads are not there."""
        made: dict[int, Call | None] = {}
        life = _native.Lifetime()
        while len(made) <= MOST_STREAMS and self.driver.cai_sim_stream_lifetime(self.sim, len(made) + 1, ctypes.byref(life)):
            made[len(made) + 1] = self.caller(life.made) if life.number else None
        lines: dict[Any, list[int]] = {}
        for number, call in made.items():
            if call:
                lines.setdefault(call.line, []).append(number)
        return {number: Stream(self.stream_name(number), made[number], place, len(numbers))
                for numbers in lines.values() for place, number in enumerate(numbers)}  # fmt: skip

    def lifetime(self, stream: int) -> _native.Lifetime:
        """From when to when there was a stream, by its id."""
        out = _native.Lifetime()
        self.driver.cai_sim_stream_lifetime(self.sim, stream, ctypes.byref(out))
        return out

    def again(self, first: Any, second: Any) -> str:
        """What has the handle of something else that was destroyed, so that a wait for it is another one, or ""."""
        said = []
        for stream in dict.fromkeys((first.stream, second.stream)):
            life = self.lifetime(stream) if stream else _native.Lifetime()
            if life.before:
                said.append(self.same_handle(f"s{life.number}", life.made, f"s{self.lifetime(life.before).number}", self.lifetime(life.before)))
            if life.after:
                after = self.lifetime(life.after)
                said.append(self.same_handle(f"s{after.number}", after.made, f"s{life.number}", life))
        return "; ".join(said + self.events_again(first, second))

    def same_handle(self, new: str, made: int, old: str, life: _native.Lifetime) -> str:
        ended, begun = placed(", destroyed", self.caller(life.ended)), placed(", made", self.caller(made))
        return f"{new}{begun}, has the handle of {old}{ended}: who waits for the one waits for {new}"

    def events_again(self, first: Any, second: Any) -> list[str]:
        """The waits between two operations for an event whose handle was that of another one, recorded after the first."""
        recorded: dict[int, int] = {}  # event handles to numbers
        said: list[str] = []
        if not self.events_again_left:
            return said
        self.events_again_left -= 1
        for operation in self.operations(first.id + 1, min(second.id, first.id + MOST_FORTH)):
            if operation.kind == _native.RECORD and operation.stream == first.stream:
                recorded.setdefault(operation.event, operation.event_number)
            if operation.kind == _native.WAIT and recorded.get(operation.event, operation.event_number) != operation.event_number:
                old, where = recorded[operation.event], placed(" at", self.caller(operation.tag), "")
                said.append(f"the wait{where} is for e{operation.event_number}, which has the handle of e{old}, destroyed before")
        return said[:1]

    def describe(self, operation: _native.Operation) -> Call:
        call = self.call(operation.tag)
        late = operation.kind == _native.HOST_ACCESS and text(operation.name) == _native.SEEN and not call
        return Call(
            operation=operation.id, kind=_native.KINDS.get(operation.kind, "operation"),
            name=text(call.name) if call else "", kernel=readable(text(call.kernel)) if call else "", label="access after the last call" if late else text(operation.name),
            stream=self.stream(operation), opaque=bool(call and call.opaque),
            caller=library_of(_native.file_of(call.caller)) if call else "",
            frames=self.sites.frames(call.site) if call else (), thread=operation.thread,
        )  # fmt: skip

    def look(self) -> None:
        """Reads what was added to the trace since the last look."""
        last = self.count()
        for operation in self.operations(self.read + 1, last):
            if not operation.stream:
                self.host.append(operation.id)
            if operation.kind == _native.HOST_FUNCTION:
                self.functions.append(operation.id)
            if operation.kind == _native.RECORD and self.events.setdefault(operation.event, operation.event_number) != operation.event_number:
                self.events_again_left = self.events_again_left or MOST_AGAIN
            if operation.kind == _native.ALLOC and operation.access_count:
                access = operation.accesses[0]
                self.allocations.setdefault(access.memory, (operation.id, access.bytes))
        self.read = last

    def one(self, number: int) -> _native.Operation:
        return next(self.operations(number, number))

    def races(self, since: int = 0) -> list[Race]:
        """The races whose second operation comes after operation `since`."""
        self.host_memory()
        asked = self.count(), since
        if self.found[0] != asked:
            self.found = (asked, self.judge(since))
        return list(self.found[1])

    def host_memory(self) -> _native.DriverHost:
        """What is known of the host's own accesses, after a last look."""
        out = _native.DriverHost()
        self.driver.cai_driver_host_get(ctypes.byref(out))
        return out

    def judge(self, since: int) -> list[Race]:
        found = (_native.CheckRace * self.driver.cai_check_races(self.sim, None, 0))()  # by the second operation
        stored = min(self.driver.cai_check_races(self.sim, found, len(found)), len(found)) if found else 0
        first = bisect.bisect_right(found, since, 0, stored, key=lambda race: race.second)
        if first == stored:
            return []
        self.look()
        order, streams = self.driver.cai_check_order_make(self.sim), self.streams()
        try:
            return [self.race(race, order, streams) for race in found[first : min(stored, first + MOST_RACES)]]
        finally:
            self.driver.cai_check_order_free(order)

    def race(self, race: _native.CheckRace, order: int, streams: dict[int, Stream]) -> Race:
        sentence = ctypes.create_string_buffer(_native.TEXT)
        self.driver.cai_check_race_text(self.sim, ctypes.byref(race), sentence)
        whole = _native.Access(race.address, race.bytes, 0, race.memory)
        first, second = self.one(race.first), self.one(race.second)
        made, size = self.allocations.get(race.memory, (0, 0))
        why = self.doubt(race, first, second, order)
        return Race(
            certain=not why, why_possible=why, memory=self.memory(whole), address=race.address, bytes=race.bytes,
            first=self.describe(first), second=self.describe(second), first_does=does(first.kind, race.first_writes),
            second_does=does(second.kind, race.second_writes), missing=text(sentence.value).rpartition("; ")[2],
            allocated=self.describe(self.one(made)) if made else None, allocated_bytes=size,
            mark=self.mark_before(race.second), streams=(self.made(first, streams), self.made(second, streams)),
            again=self.again(first, second),
        )  # fmt: skip

    def made(self, operation: _native.Operation, streams: dict[int, Stream]) -> Stream:
        """The stream of an operation."""
        return streams.get(operation.stream) or Stream(self.stream(operation))

    def doubt(self, race: _native.CheckRace, first: Any, second: Any, order: int) -> str:
        """Why a race is possible and not certain, or ""."""
        if not race.certain and _native.MAY_READ <= max(race.first_writes, race.second_writes):
            return "a kernel has a pointer into this memory, and nothing tells whether it comes as far as the other one"
        if not race.certain:
            return "nothing tells whether either of them writes"
        seen = [operation for operation in (second, first) if text(operation.name) == _native.SEEN]
        if seen:
            told = "; a host function ran in between, and may have told the host" if self.function_orders(first.id, second.id, order) else ""
            return f"the host accessed it some time{self.after(seen[0])}; pages are told apart, not bytes{told}"
        if self.host_orders(first.id, second.id, order):
            return "a lock of the program may order the host threads, which is not seen"
        if self.function_orders(first.id, second.id, order):
            return "a host function ran in between, and may have told the host that the first one was done"
        return ""

    def after(self, seen: Any) -> str:
        """Where the host thread was before an access of its own was seen."""
        for number in range(seen.id - 1, max(0, seen.id - MOST_BACK), -1):
            operation = self.one(number)
            call = self.call(operation.tag) if operation.thread == seen.thread and operation.tag != seen.tag else None
            line = self.describe(operation).line if call else None
            if line:
                return f" after {line}"
        return ""

    def host_orders(self, first: int, second: int, order: int) -> bool:
        """Whether it is no race if the calls of all host threads come one after the other, as with locks: some
        host thread had waited for the first operation before the second was queued."""
        begin, end = bisect.bisect_left(self.host, first), bisect.bisect_left(self.host, second)
        before = self.driver.cai_check_before
        return any(host == first or before(order, first, host) for host in self.host[begin:end])

    def function_orders(self, first: int, second: int, order: int) -> bool:
        """Whether a host function after the first operation ran before the second was queued."""
        begin, end = bisect.bisect_left(self.functions, first), bisect.bisect_left(self.functions, second)
        before = self.driver.cai_check_before
        for number in self.functions[begin:end]:
            if before(order, first, number) and 0 < self.one(number).newest < second:
                return True
        return False

    def mark_before(self, operation: int) -> str:
        at = bisect.bisect_right(self.marks, (operation, ""))
        return self.marks[at - 1][1] if at else ""


def readable(kernel: str) -> str:
    """The name of a kernel without what a compiler adds to it: "fill" of _ZN8__main__4fillB2v1E..., "f" of _Z1fPf."""
    rest = kernel[3:] if kernel.startswith("_ZN") else kernel[2:] if kernel.startswith("_Z") else ""
    names = []
    while found := re.match(r"(\d+)", rest):
        length = int(found[1])
        names.append(rest[found.end() : found.end() + length])
        rest = rest[found.end() + length :]
        if not kernel.startswith("_ZN"):
            break
    return "::".join(name for name in names if name != "__main__") or kernel


def targets(source: str) -> list[str]:
    """The names that a line gives to the results of as many calls: ["a", "b"] of "a, b = f(), g()"."""
    try:
        [statement] = ast.parse(source).body
    except (SyntaxError, ValueError):  # a part of a statement, or more than one
        found = re.match(r"([A-Za-z_][\w.]*)\s*(?::[^=]*)?=(?!=)\s*[A-Za-z_][\w.]*\([^()]*$", source)
        return [found[1]] if found else []
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        left, right = statement.targets[0], statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value:
        left, right = statement.target, statement.value
    else:
        return []
    pairs = list(zip(left.elts, right.elts)) if isinstance(left, ast.Tuple) and isinstance(right, ast.Tuple) else [(left, right)]
    named = all(isinstance(name, (ast.Name, ast.Attribute)) and isinstance(value, ast.Call) for name, value in pairs)
    return [ast.unparse(name) for name, _ in pairs] if named else []


def placed(what: str, call: Call | None, at: str = " at") -> str:
    return f"{what}{at} {call.line}" if call and call.line else ""


def text(value: bytes | None) -> str:
    return value.decode(errors="replace") if value else ""


def does(kind: int, writes: int) -> str:
    if kind == _native.FREE:
        return "frees"
    if kind == _native.ALLOC:
        return "allocates"
    return {0: "reads", 1: "writes", _native.MAY_READ: "may read"}.get(writes, "may write")
