# SPDX-License-Identifier: MIT
"""The trace as text, and the neighbourhood of its races as a picture."""

from __future__ import annotations

import ctypes
import re
from typing import Iterator

from . import _native
from ._trace import Race, Trace, does

WHOLE = 150  # operations: a trace up to that is drawn as a whole
AROUND = 12  # operations before and after those of a race
RACES = 6  # that are drawn
GAP = 4  # the time that an interval in which nothing is drawn becomes


def lines(trace: Trace) -> Iterator[str]:
    """One line for each operation."""
    marks = list(trace.marks)
    for operation in trace.operations():
        while marks and marks[0][0] < operation.id:
            yield f"mark {marks.pop(0)[1]!r}"
        call = trace.describe(operation)
        accesses = ", ".join(f"{does(operation.kind, access.write)} {trace.memory(access)}"
                             for access in operation.accesses[: operation.access_count])  # fmt: skip
        waits = " ".join(str(number) for number in operation.waits[: operation.wait_count])
        parts = [f"{operation.id} {call.stream} {call.kind}", f'"{call.kernel or call.label}"', accesses,
                 f"after {waits}" if waits else "", "accesses not known" if call.opaque else "",
                 "not run" if operation.state == _native.DROPPED else "",
                 f"{call.name} of {call.caller}" if call.name else "", f"at {call.line}" if call.line else ""]  # fmt: skip
        yield "; ".join(part for part in parts if part and part != '""')
    for _, mark in marks:
        yield f"mark {mark!r}"


def svg(trace: Trace, races: list[Race], title: str) -> str:
    """The picture. Of a long trace: the operations around the first races, or the last ones if there is none."""
    count = trace.count()
    keep = neighbourhood(count, races)
    options = _native.TimelineOptions(title.encode(), min(keep, default=1), None)
    drawn = _native.text_of(trace.driver.cai_timeline_text(trace.sim, ctypes.byref(options)))
    if len(keep) < count:
        drawn = cut(drawn, keep, f"{title}: {len(keep)} of {count} operations")
    bad = ctypes.c_int32()
    picture = _native.text_of(trace.driver.cai_timeline_svg(drawn.encode(), ctypes.byref(bad)))
    if not picture:
        line = drawn.splitlines()[bad.value - 1]
        raise RuntimeError(f"cai_sim: line {bad.value} of the timeline cannot be drawn: {line}")
    return picture


def neighbourhood(count: int, races: list[Race]) -> set[int]:
    """The operations to draw."""
    if count <= WHOLE:
        return set(range(1, count + 1))
    centres = [number for race in races[:RACES] for number in (race.first.operation, race.second.operation)]
    keep: set[int] = set()
    for centre in centres or [count]:
        reach = AROUND if centres else WHOLE
        keep.update(range(max(1, centre - reach), min(count, centre + reach) + 1))
    return keep


def cut(drawn: str, keep: set[int], title: str) -> str:
    """A timeline with only some of its operations. Lanes without any are left out, and so is time in which nothing
    is drawn."""
    rows = [re.findall(r'"(?:[^"\\]|\\.)*"|\S+', line) for line in drawn.splitlines()]
    operations = [row for row in rows if row[0] in ("span", "lost", "mark") and int(row[1]) in keep]
    shown = {row[1] for row in operations}
    links = [row for row in rows if row[0] in ("arrow", "race") and row[1] in shown and row[2] in shown]
    used = {row[2] for row in operations}
    lanes = {row[1]: row for row in rows if row[0] == "lane" and row[1] in used}
    numbers = {lane: str(number) for number, lane in enumerate(lanes, 1)}
    times = squeezed([interval(row) for row in operations])
    for lane, row in lanes.items():
        row[1] = numbers[lane]
    for row in operations:
        begin, end = interval(row)
        row[2], row[3] = numbers[row[2]], str(times[begin])
        if row[0] != "mark":
            row[4] = str(times[end])
    quoted = '"' + title.replace("\\", "\\\\").replace('"', '\\"') + '"'
    kept = [["timeline", quoted], *lanes.values(), *operations, *links]
    return "".join(" ".join(row) + "\n" for row in kept)


def interval(row: list[str]) -> tuple[int, int]:
    """When an operation of a timeline starts and ends."""
    begin = int(row[3])
    return begin, begin + 1 if row[0] == "mark" else int(row[4])


def squeezed(intervals: list[tuple[int, int]]) -> dict[int, int]:
    """For each time at which something starts or ends, the time at which to draw it."""
    times: dict[int, int] = {}
    covered = moved = 0
    for begin, end in sorted(intervals):
        if begin > covered:
            moved += max(0, begin - covered - GAP) if times else begin
        times[begin] = begin - moved
        covered = max(covered, end)
        times.setdefault(end, end - moved)
    return times
