// order.cu - random exchanges on a GPU, each kernel checks that it runs in its order
// SPDX-License-Identifier: MIT
//
//     gpu_order [--seconds 5] [--threads 6] [--how header|hand|unordered] [--reuse no-events|default|none]
//               [--released 40] [--seed 1] [--expect-wrong]
//
// Threads share ten streams and an event pool. Each array has an owner's stream, a number and a version.
// Every kernel checks both, and some raise the version. Of 100 exchanges, --released end with a release by
// cudaFreeAsync, and a new array takes the place. Each launch is in a log, with the times of its first and
// its last block on the device. After the run each address is walked through in the order of the program. A
// launch that began before the one ahead had ended is out of order, whether or not a value shows it:
//   an edge is lost       both launches are of one array: the order that was asked for was not kept
//   two owners at once    they are of two arrays: cudaMallocAsync gave the memory too early
//
// --how: by the header; by hand, with the CUDA calls that the header would make; or with no order at all.
// --reuse: what the pool of CUDA may follow when it gives memory again. By default the reuse by events is
// off. With it the pool of driver r580 gives memory too early, also by hand. pool_race.cu shows that alone.
//
// Exit status 0: all in order; 1: not so; 2: an error; 77: no GPU. --expect-wrong: 0 if a kernel saw a wrong
// version and a launch was out of order. So the test shows that it can fail.
#define CAI_IMPLEMENTATION
#include "cai_stream.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace {

enum { ELEMENTS = 8192, BLOCK = 256, ARRAYS = 12, STREAMS = 10, MOST_THREADS = 16, MOST_LAUNCHES = 1 << 20 };
enum { MOST_OF_EXCHANGE = 3, SHOWN = 4 };
enum how { HEADER, HAND, UNORDERED };
enum role { OWNER, CONSUMER, CLEAR };
typedef unsigned long long nanoseconds;

struct settings {
    double seconds;
    int threads, released;
    how by;
    const char *reuse;
    unsigned seed;
    bool expect_wrong;
};
settings asked = {5, 6, 40, HEADER, "no-events", 1, false};

void must(cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return;
    std::printf("%s: %s\n", what, cudaGetErrorString(error));
    std::exit(2);
}

void must(cai_status status, const cai_error &err)
{
    if (status == CAI_OK) return;
    std::printf("%s\n", err.message);
    std::exit(2);
}

// ----------------------------------------------------------------------------------------------- the kernels

struct times {
    nanoseconds began, ended;
};

__device__ nanoseconds now()
{
    nanoseconds time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

__device__ void spin(nanoseconds length)
{
    const nanoseconds begin = now();
    while (now() - begin < length) {
    }
}

// Reads twice, with a pause between, so that a change by another kernel is seen.
__global__ void touch(int *x, int expected, int next, nanoseconds length, unsigned *wrong, times *log)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        atomicMin(&log->began, now());
        spin(length);
    }
    __syncthreads();
    const int first = *const_cast<volatile int *>(&x[i]);
    if (threadIdx.x == 0) spin(length / 4);
    __syncthreads();
    const int second = *const_cast<volatile int *>(&x[i]);
    if (first != expected || second != expected) atomicAdd(wrong, 1u);
    if (next != expected) x[i] = next;
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(&log->ended, now());
}

__global__ void clear(int *x, times *log)
{
    if (threadIdx.x == 0) atomicMin(&log->began, now());
    __syncthreads();
    x[blockIdx.x * blockDim.x + threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(&log->ended, now());
}

// ---------------------------------------------------------------------------------------- arrays and the log

// The value of version 0 is 0. The others have 20 bits of the array's number and 11 of the version.
struct versioned {
    int *x;
    int owner; // the number of its stream
    unsigned number;
    int version;
    int value() const
    {
        return version
                   ? static_cast<int>((number & 0xfffffu) << 11 | (static_cast<unsigned>(version) & 0x7ffu))
                   : 0;
    }
};

struct launch {
    int *x;
    unsigned number;
    int thread, stream, owner;
    role by;
    size_t at; // in the log of its thread
    times when;
};

struct block {
    int *x;
    cudaStream_t owner;
};

cai_cuda_driver driver;
cai_event_pool pool;
cudaStream_t streams[STREAMS];
unsigned *wrong_elements;
times *device_log; // MOST_LAUNCHES of each thread
std::vector<launch> launches[MOST_THREADS];
std::atomic<unsigned> numbers{0};
std::atomic<long> exchanges{0}, released{0};

void free_block(cai_array *array)
{
    array->release = nullptr;
    const block *mine = static_cast<block *>(array->owner);
    must(cudaFreeAsync(mine->x, mine->owner), "cudaFreeAsync");
    delete mine;
    ++released;
}

// Events for the order by hand. As in the pool of the header, an event goes back right after its wait.
std::mutex events_lock;
std::vector<cudaEvent_t> events;

cudaEvent_t take_event()
{
    const std::lock_guard<std::mutex> guard(events_lock);
    cudaEvent_t event = nullptr;
    if (events.empty()) {
        must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
        return event;
    }
    event = events.back();
    events.pop_back();
    return event;
}

void give_event(cudaEvent_t event)
{
    const std::lock_guard<std::mutex> guard(events_lock);
    events.push_back(event);
}

// -------------------------------------------------------------------------------------------------- a thread

struct worker {
    int thread;
    std::mt19937 random;
    std::vector<versioned> arrays;

    explicit worker(int t) : thread(t), random(asked.seed + static_cast<unsigned>(t)), arrays(ARRAYS)
    {
    }

    int any(int count)
    {
        return static_cast<int>(random() % static_cast<unsigned>(count));
    }

    // Most kernels are short, a few are long.
    nanoseconds length()
    {
        const int kind = any(100);
        return static_cast<nanoseconds>(kind < 70 ? any(2500) : kind < 95 ? any(30000) : any(200000));
    }

    times *log(const versioned &array, int stream, role by)
    {
        const size_t at = launches[thread].size();
        if (at >= MOST_LAUNCHES) return nullptr;
        launches[thread].push_back({array.x, array.number, thread, stream, array.owner, by, at, {0, 0}});
        return device_log + static_cast<size_t>(thread) * MOST_LAUNCHES + at;
    }

    void make(versioned &array)
    {
        array.owner = any(STREAMS);
        cudaStream_t stream = streams[array.owner];
        void *memory = nullptr;
        must(cudaMallocAsync(&memory, ELEMENTS * sizeof(int), stream), "cudaMallocAsync");
        array.x = static_cast<int *>(memory);
        array.number = ++numbers; // after the call: whoever had the address before has a smaller number
        array.version = 0;
        times *when = log(array, array.owner, CLEAR);
        if (when) clear<<<ELEMENTS / BLOCK, BLOCK, 0, stream>>>(array.x, when);
    }

    void run(versioned &array, int stream, role by)
    {
        const int expected = array.value();
        times *when = log(array, stream, by);
        if (!when) return;
        array.version += any(2);
        touch<<<ELEMENTS / BLOCK, BLOCK, 0, streams[stream]>>>(array.x, expected, array.value(), length(),
                                                               wrong_elements, when);
    }

    void exchange();
    void by_header(const std::vector<versioned *> &chosen, const std::vector<bool> &owned, int stream);
    void by_hand(const std::vector<versioned *> &chosen, const std::vector<bool> &owned, int stream);
    void work();
};

void worker::by_header(const std::vector<versioned *> &chosen, const std::vector<bool> &owned, int stream)
{
    const int64_t shape[1] = {ELEMENTS};
    const int32_t count = static_cast<int32_t>(chosen.size());
    cai_array arrays_of_it[MOST_OF_EXCHANGE], *io[MOST_OF_EXCHANGE];
    cai_exchange_options options = {};
    cai_exchange ex;
    cai_error err;
    options.mode = asked.by == UNORDERED ? CAI_MODE_IGNORE : CAI_MODE_EVENT;
    for (int32_t i = 0; i < count; ++i) {
        const versioned &array = *chosen[static_cast<size_t>(i)];
        cudaStream_t owner = streams[array.owner];
        io[i] = &arrays_of_it[i];
        must(cai_array_init(io[i], CAI_INT32, 1, shape, nullptr, array.x, &err), err);
        must(cai_stream_export(io[i], &pool, CAI_STREAM(owner), nullptr, 0, &err), err);
        if (!owned[static_cast<size_t>(i)]) continue;
        cai_array_own(io[i], free_block, new block{array.x, owner});
        if (any(2)) io[i]->flags |= CAI_ORDERED_FREE; // else it goes back by the list
    }
    must(cai_exchange_begin_with(&ex, &pool, io, count, CAI_STREAM(streams[stream]), &options, &err), err);
    for (versioned *array : chosen) run(*array, stream, CONSUMER);
    must(cudaGetLastError(), "touch");
    must(cai_exchange_finish(&ex, CAI_OK, io, count, &err), err);
}

// One record and one wait for each stream that is not the consumer's, there and back
void worker::by_hand(const std::vector<versioned *> &chosen, const std::vector<bool> &owned, int stream)
{
    std::vector<int> others;
    for (const versioned *array : chosen) {
        const bool known = std::find(others.begin(), others.end(), array->owner) != others.end();
        if (array->owner != stream && !known) others.push_back(array->owner);
    }
    for (int other : others) {
        cudaEvent_t event = take_event();
        must(cudaEventRecord(event, streams[other]), "cudaEventRecord");
        must(cudaStreamWaitEvent(streams[stream], event, 0), "cudaStreamWaitEvent");
        give_event(event);
    }
    for (versioned *array : chosen) run(*array, stream, CONSUMER);
    must(cudaGetLastError(), "touch");
    if (!others.empty()) {
        cudaEvent_t event = take_event();
        must(cudaEventRecord(event, streams[stream]), "cudaEventRecord");
        for (int other : others) must(cudaStreamWaitEvent(streams[other], event, 0), "cudaStreamWaitEvent");
        give_event(event);
    }
    for (size_t i = 0; i < chosen.size(); ++i) {
        if (!owned[i]) continue;
        must(cudaFreeAsync(chosen[i]->x, streams[chosen[i]->owner]), "cudaFreeAsync");
        ++released;
    }
}

void worker::exchange()
{
    const size_t count = 1 + static_cast<size_t>(any(MOST_OF_EXCHANGE));
    const int stream = any(STREAMS);
    std::vector<versioned *> chosen;
    std::vector<bool> owned;
    while (chosen.size() < count) {
        versioned *array = &arrays[static_cast<size_t>(any(ARRAYS))];
        if (std::find(chosen.begin(), chosen.end(), array) != chosen.end()) continue;
        chosen.push_back(array);
        owned.push_back(any(100) < asked.released);
    }
    if (asked.by == HAND) by_hand(chosen, owned, stream);
    else by_header(chosen, owned, stream);
    for (size_t i = 0; i < count; ++i)
        if (owned[i]) make(*chosen[i]);
}

void worker::work()
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(asked.seconds);
    for (versioned &array : arrays) make(array);
    while (std::chrono::steady_clock::now() < end && launches[thread].size() + ARRAYS < MOST_LAUNCHES) {
        if (any(4) == 0) { // the owner's own work
            versioned &array = arrays[static_cast<size_t>(any(ARRAYS))];
            run(array, array.owner, OWNER);
            continue;
        }
        exchange();
        if (++exchanges % 64) continue;
        for (const versioned &array : arrays)
            if (any(8) == 0) must(cudaStreamSynchronize(streams[array.owner]), "cudaStreamSynchronize");
    }
}

// ------------------------------------------------------------------------------------------------- the judge

void show(const char *what, const launch &it, nanoseconds zero)
{
    static const char *const names[] = {"owner's kernel", "consumer's kernel", "clear"};
    const double begin = static_cast<double>(it.when.began) - static_cast<double>(zero);
    const double end = static_cast<double>(it.when.ended) - static_cast<double>(zero);
    std::printf("    %s array %u (owner's stream %d), thread %d, %s on stream %d: %.3f to %.3f us\n", what,
                it.number, it.owner, it.thread, names[it.by], it.stream, begin / 1e3, end / 1e3);
}

std::map<int *, std::vector<launch>> launches_by_address(long *count)
{
    std::map<int *, std::vector<launch>> found;
    for (int t = 0; t < asked.threads; ++t) {
        std::vector<times> when(launches[t].size());
        const times *log = device_log + static_cast<size_t>(t) * MOST_LAUNCHES;
        must(cudaMemcpy(when.data(), log, when.size() * sizeof(times), cudaMemcpyDeviceToHost), "cudaMemcpy");
        for (launch &it : launches[t]) {
            it.when = when[it.at];
            found[it.x].push_back(it);
        }
        *count += static_cast<long>(when.size());
    }
    return found;
}

// Returns how many launches are out of order.
long judge()
{
    long count = 0, lost = 0, two_owners = 0, again = 0;
    std::map<int *, std::vector<launch>> addresses = launches_by_address(&count);
    for (auto &address : addresses) {
        std::vector<launch> &list = address.second;
        std::sort(list.begin(), list.end(), [](const launch &a, const launch &b) {
            return a.number != b.number ? a.number < b.number : a.at < b.at;
        });
        const launch *last = &list[0]; // of those ahead, the one that ended last
        for (const launch &it : list) {
            again += &it != &list[0] && it.by == CLEAR;
            if (&it != last && it.when.began < last->when.ended) {
                const bool same = it.number == last->number;
                if (lost + two_owners < SHOWN) {
                    std::printf("  address %p: %s\n", static_cast<void *>(address.first),
                                same ? "an edge is lost" : "two owners at once");
                    show("ahead:", *last, last->when.began);
                    show("began before it ended:", it, last->when.began);
                }
                ++(same ? lost : two_owners);
            }
            if (it.when.ended > last->when.ended) last = &it;
        }
    }
    std::printf(
        "%ld launches, %zu addresses, %ld blocks given again; out of order: %ld of one array (an edge is "
        "lost), %ld of two arrays (two owners at once)\n",
        count, addresses.size(), again, lost, two_owners);
    return lost + two_owners;
}

// ----------------------------------------------------------------------------------------------- the program

void set_reuse()
{
    cudaMemPool_t memory = nullptr;
    int yes = std::strcmp(asked.reuse, "none") != 0, by_events = !std::strcmp(asked.reuse, "default");
    must(cudaDeviceGetDefaultMemPool(&memory, 0), "cudaDeviceGetDefaultMemPool");
    must(cudaMemPoolSetAttribute(memory, cudaMemPoolReuseFollowEventDependencies, &by_events),
         "reuse by events");
    must(cudaMemPoolSetAttribute(memory, cudaMemPoolReuseAllowOpportunistic, &yes), "opportunistic reuse");
    must(cudaMemPoolSetAttribute(memory, cudaMemPoolReuseAllowInternalDependencies, &yes),
         "reuse by dependencies");
}

void open()
{
    cai_error err;
    const size_t count = static_cast<size_t>(asked.threads) * MOST_LAUNCHES;
    must(cai_cuda_linked(&driver, &err), err);
    must(cai_event_pool_init(&pool, &driver.cuda, nullptr, 0, 0, &err), err);
    set_reuse();
    for (int i = 0; i < STREAMS; ++i) // some are blocking
        must(cudaStreamCreateWithFlags(&streams[i], i % 3 ? cudaStreamNonBlocking : cudaStreamDefault),
             "stream");
    must(cudaMalloc(&wrong_elements, sizeof *wrong_elements), "cudaMalloc");
    must(cudaMemset(wrong_elements, 0, sizeof *wrong_elements), "cudaMemset");
    must(cudaMalloc(&device_log, count * sizeof(times)), "cudaMalloc");
    must(cudaMemset2D(&device_log->began, sizeof(times), 0xff, sizeof(nanoseconds), count), "cudaMemset2D");
    must(cudaMemset2D(&device_log->ended, sizeof(times), 0, sizeof(nanoseconds), count), "cudaMemset2D");
    int *x = nullptr; // loads the kernels; the log of the first launch is written again
    must(cudaMalloc(&x, ELEMENTS * sizeof(int)), "cudaMalloc");
    times *unused = nullptr;
    must(cudaMalloc(&unused, sizeof *unused), "cudaMalloc");
    clear<<<ELEMENTS / BLOCK, BLOCK>>>(x, unused);
    touch<<<ELEMENTS / BLOCK, BLOCK>>>(x, 0, 0, 0, wrong_elements, unused);
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

unsigned run()
{
    cai_error err;
    unsigned wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < asked.threads; ++t) threads.emplace_back([t] { worker(t).work(); });
    for (std::thread &thread : threads) thread.join();
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    must(cai_keepalive_drain(&pool, &err), err);
    must(cai_event_pool_destroy(&pool, &err), err);
    must(cudaMemcpy(&wrong, wrong_elements, sizeof wrong, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return wrong;
}

int usage()
{
    std::puts("gpu_order [--seconds S] [--threads 1-16] [--how header|hand|unordered] "
              "[--reuse no-events|default|none] [--released 0-100] [--seed N] [--expect-wrong]");
    return 2;
}

bool read_how(const char *value)
{
    static const char *const names[] = {"header", "hand", "unordered"};
    for (int k = 0; k < 3; ++k) {
        if (std::strcmp(value, names[k])) continue;
        asked.by = static_cast<how>(k);
        return true;
    }
    return false;
}

bool read_option(const char *name, const char *value)
{
    if (!std::strcmp(name, "--seconds")) asked.seconds = std::atof(value);
    else if (!std::strcmp(name, "--threads")) asked.threads = std::atoi(value);
    else if (!std::strcmp(name, "--released")) asked.released = std::atoi(value);
    else if (!std::strcmp(name, "--seed")) asked.seed = static_cast<unsigned>(std::atoi(value));
    else if (!std::strcmp(name, "--reuse")) asked.reuse = value;
    else if (!std::strcmp(name, "--how")) return read_how(value);
    else return false;
    return asked.threads >= 1 && asked.threads <= MOST_THREADS;
}

} // namespace

int main(int argc, char **argv)
{
    static const char *const names[] = {"by the header", "by hand", "unordered"};
    int devices = 0;
    for (int i = 1; i < argc; ++i) {
        if (!std::strcmp(argv[i], "--expect-wrong")) asked.expect_wrong = true;
        else if (i + 1 == argc || !read_option(argv[i], argv[i + 1])) return usage();
        else ++i;
    }
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); // with 8 queues false order may hide errors
    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
        std::puts("skipped: no GPU");
        return 77;
    }
    open();
    const unsigned wrong = run();
    const long out_of_order = judge();
    std::printf(
        "%s, reuse %s, %d threads, %.0f s: %ld exchanges, %ld released, %u elements of a wrong version\n",
        names[asked.by], asked.reuse, asked.threads, asked.seconds, exchanges.load(), released.load(), wrong);
    if (asked.expect_wrong) return !(wrong && out_of_order);
    return wrong || out_of_order;
}
