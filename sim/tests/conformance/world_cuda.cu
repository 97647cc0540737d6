/* world_cuda.cu - the world of the rules on a GPU: the CUDA runtime, and the driver where it has no function.
 * SPDX-License-Identifier: MIT
 *
 * The table is that of cai_cuda_linked. Kernels spin on flags in mapped host memory, so nothing that could
 * wait for them happens by the way: kernels are loaded, and contexts made, before a rule lets one spin. A
 * watchdog lets all of them go when a rule takes too long, which then fails instead of hanging. */
#define CAI_IMPLEMENTATION
#include "cai_stream.h"

#include "world.h"

#include <cuda.h> /* types alone: the functions are looked up by name */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace {

enum { MOST_DEVICES = 2, PAGE = 4096, DEEPEST = 64 };
const std::chrono::seconds TIME_FOR_A_RULE(30), TIME_TO_END(60), TIME_FOR_A_MARK(10);
const std::chrono::milliseconds TIME_TO_WAIT(100);

/* In mapped host memory: what host and kernels tell one another. */
struct board {
    volatile uint32_t given_up; /* the watchdog: no kernel waits any longer */
    volatile uint32_t flags[WORLD_FLAGS];
    volatile uint32_t ran[WORLD_MARKS];
    volatile uint64_t seen[WORLD_MARKS]; /* bit m: mark m was set before */
};

__global__ void work(board *b, int flag, int mark, unsigned char *touched)
{
    uint64_t seen = 0;
    if (b == nullptr) return; /* only loaded */
    while (flag && !b->flags[flag] && !b->given_up) {}
    if (b->given_up) return;
    if (touched != nullptr) *touched = 1;
    for (int i = 0; i < WORLD_MARKS; i++)
        if (b->ran[i]) seen |= static_cast<uint64_t>(1) << i;
    b->seen[mark] = seen;
    __threadfence_system();
    b->ran[mark] = 1;
    __threadfence_system();
}

__global__ void end_badly()
{
    __trap();
}

struct memory {
    uint64_t address;
    int32_t kind;
    uint64_t bytes;
    CUmemGenericAllocationHandle handles[2]; /* WORLD_VIRTUAL: one; WORLD_SEGMENTS: two */
    CUcontext context;
};

struct object {
    uint64_t handle;
    CUcontext context;
};

struct capture {
    uint64_t stream;
    std::thread::id thread;
};

/* The driver's functions that the runtime has no counterpart of, by the names of their binary interface. */
struct driver_functions {
    CUresult (*context_create)(CUcontext *, unsigned int, CUdevice);
    CUresult (*context_destroy)(CUcontext);
    CUresult (*context_set)(CUcontext);
    CUresult (*context_get)(CUcontext *);
    CUresult (*context_pop)(CUcontext *);
    CUresult (*primary_retain)(CUcontext *, CUdevice);
    CUresult (*granularity)(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
    CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                       unsigned long long);
    CUresult (*release)(CUmemGenericAllocationHandle);
    CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUresult (*unreserve)(CUdeviceptr, size_t);
    CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
    CUresult (*unmap)(CUdeviceptr, size_t);
    CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
};

driver_functions cu;
cai_cuda_driver linked;
board *shared;
CUcontext primaries[MOST_DEVICES];
int32_t device_count, first_error;
bool can_make_contexts;
char about[WORLD_TEXT];

std::vector<object> streams;
std::vector<CUcontext> contexts;
std::vector<memory> memories;
std::vector<capture> captures_begun;
std::vector<cudaGraph_t> graphs;
std::vector<cudaGraphExec_t> executables;
std::vector<std::thread> setters;

std::mutex watch_lock;
std::condition_variable watch_changed;
bool watch_over, watch_fired;
std::thread watchdog;

template <typename Function> bool look_up(void *library, const char *name, Function *function)
{
    *function = reinterpret_cast<Function>(dlsym(library, name));
    return *function != nullptr;
}

bool look_up_all()
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    return library != nullptr && look_up(library, "cuCtxCreate_v2", &cu.context_create) &&
           look_up(library, "cuCtxDestroy_v2", &cu.context_destroy) &&
           look_up(library, "cuCtxSetCurrent", &cu.context_set) &&
           look_up(library, "cuCtxGetCurrent", &cu.context_get) &&
           look_up(library, "cuCtxPopCurrent_v2", &cu.context_pop) &&
           look_up(library, "cuDevicePrimaryCtxRetain", &cu.primary_retain) &&
           look_up(library, "cuMemGetAllocationGranularity", &cu.granularity) &&
           look_up(library, "cuMemCreate", &cu.create) && look_up(library, "cuMemRelease", &cu.release) &&
           look_up(library, "cuMemAddressReserve", &cu.reserve) &&
           look_up(library, "cuMemAddressFree", &cu.unreserve) &&
           look_up(library, "cuMemMap", &cu.map) && look_up(library, "cuMemUnmap", &cu.unmap) &&
           look_up(library, "cuMemSetAccess", &cu.set_access);
}

CUcontext as_context(uint64_t handle)
{
    return reinterpret_cast<CUcontext>(static_cast<uintptr_t>(handle));
}

uint64_t as_number(const void *pointer)
{
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
}

void *as_pointer(uint64_t address)
{
    return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

CUcontext current_context()
{
    CUcontext context = nullptr;
    (void)cu.context_get(&context);
    return context;
}

cudaError_t launch(board *b, cudaStream_t stream, int flag, int mark, void *touched)
{
    void *arguments[4] = {&b, &flag, &mark, &touched};
    return cudaLaunchKernel(reinterpret_cast<const void *>(&work), dim3(1), dim3(1), arguments, 0, stream);
}

/* Loads the kernel into the current context, and makes its default streams. */
bool warm_up()
{
    return launch(nullptr, cudaStreamLegacy, 0, 0, nullptr) == cudaSuccess &&
           launch(nullptr, cudaStreamPerThread, 0, 0, nullptr) == cudaSuccess &&
           cudaDeviceSynchronize() == cudaSuccess;
}

void watch(const char *rule)
{
    std::unique_lock<std::mutex> lock(watch_lock);
    const auto over = [] { return watch_over; };
    if (watch_changed.wait_for(lock, TIME_FOR_A_RULE, over)) return;
    watch_fired = true;
    shared->given_up = 1;
    if (watch_changed.wait_for(lock, TIME_TO_END, over)) return;
    (void)fprintf(stderr, "conformance: %s does not end\n", rule);
    _exit(1);
}

void end_captures_of_this_thread()
{
    const std::vector<capture> all = captures_begun;
    for (const capture &each : all)
        if (each.thread == std::this_thread::get_id()) (void)world_capture_end(each.stream);
}

void forget_capture(uint64_t stream)
{
    for (size_t i = 0; i < captures_begun.size(); i++) {
        if (captures_begun[i].stream != stream) continue;
        captures_begun.erase(captures_begun.begin() + static_cast<std::ptrdiff_t>(i));
        return;
    }
}

/* Leaves one context on the stack: the primary one of device 0. */
void reset_contexts()
{
    CUcontext popped;
    for (int i = 0; i < DEEPEST && current_context() != nullptr; i++) (void)cu.context_pop(&popped);
    (void)cudaSetDevice(0);
    if (current_context() != primaries[0]) (void)cu.context_set(primaries[0]);
}

void synchronize_everything()
{
    for (CUcontext context : contexts) {
        (void)cu.context_set(context);
        (void)cudaDeviceSynchronize();
    }
    for (int32_t i = 0; i < device_count; i++) {
        (void)cudaSetDevice(i);
        (void)cudaDeviceSynchronize();
    }
}

void release_memory(const memory &m)
{
    (void)cu.context_set(m.context);
    switch (m.kind) {
    case WORLD_PINNED: (void)cudaFreeHost(as_pointer(m.address)); break;
    case WORLD_REGISTERED:
        (void)cudaHostUnregister(as_pointer(m.address));
        free(as_pointer(m.address));
        break;
    case WORLD_PLAIN: free(as_pointer(m.address)); break;
    case WORLD_VIRTUAL:
    case WORLD_SEGMENTS:
        (void)cu.unmap(static_cast<CUdeviceptr>(m.address), m.bytes);
        (void)cu.unreserve(static_cast<CUdeviceptr>(m.address), m.bytes);
        for (CUmemGenericAllocationHandle each : m.handles)
            if (each != 0) (void)cu.release(each);
        break;
    default: (void)cudaFree(as_pointer(m.address)); break; /* pool memory too: it synchronizes */
    }
}

void release_everything()
{
    while (!memories.empty()) {
        release_memory(memories.back());
        memories.pop_back();
    }
    for (const object &each : streams) {
        (void)cu.context_set(each.context);
        (void)cudaStreamDestroy(cai_stream_to_cuda(each.handle));
    }
    streams.clear();
    (void)cu.context_set(primaries[0]);
    for (cudaGraphExec_t each : executables) (void)cudaGraphExecDestroy(each);
    executables.clear();
    for (cudaGraph_t each : graphs) (void)cudaGraphDestroy(each);
    graphs.clear();
    for (CUcontext context : contexts) (void)cu.context_destroy(context);
    contexts.clear();
}

int32_t allocate_virtual(uint64_t bytes, memory *m)
{
    int device = 0;
    size_t unit = 0;
    CUdeviceptr address = 0;
    CUmemAllocationProp properties;
    CUmemAccessDesc access;
    if (cudaGetDevice(&device) != cudaSuccess) return WORLD_NO_SUCH_MEMORY;
    memset(&properties, 0, sizeof properties);
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    if (cu.granularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS || unit == 0)
        return WORLD_NO_SUCH_MEMORY;
    const size_t pieces = m->kind == WORLD_SEGMENTS ? 2 : 1;
    const size_t piece = (bytes / pieces + unit - 1) / unit * unit;
    m->bytes = piece * pieces;
    CUresult error = cu.reserve(&address, m->bytes, 0, 0, 0);
    for (size_t i = 0; i < pieces && error == CUDA_SUCCESS; i++) {
        error = cu.create(&m->handles[i], piece, &properties, 0);
        if (error == CUDA_SUCCESS) error = cu.map(address + i * piece, piece, 0, m->handles[i], 0);
    }
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (error == CUDA_SUCCESS) error = cu.set_access(address, m->bytes, &access, 1);
    m->address = static_cast<uint64_t>(address);
    return error; /* what was made of a failure goes with the process */
}

bool device_has(cudaDeviceAttr attribute)
{
    int device = 0, value = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess && value != 0;
}

int32_t allocate_from_pool(uint64_t bytes, void **pointer)
{
    cudaStream_t stream;
    if (!device_has(cudaDevAttrMemoryPoolsSupported)) return WORLD_NO_SUCH_MEMORY;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) return error;
    error = cudaMallocAsync(pointer, bytes, stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    (void)cudaStreamDestroy(stream);
    return error;
}

int32_t allocate(int32_t kind, uint64_t bytes, void **pointer)
{
    switch (kind) {
    case WORLD_DEVICE: return cudaMalloc(pointer, bytes);
    case WORLD_MANAGED:
        if (!device_has(cudaDevAttrManagedMemory)) return WORLD_NO_SUCH_MEMORY;
        return cudaMallocManaged(pointer, bytes);
    case WORLD_PINNED: return cudaHostAlloc(pointer, bytes, cudaHostAllocMapped);
    case WORLD_REGISTERED:
        if (posix_memalign(pointer, PAGE, bytes)) return cudaErrorMemoryAllocation;
        return cudaHostRegister(*pointer, bytes, cudaHostRegisterMapped);
    case WORLD_POOL: return allocate_from_pool(bytes, pointer);
    case WORLD_PLAIN:
        *pointer = malloc(bytes);
        return *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
    default: return WORLD_NO_SUCH_MEMORY;
    }
}

int no_gpu(const char *reason)
{
    (void)fprintf(stderr, "conformance: %s\n", reason);
    return 0;
}

/* Before the runtime is asked for anything else: are the table's own calls enough to begin with? */
void ask_first()
{
    const cai_cuda *table = &linked.cuda;
    cai_cuda_pointer info;
    uint64_t context = 0;
    first_error = table->context_current(table->self, &context);
    if (!first_error) first_error = table->device_context(table->self, 0, &context);
    if (!first_error)
        first_error = table->device_attribute(table->self, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &info.memory);
}

void describe()
{
    cudaDeviceProp properties;
    const int driver = linked.driver_version, runtime = linked.runtime_version;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) properties.name[0] = 0;
    (void)snprintf(about, sizeof about, "%.60s%s, driver of CUDA %d.%d, runtime %d.%d", properties.name,
                   device_count > 1 ? " and another" : "", driver / 1000, driver % 1000 / 10, runtime / 1000,
                   runtime % 1000 / 10);
}

bool open_devices()
{
    for (int32_t i = 0; i < device_count; i++) {
        if (cu.primary_retain(&primaries[i], i) != CUDA_SUCCESS) return false;
        if (cudaSetDevice(i) != cudaSuccess || !warm_up()) return false;
    }
    if (cudaSetDevice(0) != cudaSuccess) return false;
    return cudaHostAlloc(reinterpret_cast<void **>(&shared), sizeof *shared,
                         cudaHostAllocMapped | cudaHostAllocPortable) == cudaSuccess;
}

} // namespace

/* ------------------------------------------------------------------ the world */
int world_open(int32_t devices)
{
    cai_error error;
    int count = 0;
    (void)devices;
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); /* streams share no queue */
    (void)unsetenv("CUDA_LAUNCH_BLOCKING");
    if (cai_cuda_linked(&linked, &error) != CAI_OK) return no_gpu(error.message);
    ask_first();
    if (cudaGetDeviceCount(&count) != cudaSuccess || count < 1) return no_gpu("no device");
    device_count = count < MOST_DEVICES ? count : MOST_DEVICES;
    if (!look_up_all()) return no_gpu("the driver lacks a function");
    if (!open_devices()) return no_gpu(cudaGetErrorString(cudaPeekAtLastError()));
    describe();
    const uint64_t trial = world_context_create(0);
    can_make_contexts = trial != 0 && world_context_destroy(trial) == 0;
    return 1;
}

void world_close(void)
{
    (void)cudaFreeHost(shared);
}

int world_is_simulation(void)
{
    return 0;
}

const char *world_about(void)
{
    return about;
}

int32_t world_devices(void)
{
    return device_count;
}

int world_has_contexts(void)
{
    return can_make_contexts;
}

const cai_cuda *world_cuda(void)
{
    return &linked.cuda;
}

void world_choose(int other)
{
    (void)other;
}

int world_option(const char *name)
{
    (void)name;
    return -1;
}

int32_t world_first_error(void)
{
    return first_error;
}

void world_begin(const char *rule, const char *plant)
{
    (void)plant;
    shared->given_up = 0;
    for (int i = 0; i < WORLD_FLAGS; i++) shared->flags[i] = 0;
    for (int i = 0; i < WORLD_MARKS; i++) shared->ran[i] = 0;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    reset_contexts();
    (void)cudaGetLastError();
    watch_over = watch_fired = false;
    watchdog = std::thread(watch, rule);
}

const char *world_end(void)
{
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    for (int i = 0; i < WORLD_FLAGS; i++) shared->flags[i] = 1;
    for (std::thread &each : setters) each.join();
    setters.clear();
    world_threads_end();
    end_captures_of_this_thread();
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    reset_contexts();
    synchronize_everything();
    release_everything();
    captures_begun.clear();
    reset_contexts();
    (void)cudaGetLastError();
    {
        std::lock_guard<std::mutex> lock(watch_lock);
        watch_over = true;
    }
    watch_changed.notify_all();
    watchdog.join();
    return watch_fired ? "a wait without end: the watchdog let the kernels go" : nullptr;
}

void world_thread_begins(void)
{
}

void world_thread_ends(void)
{
    end_captures_of_this_thread();
}

/* ------------------------------------------------------- contexts and streams */
int32_t world_set_device(int32_t device)
{
    const cudaError_t error = cudaSetDevice(device);
#if CUDART_VERSION < 12000
    if (error == cudaSuccess) return cudaFree(nullptr); /* it was lazy then */
#endif
    return error;
}

int32_t world_set_context(uint64_t context)
{
    return cu.context_set(as_context(context));
}

uint64_t world_context_create(int32_t device)
{
    CUcontext made = nullptr, popped;
    if (cu.context_create(&made, 0, device) != CUDA_SUCCESS) return 0;
    const bool good = warm_up();
    (void)cu.context_pop(&popped);
    if (!good) {
        (void)cu.context_destroy(made);
        return 0;
    }
    contexts.push_back(made);
    return as_number(made);
}

int32_t world_context_destroy(uint64_t context)
{
    const CUresult error = cu.context_destroy(as_context(context));
    for (size_t i = 0; i < contexts.size(); i++) {
        if (contexts[i] != as_context(context)) continue;
        contexts.erase(contexts.begin() + static_cast<std::ptrdiff_t>(i));
        break;
    }
    return error;
}

uint64_t world_stream_create(int nonblocking)
{
    cudaStream_t stream = nullptr;
    const unsigned int flags = nonblocking ? cudaStreamNonBlocking : cudaStreamDefault;
    if (cudaStreamCreateWithFlags(&stream, flags) != cudaSuccess) return 0;
    object made = {as_number(stream), current_context()};
    streams.push_back(made);
    return made.handle;
}

int32_t world_stream_destroy(uint64_t stream)
{
    for (size_t i = 0; i < streams.size(); i++) {
        if (streams[i].handle != stream) continue;
        streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(i));
        break;
    }
    return cudaStreamDestroy(cai_stream_to_cuda(stream));
}

/* -------------------------------------------------------------------- kernels */
int32_t world_launch(uint64_t stream, int32_t flag, int32_t mark)
{
    return launch(shared, cai_stream_to_cuda(stream), flag, mark, nullptr);
}

int32_t world_touch(uint64_t stream, int32_t flag, int32_t mark, uint64_t address)
{
    return launch(shared, cai_stream_to_cuda(stream), flag, mark, as_pointer(address));
}

int32_t world_host_function(uint64_t stream, int32_t mark)
{
    const cudaHostFn_t function = [](void *argument) {
        const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(argument);
        uint64_t seen = 0;
        for (int i = 0; i < WORLD_MARKS; i++)
            if (shared->ran[i]) seen |= static_cast<uint64_t>(1) << i;
        shared->seen[at] = seen;
        std::atomic_thread_fence(std::memory_order_seq_cst);
        shared->ran[at] = 1;
    };
    return cudaLaunchHostFunc(cai_stream_to_cuda(stream), function, as_pointer(static_cast<uint64_t>(mark)));
}

void world_set(int32_t flag)
{
    shared->flags[flag] = 1;
}

int world_is_set(int32_t flag)
{
    return shared->flags[flag] != 0;
}

void world_set_while_waiting(int32_t flag)
{
    setters.push_back(std::thread([flag] {
        std::this_thread::sleep_for(TIME_TO_WAIT);
        shared->flags[flag] = 1;
    }));
}

int world_reaches(int32_t mark)
{
    const auto end = std::chrono::steady_clock::now() + TIME_FOR_A_MARK;
    while (!shared->ran[mark] && !shared->given_up && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
    return world_ran(mark);
}

int world_ran(int32_t mark)
{
    const bool set = shared->ran[mark] != 0;
    std::atomic_thread_fence(std::memory_order_acquire);
    return set;
}

int world_saw(int32_t mark, int32_t earlier)
{
    return world_ran(mark) && (shared->seen[mark] >> earlier & 1);
}

/* -------------------------------------------------- captures, memory and errors */
int32_t world_capture_begin(uint64_t stream, int32_t mode)
{
    const cudaError_t error =
        cudaStreamBeginCapture(cai_stream_to_cuda(stream), static_cast<cudaStreamCaptureMode>(mode));
    capture begun = {stream, std::this_thread::get_id()};
    if (error == cudaSuccess) captures_begun.push_back(begun);
    return error;
}

/* A capture that cannot be ended here stays on the list, for its own thread to end it. */
int32_t world_capture_end(uint64_t stream)
{
    uint64_t graph = 0;
    const int32_t error = world_capture_graph(stream, &graph);
    if (graph != 0) (void)world_graph_destroy(graph);
    return error;
}

int32_t world_capture_graph(uint64_t stream, uint64_t *made)
{
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(cai_stream_to_cuda(stream), &graph);
    if (graph != nullptr) graphs.push_back(graph);
    *made = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(graph));
    if (error != cudaErrorStreamCaptureWrongThread && error != cudaErrorStreamCaptureUnmatched)
        forget_capture(stream);
    return error;
}

/* The handle that a number is, taken from the list of those that are left. */
template <typename Handle> Handle take(std::vector<Handle> *all, uint64_t number)
{
    for (size_t i = 0; i < all->size(); i++) {
        const Handle handle = (*all)[i];
        if (reinterpret_cast<uintptr_t>(handle) != number) continue;
        all->erase(all->begin() + static_cast<std::ptrdiff_t>(i));
        return handle;
    }
    return nullptr;
}

int32_t world_graph_nodes(uint64_t graph)
{
    size_t count = 0;
    const cudaError_t error = cudaGraphGetNodes(
        reinterpret_cast<cudaGraph_t>(static_cast<uintptr_t>(graph)), nullptr, &count);
    return error == cudaSuccess ? static_cast<int32_t>(count) : -1;
}

uint64_t world_graph_instantiate(uint64_t graph)
{
    cudaGraphExec_t made = nullptr;
    const cudaGraph_t from = reinterpret_cast<cudaGraph_t>(static_cast<uintptr_t>(graph));
    if (cudaGraphInstantiateWithFlags(&made, from, 0) != cudaSuccess) return 0;
    executables.push_back(made);
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(made));
}

int32_t world_graph_destroy(uint64_t graph)
{
    return cudaGraphDestroy(take(&graphs, graph));
}

int32_t world_graph_launch(uint64_t executable, uint64_t stream)
{
    const cudaGraphExec_t what = reinterpret_cast<cudaGraphExec_t>(static_cast<uintptr_t>(executable));
    return cudaGraphLaunch(what, cai_stream_to_cuda(stream));
}

int32_t world_executable_destroy(uint64_t executable)
{
    return cudaGraphExecDestroy(take(&executables, executable));
}

int32_t world_alloc(int32_t kind, uint64_t bytes, uint64_t *address)
{
    memory made = {0, kind, bytes, {0, 0}, nullptr};
    void *pointer = nullptr;
    const bool is_virtual = kind == WORLD_VIRTUAL || kind == WORLD_SEGMENTS;
    const int32_t error = is_virtual ? allocate_virtual(bytes, &made)
                                     : allocate(kind, bytes, &pointer);
    if (error) return error;
    if (pointer != nullptr) made.address = as_number(pointer);
    made.context = current_context();
    memories.push_back(made);
    *address = made.address;
    return 0;
}

int32_t world_free(uint64_t address)
{
    for (size_t i = 0; i < memories.size(); i++) {
        if (memories[i].address != address) continue;
        const CUcontext before = current_context();
        release_memory(memories[i]);
        memories.erase(memories.begin() + static_cast<std::ptrdiff_t>(i));
        return cu.context_set(before);
    }
    return cudaErrorInvalidValue;
}

int32_t world_copy(uint64_t to, uint64_t from, uint64_t bytes)
{
    return cudaMemcpy(as_pointer(to), as_pointer(from), bytes, cudaMemcpyDefault);
}

int32_t world_copy_async(uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream)
{
    return cudaMemcpyAsync(as_pointer(to), as_pointer(from), bytes, cudaMemcpyDefault,
                           cai_stream_to_cuda(stream));
}

int32_t world_fill(uint64_t to, int value, uint64_t bytes)
{
    return cudaMemset(as_pointer(to), value, bytes);
}

int32_t world_fill_async(uint64_t to, int value, uint64_t bytes, uint64_t stream)
{
    return cudaMemsetAsync(as_pointer(to), value, bytes, cai_stream_to_cuda(stream));
}

/* ------------------------------------------------------ pools and virtual memory */
static cudaMemPool_t as_pool(uint64_t handle)
{
    return reinterpret_cast<cudaMemPool_t>(static_cast<std::uintptr_t>(handle));
}

uint64_t world_pool_create(int32_t device)
{
    cudaMemPoolProps properties;
    cudaMemPool_t pool = nullptr;
    if (!device_has(cudaDevAttrMemoryPoolsSupported)) return 0;
    memset(&properties, 0, sizeof properties);
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    return cudaMemPoolCreate(&pool, &properties) == cudaSuccess ? as_number(pool) : 0;
}

uint64_t world_pool_default(int32_t device)
{
    cudaMemPool_t pool = nullptr;
    return cudaDeviceGetDefaultMemPool(&pool, device) == cudaSuccess ? as_number(pool) : 0;
}

uint64_t world_pool_current(int32_t device)
{
    cudaMemPool_t pool = nullptr;
    return cudaDeviceGetMemPool(&pool, device) == cudaSuccess ? as_number(pool) : 0;
}

int32_t world_pool_destroy(uint64_t pool)
{
    return cudaMemPoolDestroy(as_pool(pool));
}

int32_t world_pool_set_current(int32_t device, uint64_t pool)
{
    return cudaDeviceSetMemPool(device, as_pool(pool));
}

int32_t world_pool_alloc(uint64_t pool, uint64_t bytes, uint64_t stream, uint64_t *address)
{
    void *pointer = nullptr;
    const cudaError_t error =
        cudaMallocFromPoolAsync(&pointer, bytes, as_pool(pool), cai_stream_to_cuda(stream));
    *address = as_number(pointer);
    return error;
}

int32_t world_pool_free(uint64_t address, uint64_t stream)
{
    return cudaFreeAsync(as_pointer(address), cai_stream_to_cuda(stream));
}

int32_t world_pool_trim(uint64_t pool, uint64_t keep)
{
    return cudaMemPoolTrimTo(as_pool(pool), keep);
}

/* The first three attributes are of type int. */
int32_t world_pool_get(uint64_t pool, int32_t attribute, uint64_t *value)
{
    const cudaMemPoolAttr which = static_cast<cudaMemPoolAttr>(attribute);
    int small = 0;
    if (attribute >= cudaMemPoolAttrReleaseThreshold)
        return cudaMemPoolGetAttribute(as_pool(pool), which, value);
    const cudaError_t error = cudaMemPoolGetAttribute(as_pool(pool), which, &small);
    *value = static_cast<uint64_t>(small);
    return error;
}

int32_t world_pool_set(uint64_t pool, int32_t attribute, uint64_t value)
{
    const cudaMemPoolAttr which = static_cast<cudaMemPoolAttr>(attribute);
    int small = static_cast<int>(value);
    if (attribute >= cudaMemPoolAttrReleaseThreshold)
        return cudaMemPoolSetAttribute(as_pool(pool), which, &value);
    return cudaMemPoolSetAttribute(as_pool(pool), which, &small);
}

static CUmemAllocationProp on_device()
{
    CUmemAllocationProp properties;
    memset(&properties, 0, sizeof properties);
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return properties;
}

int32_t world_reserve(uint64_t bytes, uint64_t *address)
{
    const CUmemAllocationProp properties = on_device();
    CUdeviceptr first = 0;
    size_t unit = 0;
    if (cu.granularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS || unit == 0 ||
        bytes / 4 % unit != 0)
        return WORLD_NO_SUCH_MEMORY;
    const CUresult error = cu.reserve(&first, bytes, 0, 0, 0);
    *address = static_cast<uint64_t>(first);
    return error;
}

int32_t world_unreserve(uint64_t address, uint64_t bytes)
{
    return cu.unreserve(static_cast<CUdeviceptr>(address), bytes);
}

int32_t world_create(uint64_t bytes, uint64_t *handle)
{
    const CUmemAllocationProp properties = on_device();
    CUmemGenericAllocationHandle made = 0;
    const CUresult error = cu.create(&made, bytes, &properties, 0);
    *handle = made;
    return error;
}

int32_t world_release(uint64_t handle)
{
    return cu.release(handle);
}

int32_t world_map(uint64_t address, uint64_t bytes, uint64_t handle)
{
    return cu.map(static_cast<CUdeviceptr>(address), bytes, 0, handle, 0);
}

int32_t world_unmap(uint64_t address, uint64_t bytes)
{
    return cu.unmap(static_cast<CUdeviceptr>(address), bytes);
}

int32_t world_set_access(uint64_t address, uint64_t bytes, int32_t yes)
{
    CUmemAccessDesc access;
    access.location = on_device().location;
    access.flags = yes ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return cu.set_access(static_cast<CUdeviceptr>(address), bytes, &access, 1);
}

int32_t world_pageable_access(int32_t device)
{
    int value = 0;
    (void)cudaDeviceGetAttribute(&value, cudaDevAttrPageableMemoryAccess, device);
    return value;
}

int32_t world_last_error(void)
{
    return cudaPeekAtLastError();
}

int32_t world_clear_error(void)
{
    return cudaGetLastError();
}

void world_break_device(void)
{
    (void)cudaLaunchKernel(reinterpret_cast<const void *>(&end_badly), dim3(1), dim3(1), nullptr, 0,
                           cudaStreamLegacy);
}

int world_teardown(void)
{
    return 0;
}

const world_plant *world_plants(void)
{
    static const world_plant none[] = {{nullptr, nullptr, nullptr, 0}};
    return none;
}
