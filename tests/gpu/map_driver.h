// map_driver.h - what the programs share that ask the driver about tensor maps
// SPDX-License-Identifier: MIT
#ifndef CAI_MAP_DRIVER_H
#define CAI_MAP_DRIVER_H

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace {

enum { MOST_PRINTED = 40 };

int differences;

// Stores the driver's function, and makes the context.
template <class Encode> bool find_encode(const char *name, Encode *encode)
{
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *function = nullptr;
    if (cudaFree(nullptr) || cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found) ||
        found != cudaDriverEntryPointSuccess) {
        std::printf("%s was not found\n", name);
        return false;
    }
    *encode = reinterpret_cast<Encode>(function);
    return true;
}

// Returns the major compute capability of a device that has tensor maps, else 0.
int find_device()
{
    int devices = 0, major = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices &&
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess && major >= 9)
        return major;
    std::printf("skipped: no GPU of compute capability 9.0 or higher\n");
    return 0;
}

// Draws from what the device has: before 10.0 no packed types and no swizzles of atoms.
world_chance chance_of(int argc, char **argv, int major)
{
    return {argc > 2 ? static_cast<uint64_t>(std::atoll(argv[2])) : 20240611, major < 10 ? 13 : 16,
            major < 10 ? 4 : 7};
}

template <int SENTENCES> struct tally {
    long long both_take = 0, both_refuse = 0, alone[SENTENCES] = {};
    std::map<std::string, long long> ours; // what a call cannot have, or the document says nothing of
};

template <int SENTENCES, class Sentence>
void print_tally(const tally<SENTENCES> &count, const Sentence (&document)[SENTENCES], const char *ours)
{
    for (int row = 0; row < SENTENCES; ++row)
        std::printf("%6lld refused by both: %s\n", count.alone[row], document[row].text);
    for (const auto &reason : count.ours)
        std::printf("%6lld %s: %s\n", reason.second, ours, reason.first.c_str());
}

} // namespace

#endif
