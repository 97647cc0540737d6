# SPDX-License-Identifier: MIT
"""Programs that use what was destroyed, for check_findings.py. Each is run under python -m cai_sim, with two devices.
BEGIN comes first in all."""

BEGIN = """
import ctypes
import numpy as np
from numba import cuda
from cuda.bindings import driver as d
@cuda.jit
def scale(a):
    a[cuda.threadIdx.x] *= 2
def ok(result):
    assert not int(result[0]), result[0]
    return result[1] if len(result) > 1 else None
s = cuda.stream()
x = cuda.to_device(np.ones(64, np.float32))
cuda.synchronize()
def array(p, size=64):
    class View:
        __cuda_array_interface__ = {"shape": (size,), "typestr": "<f4", "data": (int(p), False), "version": 3, "stream": None}
    return cuda.as_cuda_array(View(), sync=False)
"""


def dead(what: str, made: str, destroyed: str, used: str) -> str:
    return rf'dead {what}\n  made      at .*{made}.*\n.*\n  (destroyed|freed)\s+at .*{destroyed}.*\n.*\n  used      at .*{used}'


ONE = "1 use of what was destroyed"
PREFETCH = "l = d.CUmemLocation()\nl.type = d.CUmemLocationType(1)\np = ok(d.cuMemAllocManaged(256, 1))\n"
CAPTURED = "ok(d.cuStreamBeginCapture(s.handle, d.CUstreamCaptureMode(2)))\np = ok(d.cuMemAllocAsync(256, s.handle))\n"

# The finding's exit status, its first line, and what the report must say.
RACES = {
    "stream": ("t = ok(d.cuStreamCreate(1))\nok(d.cuStreamDestroy(t))\nd.cuMemsetD8Async(x.device_ctypes_pointer.value, 0, 4, t)", 5, ONE,
               dead("handle: stream s2", r"t = ok\(d.cuStreamCreate", "cuStreamDestroy", "cuMemsetD8Async")),
    "stream_query": ("t = ok(d.cuStreamCreate(1))\nok(d.cuStreamDestroy(t))\nd.cuStreamGetFlags(t)", 5, ONE,
                     dead("handle: stream s2", "cuStreamCreate", "cuStreamDestroy", "cuStreamGetFlags")),
    "event": ("e = ok(d.cuEventCreate(2))\nok(d.cuEventDestroy(e))\nd.cuStreamWaitEvent(s.handle, e, 0)", 5, ONE,
              dead("handle: event e1", "cuEventCreate", "cuEventDestroy", "cuStreamWaitEvent")),
    "graph": ("ok(d.cuStreamBeginCapture(s.handle, d.CUstreamCaptureMode(2)))\ng = ok(d.cuStreamEndCapture(s.handle))\n"
              "ok(d.cuGraphDestroy(g))\nd.cuGraphInstantiate(g, 0)", 5, ONE,
              dead("handle: graph g1", "cuStreamEndCapture", "cuGraphDestroy", "cuGraphInstantiate")),
    "executable": ("ok(d.cuStreamBeginCapture(s.handle, d.CUstreamCaptureMode(2)))\ng = ok(d.cuStreamEndCapture(s.handle))\n"
                   "x1 = ok(d.cuGraphInstantiate(g, 0))\nok(d.cuGraphExecDestroy(x1))\nd.cuGraphLaunch(x1, s.handle)", 5, ONE,
                   dead("handle: executable graph x1", "cuGraphInstantiate", "cuGraphExecDestroy", "cuGraphLaunch")),
    "copy": ("p = ok(d.cuMemAlloc(256))\nok(d.cuMemFree(p))\nd.cuMemcpyDtoD(x.device_ctypes_pointer.value, p, 64)", 5, ONE,
             dead("memory: memory m2", r"p = ok\(d.cuMemAlloc", "cuMemFree", "cuMemcpyDtoD")),
    "freed_twice": ("p = ok(d.cuMemAlloc(256))\nok(d.cuMemFree(p))\nd.cuMemFree(p)", 5, ONE,
                    dead("memory: memory m2", "cuMemAlloc", "cuMemFree", "cuMemFree")),
    "launch": ("p = ok(d.cuMemAlloc(256))\na = array(p)\nok(d.cuMemFree(p))\nscale[1, 64, s](a)\ns.synchronize()", 5, ONE,
               dead(r'memory: memory m2, argument \d of kernel "scale"', "cuMemAlloc", "cuMemFree", r"scale\[1, 64, s\]")),
    "queued_free": ("p = ok(d.cuMemAllocAsync(256, s.handle))\na = array(p)\nok(d.cuMemFreeAsync(p, s.handle))\nscale[1, 64, s](a)", 5, ONE,
                    dead(r'memory: memory m2, argument \d of kernel "scale"', "cuMemAllocAsync", "cuMemFreeAsync", r"scale\[1, 64, s\]")),
    "upload": ("ok(d.cuStreamBeginCapture(s.handle, d.CUstreamCaptureMode(2)))\ng = ok(d.cuStreamEndCapture(s.handle))\n"
               "x1 = ok(d.cuGraphInstantiate(g, 0))\nok(d.cuGraphExecDestroy(x1))\nd.cuGraphUpload(x1, s.handle)", 5, ONE,
               "dead handle: executable graph x1"),
    "prefetch": (PREFETCH + "ok(d.cuMemFree(p))\nd.cuMemPrefetchAsync(p, 256, l, 0, s.handle)", 5, ONE, "dead memory: memory m2"),
    "prefetch_stream": (PREFETCH + "t = ok(d.cuStreamCreate(1))\nok(d.cuStreamDestroy(t))\nd.cuMemPrefetchAsync(p, 256, l, 0, t)", 5, ONE,
                        "dead handle: stream s2"),
    "graph_copy": (CAPTURED + "ok(d.cuMemFreeAsync(p, s.handle))\ng = ok(d.cuStreamEndCapture(s.handle))\n"
                   "d.cuMemcpyDtoD(x.device_ctypes_pointer.value, p, 64)", 5, ONE,
                   dead("memory: memory m2", "cuMemAllocAsync", "cuMemFreeAsync", "cuMemcpyDtoD")),
    "graph_launch": (CAPTURED + "ok(d.cuMemFreeAsync(p, s.handle))\nscale[1, 64, s](array(p))\ng = ok(d.cuStreamEndCapture(s.handle))", 5, ONE,
                     dead(r'memory: memory m2, argument \d of kernel "scale"', "cuMemAllocAsync", "cuMemFreeAsync", "scale")),
    "graph_free": (CAPTURED + "scale[1, 64, s](array(p))\nt = ok(d.cuStreamCreate(1))\ne = ok(d.cuEventCreate(2))\n"
                   "ok(d.cuEventRecord(e, s.handle))\nok(d.cuStreamWaitEvent(t, e, 0))\n"
                   "ok(d.cuMemcpyDtoDAsync(x.device_ctypes_pointer.value, p, 64, t))\nok(d.cuMemFreeAsync(p, s.handle))\n"
                   "ok(d.cuEventRecord(e, t))\nok(d.cuStreamWaitEvent(s.handle, e, 0))\ng = ok(d.cuStreamEndCapture(s.handle))\n"
                   "ok(d.cuGraphLaunch(ok(d.cuGraphInstantiate(g, 0)), s.handle))\ns.synchronize()", 4, "2 races", r'"copy" reads .*"free" writes'),
    "loop": ("t = ok(d.cuStreamCreate(1))\nok(d.cuStreamDestroy(t))\nfor i in range(5): d.cuStreamQuery(t)", 5, ONE, "and 4 more times"),
    "never": ("d.cuEventQuery(d.CUevent(0x123450))", 5, ONE, "dead handle: 0x123450, which never was the handle of an? event"),
    "stream_again": ("p = x.device_ctypes_pointer.value\na = ok(d.cuStreamCreate(1))\nok(d.cuMemsetD8Async(p, 1, 4, a))\nold = int(a)\n"
                     "ok(d.cuStreamDestroy(a))\nb = ok(d.cuStreamCreate(1))\nd.cuStreamSynchronize(old)\n"
                     "ok(d.cuMemsetD8Async(p, 2, 4, s.handle))", 4, "1 race",
                     r"(s3, made at .*, has the handle of s2, destroyed at .*: who waits for the one waits for s3|"
                     "dead handle: stream s2)"),
    "event_again": ("p = x.device_ctypes_pointer.value\ne = ok(d.cuEventCreate(2))\nok(d.cuMemsetD8Async(p, 1, 4, s.handle))\n"
                    "ok(d.cuEventRecord(e, s.handle))\nold = int(e)\nok(d.cuEventDestroy(e))\nf = ok(d.cuEventCreate(2))\n"
                    "t = ok(d.cuStreamCreate(1))\nok(d.cuEventRecord(f, t))\nd.cuStreamWaitEvent(t, old, 0)\nok(d.cuMemsetD8Async(p, 2, 4, t))",
                    4, "1 race", r"(the wait at .* is for e2, which has the handle of e1, destroyed before|dead handle: event e1)"),
    "reach": ("c = ok(d.cuDevicePrimaryCtxRetain(1))\nok(d.cuCtxPushCurrent(c))\np = ok(d.cuMemAlloc(256))\nok(d.cuCtxPopCurrent())\n"
              "a = array(p)\nscale[1, 64, s](a)", 5, "1 launch on memory out of reach",
              r'out of reach: argument \d of kernel "scale" is m2, of device 1, in a launch on device 0\n  made      at .*cuMemAlloc'),
}  # fmt: skip

CLEAN = {
    "graph": CAPTURED + "scale[1, 64, s](array(p))\nok(d.cuMemFreeAsync(p, s.handle))\ng = ok(d.cuStreamEndCapture(s.handle))\n"
             "q = ok(d.cuGraphInstantiate(g, 0))\nfor i in range(3): ok(d.cuGraphLaunch(q, s.handle))\ns.synchronize()",
    "kept": "t = ok(d.cuStreamCreate(1))\nok(d.cuMemsetD8Async(x.device_ctypes_pointer.value, 0, 4, t))\nok(d.cuStreamDestroy(t))",
    "freed_last": "p = ok(d.cuMemAllocAsync(256, s.handle))\nscale[1, 64, s](array(p))\nok(d.cuMemFreeAsync(p, s.handle))\ns.synchronize()",
    "again": "for i in range(3):\n    p = ok(d.cuMemAlloc(256))\n    scale[1, 64, s](array(p))\n    s.synchronize()\n    ok(d.cuMemFree(p))",
    "pool": "for i in range(3):\n    p = ok(d.cuMemAllocAsync(256, s.handle))\n    scale[1, 64, s](array(p))\n    ok(d.cuMemFreeAsync(p, s.handle))",
    "registered": "h = np.ones(4096, np.float32)\nok(d.cuMemHostRegister(h.ctypes.data, h.nbytes, 0))\nok(d.cuMemHostUnregister(h.ctypes.data))\n"
                  "ok(d.cuMemcpyHtoD(x.device_ctypes_pointer.value, h.ctypes.data, 256))",
}  # fmt: skip
