#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in ext/cai_hip.h, one at a time; test_hip.c must see each.

    tests/hip/planted.py --hip FOLDER [--cc CC] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

--hip: the folder with hip/hip_runtime_api.h. Prints one line per defect: the first check that fails. A defect that is
not found, or that does not apply to the header any more, is a failure, and so is a failing check without a defect.
Exit status 0: all found; 1: not; 77: no C compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, Defect, Subject, compile_with, execute_until, folders_of, judge_all, parser  # noqa: E402

# What it is, where it is, what stands there instead
SLOTS = [
    # the table
    ("a needed slot is missing", r"cai_priv_hip_event_query,\n", r"NULL,\n"),
    ("two slots are swapped", r"cai_priv_hip_host_free,\n(\s*)cai_priv_hip_host_register, cai_priv_hip_host_unregister",
     r"cai_priv_hip_host_unregister,\n\1cai_priv_hip_host_register, cai_priv_hip_host_free"),
    ("query and wait are swapped", r"cai_priv_hip_event_query,\n(\s*)cai_priv_hip_event_synchronize,",
     r"cai_priv_hip_event_synchronize,\n\1cai_priv_hip_event_query,"),
    ("the table has no default streams", r"CAI_CUDA_VERSION, CAI_CUDA_HIP, 0, NULL",
     r"CAI_CUDA_VERSION, CAI_CUDA_HIP | CAI_CUDA_NO_DEFAULT_STREAMS, 0, NULL"),
    # errors
    ("an unknown stream is a dead context", r"return error == hipErrorContextIsDestroyed \? [^;]*;", r"return (int32_t)error;"),
    ("errors stay for hipGetLastError", r"    \(void\)hipGetLastError\(\);\n", r""),
    # contexts
    ("a pop does not come back", r"error = cai_priv_hip_did\(hipSetDevice\(cai_priv_hip_pushed[^;]*;", r"error = 0;"),
    ("a push does not go", r"error = cai_priv_hip_did\(hipSetDevice\(\(int\)context - 1\)\);", r"error = 0;"),
    ("contexts begin at 0", r"\*context = error \? 0 : \(uint64_t\)device \+ 1;\n    return error;\n\}\n\nstatic int32_t cai_priv_hip_context_push",
     r"*context = error ? 0 : (uint64_t)device;\n    return error;\n}\n\nstatic int32_t cai_priv_hip_context_push"),
    ("one stack for all threads", r"static CAI_PRIV_HIP_THREAD_LOCAL struct", r"static struct"),
    ("a pop that failed is done", r"    if \(!error\) --cai_priv_hip_pushed\.depth;", r"    --cai_priv_hip_pushed.depth;"),
    ("a push that failed is done", r"    if \(!error\) cai_priv_hip_pushed\.devices", r"    cai_priv_hip_pushed.devices"),
    ("the stack overflows", r"    if \(cai_priv_hip_pushed\.depth == CAI_PRIV_HIP_DEPTH\) return [^;]*;", r"    if (cai_priv_hip_pushed.depth == CAI_PRIV_HIP_DEPTH) --cai_priv_hip_pushed.depth;"),
    ("a pop without a push", r"    if \(!cai_priv_hip_pushed\.depth\) return [^;]*;", r"    if (!cai_priv_hip_pushed.depth) return 0;"),
    ("no end of devices", r"    if \(device < 0 \|\| device >= count\) return [^;]*;", r"    if (device < 0) return (int32_t)hipErrorInvalidDevice;"),
    ("device -1", r"    if \(device < 0 \|\| device >= count\) return", r"    if (device >= count) return"),
    ("no primary contexts", r"    \*context = \(uint64_t\)device \+ 1;\n    return 0;", r"    return 0;"),
    ("the stream's device is the current one", r"device = hipGetStreamDeviceId\(cai_priv_hip_stream\(stream\)\);", r"(void)hipGetDevice(&device);"),
    # streams
    ("HIP gets stream 1", r"    return cai_stream_to_hip\(stream\);", r"    return (hipStream_t)CAI_PRIV_HIP_POINTER(stream);"),
    ("stream 1 is the per-thread stream", r"    return cai_stream_to_hip\(stream\);", r"    return stream == 1 ? hipStreamPerThread : (hipStream_t)CAI_PRIV_HIP_POINTER(stream);"),
    ("stream 2 is the null stream", r"    return cai_stream_to_hip\(stream\);", r"    return stream <= 2 ? NULL : (hipStream_t)CAI_PRIV_HIP_POINTER(stream);"),
    ("flags of stream 1 are asked", r"return cai_priv_is_handle\(stream\) \? cai_priv_hip_did\(hipStreamGetFlags\(cai_priv_hip_stream\(stream\), flags\)\)\s*: 0;",
     r"return cai_priv_hip_did(hipStreamGetFlags(cai_priv_hip_stream(stream), flags));"),
    ("no capture is seen", r"    capture->status = \(int32_t\)status;", r"    capture->status = 0;"),
    ("the first capture has the id 0", r"\(uint64_t\)id \+ 1 : 0;", r"(uint64_t)id : 0;"),
    ("no capture has an id", r"capture->id = status == hipStreamCaptureStatusActive \? ", r"capture->id = 1 ? "),
    ("the capture mode is not changed", r"cai_priv_hip_did\(hipThreadExchangeStreamCaptureMode\(&exchanged\)\);", r"0;"),
    ("the capture mode is not told", r"    \*mode = \(int32_t\)exchanged;\n", r""),
    # order
    ("a wait is not made", r"hipStreamWaitEvent\(cai_priv_hip_stream\(stream\), \(hipEvent_t\)CAI_PRIV_HIP_POINTER\(event\), 0\)", r"((void)stream, (void)event, hipSuccess)"),
    ("the null stream waits", r"hipStreamWaitEvent\(cai_priv_hip_stream\(stream\),", r"hipStreamWaitEvent(((void)stream, (hipStream_t)NULL),"),
    ("a wait has flags", r"CAI_PRIV_HIP_POINTER\(event\), 0\)\)", r"CAI_PRIV_HIP_POINTER(event), 1))"),
    ("a record is not made", r"hipEventRecord\(\(hipEvent_t\)CAI_PRIV_HIP_POINTER\(event\), cai_priv_hip_stream\(stream\)\)", r"((void)stream, (void)event, hipSuccess)"),
    ("the null stream is recorded", r"hipEventRecord\(\(hipEvent_t\)CAI_PRIV_HIP_POINTER\(event\), cai_priv_hip_stream\(stream\)\)", r"((void)stream, hipEventRecord((hipEvent_t)CAI_PRIV_HIP_POINTER(event), NULL))"),
    ("event and stream are swapped", r"hipEventRecord\(\(hipEvent_t\)CAI_PRIV_HIP_POINTER\(event\), cai_priv_hip_stream\(stream\)\)", r"hipEventRecord((hipEvent_t)CAI_PRIV_HIP_POINTER(stream), cai_priv_hip_stream(event))"),
    ("events do not release to the system", r"hipEventDisableTiming \| hipEventReleaseToSystem", r"hipEventDisableTiming"),
    ("events time", r"hipEventDisableTiming \| hipEventReleaseToSystem", r"hipEventReleaseToSystem"),
    ("an event has always passed", r"hipEventQuery\(\(hipEvent_t\)CAI_PRIV_HIP_POINTER\(event\)\)", r"((void)event, hipSuccess)"),
    ("an event is not waited for", r"hipEventSynchronize\(\(hipEvent_t\)CAI_PRIV_HIP_POINTER\(event\)\)", r"((void)event, hipSuccess)"),
    ("events are not destroyed", r"hipEventDestroy\(\(hipEvent_t\)CAI_PRIV_HIP_POINTER\(event\)\)", r"((void)event, hipSuccess)"),
    ("a stream is not waited for", r"hipStreamSynchronize\(cai_priv_hip_stream\(stream\)\)", r"((void)stream, hipSuccess)"),
    ("a device is not waited for", r"hipDeviceSynchronize\(\)", r"hipSuccess"),
    # memory
    ("plain memory is an error", r"    if \(error\) return error == \(int32_t\)hipErrorInvalidValue \? 0 : error;", r"    if (error) return error;"),
    ("managed memory is pinned", r"found\.isManaged                       \? CAI_MEMORY_MANAGED\n", r"0 ? CAI_MEMORY_MANAGED\n"),
    ("pinned memory is of a device", r": type == \(int32_t\)hipMemoryTypeHost \? ", r": 0 ? "),
    ("host and device have the numbers of HIP 6", r": type == \(int32_t\)hipMemoryTypeHost \? ", r": type == 1 ? "),
    ("an array is memory", r"    if \(type == \(int32_t\)hipMemoryTypeArray\) [^;]*;\n", r""),
    ("memory has no context", r"    info->context = [^;]*;\n", r""),
    ("memory has the current device", r"    info->device = found\.device;\n", r"    (void)hipGetDevice(&info->device);\n"),
    ("memory has no address", r"    info->device_pointer = [^;]*;\n", r""),
    ("a range begins at the pointer", r"    \*base = \(uint64_t\)\(uintptr_t\)first;", r"    *base = pointer;"),
    ("registered memory begins at 0", r"    return error \|\| first \? error : \(int32_t\)hipErrorNotFound;", r"    return error;"),
    ("a range without a base has a size", r"    \*size = first \? bytes : 0;", r"    *size = bytes;"),
    ("attributes are swapped", r"hipDeviceAttributePageableMemoryAccess", r"hipDeviceAttributeWarpSize"),
    ("unknown attributes are 0", r"    return \(int32_t\)hipErrorInvalidValue;\n\}\n\nCAI_PRIV_HIP_MAKER\(memory_alloc,", r"    return 0;\n}\n\nCAI_PRIV_HIP_MAKER(memory_alloc,"),
    ("memory is freed at once", r"hipFreeAsync\(CAI_PRIV_HIP_POINTER\(pointer\), cai_priv_hip_stream\(stream\)\)", r"((void)stream, hipFree(CAI_PRIV_HIP_POINTER(pointer)))"),
    ("memory is freed in the null stream", r"hipFreeAsync\(CAI_PRIV_HIP_POINTER\(pointer\), cai_priv_hip_stream\(stream\)\)", r"((void)stream, hipFreeAsync(CAI_PRIV_HIP_POINTER(pointer), NULL))"),
    ("memory is allocated in the null stream", r"hipMallocAsync\(&made, \(size_t\)size, cai_priv_hip_stream\(stream\)\)", r"((void)stream, hipMallocAsync(&made, (size_t)size, NULL))"),
    ("pinned memory is as HIP likes", r"flags \| hipHostMallocCoherent", r"flags"),
    ("free and total are swapped", r"hipMemGetInfo\(&available, &total\)", r"hipMemGetInfo(&total, &available)"),
    ("a handle is of the address", r"hipIpcGetMemHandle\(&made, CAI_PRIV_HIP_POINTER\(base\)\)", r"hipIpcGetMemHandle(&made, CAI_PRIV_HIP_POINTER(pointer))"),
    ("a handle opens with no flags", r"hipIpcOpenMemHandle\(&made, copy, hipIpcMemLazyEnablePeerAccess\)", r"hipIpcOpenMemHandle(&made, copy, 2)"),
    ("one UUID for all", r"hipDeviceGetUuid\(&made, device\)", r"hipDeviceGetUuid(&made, 0)"),
    # copies
    ("a copy goes back", r"hipMemcpyAsync\(CAI_PRIV_HIP_POINTER\(to\), CAI_PRIV_HIP_POINTER\(from\),", r"hipMemcpyAsync(CAI_PRIV_HIP_POINTER(from), CAI_PRIV_HIP_POINTER(to),"),
    ("a copy is of host memory", r"hipMemcpyDefault, cai_priv_hip_stream\(stream\)\)\)", r"hipMemcpyHostToHost, cai_priv_hip_stream(stream)))"),
    ("rows are of host memory", r"    rows\.kind = hipMemcpyDefault;\n", r"    rows.kind = hipMemcpyHostToHost;\n"),
    ("rows have one pitch", r"    rows\.srcPtr\.pitch = \(size_t\)copy->from_pitch;", r"    rows.srcPtr.pitch = (size_t)copy->to_pitch;"),
    ("planes have one height", r"    rows\.dstPtr\.ysize = \(size_t\)copy->to_height;", r"    rows.dstPtr.ysize = (size_t)copy->height;"),
    ("peers are swapped", r"\(int\)to_context - 1, CAI_PRIV_HIP_POINTER\(from\),\s*\(int\)from_context - 1", r"(int)from_context - 1, CAI_PRIV_HIP_POINTER(from), (int)to_context - 1"),
    ("a peer's device is its context", r"\(int\)from_context - 1", r"(int)from_context"),
    # pools
    ("a pool follows no events", r"ReuseFollowEventDependencies, reuse & 1", r"ReuseFollowEventDependencies, 0"),
    ("a pool is opportunistic", r"ReuseAllowOpportunistic, reuse & 2", r"ReuseAllowOpportunistic, 1"),
    ("a pool makes dependencies", r"ReuseAllowInternalDependencies, reuse & 4", r"ReuseAllowInternalDependencies, 1"),
    ("a pool gives memory back", r"    if \(!error\) error = cai_priv_hip_did\(hipMemPoolSetAttribute\(made, hipMemPoolAttrReleaseThreshold[^;]*;\n", r"    (void)all;\n"),
    ("a pool that failed is left", r"    if \(error\) \(void\)cai_priv_hip_did\(hipMemPoolDestroy\(made\)\);\n    else", r"    if (!error)"),
    ("a pool of any device", r"    properties\.location\.type = hipMemLocationTypeDevice;\n", r""),
    ("memory is of the current pool", r"hipMallocFromPoolAsync\(&made, \(size_t\)size, \(hipMemPool_t\)CAI_PRIV_HIP_POINTER\(pool\),\s*cai_priv_hip_stream\(stream\)\)", r"((void)pool, hipMallocAsync(&made, (size_t)size, cai_priv_hip_stream(stream)))"),
]  # fmt: skip

DEFECTS = [Defect(name, "ext/cai_hip.h", *change) for name, *change in SLOTS]


class Hip(Subject):
    """The program."""

    def build(self, options, tree, folder):
        flags = ["-D__HIP_PLATFORM_AMD__", *folders_of(tree), f"-I{HERE}"]
        if options.hip != pathlib.Path("/usr/include"):
            flags += ["-isystem", options.hip]
        return compile_with(options, *flags, HERE / "test_hip.c", "-o", folder / "test_hip")

    def run(self, options, tree, folder, environment, defect):
        mark = r"test_hip\.c:\d+: "
        status, output = execute_until([folder / "test_hip"], 60, mark, environment)
        first = re.search(rf"{mark}[^\n]*", output)
        last = output.strip().splitlines()[-1] if output.strip() else "nothing"
        if defect is NONE:
            return status == 0, last if status == 0 else f"A FAILURE: {output}"
        if status != 0 and (first or (status or 0) < 0):
            return True, first.group(0) if first else f"signal {-status}"
        return False, f"NOT FOUND: {last}"


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--hip", type=pathlib.Path, default=pathlib.Path("/usr/include"))
    return judge_all(arguments.parse_args(), DEFECTS, Hip())


if __name__ == "__main__":
    sys.exit(main())
