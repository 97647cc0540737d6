# SPDX-License-Identifier: MIT
"""A simulated CUDA driver for unmodified GPU libraries: programs run without a GPU, and races are named.

    python -m cai_sim program.py

or, before the first GPU library is imported:

    import cai_sim
    cai_sim.start()
    ...
    print(cai_sim.report())
    assert cai_sim.verdict().status == 0

sim/docs/real-libraries.md of the project cai says what is served, and what a report means.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Collection

from . import _cure, _native, _picture, _report, _sources, _threads, _verdict
from ._sites import Frame, Sites
from ._trace import Call, Race, Stream, Trace
from ._verdict import Verdict

__version__ = "0.2.0"
__all__ = [
    "Call", "Frame", "Race", "Stream", "Verdict", "mark", "position", "races", "report", "start", "started", "verdict",
    "write_svg", "write_trace",
]  # fmt: skip

_trace: Trace | None = None
_strict = False
_accepted: frozenset[str] = frozenset()


def start(
    devices: int = 1, memory: int = 0, adversarial: bool = False, record: bool | str | os.PathLike[str] = False,
    strict: bool = False, accept: Collection[str] = (),
) -> None:  # fmt: skip
    """Loads the simulated driver and runtime, so that GPU libraries find them in place of CUDA's.

    devices: how many, 1 to 64. memory: the bytes of each; 0: 8 GiB. adversarial: the driver does the least that CUDA
    promises (CAI_SIM_ADVERSARIAL of cai_sim.h). record: the program runs on a real driver, and the simulation does the
    same calls: the file of libcuda.so.1, or True for that of the system. Its devices and memory are used then.
    strict: verdict() objects to kernels that could not be read. accept: levels that verdict() does not object to, of
    "possible", "not-judged" and "unread".

    Call it once, before a library that loads CUDA is imported. A RuntimeError says that it was too late, that the
    libraries of this package are not there, or that there is no real driver."""
    global _trace, _strict, _accepted
    if _trace is not None:
        raise RuntimeError("cai_sim.start was called before")
    wrong = [level for level in accept if level not in _verdict.ACCEPTABLE]
    if isinstance(accept, str) or wrong:
        raise ValueError(f"cai_sim.start: accept is a list of {', '.join(_verdict.ACCEPTABLE)}, not {accept!r}")
    early = _native.foreign()
    if early:
        raise RuntimeError("cai_sim.start comes too late, this process has loaded " + ", ".join(early)
                           + ": call it before the first import of a GPU library")  # fmt: skip
    if not 1 <= devices <= 64 or memory < 0:
        raise ValueError(f"cai_sim.start: 1 to 64 devices with 0 or more bytes, not {devices} with {memory}")
    if adversarial:
        others = [name for name in os.environ.get("CAI_SIM_OPTIONS", "").split(",") if name and name != "adversarial"]
        os.environ["CAI_SIM_OPTIONS"] = ",".join([*others, "adversarial"])
    if record and (devices != 1 or memory):
        raise ValueError("cai_sim.start: a recorder has the devices and the memory of the real driver")
    driver, sites, runtimes = _native.load(recorder=bool(record))
    if record:
        _native.open_real(driver, _native.real_driver() if record is True else os.fspath(record))
    else:
        _native.point_libraries()
    _sources.ask(driver, recorded=bool(record))
    if (devices != 1 or memory) and not driver.cai_driver_configure(devices, memory, 0):
        raise RuntimeError("cai_sim.start comes too late: the simulated driver was used before")
    _trace = Trace(driver, runtimes, Sites(sites), recorded=bool(record))
    _strict, _accepted = strict, frozenset(accept)
    _cure.watch(_trace)
    if _trace.sites.function is not None:
        driver.cai_driver_set_site(_trace.sites.function, None)
    _threads.watch(_trace)


def started() -> bool:
    """Whether start was called."""
    return _trace is not None


def _running() -> Trace:
    if _trace is None:
        raise RuntimeError("cai_sim.start was not called")
    return _trace


def mark(text: str) -> None:
    """Names this point of the program. A race says the last mark before it, and the trace has all."""
    trace = _running()
    trace.marks.append((trace.count(), text))
    trace.driver.cai_driver_mark(text.encode())


def position() -> int:
    """How many operations there are so far, for races(since=...)."""
    return _running().count()


def races(since: int = 0, possible: bool = True) -> list[Race]:
    """The races of this run so far.

    since: only those whose second operation came after this position. possible: also those that are possible and not
    certain."""
    return [race for race in _running().races(since) if possible or race.certain]


def verdict() -> Verdict:
    """What is said of the run so far, in one word, in one line, and as an exit status."""
    return _judged()[2]


def report() -> str:
    """What was seen so far, as text: races first."""
    return _reported()[0]


def _judged() -> tuple[list[Race], _report.Census, Verdict]:
    trace = _running()
    races, census = trace.races(), _report.Census(trace)
    return races, census, _verdict.verdict(races, census, trace, _strict, _accepted)


def _reported() -> tuple[str, Verdict]:
    races, census, said = _judged()
    return _report.whole(_running(), races, census, f"cai_sim: {said.text}"), said


def write_svg(file: str | os.PathLike[str], title: str = "") -> None:
    """Draws the trace; of a long one the neighbourhood of its first races."""
    trace = _running()
    found = sorted(trace.races(), key=lambda race: not race.certain)
    pathlib.Path(file).write_text(_picture.svg(trace, found, title or "cai_sim"), encoding="utf-8")


def write_trace(file: str | os.PathLike[str]) -> None:
    """Writes one line for each operation."""
    with open(file, "w", encoding="utf-8") as out:
        out.writelines(line + "\n" for line in _picture.lines(_running()))
