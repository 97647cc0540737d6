# SPDX-License-Identifier: MIT
"""Order between threads of Python: what a thread did comes before what another one does after it was told.

A thread that is started or joined, the result of a future, an event that is set, and an item of a queue tell. Locks,
conditions and what a library does among its own threads do not: their types belong to C."""

from __future__ import annotations

import collections
import concurrent.futures
import ctypes
import functools
import queue
import threading
from typing import Any, Callable

from . import _native
from ._trace import Trace


def watch(trace: Trace) -> None:
    """From now on these are part of the trace. The calls keep the GIL, so that threads run as they would."""
    driver = ctypes.PyDLL(None, handle=trace.driver._handle)
    for name in ("cai_sim_publish", "cai_sim_observe"):
        getattr(driver, name).restype, getattr(driver, name).argtypes = _native.FUNCTIONS[name]

    def publish() -> int:
        return driver.cai_sim_publish(trace.sim)

    def observe(number: int) -> None:
        if number:
            driver.cai_sim_observe(trace.sim, number)

    watch_threads(publish, observe)
    watch_futures(publish, observe)
    watch_events(publish, observe)
    watch_queues(publish, observe)


Publish, Observe = Callable[[], int], Callable[[int], None]


def watch_threads(publish: Publish, observe: Observe) -> None:
    start, join = threading.Thread.start, threading.Thread.join

    @functools.wraps(start)
    def started(self: threading.Thread) -> None:
        run, begun = self.run, publish()

        def ordered() -> None:
            observe(begun)
            try:
                run()
            finally:
                del self.run  # type: ignore[method-assign]
                self._cai_ended = publish()  # type: ignore[attr-defined]

        self.run = ordered  # type: ignore[method-assign]
        start(self)

    @functools.wraps(join)
    def joined(self: threading.Thread, *arguments: Any, **named: Any) -> None:
        join(self, *arguments, **named)
        if not self.is_alive():
            observe(getattr(self, "_cai_ended", 0))

    threading.Thread.start, threading.Thread.join = started, joined  # type: ignore[method-assign]


def watch_futures(publish: Publish, observe: Observe) -> None:
    Future, Pool = concurrent.futures.Future, concurrent.futures.ThreadPoolExecutor
    submit = Pool.submit

    def telling(method: Any) -> Any:
        @functools.wraps(method)
        def told(self: Any, *arguments: Any) -> Any:
            self._cai_done = publish()
            return method(self, *arguments)

        return told

    def asking(method: Any) -> Any:
        @functools.wraps(method)
        def asked(self: Any, *arguments: Any, **named: Any) -> Any:
            try:
                return method(self, *arguments, **named)
            finally:
                observe(getattr(self, "_cai_done", 0) if self.done() else 0)

        return asked

    @functools.wraps(submit)
    def submitted(self: Any, function: Any, /, *arguments: Any, **named: Any) -> Any:
        begun = publish()

        def ordered() -> Any:
            observe(begun)
            return function(*arguments, **named)

        return submit(self, ordered)

    for name in ("set_result", "set_exception"):
        setattr(Future, name, telling(getattr(Future, name)))
    for name in ("result", "exception"):
        setattr(Future, name, asking(getattr(Future, name)))
    Pool.submit = submitted  # type: ignore[method-assign]


def watch_events(publish: Publish, observe: Observe) -> None:
    """All that set an event before it is seen come before who sees it."""
    set_event, wait = threading.Event.set, threading.Event.wait

    @functools.wraps(set_event)
    def told(self: threading.Event) -> None:
        self.__dict__.setdefault("_cai_set", []).append(publish())
        set_event(self)

    @functools.wraps(wait)
    def seen(self: threading.Event, timeout: float | None = None) -> bool:
        result = wait(self, timeout)
        for number in list(self.__dict__.get("_cai_set", ())) if result else ():
            observe(number)
        return result

    threading.Event.set, threading.Event.wait = told, seen  # type: ignore[method-assign]


def watch_queues(publish: Publish, observe: Observe) -> None:
    """Who puts an item comes before who gets it: an item is the object that it is."""
    put, get = queue.Queue.put, queue.Queue.get

    @functools.wraps(put)
    def told(self: Any, item: Any, *arguments: Any, **named: Any) -> None:
        numbers = self.__dict__.setdefault("_cai_put", collections.defaultdict(collections.deque))
        numbers[id(item)].append(publish())
        put(self, item, *arguments, **named)

    @functools.wraps(get)
    def seen(self: Any, *arguments: Any, **named: Any) -> Any:
        item = get(self, *arguments, **named)
        numbers = self.__dict__.get("_cai_put", {}).get(id(item))
        if numbers:
            observe(numbers.popleft())
        return item

    queue.Queue.put, queue.Queue.get = told, seen  # type: ignore[method-assign]
