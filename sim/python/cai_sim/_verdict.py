# SPDX-License-Identifier: MIT
"""What a run is called: the first line of its report, and its exit status."""

from __future__ import annotations

import dataclasses
import re
from typing import Iterable

from . import _cure
from ._report import Census, dead_handles, groups, out_of_reach, plural
from ._trace import Race, Trace

# What a run can be, worst first, and the exit status.
LEVELS = {
    "races": 4,
    "dead": 5,
    "unfinished": 6,
    "possible": 7,
    "not-judged": 8,
    "unread": 0,
    "no-race": 0,
}
STRICT = 9  # of "unread", by request
# A call of these queues work, or says what work waits for. If it is not served, the trace lacks that. A program may have
# ignored the error.
QUEUES = re.compile(
    r"cu(da)?(Memcpy|Memset|Mem(Alloc|Batch|Discard|Free|Prefetch)|Launch|Stream(Batch|Wait|Write)|Signal|Wait|"
    r"Graph(?!.*(Get|Destroy|Dot|Upload)))"
)
ACCEPTABLE = ("possible", "not-judged", "unread")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What is said of a run so far."""

    level: str  # a key of LEVELS
    text: str  # "2 races"
    status: int  # 0: nothing is objected to


def unfinished(trace: Trace) -> str:
    """Why the program did not come to its end as it was meant to, or ""."""
    if trace.exception:
        return f"{trace.exception} ended the program"
    if trace.device_failed():
        return f"the device has failed with error {trace.device_failed()}"
    return _cure.short(trace)


def races_text(found: list[list[Race]]) -> str:
    """"1 race and 2 possible races", or ""."""
    certain = sum(group[0].certain for group in found)
    possible = len(found) - certain
    said = [plural(certain, "race")] if certain else []
    said += [plural(possible, "possible race")] if possible else []
    return " and ".join(said)


def not_judged(trace: Trace, census: Census) -> list[str]:
    """What was left out, each in a few words."""
    if not census.kinds:
        return [f"no work was queued on the {'recorded' if trace.recorded else 'simulated'} driver"]
    said = []
    unknown = sum(census.opaque.values())
    if unknown:
        said.append(f"{unknown} of {plural(census.launches, 'launch', 'launches')}")
    beyond = len(census.follows | census.globals)
    if beyond:
        said.append(f"what {plural(beyond, 'kernel')} {'reaches' if beyond == 1 else 'reach'} by pointers in memory or global variables")
    if census.elsewhere:
        said.append(f"{plural(sum(census.elsewhere.values()), 'launch', 'launches')} with an address of no memory of CUDA")
    if census.early:
        said.append(f"the order of {plural(sum(census.early.values()), 'programmatic launch', 'programmatic launches')}")
    called = census.missing[0]
    if trace.recorded and called:
        said.append(f"calls of {plural(len(called), 'function')}, which were not recorded")
    lost = [] if trace.recorded else [name for name in called if QUEUES.match(name)]
    if lost:
        said.append(f"calls of {plural(len(lost), 'function')}, which {'is' if len(lost) == 1 else 'are'} not served")
    return said


def level_of(found: list[list[Race]], census: Census, trace: Trace) -> tuple[str, str]:
    """The first level that holds, and what is said of it."""
    races, left_out = races_text(found), ", ".join(not_judged(trace, census))
    more = f"; not judged: {left_out}" if left_out and census.kinds else ""
    if found and found[0][0].certain:
        return "races", races + more
    dead, far, why = len(dead_handles(trace)), len(out_of_reach(trace)), unfinished(trace)
    if dead:
        return "dead", plural(dead, "use", "uses") + " of what was destroyed"
    if far:
        return "dead", plural(far, "launch", "launches") + " on memory out of reach"
    if why:
        return "unfinished", f"not judged to the end: {why}"
    if found:
        return "possible", races + more
    if left_out:
        return "not-judged", f"not judged: {left_out}"
    if census.unread:
        kernels = f"{len(census.unread)} kernels that could not be read follow only the pointers of their"
        if len(census.unread) == 1:
            kernels = "a kernel that could not be read follows only the pointers of its"
        return "unread", f"no race, if {kernels} arguments"
    return "no-race", "no race"


def verdict(races: list[Race], census: Census, trace: Trace, strict: bool, accepted: Iterable[str]) -> Verdict:
    level, text = level_of(groups(races), census, trace)
    status = STRICT if strict and level == "unread" else LEVELS[level]
    return Verdict(level, text, 0 if level in accepted else status)
