/* test_loader.c - the real backends of cai_stream.h, cai_cuda_load and cai_cuda_linked, on the fake libraries
 * of this folder: that only the driver is loaded, which function in which version is behind each slot of the
 * table, what goes in and what comes out.
 * SPDX-License-Identifier: MIT
 *
 *     test_loader slots RUNTIME [LIBRARY]  every slot, failures, an exchange; RUNTIME: the linked one, 0: none
 *     test_loader alone [HELD...]          no runtime is loaded, with the libraries HELD in the process
 *     test_loader refused TEXT [LIBRARY]   loading fails; TEXT: parts of the message, by commas
 *     test_loader report [LIBRARY]         says what came of it
 *
 * LOADER_LINKED: cai_cuda_linked instead of cai_cuda_load. LOADER_HEADERS: the headers of CUDA come first. */
#ifdef LOADER_HEADERS
#include <cuda.h>
#include <cuda_runtime_api.h>
#endif
#ifdef LOADER_LINKED
#define CAI_NO_LOADER
#else
#define CAI_NO_CUDART
#endif
#define CAI_IMPLEMENTATION
#include "cai_stream.h"

#include <stddef.h>

#include "cai_test.h"
#include "fake_cuda.h"

/* ------------------------------------------------------------------ libraries */
#if defined(_WIN32)
#include <windows.h>
#define DRIVER "nvcuda.dll"
#define RUNTIMES {"cudart64_13.dll", "cudart64_12.dll", "cudart64_110.dll"}

static void *library_open(const char *name)
{
    return (void *)LoadLibraryA(name);
}

static void library_find(void *library, const char *name, void *function)
{
    const FARPROC address = GetProcAddress((HMODULE)library, name);
    memcpy(function, &address, sizeof address);
}
#else
#include <dlfcn.h>
#include <pthread.h>
#define DRIVER "libcuda.so.1"
#define RUNTIMES {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}

static void *library_open(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static void library_find(void *library, const char *name, void *function)
{
    void *const address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
}
#endif

#ifndef LOADER_LINKED
static const char *const runtimes[3] = RUNTIMES;

static int library_is_loaded(const char *name)
{
#if defined(_WIN32)
    return GetModuleHandleA(name) != NULL;
#else
    void *const library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (library) dlclose(library);
    return library != NULL;
#endif
}
#endif

static const struct fake_control *fake;

/* The fake driver, of this path or, for NULL, of its own name. It stays in the process. */
static void find_fake(const char *path)
{
    fake_control_function get = NULL;
    void *const library = library_open(path ? path : DRIVER);
    if (library) library_find(library, FAKE_CONTROL_NAME, (void *)&get);
    if (get) {
        fake = get();
        fake->reset();
    }
}

/* --------------------------------------------------------------------- helpers */
enum { GUARD = 0xc3 };

/* An output of a slot between bytes that nobody may write. */
typedef struct guarded {
    unsigned char before[32];
    union {
        uint64_t u;
        int32_t i;
        cai_cuda_capture capture;
        cai_cuda_pointer pointer;
        unsigned char bytes[64];
    } at;
    unsigned char after[32];
} guarded;

static void guard(guarded *g)
{
    memset(g, GUARD, sizeof *g);
}

static int untouched(const unsigned char *bytes, size_t size)
{
    size_t i;
    for (i = 0; i < size && bytes[i] == GUARD;) i++;
    return i == size;
}

/* Only the first `size` bytes were written. */
#define CHECK_GUARDS(g, size)                                                                                \
    do {                                                                                                     \
        CHECK(untouched((g).before, sizeof(g).before));                                                      \
        CHECK(untouched((g).at.bytes + (size), sizeof(g).at.bytes - (size)));                                \
        CHECK(untouched((g).after, sizeof(g).after));                                                        \
        CHECK_INT(fake->damaged(), 0);                                                                       \
    } while (0)

/* The calls since the last look at the log are these lines, each of which may go on after what is given. */
static int calls_are(const char *expected)
{
    const char *line = fake->log();
    while (*expected) {
        const size_t length = strcspn(expected, "\n");
        if (strncmp(line, expected, length) != 0 || !strchr(" \n", line[length])) return 0;
        line += strcspn(line, "\n");
        line += *line == '\n';
        expected += length;
        expected += *expected == '\n';
    }
    return *line == 0;
}

static void check_calls(const char *file, int line, const char *expected)
{
    const int good = calls_are(expected);
    if (!cai_test_good(file, line, "calls", good)) {
        printf("are\n%snot\n%s", fake->log(), expected);
        cai_test_close();
    }
    fake->clear();
}

#define CHECK_CALLS(expected) check_calls(__FILE__, __LINE__, expected)

/* How often `call`, up to its first dot or space, is in the log. */
static int32_t count_calls(const char *call)
{
    const size_t length = strlen(call);
    const char *line = fake->log();
    int32_t count = 0;
    while (*line) {
        count += !strncmp(line, call, length) && strchr(". ", line[length]) != NULL;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return count;
}

/* Calls that the driver refused; that of CUDA 11.2 is asked for an attribute of pointers that it lacks. */
static int32_t count_refused(void)
{
    const char *at = fake->log();
    int32_t count = 0;
    while ((at = strstr(at, " ! ")) != NULL) {
        count++;
        at++;
    }
    return fake->driver() < 11030 ? count - count_calls("cuPointerGetAttributes") / 2 : count;
}

static char text[1000];

static const char *texts(const char *first, const char *second)
{
    snprintf(text, sizeof text, "%s%s", first, second);
    return text;
}

static cai_status open_driver(cai_cuda_driver *driver, const char *library, cai_error *err)
{
#ifdef LOADER_LINKED
    (void)library;
    return cai_cuda_linked(driver, err);
#else
    return cai_cuda_load(driver, library, err);
#endif
}

/* The header leaves the library open until the process ends. The test closes it, to begin anew. */
static void close_driver(cai_cuda_driver *driver)
{
#ifdef LOADER_LINKED
    (void)driver;
#else
    if (!driver->library) return;
#if defined(_WIN32)
    (void)FreeLibrary((HMODULE)driver->library);
#else
    (void)dlclose(driver->library);
#endif
    driver->library = NULL;
#endif
}

/* ------------------------------------------------------------------- the lookup */
/* What is asked of cuGetProcAddress, with the version whose signature is called and for the functions that
 * take 1 and 2 for streams. */
static const char *const lookups[] = {
    "cuInit 2000 1",
    "cuDriverGetVersion 2020 1",
    "cuCtxGetCurrent 4000 1",
    "cuCtxPushCurrent 4000 1",
    "cuCtxPopCurrent 4000 1",
    "cuCtxGetDevice 2000 1",
    "cuCtxSynchronize 2000 1",
    "cuDevicePrimaryCtxGetState 7000 1",
    "cuDevicePrimaryCtxRetain 7000 1",
    "cuDevicePrimaryCtxRelease 11000 1",
    "cuStreamGetCtx 9020 1",
    "cuStreamGetCaptureInfo 10010 1",
    "cuStreamGetId 12000 1",
    "cuStreamWaitEvent 3020 1",
    "cuStreamSynchronize 2000 1",
    "cuEventCreate 2000 1",
    "cuEventDestroy 4000 1",
    "cuEventRecord 2000 1",
    "cuEventQuery 2000 1",
    "cuEventSynchronize 2000 1",
    "cuThreadExchangeStreamCaptureMode 10010 1",
    "cuPointerGetAttributes 7000 1",
    "cuMemGetAddressRange 3020 1",
    "cuDeviceGetAttribute 2000 1",
    "cuMemAlloc 3020 1",
    "cuMemFree 3020 1",
    "cuMemAllocAsync 11020 1",
    "cuMemFreeAsync 11020 1",
    "cuMemHostAlloc 2020 1",
    "cuMemFreeHost 2000 1",
    "cuMemHostRegister 6050 1",
    "cuMemHostUnregister 4000 1",
    "cuMemAllocManaged 6000 1",
    "cuMemGetInfo 3020 1",
    "cuIpcGetMemHandle 4010 1",
    "cuIpcOpenMemHandle 11000 1",
    "cuIpcCloseMemHandle 4010 1",
    "cuDeviceGetUuid 11040 1",
    "cuMemcpyAsync 4000 1",
    "cuMemcpy3DAsync 3020 1",
    "cuMemsetD8Async 3020 1",
    "cuMemsetD2D8Async 3020 1",
    "cuMemcpyPeerAsync 4000 1",
    "cuMemcpy3DPeerAsync 4000 1",
    "cuCtxGetId 12000 1",
    "cuCtxRecordEvent 12050 1",
    "cuStreamGetFlags 5000 1",
    "cuMemPoolCreate 11020 1",
    "cuMemPoolSetAttribute 11020 1",
    "cuMemPoolDestroy 11020 1",
    "cuMemAllocFromPoolAsync 11020 1",
    "cuStreamGetCaptureInfo 11030 1",
    "cuUserObjectCreate 11030 1",
    "cuGraphRetainUserObject 11030 1",
};
enum { LOOKUPS = sizeof lookups / sizeof lookups[0] };

/* How the table came about. Linked: cuGetProcAddress by the runtime's own function, in its version's signature;
 * then everything from there, and nothing else. Loaded: by name, which nobody notes. */
static void check_lookups(int32_t runtime)
{
    const char *const proc = runtime >= 12000 ? "cuGetProcAddress.12000 " : "cuGetProcAddress.11030 ";
    const char *const entry = runtime >= 12050   ? "cudaGetDriverEntryPointByVersion"
                              : runtime >= 11030 ? "cudaGetDriverEntryPoint"
                                                 : "";
    const char *line = fake->log();
    int32_t lines = 0;
    size_t i;
    if (*entry) {
        CHECK(!strncmp(line, entry, strlen(entry)));
        CHECK(strstr(line, " cuGetProcAddress ") != NULL);
        CHECK_INT(count_calls("cuGetProcAddress"), LOOKUPS);
        for (i = 0; i < LOOKUPS; i++) {
            cai_test_note(lookups[i]);
            CHECK(strstr(line, texts(proc, lookups[i])) != NULL);
        }
        cai_test_note("");
    }
    CHECK_INT(count_calls("cuDriverGetVersion"), 1);
    for (; *line; line++) lines += *line == '\n';
    CHECK_INT(lines, *entry ? 1 + LOOKUPS + 1 : 1); /* no context is made, nothing initialized */
    fake->clear();
}

/* --------------------------------------------------------------------- the slots */
static const cai_cuda *cuda;
static guarded first, second;

static uint64_t handle(const char *name)
{
    return fake->handle(name);
}

/* Nothing makes a primary context, and so nothing destroys one. */
static void check_primary_contexts(void)
{
    guard(&first);
    CHECK_INT(cuda->device_context(cuda->self, 1, &first.at.u), 0);
    CHECK_CALLS("cuDevicePrimaryCtxGetState.7000 1 *flags *active\ncuDevicePrimaryCtxRetain.7000 *context 1\n"
                "cuDevicePrimaryCtxRelease.11000 1");
    CHECK_UINT(first.at.u, handle("c2"));
    CHECK_GUARDS(first, 8);
    CHECK_INT(fake->retained(), 0); /* no reference stays */
    CHECK_INT(cuda->device_context(cuda->self, 7, &first.at.u), 101);
    CHECK_INT(fake->retained(), 0);
    fake->clear();
    fake->set_active(1, 0);
    guard(&first);
    CHECK_INT(cuda->device_context(cuda->self, 1, &first.at.u), 0);
    CHECK_CALLS("cuDevicePrimaryCtxGetState.7000 1 *flags *active");
    CHECK_UINT(first.at.u, 0);
    CHECK_GUARDS(first, 8);
    CHECK_INT(fake->primaries_made(), 0);
    CHECK_INT(cuda->context_push(cuda->self, handle("c2")), 201);
    fake->set_active(1, 1);
    fake->clear();
}

/* Who keeps a primary context has a reference to it. */
static void check_references(void)
{
    fake->set_active(1, 0);
    guard(&first);
    CHECK_INT(cuda->primary_retain(cuda->self, 1, &first.at.u), 0);
    CHECK_CALLS("cuDevicePrimaryCtxRetain.7000 *context 1");
    CHECK_UINT(first.at.u, handle("c2"));
    CHECK_GUARDS(first, 8);
    CHECK_INT(fake->retained(), 1);
    CHECK_INT(cuda->primary_retain(cuda->self, 7, &first.at.u), 101);
    CHECK_UINT(first.at.u, 0);
    fake->clear();
    CHECK_INT(cuda->primary_release(cuda->self, 1), 0);
    CHECK_CALLS("cuDevicePrimaryCtxRelease.11000 1");
    CHECK_INT(fake->retained(), 0);
    fake->set_active(1, 1);
    fake->clear();
}

static void check_contexts(void)
{
    guard(&first);
    CHECK_INT(cuda->context_current(cuda->self, &first.at.u), 0);
    CHECK_CALLS("cuCtxGetCurrent.4000 *context");
    CHECK_UINT(first.at.u, handle("c1"));
    CHECK_GUARDS(first, 8);
    fake->make_current("");
    CHECK_INT(cuda->context_current(cuda->self, &first.at.u), 0);
    CHECK_UINT(first.at.u, 0);
    CHECK_INT(cuda->context_device(cuda->self, &first.at.i), 201);
    CHECK_CALLS("cuCtxGetCurrent.4000\ncuCtxGetDevice.2000");
    fake->make_current("c1");

    CHECK_INT(cuda->context_push(cuda->self, handle("c2")), 0);
    CHECK_CALLS("cuCtxPushCurrent.4000 c2");
    CHECK_STR(fake->current(), "c2");
    guard(&first);
    CHECK_INT(cuda->context_device(cuda->self, &first.at.i), 0);
    CHECK_CALLS("cuCtxGetDevice.2000 *device");
    CHECK_INT(first.at.i, 1);
    CHECK_GUARDS(first, 4);
    CHECK_INT(cuda->context_synchronize(cuda->self), 0);
    CHECK_CALLS("cuCtxSynchronize.2000");
    CHECK_INT(cuda->context_pop(cuda->self), 0);
    CHECK_CALLS("cuCtxPopCurrent.4000");
    CHECK_STR(fake->current(), "c1");
    CHECK_INT(fake->depth(), 1);
    CHECK_INT(cuda->context_push(cuda->self, handle("s1")), 201);
    CHECK_CALLS("cuCtxPushCurrent.4000 s1 ! 201");

    check_primary_contexts();
    check_references();

    guard(&first);
    CHECK_INT(cuda->device_attribute(cuda->self, 1, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &first.at.i), 0);
    CHECK_CALLS("cuDeviceGetAttribute.2000 *value 88 1");
    CHECK_INT(first.at.i, 1);
    CHECK_GUARDS(first, 4);
    CHECK_INT(cuda->device_attribute(cuda->self, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &first.at.i), 0);
    CHECK_INT(first.at.i, 0);
    fake->clear();
}

static void check_capture_of(const char *stream, int32_t status, uint64_t id, const char *version)
{
    char call[100];
    snprintf(call, sizeof call, "cuStreamGetCaptureInfo.%s %s *status *id", version, stream);
    guard(&first);
    CHECK_INT(cuda->stream_capture(cuda->self, handle(stream), &first.at.capture), 0);
    CHECK_CALLS(call);
    CHECK_INT(first.at.capture.status, status);
    CHECK_INT(first.at.capture.reserved, 0);
    if (status == CAI_CAPTURE_ACTIVE) CHECK_UINT(first.at.capture.id, id);
    CHECK_GUARDS(first, sizeof(cai_cuda_capture));
}

static void count_gone(void *user)
{
    ++*(int32_t *)user;
}

/* The graph gets the only reference to a user object. */
static void check_user_objects(void)
{
    int32_t gone = 0;
    if (!cuda->capture_retain) return;
    CHECK_INT(cuda->capture_retain(cuda->self, handle("s4"), count_gone, &gone), 0);
    CHECK_CALLS("cuStreamGetCaptureInfo.11030 s4 *status - *graph - -\n"
                "cuUserObjectCreate.11030 *object 1 1\ncuGraphRetainUserObject.11030 g1 u1 1 1");
    CHECK_INT(gone, 1);
    CHECK_INT(cuda->capture_retain(cuda->self, handle("s1"), count_gone, &gone), 401);
    CHECK_CALLS("cuStreamGetCaptureInfo.11030 s1 *status - *graph - -");
    fake->fail("cuUserObjectCreate", 2);
    CHECK_INT(cuda->capture_retain(cuda->self, handle("s4"), count_gone, &gone), 2);
    fake->fail("", 0);
    CHECK_INT(count_calls("cuGraphRetainUserObject"), 0);
    fake->fail("cuGraphRetainUserObject", 1);
    CHECK_INT(cuda->capture_retain(cuda->self, handle("s4"), count_gone, &gone), 1);
    fake->fail("", 0);
    CHECK_INT(gone, 2);
    fake->clear();
}

static void check_streams(int has_id)
{
    guard(&first);
    CHECK_INT(cuda->stream_context(cuda->self, handle("s3"), &first.at.u), 0);
    CHECK_CALLS("cuStreamGetCtx.9020 s3 *context");
    CHECK_UINT(first.at.u, handle("c2"));
    CHECK_GUARDS(first, 8);
    CHECK_INT(cuda->stream_context(cuda->self, 2, &first.at.u), 0);
    CHECK_CALLS("cuStreamGetCtx.9020 per_thread *context");
    CHECK_UINT(first.at.u, handle("c1"));
    CHECK_INT(cuda->stream_context(cuda->self, handle("c1"), &first.at.u), 400);
    fake->clear();

    check_capture_of("s1", CAI_CAPTURE_NONE, 0, "10010");
    check_capture_of("legacy", CAI_CAPTURE_NONE, 0, "10010");
    check_capture_of("s4", CAI_CAPTURE_ACTIVE, FAKE_CAPTURE_ID, "10010");
    check_capture_of("s5", CAI_CAPTURE_INVALIDATED, 0, "10010");
    CHECK_INT(cuda->stream_capture(cuda->self, 0x1234, &first.at.capture), 400);
    fake->clear();

    CHECK_INT(cuda->stream_id != NULL, has_id);
    if (cuda->stream_id) {
        guard(&first);
        CHECK_INT(cuda->stream_id(cuda->self, handle("s2"), &first.at.u), 0);
        CHECK_CALLS("cuStreamGetId.12000 s2 *id");
        CHECK_UINT(first.at.u, FAKE_STREAM_ID + 4);
        CHECK_GUARDS(first, 8);
        CHECK_INT(cuda->stream_id(cuda->self, handle("s4"), &first.at.u), 900);
        CHECK_CALLS("cuStreamGetId.12000 s4 *id ! 900");
    }

    CHECK_INT(cuda->stream_synchronize(cuda->self, handle("s2")), 0);
    CHECK_CALLS("cuStreamSynchronize.2000 s2");
    CHECK_INT(cuda->stream_synchronize(cuda->self, 1), 0);
    CHECK_CALLS("cuStreamSynchronize.2000 legacy");
    CHECK_INT(cuda->stream_synchronize(cuda->self, handle("s4")), 900);
    fake->clear();

    guard(&first);
    first.at.i = 2;
    CHECK_INT(cuda->capture_mode(cuda->self, &first.at.i), 0);
    CHECK_INT(first.at.i, 0);
    first.at.i = 1;
    CHECK_INT(cuda->capture_mode(cuda->self, &first.at.i), 0);
    CHECK_INT(first.at.i, 2);
    first.at.i = 0;
    CHECK_INT(cuda->capture_mode(cuda->self, &first.at.i), 0);
    CHECK_INT(first.at.i, 1);
    CHECK_GUARDS(first, 4);
    CHECK_CALLS("cuThreadExchangeStreamCaptureMode.10010 2\ncuThreadExchangeStreamCaptureMode.10010 1\n"
                "cuThreadExchangeStreamCaptureMode.10010 0");
}

static void check_events(void)
{
    uint64_t event;
    guard(&first);
    CHECK_INT(cuda->event_create(cuda->self, &first.at.u), 0);
    CHECK_CALLS("cuEventCreate.2000 *event 2"); /* without timing */
    event = first.at.u;
    CHECK_UINT(event, handle("e1"));
    CHECK_GUARDS(first, 8);
    CHECK_INT(fake->events(), 1);

    CHECK_INT(cuda->event_record(cuda->self, event, handle("s1")), 0);
    CHECK_CALLS("cuEventRecord.2000 e1 s1");
    CHECK_INT(cuda->event_record(cuda->self, event, handle("s3")), 400);
    CHECK_CALLS("cuEventRecord.2000 e1 s3 ! 400");
    CHECK_INT(cuda->event_record(cuda->self, event, 1), 0);
    CHECK_CALLS("cuEventRecord.2000 e1 legacy");
    CHECK_INT(cuda->stream_wait_event(cuda->self, handle("s2"), event), 0);
    CHECK_CALLS("cuStreamWaitEvent.3020 s2 e1 0");
    CHECK_INT(cuda->stream_wait_event(cuda->self, 2, event), 0);
    CHECK_CALLS("cuStreamWaitEvent.3020 per_thread e1 0");
    CHECK_INT(cuda->event_query(cuda->self, event), 0);
    fake->set_pending(1);
    CHECK_INT(cuda->event_query(cuda->self, event), 600);
    fake->set_pending(0);
    CHECK_CALLS("cuEventQuery.2000 e1\ncuEventQuery.2000 e1 ! 600");
    CHECK_INT(cuda->event_synchronize(cuda->self, event), 0);
    CHECK_CALLS("cuEventSynchronize.2000 e1");
    CHECK_INT(cuda->event_destroy(cuda->self, event), 0);
    CHECK_CALLS("cuEventDestroy.4000 e1");
    CHECK_INT(fake->events(), 0);
    CHECK_INT(cuda->event_query(cuda->self, event), 400);
    CHECK_CALLS("cuEventQuery.2000 e1 ! 400");
    CHECK_INT(fake->damaged(), 0);
}

static void check_pointer(uint64_t pointer, int32_t memory, int32_t device, const char *context,
                          uint64_t device_pointer, uint32_t flags)
{
    guard(&first);
    CHECK_INT(cuda->pointer_info(cuda->self, pointer, &first.at.pointer), 0);
    CHECK_INT(first.at.pointer.memory, memory);
    CHECK_INT(first.at.pointer.device, device);
    CHECK_UINT(first.at.pointer.context, context[0] ? handle(context) : 0);
    CHECK_UINT(first.at.pointer.device_pointer, device_pointer);
    CHECK_UINT(first.at.pointer.flags, flags);
    CHECK_UINT(first.at.pointer.reserved, 0);
    CHECK_GUARDS(first, sizeof(cai_cuda_pointer));
    CHECK(count_calls("cuPointerGetAttributes.7000") >= 1);
    fake->clear();
}

/* Without a context only the address of host memory for devices is not known; where the driver answers
 * nothing at all, that is no answer. */
static void check_pointers_without_context(uint32_t pool)
{
    fake->make_current("");
    check_pointer(FAKE_M1, CAI_MEMORY_DEVICE, 0, "c1", FAKE_M1, 0);
    check_pointer(FAKE_M2, CAI_MEMORY_DEVICE, 1, "c2", FAKE_M2, 0);
    check_pointer(FAKE_M3, CAI_MEMORY_PINNED, 0, "c1", 0, CAI_POINTER_NO_CONTEXT);
    check_pointer(FAKE_M4, CAI_MEMORY_MANAGED, 0, "c1", FAKE_M4, 0);
    check_pointer(FAKE_M5, CAI_MEMORY_DEVICE, 1, "", FAKE_M5, pool);
    check_pointer(0x1000, CAI_MEMORY_HOST, CAI_DEVICE_UNKNOWN, "", 0, CAI_POINTER_NO_CONTEXT);
    fake->set_mirror(1);
    check_pointer(FAKE_M1, CAI_MEMORY_HOST, CAI_DEVICE_UNKNOWN, "", 0, CAI_POINTER_NO_CONTEXT);
    check_pointer(FAKE_M3, CAI_MEMORY_HOST, CAI_DEVICE_UNKNOWN, "", 0, CAI_POINTER_NO_CONTEXT);
    fake->set_mirror(0);
    fake->make_current("c2");
    check_pointer(FAKE_M8, CAI_MEMORY_PINNED, 1, "c2", FAKE_M8, 0);
    fake->make_current("c1");
}

/* Of device memory one call; what is asked depends on no context. */
static void check_pointer_calls(int32_t driver)
{
    CHECK_INT(cuda->pointer_info(cuda->self, FAKE_M2, &first.at.pointer), 0);
    CHECK_CALLS(driver >= 11030 ? "cuPointerGetAttributes.7000 5 2,9,1,8,17 0x7a2000000000"
                                : "cuPointerGetAttributes.7000 5 2,9,1,8,17 0x7a2000000000 ! 1\n"
                                  "cuPointerGetAttributes.7000 4 2,9,1,8 0x7a2000000000");
    fake->fail("cuCtxGetCurrent", 719); /* told, where it is needed */
    CHECK_INT(cuda->pointer_info(cuda->self, FAKE_M1, &first.at.pointer), 0);
    CHECK_INT(cuda->pointer_info(cuda->self, FAKE_M7, &first.at.pointer), 719);
    CHECK_INT(cuda->pointer_info(cuda->self, 0x1000, &first.at.pointer), 719);
    fake->fail("", 0);
    fake->clear();
}

static void check_memory(int32_t driver)
{
    const uint32_t pool = driver >= 11030 ? CAI_POINTER_POOL : 0; /* no driver before could say so */
    int32_t narrow;
    for (narrow = 0; narrow < 2; narrow++) {
        fake->narrow(narrow);
        check_pointer(FAKE_M1, CAI_MEMORY_DEVICE, 0, "c1", FAKE_M1, 0);
        check_pointer(FAKE_M1 + FAKE_M1_SIZE - 1, CAI_MEMORY_DEVICE, 0, "c1", FAKE_M1 + FAKE_M1_SIZE - 1, 0);
        check_pointer(FAKE_M2 + 256, CAI_MEMORY_DEVICE, 1, "c2", FAKE_M2 + 256, 0);
        check_pointer(FAKE_M3 + 16, CAI_MEMORY_PINNED, 0, "c1", FAKE_M3_ON_DEVICE + 16, 0);
        check_pointer(FAKE_M4, CAI_MEMORY_MANAGED, 0, "c1", FAKE_M4, 0);
        check_pointer(FAKE_M5, CAI_MEMORY_DEVICE, 1, "", FAKE_M5, pool);
        check_pointer(FAKE_M6, CAI_MEMORY_DEVICE, 0, "c1", FAKE_M6, CAI_POINTER_ARRAY);
        check_pointer(FAKE_M7, CAI_MEMORY_PINNED, 0, "c1", 0, 0); /* its own context says no */
        check_pointer(FAKE_M8, CAI_MEMORY_PINNED, 1, "c2", 0, CAI_POINTER_NO_CONTEXT);
        check_pointer(0x1000, CAI_MEMORY_HOST, CAI_DEVICE_UNKNOWN, "", 0, 0);
    }
    fake->narrow(0);
    check_pointers_without_context(pool);
    check_pointer_calls(driver);

    guard(&first);
    guard(&second);
    CHECK_INT(cuda->pointer_range(cuda->self, FAKE_M1 + 4097, &first.at.u, &second.at.u), 0);
    CHECK_CALLS("cuMemGetAddressRange.3020 *base *size 0x7a1000001001");
    CHECK_UINT(first.at.u, FAKE_M1);
    CHECK_UINT(second.at.u, FAKE_M1_SIZE);
    CHECK_GUARDS(first, 8);
    CHECK_GUARDS(second, 8);
    CHECK_INT(cuda->pointer_range(cuda->self, 0x1000, &first.at.u, &second.at.u), 500);
    fake->clear();
}

#define SIZE 0x0000000123456700ULL /* does not survive 32 bits */

static void check_allocation(void)
{
    guard(&first);
    CHECK_INT(cuda->memory_alloc(cuda->self, &first.at.u, SIZE), 0);
    CHECK_CALLS("cuMemAlloc.3020 *pointer 4886718208");
    CHECK_UINT(first.at.u, FAKE_MADE);
    CHECK_GUARDS(first, 8);
    CHECK_INT(cuda->memory_free(cuda->self, FAKE_MADE), 0);
    CHECK_CALLS("cuMemFree.3020 0x7a7000000000");
    guard(&first);
    CHECK_INT(cuda->memory_alloc_async(cuda->self, &first.at.u, SIZE, handle("s3")), 0);
    CHECK_CALLS("cuMemAllocAsync.11020 *pointer 4886718208 s3");
    CHECK_UINT(first.at.u, FAKE_MADE);
    CHECK_GUARDS(first, 8);
    CHECK_INT(cuda->memory_alloc_async(cuda->self, &first.at.u, 1, 2), 0);
    CHECK_CALLS("cuMemAllocAsync.11020 *pointer 1 per_thread");
    CHECK_INT(cuda->memory_free_async(cuda->self, FAKE_MADE, handle("s1")), 0);
    CHECK_INT(cuda->memory_free_async(cuda->self, FAKE_MADE, 1), 0);
    CHECK_CALLS("cuMemFreeAsync.11020 s1 0x7a7000000000\ncuMemFreeAsync.11020 legacy 0x7a7000000000");
    guard(&first);
    CHECK_INT(cuda->managed_alloc(cuda->self, &first.at.u, SIZE, 2), 0);
    CHECK_CALLS("cuMemAllocManaged.6000 *pointer 4886718208 2");
    CHECK_UINT(first.at.u, FAKE_MADE);
    CHECK_GUARDS(first, 8);
    guard(&first);
    guard(&second);
    CHECK_INT(cuda->memory_info(cuda->self, &first.at.u, &second.at.u), 0);
    CHECK_CALLS("cuMemGetInfo.3020 *free *total");
    CHECK_UINT(first.at.u, FAKE_FREE);
    CHECK_UINT(second.at.u, FAKE_TOTAL);
    CHECK_GUARDS(first, 8);
    CHECK_GUARDS(second, 8);
}

/* A pool has the kinds of reuse that are asked for, and keeps its memory. */
static void check_pools(void)
{
    uint64_t made;
    guard(&first);
    CHECK_INT(cuda->pool_create(cuda->self, 1, 6, &first.at.u), 0);
    CHECK_CALLS("cuMemPoolCreate.11020 *pool 1 0 1 1\ncuMemPoolSetAttribute.11020 p1 1 0\n"
                "cuMemPoolSetAttribute.11020 p1 2 1\ncuMemPoolSetAttribute.11020 p1 3 1\n"
                "cuMemPoolSetAttribute.11020 p1 4 18446744073709551615");
    CHECK_GUARDS(first, 8);
    made = first.at.u;
    guard(&first);
    CHECK_INT(cuda->memory_alloc_from_pool(cuda->self, &first.at.u, SIZE, made, handle("s3")), 0);
    CHECK_CALLS("cuMemAllocFromPoolAsync.11020 *pointer 4886718208 p1 s3");
    CHECK_UINT(first.at.u, FAKE_MADE);
    CHECK_GUARDS(first, 8);
    CHECK_INT(cuda->memory_alloc_from_pool(cuda->self, &first.at.u, 1, made, 2), 0);
    CHECK_CALLS("cuMemAllocFromPoolAsync.11020 *pointer 1 p1 per_thread");
    CHECK_INT(cuda->pool_destroy(cuda->self, made), 0);
    CHECK_CALLS("cuMemPoolDestroy.11020 p1");
    CHECK_INT(cuda->pool_create(cuda->self, 2, 1, &first.at.u), 101);
    CHECK_UINT(first.at.u, 0);
    CHECK_INT(cuda->pool_create(cuda->self, 0, 8, &first.at.u), 1);
    fake->clear();
    fake->fail("cuMemPoolSetAttribute", 801);
    CHECK_INT(cuda->pool_create(cuda->self, 0, 7, &first.at.u), 801);
    fake->fail("", 0);
    CHECK_UINT(first.at.u, 0);
    CHECK_INT(count_calls("cuMemPoolDestroy"), 1); /* none is left */
    fake->clear();
}

static void check_host_memory(void)
{
    guard(&first);
    CHECK_INT(cuda->host_alloc(cuda->self, &first.at.u, SIZE, 5), 0);
    CHECK_CALLS("cuMemHostAlloc.2020 *pointer 4886718208 5");
    CHECK_UINT(first.at.u, FAKE_MADE);
    CHECK_GUARDS(first, 8);
    CHECK_INT(cuda->host_free(cuda->self, FAKE_MADE), 0);
    CHECK_CALLS("cuMemFreeHost.2000 0x7a7000000000");
    CHECK_INT(cuda->host_register(cuda->self, FAKE_MADE, SIZE, 3), 0);
    CHECK_CALLS("cuMemHostRegister.6050 4886718208 3 0x7a7000000000");
    CHECK_INT(cuda->host_unregister(cuda->self, FAKE_MADE), 0);
    CHECK_CALLS("cuMemHostUnregister.4000 0x7a7000000000");
}

/* Each number is another one, and none fits into 32 bits. */
static const cai_cuda_copy rows = {FAKE_M1,  FAKE_M3,  SIZE + 1, SIZE + 2, SIZE + 3,
                                   SIZE + 4, SIZE + 5, SIZE + 6, SIZE + 7};

static void check_copies(void)
{
    CHECK_INT(cuda->copy_async(cuda->self, FAKE_M1, FAKE_M3, SIZE, handle("s3")), 0);
    CHECK_CALLS("cuMemcpyAsync.4000 0x7a1000000000 0x7a3000000000 4886718208 s3");
    CHECK_INT(cuda->copy_3d_async(cuda->self, &rows, handle("s1")), 0);
    CHECK_CALLS("cuMemcpy3DAsync.3020 4 4 0x7a1000000000 0x7a3000000000 4886718209 4886718210 4886718211 "
                "4886718212 4886718213 4886718214 4886718215 s1"); /* and nothing more */
    CHECK_INT(cuda->set_async(cuda->self, FAKE_M1, 0x1fe, SIZE, 1), 0);
    CHECK_CALLS("cuMemsetD8Async.3020 0x7a1000000000 254 4886718208 legacy");
    CHECK_INT(cuda->set_2d_async(cuda->self, FAKE_M1, SIZE + 2, 7, SIZE, SIZE + 1, 2), 0);
    CHECK_CALLS("cuMemsetD2D8Async.3020 0x7a1000000000 4886718210 7 4886718208 4886718209 per_thread");
}

static void check_peer_copies(void)
{
    CHECK_INT(cuda->copy_peer_async(cuda->self, FAKE_M1, handle("c1"), FAKE_M3, handle("c2"), SIZE,
                                    handle("s3")), 0);
    CHECK_CALLS("cuMemcpyPeerAsync.4000 0x7a1000000000 c1 0x7a3000000000 c2 4886718208 s3");
    CHECK_INT(cuda->copy_3d_peer_async(cuda->self, &rows, handle("c1"), handle("c2"), handle("s1")), 0);
    CHECK_CALLS("cuMemcpy3DPeerAsync.4000 2 2 0x7a1000000000 c1 0x7a3000000000 c2 4886718209 4886718210 "
                "4886718211 4886718212 4886718213 4886718214 4886718215 s1"); /* and nothing more */
}

static void check_other_processes(void)
{
    unsigned char name[64];
    int32_t i;
    guard(&first);
    CHECK_INT(cuda->ipc_export(cuda->self, FAKE_MADE, first.at.bytes), 0);
    CHECK_CALLS("cuIpcGetMemHandle.4010 *handle 0x7a7000000000");
    memcpy(name, first.at.bytes, sizeof name);
    for (i = 0; i < 64; i++) CHECK_INT(name[i], FAKE_HANDLE_BYTE(i));
    CHECK_GUARDS(first, 64);
    guard(&first);
    CHECK_INT(cuda->ipc_open(cuda->self, name, &first.at.u), 0); /* with access to peers */
    CHECK_CALLS("cuIpcOpenMemHandle.11000 *pointer 1");
    CHECK_UINT(first.at.u, FAKE_MADE);
    CHECK_GUARDS(first, 8);
    name[63] ^= 1;
    CHECK_INT(cuda->ipc_open(cuda->self, name, &first.at.u), 1);
    fake->clear();
    CHECK_INT(cuda->ipc_close(cuda->self, FAKE_MADE), 0);
    CHECK_CALLS("cuIpcCloseMemHandle.4010 0x7a7000000000");
    if (!cuda->device_uuid) return;
    guard(&first);
    CHECK_INT(cuda->device_uuid(cuda->self, 1, first.at.bytes), 0);
    CHECK_CALLS("cuDeviceGetUuid.11040 *uuid 1");
    for (i = 0; i < 16; i++) CHECK_INT(first.at.bytes[i], FAKE_UUID_BYTE(1, i));
    CHECK_GUARDS(first, 16);
}

/* The first call of a process may find the driver not initialized (G17). */
static void check_first_call(void)
{
    fake->set_initialized(0);
    CHECK_INT(cuda->context_current(cuda->self, &first.at.u), 0);
    CHECK_CALLS("cuCtxGetCurrent.4000 *context ! 3\ncuInit.2000 0\ncuCtxGetCurrent.4000 *context");
    CHECK_UINT(first.at.u, handle("c1"));
    fake->set_initialized(0);
    CHECK_INT(cuda->pointer_info(cuda->self, FAKE_M1, &first.at.pointer), 0);
    CHECK_INT(count_calls("cuInit.2000"), 1);
    CHECK_INT(first.at.pointer.memory, CAI_MEMORY_DEVICE);
    fake->set_initialized(0);
    fake->clear();
    CHECK_INT(cuda->device_context(cuda->self, 1, &first.at.u), 0);
    CHECK_INT(count_calls("cuInit.2000"), 1);
    CHECK_UINT(first.at.u, handle("c2"));
    CHECK_INT(fake->retained(), 0);
    CHECK_INT(fake->primaries_made(), 0);
    fake->set_initialized(0);
    CHECK_INT(cuda->primary_retain(cuda->self, 1, &first.at.u), 0);
    CHECK_UINT(first.at.u, handle("c2"));
    CHECK_INT(cuda->primary_release(cuda->self, 1), 0);
    fake->set_initialized(0);
    if (cuda->device_uuid) CHECK_INT(cuda->device_uuid(cuda->self, 0, first.at.bytes), 0);
    fake->set_initialized(0);
    fake->fail("cuInit", 100);
    if (cuda->device_uuid) CHECK_INT(cuda->device_uuid(cuda->self, 0, first.at.bytes), 100);
    CHECK_INT(cuda->context_current(cuda->self, &first.at.u), 100);
    CHECK_INT(cuda->pointer_info(cuda->self, FAKE_M1, &first.at.pointer), 100);
    CHECK_INT(cuda->device_context(cuda->self, 0, &first.at.u), 100);
    fake->fail("", 0);
    CHECK_INT(cuda->context_current(cuda->self, &first.at.u), 0);
    fake->clear();
}

static void check_errors_of_memory(int32_t error)
{
    CHECK_INT(cuda->memory_alloc(cuda->self, &first.at.u, SIZE), error);
    CHECK_INT(cuda->memory_free(cuda->self, FAKE_MADE), error);
    CHECK_INT(cuda->memory_alloc_async(cuda->self, &first.at.u, SIZE, handle("s1")), error);
    CHECK_INT(cuda->memory_free_async(cuda->self, FAKE_MADE, handle("s1")), error);
    CHECK_INT(cuda->host_alloc(cuda->self, &first.at.u, SIZE, 0), error);
    CHECK_INT(cuda->host_free(cuda->self, FAKE_MADE), error);
    CHECK_INT(cuda->host_register(cuda->self, FAKE_MADE, SIZE, 0), error);
    CHECK_INT(cuda->host_unregister(cuda->self, FAKE_MADE), error);
    CHECK_INT(cuda->managed_alloc(cuda->self, &first.at.u, SIZE, 1), error);
    CHECK_INT(cuda->memory_info(cuda->self, &first.at.u, &second.at.u), error);
    CHECK_INT(cuda->ipc_export(cuda->self, FAKE_MADE, first.at.bytes), error);
    CHECK_INT(cuda->ipc_open(cuda->self, second.at.bytes, &first.at.u), error);
    CHECK_INT(cuda->ipc_close(cuda->self, FAKE_MADE), error);
    if (cuda->device_uuid) CHECK_INT(cuda->device_uuid(cuda->self, 0, first.at.bytes), error);
    CHECK_INT(cuda->copy_async(cuda->self, FAKE_M1, FAKE_M3, SIZE, 1), error);
    CHECK_INT(cuda->copy_3d_async(cuda->self, &rows, 1), error);
    CHECK_INT(cuda->set_async(cuda->self, FAKE_M1, 0, SIZE, 1), error);
    CHECK_INT(cuda->set_2d_async(cuda->self, FAKE_M1, SIZE, 0, 1, 2, 1), error);
    CHECK_INT(cuda->copy_peer_async(cuda->self, FAKE_M1, 1, FAKE_M3, 2, SIZE, 1), error);
    CHECK_INT(cuda->copy_3d_peer_async(cuda->self, &rows, 1, 2, 1), error);
}

/* Every error of the driver comes back as it is, and is made by one call. */
static void check_errors(void)
{
    int32_t i;
    int32_t mode = 2;
    for (i = 0; i < 2; i++) {
        const int32_t error = i ? 4 : 719;
        fake->fail("*", error);
        CHECK_INT(cuda->context_current(cuda->self, &first.at.u), error);
        CHECK_INT(cuda->context_push(cuda->self, handle("c2")), error);
        CHECK_INT(cuda->context_pop(cuda->self), error);
        CHECK_INT(cuda->context_synchronize(cuda->self), error);
        CHECK_INT(cuda->context_device(cuda->self, &first.at.i), error);
        CHECK_INT(cuda->device_context(cuda->self, 0, &first.at.u), error);
        CHECK_INT(cuda->primary_retain(cuda->self, 0, &first.at.u), error);
        CHECK_INT(cuda->primary_release(cuda->self, 0), error);
        CHECK_INT(cuda->stream_context(cuda->self, handle("s1"), &first.at.u), error);
        CHECK_INT(cuda->stream_capture(cuda->self, handle("s1"), &first.at.capture), error);
        if (cuda->stream_id) CHECK_INT(cuda->stream_id(cuda->self, handle("s1"), &first.at.u), error);
        CHECK_INT(cuda->stream_wait_event(cuda->self, handle("s1"), handle("e1")), error);
        CHECK_INT(cuda->stream_synchronize(cuda->self, handle("s1")), error);
        CHECK_INT(cuda->event_create(cuda->self, &first.at.u), error);
        CHECK_INT(cuda->event_destroy(cuda->self, handle("e1")), error);
        CHECK_INT(cuda->event_record(cuda->self, handle("e1"), handle("s1")), error);
        CHECK_INT(cuda->event_query(cuda->self, handle("e1")), error);
        CHECK_INT(cuda->event_synchronize(cuda->self, handle("e1")), error);
        CHECK_INT(cuda->capture_mode(cuda->self, &mode), error);
        CHECK_INT(cuda->pointer_info(cuda->self, FAKE_M1, &first.at.pointer), error);
        CHECK_INT(cuda->pointer_range(cuda->self, FAKE_M1, &first.at.u, &second.at.u), error);
        CHECK_INT(cuda->device_attribute(cuda->self, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &first.at.i), error);
        check_errors_of_memory(error);
        CHECK_INT(count_calls("cuInit"), 0);
        fake->fail("", 0);
        fake->clear();
    }
    CHECK_INT(fake->depth(), 1);
    CHECK_INT(fake->retained(), 0);
}

/* Threads that the system takes for one another: each ended before the next began. */
enum { THREADS = 40 };

#if defined(_WIN32)
static DWORD WINAPI in_thread(void *numbers)
{
    uint64_t *number = (uint64_t *)numbers;
    number[0] = GetCurrentThreadId();
    return (DWORD)cuda->host_thread(cuda->self, &number[1]);
}

static void run_thread(uint64_t *numbers)
{
    const HANDLE thread = CreateThread(NULL, 0, in_thread, numbers, 0, NULL);
    if (!CHECK(thread != NULL)) return;
    CHECK_INT((int)WaitForSingleObject(thread, INFINITE), 0);
    CHECK(CloseHandle(thread) != 0);
}
#else
static void *in_thread(void *numbers)
{
    uint64_t *number = (uint64_t *)numbers;
    number[0] = (uint64_t)(uintptr_t)pthread_self();
    return cuda->host_thread(cuda->self, &number[1]) ? numbers : NULL;
}

static void run_thread(uint64_t *numbers)
{
    pthread_t thread;
    void *failed = NULL;
    CHECK_INT(pthread_create(&thread, NULL, in_thread, numbers), 0);
    CHECK_INT(pthread_join(thread, &failed), 0);
    CHECK(failed == NULL);
}
#endif

static void check_threads(uint64_t here)
{
    uint64_t numbers[THREADS][2];
    int32_t i, k, taken_for_another = 0;
    for (i = 0; i < THREADS; i++) {
        run_thread(numbers[i]);
        CHECK(numbers[i][1] != 0 && numbers[i][1] != here);
        for (k = 0; k < i; k++) {
            taken_for_another += numbers[k][0] == numbers[i][0];
            CHECK(numbers[k][1] != numbers[i][1]);
        }
    }
#if defined(__linux__)
    CHECK(taken_for_another > 0); /* or nothing was tested */
#else
    (void)taken_for_another;
#endif
}

static void check_table(int32_t driver)
{
    uint64_t thread = 0, again = 0;
    CHECK_UINT(cuda->struct_size, sizeof(cai_cuda));
    CHECK_UINT(cuda->version, CAI_CUDA_VERSION);
    CHECK_UINT(cuda->flags, 0);
    CHECK_UINT(cuda->reserved, 0);
    CHECK(cuda->context_current && cuda->context_push && cuda->context_pop && cuda->context_synchronize);
    CHECK(cuda->context_device && cuda->device_context && cuda->stream_context && cuda->stream_capture);
    CHECK(cuda->stream_wait_event && cuda->stream_synchronize && cuda->event_create && cuda->event_destroy);
    CHECK(cuda->event_record && cuda->event_query && cuda->event_synchronize && cuda->capture_mode);
    CHECK(cuda->pointer_info && cuda->pointer_range && cuda->device_attribute && cuda->host_thread);
    CHECK(cuda->memory_alloc && cuda->memory_free && cuda->memory_alloc_async && cuda->memory_free_async);
    CHECK(cuda->host_alloc && cuda->host_free && cuda->host_register && cuda->host_unregister);
    CHECK(cuda->managed_alloc && cuda->memory_info && cuda->ipc_export && cuda->ipc_open && cuda->ipc_close);
    CHECK_INT(cuda->device_uuid != NULL, driver >= 11040);
    CHECK(cuda->copy_async && cuda->copy_3d_async && cuda->set_async && cuda->set_2d_async);
    CHECK(cuda->copy_peer_async && cuda->copy_3d_peer_async);
    CHECK(cuda->pool_create && cuda->pool_destroy && cuda->memory_alloc_from_pool);
    CHECK(cuda->primary_retain && cuda->primary_release);
    CHECK_INT(cuda->capture_retain != NULL, driver >= 11030);
    CHECK_INT(cuda->host_thread(cuda->self, &thread), 0);
    CHECK_INT(cuda->host_thread(cuda->self, &again), 0);
    CHECK(thread != 0 && thread == again);
    check_threads(thread);
    CHECK_CALLS("");
}

/* ------------------------------------------------------------------ an exchange */
static cai_event_pool pool;
static cai_keepalive places[4];
static cai_array arrays[4];
static cai_error err;
static int32_t released;

static void release(cai_array *array)
{
    array->release = NULL;
    released++;
}

static void describe(cai_array *array, uint64_t data, int32_t sync, uint64_t stream)
{
    const int64_t shape[2] = {4, 8};
    void *const address = (void *)(uintptr_t)data;
    CHECK_INT(cai_array_init(array, CAI_FLOAT32, 2, shape, NULL, address, &err), CAI_OK);
    array->sync = sync;
    array->stream = stream;
}

/* s1 consumes what s2, s3 (in another context) and the legacy stream of that other context produce. */
static void check_exchange(void)
{
    cai_array *const list[4] = {&arrays[0], &arrays[1], &arrays[2], &arrays[0]};
    cai_exchange ex;
    CHECK_INT(cai_event_pool_init(&pool, cuda, places, 4, 0, &err), CAI_OK);
    CHECK_CALLS("");
    describe(&arrays[0], FAKE_M1, CAI_SYNC_STREAM, handle("s2"));
    describe(&arrays[1], FAKE_M2, CAI_SYNC_STREAM, handle("s3"));
    describe(&arrays[2], FAKE_M5, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    fake->work("s2");
    fake->work("s3");
    fake->work("legacy");
    CHECK(!fake->ordered("s2", "s1") && !fake->ordered("s3", "s1") && !fake->ordered("legacy", "s1"));
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 4, handle("s1"), &err), CAI_OK);
    CHECK(fake->ordered("s2", "s1") && fake->ordered("s3", "s1") && fake->ordered("legacy", "s1"));
    CHECK_INT(count_calls("cuEventRecord.2000"), 3);
    CHECK_INT(count_calls("cuStreamWaitEvent.3020"), 3);
    CHECK_INT(count_calls("cuEventDestroy"), 0);
    CHECK_INT(count_calls("cuStreamGetCtx.9020"), 3);
    CHECK_INT(count_calls("cuStreamGetCaptureInfo.10010"), 4);
    CHECK(strstr(fake->log(), "cuCtxPushCurrent.4000 c2\n") != NULL);
    CHECK_INT(count_refused(), 0);
    CHECK_STR(fake->current(), "c1");
    CHECK_INT(fake->depth(), 1);
    fake->clear();

    fake->work("s1");
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK(fake->ordered("s1", "s2") && fake->ordered("s1", "s3") && fake->ordered("s1", "legacy"));
    CHECK_INT(count_calls("cuEventCreate"), 0); /* one of begin's is idle */
    CHECK_INT(count_calls("cuEventRecord.2000"), 1);
    CHECK_INT(count_calls("cuStreamWaitEvent.3020"), 3);
    CHECK_INT(count_refused(), 0);
    CHECK_STR(fake->current(), "c1");
    CHECK_INT(fake->depth(), 1);
    CHECK_INT(fake->retained(), 0);
    fake->clear();
}

/* The consumer's stream is in the context that is not current. */
static void check_other_context(void)
{
    cai_array *const list[1] = {&arrays[0]};
    cai_exchange ex;
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, handle("s3"), &err), CAI_OK);
    CHECK(fake->ordered("s2", "s3"));
    fake->work("s3");
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK(fake->ordered("s3", "s2"));
    CHECK_INT(count_calls("cuEventCreate"), 0); /* one for each context is idle */
    CHECK_INT(count_refused(), 0);
    CHECK_STR(fake->current(), "c1");
    CHECK_INT(fake->depth(), 1);
    fake->clear();
}

/* Keeping arrays until the stream has passed, on events that say 600 in between; then the end of the pool. */
static void check_keeping(void)
{
    int32_t waiting = 0;
    released = 0;
    describe(&arrays[3], FAKE_M1, CAI_SYNC_NONE, 0);
    cai_array_own(&arrays[3], release, NULL);
    CHECK_INT(cai_keepalive_push(&arrays[3], &pool, handle("s3"), &err), CAI_OK);
    fake->set_pending(1);
    CHECK_INT(cai_keepalive_poll(&pool, &waiting, &err), CAI_OK);
    CHECK_INT(waiting, 1);
    CHECK_INT(released, 0);
    fake->set_pending(0);
    CHECK_INT(cai_keepalive_poll(&pool, &waiting, &err), CAI_OK);
    CHECK_INT(waiting, 0);
    CHECK_INT(released, 1);
    CHECK_INT(count_calls("cuThreadExchangeStreamCaptureMode.10010"), 4);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    CHECK_INT(fake->events(), 0);
    CHECK_STR(fake->current(), "c1");
    CHECK_INT(fake->depth(), 1);
    CHECK_INT(fake->damaged(), 0);
    fake->clear();
}

/* A capture that both streams are in, one that only the producer is in, and one that is broken. */
static void check_captures(void)
{
    cai_array *const list[1] = {&arrays[0]};
    cai_exchange ex;
    CHECK_INT(cai_event_pool_init(&pool, cuda, NULL, 0, 0, &err), CAI_OK);
    describe(&arrays[0], FAKE_M1, CAI_SYNC_STREAM, handle("s4"));
    fake->work("s4");
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, handle("s6"), &err), CAI_OK);
    CHECK(fake->ordered("s4", "s6"));
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, handle("s1"), &err), CAI_ERR_CAPTURE);
    describe(&arrays[0], FAKE_M1, CAI_SYNC_STREAM, handle("s5"));
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, handle("s6"), &err), CAI_ERR_CAPTURE);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    CHECK_INT(fake->events(), 0);
    fake->clear();
}

static void located(uint64_t data, cai_status status, uint64_t address)
{
    cai_location where;
    describe(&arrays[0], data, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_locate(&arrays[0], "x", cuda, CAI_LOCATE_BOUNDS, &where, &err), status);
    if (status) return;
    CHECK_UINT(where.data, address);
    CHECK_INT(where.bounds, CAI_BOUNDS_INSIDE);
}

/* What the current context cannot tell, and what a thread without one cannot. */
static void check_locating_elsewhere(void)
{
    int32_t mirror;
    located(FAKE_M2, CAI_OK, FAKE_M2); /* of a device without access */
    located(FAKE_M8, CAI_OK, FAKE_M8);
    located(FAKE_M7, CAI_ERR_MEMORY, 0);
    CHECK(strstr(err.message, "it was registered without mapping") != NULL);
    fake->make_current("");
    for (mirror = 0; mirror < 2; mirror++) {
        fake->set_mirror(mirror);
        located(FAKE_M1, CAI_OK, FAKE_M1);
        located(FAKE_M2, CAI_OK, FAKE_M2);
        located(FAKE_M5, CAI_OK, FAKE_M5);
        located(FAKE_M8, CAI_OK, FAKE_M8);
        located(FAKE_M7, CAI_ERR_MEMORY, 0);
        CHECK(strstr(err.message, "it was registered without mapping") != NULL);
        located(0x4000, CAI_ERR_MEMORY, 0);
        CHECK(strstr(err.message, "plain host memory, or was freed") != NULL);
    }
    fake->set_active(0, 0);
    fake->set_active(1, 0);
    located(FAKE_M1, CAI_ERR_MEMORY, 0); /* the driver says nothing, and nobody else can be asked */
    CHECK(strstr(err.message, ", perhaps because no context is current on this thread") != NULL);
    fake->set_mirror(0);
    located(FAKE_M8, CAI_ERR_MEMORY, 0);
    CHECK(strstr(err.message, "address for devices is unknown: no context that knows it") != NULL);
    CHECK_INT(fake->primaries_made(), 0);
    CHECK_INT(fake->depth(), 0);
    fake->set_active(0, 1);
    fake->set_active(1, 1);
    fake->make_current("c1");
}

static void check_locating(int32_t driver)
{
    cai_location where;
    describe(&arrays[0], FAKE_M1 + 512, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_locate(&arrays[0], "x", cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_INT(where.memory, CAI_MEMORY_DEVICE);
    CHECK_INT(where.bounds, CAI_BOUNDS_INSIDE);
    CHECK_UINT(where.base, FAKE_M1);
    CHECK_UINT(where.nbytes, FAKE_M1_SIZE);
    CHECK_UINT(where.context, handle("c1"));
    describe(&arrays[0], FAKE_M3, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_locate(&arrays[0], "x", cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(arrays[0].memory, CAI_MEMORY_PINNED);
    CHECK_UINT(where.data, FAKE_M3_ON_DEVICE);
    describe(&arrays[0], FAKE_M5, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_locate(&arrays[0], "x", cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(arrays[0].device, 1);
    CHECK_INT(where.needs_peer, driver >= 11030);
    check_locating_elsewhere();
    describe(&arrays[0], FAKE_M6, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_locate(&arrays[0], "x", cuda, 0, &where, &err), CAI_ERR_MEMORY);
    describe(&arrays[0], 0x4000, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_locate(&arrays[0], "x", cuda, CAI_LOCATE_PAGEABLE, &where, &err), CAI_ERR_MEMORY);
    fake->make_current("c2");
    CHECK_INT(cai_locate(&arrays[0], "x", cuda, CAI_LOCATE_PAGEABLE, &where, &err), CAI_OK);
    fake->make_current("c1");
    CHECK_INT(arrays[0].memory, CAI_MEMORY_HOST);
    fake->clear();
}

/* --------------------------------------------------------------------- failures */
/* What may be missing, the slot that then is empty, and since when the fake driver has it. */
static const struct {
    const char *symbol;
    size_t slot;
    int32_t since; /* of CUDA; 11020 is the oldest that is tested */
} may_miss[] = {
    {"cuStreamGetId", offsetof(cai_cuda, stream_id), 12000},
    {"cuMemAlloc", offsetof(cai_cuda, memory_alloc), 11020},
    {"cuMemFree", offsetof(cai_cuda, memory_free), 11020},
    {"cuMemAllocAsync", offsetof(cai_cuda, memory_alloc_async), 11020},
    {"cuMemFreeAsync", offsetof(cai_cuda, memory_free_async), 11020},
    {"cuMemHostAlloc", offsetof(cai_cuda, host_alloc), 11020},
    {"cuMemFreeHost", offsetof(cai_cuda, host_free), 11020},
    {"cuMemHostRegister", offsetof(cai_cuda, host_register), 11020},
    {"cuMemHostUnregister", offsetof(cai_cuda, host_unregister), 11020},
    {"cuMemAllocManaged", offsetof(cai_cuda, managed_alloc), 11020},
    {"cuMemGetInfo", offsetof(cai_cuda, memory_info), 11020},
    {"cuIpcGetMemHandle", offsetof(cai_cuda, ipc_export), 11020},
    {"cuIpcOpenMemHandle", offsetof(cai_cuda, ipc_open), 11020},
    {"cuIpcCloseMemHandle", offsetof(cai_cuda, ipc_close), 11020},
    {"cuMemcpyAsync", offsetof(cai_cuda, copy_async), 11020},
    {"cuMemcpy3DAsync", offsetof(cai_cuda, copy_3d_async), 11020},
    {"cuMemsetD8Async", offsetof(cai_cuda, set_async), 11020},
    {"cuMemsetD2D8Async", offsetof(cai_cuda, set_2d_async), 11020},
    {"cuMemcpyPeerAsync", offsetof(cai_cuda, copy_peer_async), 11020},
    {"cuMemcpy3DPeerAsync", offsetof(cai_cuda, copy_3d_peer_async), 11020},
    {"cuDeviceGetUuid", offsetof(cai_cuda, device_uuid), 11040},
    {"cuCtxGetId", offsetof(cai_cuda, context_id), 99000}, /* the fake driver has none of these */
    {"cuCtxRecordEvent", offsetof(cai_cuda, context_record), 99000},
    {"cuStreamGetFlags", offsetof(cai_cuda, stream_flags), 99000},
    {"cuMemPoolCreate", offsetof(cai_cuda, pool_create), 11020},
    {"cuMemPoolSetAttribute", offsetof(cai_cuda, pool_create), 11020},
    {"cuMemPoolDestroy", offsetof(cai_cuda, pool_destroy), 11020},
    {"cuMemAllocFromPoolAsync", offsetof(cai_cuda, memory_alloc_from_pool), 11020},
    {"cuUserObjectCreate", offsetof(cai_cuda, capture_retain), 11030},
    {"cuGraphRetainUserObject", offsetof(cai_cuda, capture_retain), 11030},
};
enum { MAY_MISS = sizeof may_miss / sizeof may_miss[0] };

/* Which of them a symbol is; -1: none. */
static int32_t optional_of(const char *symbol)
{
    int32_t i;
    for (i = 0; i < MAY_MISS; i++)
        if (!strcmp(symbol, may_miss[i].symbol)) return i;
    return -1;
}

/* The slots that are empty are those that the driver is too old for, and this one. */
static void check_empty_slots(const cai_cuda *table, int32_t missing)
{
    void (*slot)(void);
    int32_t i;
    for (i = 0; i < MAY_MISS; i++) {
        memcpy(&slot, (const char *)table + may_miss[i].slot, sizeof slot);
        CHECK_INT(slot == NULL,
                  may_miss[i].slot == may_miss[missing].slot || fake->driver() < may_miss[i].since);
    }
}

/* The functions without which there is no table; the others may be missing. */
static void check_missing_functions(const char *library)
{
    cai_cuda_driver driver, before;
    size_t i;
    memset(&before, 0x5c, sizeof before);
    for (i = 0; i < LOOKUPS; i++) {
        char symbol[64];
        const size_t length = strcspn(lookups[i], " ");
        memcpy(symbol, lookups[i], length);
        symbol[length] = 0;
        cai_test_note(symbol);
        fake->hide(symbol);
        memcpy(&driver, &before, sizeof driver);
        if (optional_of(symbol) >= 0) {
            CHECK_INT(open_driver(&driver, library, &err), CAI_OK);
            check_empty_slots(&driver.cuda, optional_of(symbol));
            close_driver(&driver);
            continue;
        }
        CHECK_INT(open_driver(&driver, library, &err), CAI_ERR_UNAVAILABLE);
        CHECK(strstr(err.message, symbol) != NULL);
        CHECK_INT(open_driver(&driver, library, NULL), CAI_ERR_UNAVAILABLE);
#ifndef LOADER_LINKED
        CHECK_BYTES(&driver, &before, sizeof driver);
#endif
    }
    fake->hide("");
    cai_test_note("");
}

/* A runtime that knows no cuGetProcAddress, as on a driver before 11.3: an error in CUDA 11; no error and no
 * function from 12 on. */
static void check_no_lookup(const char *library, int32_t runtime)
{
    static cai_cuda_driver driver;
    fake->hide("cuGetProcAddress");
    CHECK_INT(open_driver(&driver, library, &err), CAI_ERR_UNAVAILABLE);
    if (runtime < 12000) CHECK_INT(err.native, 500);
    else CHECK(strstr(err.message, "11.3") != NULL);
    fake->hide("");
    fake->clear();
}

static void check_no_device(const char *library, int32_t runtime)
{
    cai_cuda_driver driver;
    int32_t native;
    fake->fail("cuInit", 100);
    native = runtime >= 11030 ? 100 : 0; /* by name nothing is initialized yet */
    CHECK_INT(open_driver(&driver, library, &err), native ? CAI_ERR_UNAVAILABLE : CAI_OK);
    CHECK_INT(native ? err.native : 0, native);
    if (!native) close_driver(&driver);
#ifdef LOADER_LINKED
    CHECK_INT(cudaPeekAtLastError(), 0); /* the last error of the runtime is the caller's */
#endif
    fake->fail("", 0);
    fake->clear();
}


static int slots(int32_t runtime, const char *library)
{
    static cai_cuda_driver driver;
    const int32_t newest = fake->driver();
    memset(&driver, 0x5c, sizeof driver);
    CHECK_INT(open_driver(&driver, library, &err), CAI_OK);
    if (cai_test_failures) {
        printf("%s\n", err.message);
        return cai_test_end();
    }
    cuda = &driver.cuda;
    CHECK(driver.cuda.self != NULL);
    CHECK_INT(driver.runtime_version, runtime);
    CHECK_INT(driver.driver_version, newest);
#ifdef LOADER_LINKED
    CHECK_INT(cudaPeekAtLastError(), 0);
#endif
    check_lookups(runtime);
    check_table(newest);
    check_first_call();
    check_contexts();
    check_streams(newest >= 12000);
    check_events();
    check_memory(newest);
    check_allocation();
    check_host_memory();
    check_user_objects();
    check_pools();
    check_copies();
    check_peer_copies();
    check_other_processes();
    check_errors();
    fake->reset();
    fake->set_initialized(1);
    check_exchange();
    check_other_context();
    check_keeping();
    check_captures();
    check_locating(newest);
    CHECK_INT(fake->damaged(), 0);
#ifndef LOADER_LINKED
#endif
    if (runtime >= 11030) {
        check_missing_functions(library);
        check_no_lookup(library, runtime);
    }
    check_no_device(library, runtime);
    CHECK_INT(open_driver(&driver, library, NULL), CAI_OK);
    close_driver(&driver);
    CHECK_INT(open_driver(NULL, library, &err), CAI_ERR_ARGUMENT);
    return cai_test_end();
}

/* ----------------------------------------------------------------------- modes */
#ifndef LOADER_LINKED
/* Nothing but the driver gets into the process, whatever runtimes are there or are held. A driver without a
 * device is found, and says so. */
static int alone(int held_count, char **held)
{
    static cai_cuda_driver driver;
    uint64_t context = 0;
    int32_t before = 0, after = 0, i;
    for (i = 0; i < held_count; i++) CHECK(library_open(held[i]) != NULL);
    for (i = 0; i < 3; i++) before += library_is_loaded(runtimes[i]);
    CHECK(!library_is_loaded(DRIVER));
    CHECK_INT(cai_cuda_load(&driver, NULL, &err), CAI_OK);
    if (cai_test_failures) {
        printf("%s\n", err.message);
        return cai_test_end();
    }
    CHECK_INT(driver.runtime_version, 0);
    CHECK(driver.driver_version >= 11020);
    for (i = 0; i < 3; i++) after += library_is_loaded(runtimes[i]);
    CHECK_INT(after, before);
    close_driver(&driver);
    CHECK(!library_is_loaded(DRIVER));
    find_fake(NULL);
    if (!CHECK(fake != NULL)) return cai_test_end();
    fake->fail("cuInit", 100);
    CHECK_INT(cai_cuda_load(&driver, NULL, &err), CAI_OK);
    CHECK_INT(driver.cuda.context_current(driver.cuda.self, &context), 100);
    close_driver(&driver);
    return cai_test_end();
}

/* Loading fails; `parts`, separated by commas, are in the message, and nothing stays in the process. */
static int refused(const char *parts, const char *library)
{
    cai_cuda_driver driver;
    int32_t i;
    CHECK_INT(open_driver(&driver, library, &err), CAI_ERR_UNAVAILABLE);
    CHECK_INT(err.code, CAI_ERR_UNAVAILABLE);
    while (*parts) {
        const size_t length = strcspn(parts, ",");
        char part[200];
        memcpy(part, parts, length);
        part[length] = 0;
        cai_test_note(err.message);
        CHECK(strstr(err.message, part) != NULL);
        parts += length + (parts[length] == ',');
    }
    cai_test_note("");
    for (i = 0; i < 3; i++) CHECK(!library_is_loaded(runtimes[i]));
    CHECK(!library_is_loaded(DRIVER));
    return cai_test_end();
}
#endif

/* What the library says of itself, asked past cai_stream.h. */
static void report_version(const char *library)
{
    int(FAKE_CALL * get_version)(int *) = NULL;
    int version = 0, error;
    void *const opened = library_open(library);
    if (opened) library_find(opened, "cudaRuntimeGetVersion", (void *)&get_version);
    if (!get_version) return;
    error = get_version(&version);
    printf("cudaRuntimeGetVersion: %d, error %d; ", version, error);
}

static int report(const char *library)
{
    static cai_cuda_driver driver;
    cai_status status;
    if (library) report_version(library);
    status = open_driver(&driver, library, &err);
    if (status) {
        printf("%s, native %d: %s\n", cai_status_name(status), (int)err.native, err.message);
        return status == CAI_ERR_UNAVAILABLE ? 0 : 1;
    }
    printf("runtime %d, driver %d\n", (int)driver.runtime_version, (int)driver.driver_version);
    close_driver(&driver);
    return 0;
}

int main(int argc, char **argv)
{
    const char *const mode = argc > 1 ? argv[1] : "";
    const char *const library = argc > 3 && argv[3][0] ? argv[3] : NULL;
    if (!strcmp(mode, "report")) return report(argc > 2 ? argv[2] : NULL);
#ifndef LOADER_LINKED
    if (!strcmp(mode, "alone")) return alone(argc - 2, argv + 2);
    if (!strcmp(mode, "refused") && argc > 2) return refused(argv[2], library);
#endif
    if (strcmp(mode, "slots") != 0 || argc < 3) return 2;
    find_fake(library);
    if (!fake) return 2;
    return slots((int32_t)atoi(argv[2]), library);
}
