// pool_race.cu - does cudaMallocAsync give a block to a stream that does not wait for its free? CUDA alone.
// SPDX-License-Identifier: MIT
//
//     gpu_pool_race [--seconds 4] [--case after|race|before|newest|pending]
//
// A block is used and freed in stream O behind a kernel of 150 us, which then sets a mark. Stream N allocates
// at once. If it gets the block, a kernel in N looks at the mark: not set means early, two owners at once.
// Each line says how often N got a block of O, and how often early. The seconds are of a long case; others
// take a part.
//   after    O: free, record a. H waits for a. b is recorded in H, N waits for b and allocates. N may have
//            the block. It must get some, or the other cases prove nothing.
//   race     the same, but the wait of H for a and the record of b are calls of two threads at the same
//            moment. Whichever comes first in H, the pool must see it as the device does.
//   before   b is recorded in H before H waits for a: N must never get the block by events.
//   newest   N waits for b; then b is recorded again, behind the free: N must never get the block by events.
//   pending  the kernel is in S, and O only waits for it and frees: N must not get the block before that.
// Reuse: 1 follow events, 2 opportunistic, 4 internal dependencies; 7 is CUDA's default.
//
// Exit status 0: nothing was early but in the cases `race` that follow events, which is a defect of some
// drivers (r580) and is said; 1: more was early, or `after` saw nothing; 2: an error; 77: no GPU.
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

enum { TRIES = 8, BYTES = 32768, EVENTS = 64, KEPT = 20000, HELD = 150000 /* ns */ };
enum { FOLLOW_EVENTS = 1 };
typedef unsigned long long counter;

void must(cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return;
    std::printf("%s: %s\n", what, cudaGetErrorString(error));
    std::exit(2);
}

__device__ counter now()
{
    counter time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

__global__ void hold(counter nanoseconds, volatile unsigned *mark, unsigned value)
{
    const counter begin = now();
    while (now() - begin < nanoseconds) {
    }
    *mark = value;
    __threadfence();
}

__global__ void look(volatile unsigned *mark, unsigned value, unsigned *early)
{
    if (*mark < value) atomicAdd(early, 1u);
}

enum which { AFTER, RACE, BEFORE, NEWEST, PENDING };
const char *const names[] = {"after", "race", "before", "newest", "pending"};

struct setup {
    which what;
    int reuse;
    double share; // of the seconds
};

cudaStream_t O, S, H[TRIES], N[TRIES];
cudaEvent_t a[EVENTS], b[EVENTS][TRIES], of_s;
unsigned *mark, *early;

// Two threads meet: each adds one, and spins until both have.
std::atomic<counter> arrived{0};

bool meet(counter both)
{
    ++arrived;
    for (counter spins = 0; arrived < both; ++spins)
        if (spins > 4000000000ull) return false;
    return true;
}

void busy(unsigned turns)
{
    for (volatile unsigned i = 0; i < turns; i = i + 1) {
    }
}

void set_reuse(int reuse)
{
    const cudaMemPoolAttr kinds[] = {cudaMemPoolReuseFollowEventDependencies,
                                     cudaMemPoolReuseAllowOpportunistic,
                                     cudaMemPoolReuseAllowInternalDependencies};
    cudaMemPool_t pool = nullptr;
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    must(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
    must(cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo");
    for (int k = 0; k < 3; ++k) {
        int yes = reuse >> k & 1;
        must(cudaMemPoolSetAttribute(pool, kinds[k], &yes), "cudaMemPoolSetAttribute");
    }
}

struct run {
    const setup &it;
    unsigned turn = 0;
    counter meetings = 0;
    std::vector<void *> blocks, kept;
    std::atomic<long> got{0};
    std::atomic<bool> stop{false};

    explicit run(const setup &s) : it(s), blocks(s.what <= BEFORE ? TRIES : 1)
    {
    }

    cudaEvent_t event_of_h(int k) const
    {
        return b[turn % EVENTS][k];
    }

    // The blocks are used and freed in O.
    void put()
    {
        for (void *&p : blocks) must(cudaMallocAsync(&p, BYTES, O), "cudaMallocAsync");
        hold<<<1, 1, 0, it.what == PENDING ? S : O>>>(HELD, mark, turn);
        if (it.what == PENDING) {
            must(cudaEventRecord(of_s, S), "cudaEventRecord");
            must(cudaStreamWaitEvent(O, of_s, 0), "cudaStreamWaitEvent");
        }
        for (void *p : blocks) must(cudaFreeAsync(p, O), "cudaFreeAsync");
        must(cudaEventRecord(a[turn % EVENTS], O), "cudaEventRecord");
    }

    void take(int k)
    {
        void *p = nullptr;
        must(cudaMallocAsync(&p, BYTES, N[k]), "cudaMallocAsync");
        for (void *block : blocks) {
            if (block != p) continue;
            ++got;
            look<<<1, 1, 0, N[k]>>>(mark, turn, early);
        }
        must(cudaGetLastError(), "look");
        kept.push_back(p);
    }

    void wait_for_the_free(int k)
    {
        must(cudaStreamWaitEvent(H[k], a[turn % EVENTS], 0), "cudaStreamWaitEvent");
    }
    void record(cudaEvent_t event, int k)
    {
        must(cudaEventRecord(event, H[k]), "cudaEventRecord");
    }
    void wait(int k, cudaEvent_t event)
    {
        must(cudaStreamWaitEvent(N[k], event, 0), "cudaStreamWaitEvent");
    }

    void record_and_take(int k)
    {
        record(event_of_h(k), k);
        wait(k, event_of_h(k));
        take(k);
    }

    void other_thread()
    {
        std::mt19937 random(2);
        for (counter m = 0;;) {
            if (!meet(2 * ++m) || stop) return; // the blocks are there
            for (int k = 0; k < TRIES; ++k) {
                if (!meet(2 * ++m)) return;
                busy(static_cast<unsigned>(random() % 1200));
                record_and_take(k);
            }
            if (!meet(2 * ++m)) return;
        }
    }

    void race(std::mt19937 &random)
    {
        meet(2 * ++meetings);
        for (int k = 0; k < TRIES; ++k) {
            meet(2 * ++meetings);
            busy(static_cast<unsigned>(random() % 1200));
            wait_for_the_free(k);
        }
        meet(2 * ++meetings);
    }

    void one_turn(std::mt19937 &random)
    {
        ++turn;
        if (it.what == NEWEST) {
            record(b[0][0], 0);
            wait(0, b[0][0]);
        }
        put();
        if (it.what == RACE) race(random);
        if (it.what == NEWEST) {
            wait_for_the_free(0);
            record(b[0][0], 0);
        }
        if (it.what == NEWEST || it.what == PENDING) take(0);
        for (int k = 0; it.what == AFTER && k < TRIES; ++k) {
            wait_for_the_free(k);
            record_and_take(k);
        }
        for (int k = 0; it.what == BEFORE && k < TRIES; ++k) {
            record(event_of_h(k), k);
            wait_for_the_free(k);
            wait(k, event_of_h(k));
            take(k);
        }
        must(cudaStreamSynchronize(O), "cudaStreamSynchronize");
    }

    void give_back()
    {
        must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        for (void *p : kept) must(cudaFreeAsync(p, O), "cudaFreeAsync");
        kept.clear();
        set_reuse(it.reuse);
    }

    void all(double seconds)
    {
        std::mt19937 random(1);
        std::thread other;
        arrived = 0;
        if (it.what == RACE) other = std::thread([this] { other_thread(); });
        const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
        while (std::chrono::steady_clock::now() < end) {
            one_turn(random);
            if (kept.size() > KEPT) give_back();
        }
        stop = true;
        if (it.what != RACE) return;
        meet(2 * ++meetings);
        other.join();
    }
};

// Returns whether the case is as it must be.
bool ask(const setup &it, double seconds)
{
    unsigned count = 0;
    set_reuse(it.reuse);
    must(cudaMemset(mark, 0, sizeof *mark), "cudaMemset");
    must(cudaMemset(early, 0, sizeof *early), "cudaMemset");
    run one(it);
    one.all(seconds * it.share);
    one.give_back();
    must(cudaMemcpy(&count, early, sizeof count, cudaMemcpyDeviceToHost), "cudaMemcpy");
    const bool known = it.what == RACE && (it.reuse & FOLLOW_EVENTS);
    const char *said = "";
    if (known) said = count ? "  (the defect of the driver: reuse by events)" : "  (not reproduced)";
    if (count && !known) said = "  WRONG";
    if (it.what == AFTER && !one.got) said = "  WRONG: no reuse was seen, so the other cases prove nothing";
    std::printf("%-8s reuse %d: %ld tries, N got a block of O %ld times, early %u%s\n", names[it.what],
                it.reuse, static_cast<long>(one.turn) * static_cast<long>(one.blocks.size()), one.got.load(),
                count, said);
    std::fflush(stdout);
    return (known || !count) && (it.what != AFTER || one.got);
}

void open()
{
    const auto stream = [](cudaStream_t *s) {
        must(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking), "stream");
    };
    const auto event = [](cudaEvent_t *e) {
        must(cudaEventCreateWithFlags(e, cudaEventDisableTiming), "event");
    };
    must(cudaMalloc(&mark, sizeof *mark), "cudaMalloc");
    must(cudaMalloc(&early, sizeof *early), "cudaMalloc");
    stream(&O);
    stream(&S);
    for (int k = 0; k < TRIES; ++k) {
        stream(&H[k]);
        stream(&N[k]);
    }
    event(&of_s);
    for (cudaEvent_t &e : a) event(&e);
    for (auto &row : b)
        for (cudaEvent_t &e : row) event(&e);
    hold<<<1, 1>>>(0, mark, 0); // loads the kernels
    look<<<1, 1>>>(mark, 0, early);
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

} // namespace

int main(int argc, char **argv)
{
    const setup cases[] = {{AFTER, 1, 0.25}, {RACE, 7, 1},     {RACE, 1, 1},      {RACE, 6, 1},
                           {BEFORE, 1, 0.3}, {NEWEST, 1, 0.3}, {PENDING, 2, 0.3}, {PENDING, 7, 0.3}};
    const char *only = nullptr;
    double seconds = 4;
    int devices = 0;
    bool right = true;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!std::strcmp(argv[i], "--seconds")) seconds = std::atof(argv[i + 1]);
        if (!std::strcmp(argv[i], "--case")) only = argv[i + 1];
    }
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); // with 8 queues a look may come late
    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
        std::puts("skipped: no GPU");
        return 77;
    }
    open();
    for (const setup &it : cases)
        if (!only || !std::strcmp(only, names[it.what])) right = ask(it, seconds) && right;
    return !right;
}
