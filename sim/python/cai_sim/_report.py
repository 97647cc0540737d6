# SPDX-License-Identifier: MIT
"""What was seen in a run, and the report of it."""

from __future__ import annotations

import collections
import ctypes
from typing import Any, Iterable, Iterator

from . import _cure, _native, _waits
from ._sites import library_of
from ._trace import Call, Race, Trace, readable, text

MOST_GROUPS = 25  # that are shown; races of the same two lines are one group
MOST_NAMES = 12
MOST_OUTER = 2  # lines that called the line of a call
PLURALS = {"launch": "launches", "copy": "copies", "host access": "host accesses", "publish": "publishes",
           "graph launch": "begins and ends of graph launches"}  # fmt: skip


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def key(call: Call) -> tuple[Any, ...]:
    """What two calls of a loop have in common."""
    return call.kind, call.name, call.kernel, call.stream, call.frames or call.label


def groups(races: Iterable[Race]) -> list[list[Race]]:
    """Races of the same two calls together, those that are certain first."""
    found: dict[Any, list[Race]] = {}
    for race in races:
        found.setdefault((race.certain, key(race.first), key(race.second)), []).append(race)
    return sorted(found.values(), key=lambda group: not group[0].certain)


class Census:
    """What ran, counted."""

    def __init__(self, trace: Trace) -> None:
        self.kinds: collections.Counter[str] = collections.Counter()
        self.libraries: collections.Counter[str] = collections.Counter()
        self.opaque: collections.Counter[str] = collections.Counter()
        self.opaque_of: collections.Counter[str] = collections.Counter()  # by library
        self.unread: collections.Counter[str] = collections.Counter()  # by kernel
        self.follows: collections.Counter[str] = collections.Counter()  # by kernel: pointers in memory
        self.globals: collections.Counter[str] = collections.Counter()  # by kernel: global variables
        self.elsewhere: collections.Counter[str] = collections.Counter()  # by kernel: addresses of no memory of CUDA
        self.early: collections.Counter[str] = collections.Counter()  # by kernel: it may begin before the work in front of it ends
        self.launches = self.dropped = self.without_line = 0
        callers: collections.Counter[int] = collections.Counter()
        unknown: collections.Counter[int] = collections.Counter()
        seen = 0
        for operation in trace.operations():
            if operation.kind in (_native.PUBLISH, _native.OBSERVE):  # threads of Python, no call of CUDA
                continue
            self.kinds[_native.KINDS.get(operation.kind, "operation")] += 1
            self.launches += operation.kind == _native.LAUNCH
            self.dropped += operation.state == _native.DROPPED
            call = trace.call(operation.tag)
            if call is None:
                continue
            if operation.tag != seen:
                callers[call.caller or 0] += 1
                self.without_line += not call.site
            seen = operation.tag
            if call.follows & _native.UNREAD:
                self.unread[readable(text(call.kernel))] += 1
            if call.follows & _native.FOLLOWS:
                self.follows[readable(text(call.kernel))] += 1
            if call.follows & _native.GLOBALS:
                self.globals[readable(text(call.kernel))] += 1
            if call.follows & _native.ELSEWHERE:
                self.elsewhere[readable(text(call.kernel))] += 1
            if call.follows & _native.EARLY:
                self.early[readable(text(call.kernel))] += 1
            if call.opaque:
                self.opaque[readable(text(call.kernel)) or "a kernel without a name"] += 1
                unknown[call.caller or 0] += 1
        for caller, count in callers.items():
            self.libraries[library_of(_native.file_of(caller))] += count
        for caller, count in unknown.items():
            self.opaque_of[library_of(_native.file_of(caller))] += count
        self.missing = functions(trace)


def functions(trace: Trace) -> tuple[list[str], list[str]]:
    """The functions that are not served: those that were called, and those that were only asked for. Those whose calls
    a recorder could not follow count as called."""
    called, asked = [], []
    for function in listed(trace.driver.cai_driver_function_get, _native.DriverFunction()):
        if function.failed:
            called.append(f"{text(function.name)} ({function.failed} of {plural(function.calls, 'call')})")
        elif not function.served and function.calls:
            called.append(text(function.name))
        elif not function.served and function.asked:
            asked.append(text(function.name))
    for runtime in trace.runtimes:
        for function in listed(runtime.cai_runtime_function_get, _native.RuntimeFunction()):
            if not function.served and function.calls:
                called.append(text(function.name))
    return called, asked


def listed(get: Any, out: Any, index: int = 0) -> Iterator[Any]:
    """The rows of a table from `index` on, each in the same struct."""
    while get(index, ctypes.byref(out)):
        index += 1
        yield out


def side(call: Call, verb: str) -> list[str]:
    """The lines that say what one of the two did."""
    what = f'kernel "{call.kernel}"' if call.kernel else f'"{call.label}"' if call.label else call.kind
    lines = [f"  {what} {verb} on {call.stream} (operation {call.operation})"]
    line = call.line
    if line is not None:
        lines.append(f"      at {line}" + (f":  {line.source}" if line.source else ""))
        outer = [frame for frame in call.frames[call.frames.index(line) + 1 :] if not frame.installed]
        lines += [f"      from {frame}" for frame in outer[:MOST_OUTER]]
        if call.frames[0] != line:
            lines.append(f"      in {call.frames[0]}")
    else:
        lines.append("      at a line that is not known")
    if call.name:
        lines.append(f"      {call.name} of {call.library}")
    return lines


def memory(race: Race) -> list[str]:
    """The lines that say what the memory is."""
    if race.allocated is None:
        return ["  memory that CUDA did not allocate"]
    return [f"  {plural(race.allocated_bytes, 'byte')}, {where('allocated', race.allocated)}"]


def streams(race: Race, told: set[str]) -> list[str]:
    """A line for each stream that has not been told of: where it was made."""
    lines = []
    for stream in race.streams:
        if stream.made and stream.name not in told:
            name = f' ("{stream.variable}")' if stream.variable else ""
            many = f", one of {stream.count}" if stream.count > 1 and not stream.variable else ""
            lines.append(f"  {stream.name}{name}{many}, {where('made', stream.made)}")
        told.add(stream.name)
    return lines


def where(what: str, call: Call) -> str:
    """What was done at the line of a call, and the line."""
    if call.line is None:
        return f"{what} by {call.caller}"
    return f"{what} at {call.line}" + (f":  {call.line.source}" if call.line.source else "")


def describe(number: int, group: list[Race], told: set[str]) -> list[str]:
    """The lines of a group. told: the streams that lines before these told of."""
    race = group[0]
    name = f' ("{race.array}")' if race.array else ""
    lines = [f"{'race' if race.certain else 'possible race'} {number} on {race.memory}{name}"]
    lines += memory(race) + streams(race, told) + side(race.first, race.first_does) + side(race.second, race.second_does)
    lines.append(f"  {race.missing}")
    wait = _waits.between(race)
    lines += [f"  between the two: {wait}"] if wait else []
    if race.again:
        lines.append(f"  {race.again}")
    if race.why_possible:
        lines.append(f"  possible, not certain: {race.why_possible}")
    if race.mark:
        lines.append(f"  after the mark {race.mark!r}")
    if len(group) > 1:
        lines.append(f"  and {plural(len(group) - 1, 'more pair')} of operations of these two calls")
    return [*lines, ""]


def named(names: Iterable[str]) -> str:
    """At most MOST_NAMES of them."""
    every = list(names)
    more = len(every) - MOST_NAMES
    return ", ".join(every[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def summary(trace: Trace, census: Census) -> list[str]:
    """What ran, and what is not known of it."""
    kinds = ", ".join(plural(count, kind, PLURALS.get(kind, "")) for kind, count in census.kinds.most_common())
    lines = [f"  operations: {sum(census.kinds.values())}" + (f" ({kinds})" if kinds else "")]
    if census.libraries:
        callers = (f"{name} ({plural(count, 'call')})" for name, count in census.libraries.most_common())
        lines.append("  called by: " + ", ".join(callers))
    if census.opaque:
        kernels = named(f"{name} ({count})" for name, count in census.opaque.most_common())
        launches = plural(sum(census.opaque.values()), "launch", "launches")
        libraries = named(f"{name} ({count})" for name, count in census.opaque_of.most_common())
        lines.append(f"  not judged: {launches} of kernels whose accesses are not known: {kernels}; by {libraries}")
    for what, names in (
        ("what pointers in memory point to", census.follows),
        ("global variables", census.globals),
        ("addresses of no memory of CUDA", census.elsewhere),
        ("the order of programmatic launches, which may begin early", census.early),
    ):  # fmt: skip
        if names:
            lines.append(f"  not judged: {what}, in " + named(f"{name} ({count})" for name, count in names.most_common()))
    if census.launches and not trace.recorded:
        lines.append("  kernels do not run: what they would write is not there")
    if census.unread:
        kernels = named(f"{name} ({count})" for name, count in census.unread.most_common())
        lines.append(f"  not read, and judged by the pointers of their arguments: {kernels}")
    lines += [f"  turned away: {line}" for line in _cure.cures(trace)]
    called, asked = census.missing
    if called:
        why = "not recorded: the report lacks them" if trace.recorded else "not served (they returned an error)"
        lines.append(f"  called, and {why}: {named(called)}")
    if asked and not trace.recorded:
        names = f": {named(asked)}" if len(asked) <= MOST_NAMES else " that no library called"
        lines.append(f"  asked for, and not served: {plural(len(asked), 'function')}{names}")
    if census.dropped:
        lines.append(f"  not run, because of an error: {plural(census.dropped, 'operation')}")
    if census.without_line:
        lines.append(f"  without a line of Python: {plural(census.without_line, 'call')}")
    lines += host_accesses(trace)
    if trace.sites.function is None:
        lines.append("  lines are not known: the interpreter's functions could not be used")
    elif trace.sites.missed:
        lines.append(f"  the GIL was not free in time for {plural(trace.sites.missed, 'call')}: the line is not known")
    return lines + errors(trace) + ([] if trace.recorded else foreign())


def host_accesses(trace: Trace) -> list[str]:
    """The memory whose accesses by the host itself are not seen."""
    known, lines = trace.host_memory(), []
    if known.not_watched:
        blocks = plural(known.not_watched, "block")
        lines.append(f"  the host's own accesses are not seen: {blocks} of pinned or managed memory (no memfd_create or /proc/self/pagemap)")
    if known.forgotten:
        lines.append(f"  the host's own accesses are not seen: {plural(known.forgotten, 'use')} of pinned memory, too many at once or locked")
    if known.registered:
        lines.append(f"  the host's own accesses are not seen: {plural(known.registered, 'block')} that the program registered itself")
    return lines


def errors(trace: Trace) -> list[str]:
    return [f"  errors of CUDA that were left: {trace.errors()}"] if trace.errors() else []


def dead_handles(trace: Trace) -> list[str]:
    """The uses of what was destroyed, or never was a handle: one text each. CUDA's driver may crash then."""
    return [said for what, said in dead(trace) if what != _native.OUT_OF_REACH]


def out_of_reach(trace: Trace) -> list[str]:
    """The launches that were given memory which their device cannot access: one text each."""
    return [said for what, said in dead(trace) if what == _native.OUT_OF_REACH]


def undefined_count(trace: Trace, known: int = 0) -> int:
    """How many uses of both there are so far, for dead(since=...). known: there were as many before."""
    return known + sum(1 for _ in listed(trace.driver.cai_driver_undefined, _native.DriverDead(), known))


def dead(trace: Trace, since: int = 0) -> list[tuple[int, str]]:
    """Both from the use of number `since` on, each with how often the same line did it."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    told: set[tuple[str, str]] = set()
    for one in listed(trace.driver.cai_driver_undefined, _native.DriverDead(), since):
        used = trace.caller(one.used)
        name = text(one.kind), text(one.name)
        row = (one.what, *name, text(one.call), one.argument, used.frames if used else ())
        if row not in found:
            found[row] = [one.what, dead_lines(trace, one, used, name in told), 0]
        found[row][2] += 1
        told.add(name)
    again = lambda count: [f"  and {plural(count - 1, 'more time')}"] if count > 1 else []  # noqa: E731
    return [(what, "\n".join(lines + again(count))) for what, lines, count in found.values()]


def dead_lines(trace: Trace, one: _native.DriverDead, used: Call | None, again: bool) -> list[str]:
    """again: where it was made and destroyed is told before."""
    kind, name = text(one.kind), text(one.name)
    if one.what == _native.NEVER_MADE:
        return [f"dead handle: {name}, which never was the handle of a {kind}", *place("given", used, text(one.call))]
    what = f"argument {one.argument} of kernel \"{used.kernel}\"" if used and one.argument else ""
    if one.what == _native.OUT_OF_REACH:
        title = f"out of reach: {what or 'an argument'} is {name}, of device {one.of_device}, in a launch on device {one.device}"
        advice = [f"  device {one.device} has no access to it: copy it, or enable access between the two devices"]
        return [title, *place("made", trace.caller(one.made)), *place("launched", used, text(one.call)), *advice]
    title = f"dead {'memory' if kind == 'memory' else 'handle'}: {kind} {name}" + (f", {what}" if what else "")
    ended = "freed" if kind == "memory" else "destroyed"
    places = [*place("made", trace.caller(one.made)), *place(ended, trace.caller(one.destroyed))]
    if again:
        return [f"{title}, again", *place("used", used, text(one.call))]
    return [title, *places, *place("used", used, text(one.call))]


def place(what: str, call: Call | None, name: str = "") -> list[str]:
    """One line that says where a call was made."""
    if call is None:
        return [f"  {what:<9} by {name}" if name else f"  {what:<9} at a line that is not known"]
    source = f":  {call.line.source}" if call.line and call.line.source else ""
    where = f"at {call.line}{source}" if call.line else "at a line that is not known"
    return [f"  {what:<9} {where}", f"            {call.name} of {call.library}"]


def foreign() -> list[str]:
    """Libraries of CUDA that are not simulated, and came in later."""
    return [f"  not simulated, and not seen here: {file}" for file in _native.foreign()]


def whole(trace: Trace, races: list[Race], census: Census, first: str) -> str:
    """The report, whose first line is `first`."""
    found = groups(races)
    lines = [first, ""]
    told: set[str] = set()
    for number, group in enumerate(found[:MOST_GROUPS], 1):
        lines += describe(number, group, told)
    if len(found) > MOST_GROUPS:
        lines += [f"{plural(len(found) - MOST_GROUPS, 'more pair')} of calls are not shown", ""]
    undefined = dead_handles(trace) + out_of_reach(trace)
    for said in undefined[:MOST_GROUPS]:
        lines += [said, ""]
    if len(undefined) > MOST_GROUPS:
        lines += [f"{plural(len(undefined) - MOST_GROUPS, 'more use')} of what was destroyed or is out of reach, not shown", ""]
    return "\n".join([*lines, "what was seen:", *summary(trace, census)]) + "\n"
