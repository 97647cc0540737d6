# SPDX-License-Identifier: MIT
"""What is missing between the two operations of a race, as a line of Python that can be pasted between their calls."""

from __future__ import annotations

import dataclasses
import sys

from ._trace import Call, Race, Stream


@dataclasses.dataclass(frozen=True)
class Library:
    """How a library writes these. {}: a stream of its own, but of `wrap` a handle, which is a number."""

    handle: str
    wrap: str  # "": it takes no stream of another library
    wait: str  # {second} waits for {first}
    wait_host: str
    legacy: str = ""
    per_thread: str = ""
    takes: tuple[str, ...] = ()  # the libraries whose streams it waits for as they are


# By the beginning of the name of the installed distribution.
LIBRARIES = {
    "torch": Library("{}.cuda_stream", "torch.cuda.ExternalStream({})", "{second}.wait_stream({first})", "{}.synchronize()",
                     "torch.cuda.default_stream()", "torch.cuda.ExternalStream(2)"),
    "cupy": Library("{}.ptr", "cupy.cuda.ExternalStream({})", "{second}.wait_event({first}.record())", "{}.synchronize()",
                    "cupy.cuda.Stream.null", "cupy.cuda.Stream.ptds"),
    "numba": Library("int({}.handle)", "cuda.external_stream({})",
                     "event = cuda.event(); event.record({first}); event.wait({second})", "{}.synchronize()",
                     "cuda.legacy_default_stream()", "cuda.per_thread_default_stream()"),
    "cuda-core": Library("int({}.handle)", "Stream.from_handle({})", "{second}.wait({first})", "{}.sync()",
                         "LEGACY_DEFAULT_STREAM", "PER_THREAD_DEFAULT_STREAM", ("torch", "cupy", "numba")),
    "pycuda": Library("{}.handle", "", "{second}.wait_for_event(pycuda.driver.Event().record({first}))", "{}.synchronize()"),
}  # fmt: skip
JAX = "jax"  # it shows no stream
FROM_STREAM = "cupy.cuda.Stream.from_external({})"  # of CuPy 14, where ExternalStream is deprecated
FROM = ("torch", "numba", "cuda-core")
CALLS = "cuEventRecord(event, {first}); cuStreamWaitEvent({second}, event, 0)"


def known(library: str) -> str:
    """The key of a library, such as "numba" of "numba-cuda 0.30.4, by cuda-bindings 13.5.0", JAX, or ""."""
    for part in library.replace("triton", "torch").split(", by "):  # Triton launches in streams of PyTorch
        for name in (*LIBRARIES, JAX):
            if part.startswith(name):
                return name
    bindings = "cuda-bindings" in library and "cuda.core" in sys.modules  # cuda.core is compiled: no line of its own
    return "cuda-core" if bindings else ""


def written(stream: Stream, name: str, owner: str, writer: str) -> str:
    """A stream as an expression of the library `writer`, or "". owner: the library whose stream it is; "": it is a
    handle."""
    library = LIBRARIES[writer]
    if stream.name in ("legacy", "per_thread"):
        return str(getattr(library, stream.name))
    if stream.is_default:  # of another device or host thread
        return ""
    if owner == writer or owner in library.takes:
        return name
    if writer == "cupy" and owner in FROM and hasattr(sys.modules["cupy"].cuda.Stream, "from_external"):
        return FROM_STREAM.format(name)
    return library.wrap.format(LIBRARIES[owner].handle.format(name) if owner else name)


def owner_of(stream: Stream, call: Call) -> str:
    """The library that made the stream, or of a default stream the one that uses it."""
    return known((stream.made or call).library)


def host_waits(stream: Stream, name: str, owner: str) -> str:
    """The host waits for a stream that is named so."""
    code = written(stream, name, owner, owner) if owner else ""
    how = ": " + LIBRARIES[owner].wait_host.format(code) if code else ", by its synchronize()"
    return f"let the host wait for {stream.name}{how}"


def between(race: Race) -> str:
    """What stands between the two calls, or "": nothing can."""
    if race.first.on_host:
        return ""
    first, second = race.streams
    names = [stream.variable or stream.name for stream in race.streams]
    if names[0] == names[1]:
        names = [first.name, second.name]
    owners = owner_of(first, race.first), owner_of(second, race.second)
    if owners[0] == JAX:
        return f"let the host wait for {first.name}: block_until_ready() of JAX's array"
    if race.second.on_host or owners[1] == JAX:
        return host_waits(first, names[0], owners[0])
    for writer in (owners[1], owners[0]):
        if writer:
            code = written(first, names[0], owners[0], writer), written(second, names[1], owners[1], writer)
            if all(code):
                return LIBRARIES[writer].wait.format(first=code[0], second=code[1])
    handles = [LIBRARIES[owner].handle.format(name) if owner and not stream.is_default else name
               for stream, name, owner in zip(race.streams, names, owners)]  # fmt: skip
    return CALLS.format(first=handles[0], second=handles[1])
