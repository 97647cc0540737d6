# SPDX-License-Identifier: MIT
"""What is said at the end of a run."""

from __future__ import annotations

import collections
import ctypes
import re
from typing import Any, Iterable, Iterator

from . import _cure, _native
from ._sites import library_of
from ._trace import Call, Race, Trace, readable, text

MOST_GROUPS = 25  # races of the same two lines are one group
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
        self.launches = self.dropped = self.without_line = 0
        callers: collections.Counter[int] = collections.Counter()
        unknown: collections.Counter[int] = collections.Counter()
        seen = 0
        for operation in trace.operations():
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


def listed(get: Any, out: Any) -> Iterator[Any]:
    """The rows of a table, each in the same struct."""
    index = 0
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
    size = plural(race.allocated_bytes, "byte")
    line = race.allocated.line
    if line is None:
        return [f"  {size}, allocated by {race.allocated.caller}"]
    source = f":  {line.source}" if line.source else ""
    return [f"  {size}, allocated at {line}{source}"]


def describe(number: int, group: list[Race]) -> list[str]:
    race = group[0]
    name = f' ("{race.array}")' if race.array else ""
    lines = [f"{'race' if race.certain else 'possible race'} {number} on {race.memory}{name}"]
    lines += memory(race) + side(race.first, race.first_does) + side(race.second, race.second_does)
    lines.append(f"  {race.missing}")
    if race.why_possible:
        lines.append(f"  possible, not certain: {race.why_possible}")
    if race.mark:
        lines.append(f"  after the mark {race.mark!r}")
    if len(group) > 1:
        lines.append(f"  and {plural(len(group) - 1, 'more pair')} of operations of these two calls")
    return [*lines, ""]


def unfinished(trace: Trace) -> str:
    """Why the program did not come to its end as it was meant to, or ""."""
    if trace.exception:
        return f"{trace.exception} ended the program"
    broken = re.search(r"context c\d+: error (\d+)", " ".join(errors(trace)))
    if broken:
        return f"the device has failed with error {broken[1]}"
    return _cure.short(trace)


def verdict(found: list[list[Race]], census: Census, trace: Trace) -> str:
    """The first line: the first of these that holds."""
    recorded = trace.recorded
    certain = sum(group[0].certain for group in found)
    possible = len(found) - certain
    dead, why = len(dead_handles(trace)), unfinished(trace)
    if dead and not certain:
        return f"cai_sim: {plural(dead, 'use', 'uses')} of what was destroyed"
    if why and not certain:
        return f"cai_sim: not judged to the end: {why}"
    if found:
        said = [plural(certain, "race")] if certain else []
        return "cai_sim: " + " and ".join(said + ([plural(possible, "possible race")] if possible else []))
    if not census.kinds:
        return f"cai_sim: nothing was judged: no work was queued on the {'recorded' if recorded else 'simulated'} driver"
    if recorded and census.missing[0]:
        functions = plural(len(census.missing[0]), "function")
        return f"cai_sim: no race was found in what was recorded, and calls of {functions} were not"
    unknown = sum(census.opaque.values())
    if unknown:
        launches = plural(unknown, "launch", "launches")
        return f"cai_sim: no race was found in what could be judged, and {launches} could not"
    return "cai_sim: no race"


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
    if census.launches and not trace.recorded:
        lines.append("  kernels do not run: what they would write is not there")
    if census.launches:
        lines.append("  arrays of Numba are judged whole, other pointers of launches by the byte they point to")
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
    if trace.sites.function is None:
        lines.append("  lines are not known: the interpreter's functions could not be used")
    elif trace.sites.missed:
        lines.append(f"  the GIL was not free in time for {plural(trace.sites.missed, 'call')}: the line is not known")
    return lines + errors(trace) + ([] if trace.recorded else foreign())


def errors(trace: Trace) -> list[str]:
    found = ctypes.create_string_buffer(_native.TEXT)
    if not trace.driver.cai_sim_errors(trace.sim, found, _native.TEXT):
        return []
    return [f"  errors of CUDA that were left: {text(found.value)}"]


def dead_handles(trace: Trace) -> list[str]:
    """The calls that were given a handle which was destroyed, or never was one. CUDA's driver crashes then."""
    lines: list[str] = []
    said = ctypes.create_string_buffer(_native.TEXT)
    while trace.driver.cai_driver_undefined(len(lines), said, _native.TEXT):
        lines.append(f"dead handle {len(lines) + 1}: {text(said.value)}")
    return lines


def foreign() -> list[str]:
    """Libraries of CUDA that are not simulated, and came in later."""
    return [f"  not simulated, and not seen here: {file}" for file in _native.foreign()]


def whole(trace: Trace, races: list[Race]) -> str:
    """The report."""
    found, census = groups(races), Census(trace)
    lines = [verdict(found, census, trace), ""]
    for number, group in enumerate(found[:MOST_GROUPS], 1):
        lines += describe(number, group)
    if len(found) > MOST_GROUPS:
        lines += [f"{plural(len(found) - MOST_GROUPS, 'more pair')} of calls are not shown", ""]
    dead = dead_handles(trace)
    lines += [*dead, ""] if dead else []
    return "\n".join([*lines, "what was seen:", *summary(trace, census)]) + "\n"
