# SPDX-License-Identifier: MIT
"""pytest --cai-sim: runs the tests on a simulated CUDA driver. A test whose work races fails.

A race that is certain fails its test, and so does a possible one between a launch and a copy, or between a launch and
one that is known to write. So does the use of a stream, an event or another handle that was destroyed, and a launch on
memory that its device cannot access. What could not be judged is said at the end, and fails the run, unless it is
accepted:

    pytest --cai-sim --cai-sim-options "--accept not-judged --adversarial"

The options are those of python -m cai_sim."""

from __future__ import annotations

import shlex
from collections.abc import Generator
from typing import Any

import pytest

LEFT = pytest.StashKey["tuple[int, int]"]()  # up to here operations and undefined uses are judged
OBJECTED = ("not-judged", "unread")  # levels that are of the whole run, not of a test


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cai_sim", "a simulated CUDA driver")
    group.addoption("--cai-sim", action="store_true", help="run on a simulated CUDA driver, and fail tests that race")
    group.addoption("--cai-sim-options", default="", metavar="OPTIONS", help="options of python -m cai_sim")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before a conftest.py imports a GPU library."""
    known = early_config.known_args_namespace
    if not known.cai_sim:
        return
    from cai_sim.__main__ import arguments, begin

    options, rest = arguments(shlex.split(known.cai_sim_options))
    if rest or options.svg or options.trace:
        raise pytest.UsageError(f"--cai-sim-options: {known.cai_sim_options}: of python -m cai_sim, without --svg, --trace")
    begin(options)


def running(config: pytest.Config) -> Any:
    """The package, if the run asked for it. Programs that start it themselves are not judged here."""
    if not config.getoption("cai_sim"):
        return None
    import cai_sim

    return cai_sim


def position(cai_sim: Any, known: int) -> tuple[int, int]:
    return cai_sim.position(), cai_sim._report.undefined_count(cai_sim._running(), known)


def judge(item: pytest.Item) -> None:
    """Fails the test for what came since the last look."""
    cai_sim = running(item.config)
    if cai_sim is None:
        return
    operations, undefined = item.config.stash.get(LEFT, (0, 0))
    item.config.stash[LEFT] = position(cai_sim, undefined)
    report = cai_sim._report
    found = report.groups(race for race in cai_sim.races(since=operations) if race.likely)
    told: set[str] = set()
    lines = [line for number, group in enumerate(found, 1) for line in report.describe(number, group, told)]
    lines += [line for _, line in report.dead(cai_sim._running(), undefined)]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    result = yield
    judge(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """What the test left when it failed, and what its fixtures do at their end."""
    result = yield
    judge(item)
    return result


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    cai_sim = running(session.config)
    if cai_sim is None or exitstatus != pytest.ExitCode.OK:
        return
    said = cai_sim.verdict()
    if said.level in OBJECTED and said.status:
        session.exitstatus = said.status


def pytest_terminal_summary(terminalreporter: Any) -> None:
    cai_sim = running(terminalreporter.config)
    if cai_sim is None:
        return
    _, census, said = cai_sim._judged()
    terminalreporter.section("cai_sim")
    terminalreporter.write_line(f"cai_sim: {said.text}")
    for line in cai_sim._report.summary(cai_sim._running(), census):
        terminalreporter.write_line(line)
