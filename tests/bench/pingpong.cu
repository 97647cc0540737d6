// pingpong.cu - two libraries take turns with one array, each on its own stream: what does the order cost?
// SPDX-License-Identifier: MIT
//
//     nvcc -O2 -std=c++17 -I. tests/bench/pingpong.cu -o pingpong && ./pingpong
//
// The same turns four ways in one run: ordered by the header with events; by hand with cudaEventRecord and
// cudaStreamWaitEvent; by the header with the host waiting (CAI_MODE_HOST); by hand with
// cudaStreamSynchronize. Each way is timed best of 7, and the numbers are verified. Exit status 77: no GPU.

#define CAI_IMPLEMENTATION
#include "cai_stream.h"

#include "must.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

enum { TURNS = 2000, REPEATS = 7, SIZE = 1 << 16 };

__global__ static void increment(float *x, int64_t size)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < size) x[i] += 1;
}

struct world {
    cai_event_pool pool;
    cai_array array;
    cudaStream_t owner, other;
    cudaEvent_t event;
    float *x;
};

static void launch(const world &w, cudaStream_t stream)
{
    increment<<<SIZE / 256, 256, 0, stream>>>(w.x, SIZE);
}

static void turn_by_header(world &w, int32_t mode)
{
    cai_array *io[1] = {&w.array};
    cai_exchange_options options = {};
    cai_exchange ex;
    cai_error err;
    options.mode = mode;
    launch(w, w.owner);
    must(cai_exchange_begin_with(&ex, &w.pool, io, 1, CAI_STREAM(w.other), &options, &err), err);
    launch(w, w.other);
    must(cai_exchange_end(&ex, cai_cuda_status(cudaGetLastError(), "increment", &err), &err), err);
}

static void events_by_header(world &w)
{
    turn_by_header(w, CAI_MODE_EVENT);
}

static void host_by_header(world &w)
{
    turn_by_header(w, CAI_MODE_HOST);
}

static void events_by_hand(world &w)
{
    launch(w, w.owner);
    must(cudaEventRecord(w.event, w.owner), "cudaEventRecord");
    must(cudaStreamWaitEvent(w.other, w.event, 0), "cudaStreamWaitEvent");
    launch(w, w.other);
    must(cudaEventRecord(w.event, w.other), "cudaEventRecord");
    must(cudaStreamWaitEvent(w.owner, w.event, 0), "cudaStreamWaitEvent");
}

static void host_by_hand(world &w)
{
    launch(w, w.owner);
    must(cudaStreamSynchronize(w.owner), "cudaStreamSynchronize");
    launch(w, w.other);
    must(cudaStreamSynchronize(w.other), "cudaStreamSynchronize");
}

// Microseconds a turn, best of all; the array is 2 * TURNS afterwards, or the order was wrong.
static double measure(world &w, void (*turn)(world &))
{
    double best = 1e30;
    for (int repeat = 0; repeat < REPEATS; ++repeat) {
        float first = 0, last = 0;
        must(cudaMemset(w.x, 0, SIZE * sizeof *w.x), "cudaMemset");
        must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < TURNS; ++i) turn(w);
        must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - start;
        must(cudaMemcpy(&first, w.x, sizeof first, cudaMemcpyDeviceToHost), "cudaMemcpy");
        must(cudaMemcpy(&last, w.x + SIZE - 1, sizeof last, cudaMemcpyDeviceToHost), "cudaMemcpy");
        if (first < 2 * TURNS || first > 2 * TURNS || last < first || last > first) {
            std::printf("wrong numbers: %g, %g, not %d\n", double(first), double(last), 2 * TURNS);
            std::exit(1);
        }
        if (passed.count() / TURNS < best) best = passed.count() / TURNS;
    }
    return best;
}

int main()
{
    static cai_cuda_driver driver;
    static world w;
    const int64_t shape[1] = {SIZE};
    cudaDeviceProp properties;
    cai_error err;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        std::printf("skipped: no GPU\n");
        return 77;
    }
    must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    must(cai_cuda_linked(&driver, &err), err);
    must(cai_event_pool_init(&w.pool, &driver.cuda, nullptr, 0, 0, &err), err);
    must(cudaMalloc(reinterpret_cast<void **>(&w.x), SIZE * sizeof *w.x), "cudaMalloc");
    must(cudaStreamCreateWithFlags(&w.owner, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cudaStreamCreateWithFlags(&w.other, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cudaEventCreateWithFlags(&w.event, cudaEventDisableTiming), "cudaEventCreate");
    must(cai_array_init(&w.array, CAI_FLOAT32, 1, shape, nullptr, w.x, &err), err);
    must(cai_stream_export(&w.array, &w.pool, CAI_STREAM(w.owner), nullptr, 0, &err), err);
    const double header = measure(w, events_by_header), hand = measure(w, events_by_hand);
    const double host_header = measure(w, host_by_header), host_hand = measure(w, host_by_hand);
    std::printf("%s, runtime %d, driver %d; microseconds a turn of two kernels, best of %d\n", properties.name,
                driver.runtime_version, driver.driver_version, REPEATS);
    std::printf("  events, by the header        %8.2f\n", header);
    std::printf("  events, by hand              %8.2f   the header takes %.2f of it\n", hand, header / hand);
    std::printf("  host waits, by the header    %8.2f\n", host_header);
    std::printf("  host waits, by hand          %8.2f   events of the header take %.2f of it\n", host_hand,
                header / host_hand);
    must(cai_event_pool_destroy(&w.pool, &err), err);
    return 0;
}
