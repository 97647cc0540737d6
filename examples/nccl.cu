/* nccl.cu - the halo of fields on several devices by NCCL, in order with streams and without a wait of the host
 * SPDX-License-Identifier: MIT
 *
 * NCCL sends elements in a row. So each face is packed by a plan, sent on the consumer's stream, and unpacked.
 * One process has all devices, as with ncclCommInitAll. Each sends its last column inside to the next one.
 *
 *     nvcc -I. -Iext examples/nccl.cu -lnccl -o nccl_halo
 *     ./nccl_halo [unordered]     unordered: without waits between streams, to see what then happens */
#define CAI_IMPLEMENTATION
#include "cai_stream.h"
#include "cai_transfer.h"

#include <nccl.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t ROWS = 64, COLUMNS = 48; // of a field, with a column of halo at either side

int32_t mode = CAI_MODE_EVENT;

struct rank {
    int device, peers; // which of how many
    ncclComm_t comm;
    cudaStream_t producer, stream; // of the field's work; of NCCL
    float *memory, *buffers[2];    // of the field; what is sent, what is received
    cai_array inside, outside;     // the columns
    cai_exchange exchange;
    std::vector<float> values; // of the field, on the host: CUDA may read them after cudaMemcpyAsync returned
};

cai_status cuda_status(cudaError_t error, const char *what, cai_error *err)
{
    return cai_cuda_status(static_cast<int32_t>(error), what, err);
}

cai_status nccl_status(ncclResult_t code, const char *what, cai_error *err)
{
    if (code == ncclSuccess) return CAI_OK;
    return cai_error_set(CAI_ERR_UNAVAILABLE, what, ncclGetErrorString(code), err);
}

uint64_t address(const void *pointer)
{
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
}

// The value of an element at first: it says where it is.
float value_of(int device, int64_t row, int64_t column)
{
    return static_cast<float>(device * 10000 + row * 100 + column);
}

// ---------------------------------------------------------------- the exchange
cai_status begin(rank &r, cai_event_pool *pool, cai_error *err)
{
    cai_array *arrays[2] = {&r.inside, &r.outside};
    cai_exchange_options options = {};
    cai_transfer plan;
    options.mode = mode;
    CAI_TRY(cuda_status(cudaSetDevice(r.device), "cudaSetDevice", err));
    CAI_TRY(cai_transfer_pack(&plan, &r.inside, address(r.buffers[0]), err));
    CAI_TRY(cai_exchange_begin_with(&r.exchange, pool, arrays, 2, CAI_STREAM(r.stream), &options, err));
    const cai_status status = cai_transfer_copy(&plan, pool->cuda, r.exchange.stream, err);
    return status ? cai_exchange_end(&r.exchange, status, err) : CAI_OK;
}

cai_status send_and_receive(std::vector<rank> &ranks, cai_error *err)
{
    int32_t type, count;
    CAI_TRY(cai_nccl_dtype(&ranks[0].inside.dtype, &type, &count, err));
    CAI_TRY(nccl_status(ncclGroupStart(), "ncclGroupStart", err));
    for (rank &r : ranks) {
        const int next = (r.device + 1) % r.peers, previous = (r.device + r.peers - 1) % r.peers;
        const size_t elements = static_cast<size_t>(r.inside.size * count);
        const auto dtype = static_cast<ncclDataType_t>(type);
        CAI_TRY(
            nccl_status(ncclSend(r.buffers[0], elements, dtype, next, r.comm, r.stream), "ncclSend", err));
        CAI_TRY(nccl_status(ncclRecv(r.buffers[1], elements, dtype, previous, r.comm, r.stream), "ncclRecv",
                            err));
    }
    return nccl_status(ncclGroupEnd(), "ncclGroupEnd", err);
}

cai_status end(rank &r, cai_event_pool *pool, cai_status status, cai_error *err)
{
    cai_transfer plan;
    if (!status) status = cuda_status(cudaSetDevice(r.device), "cudaSetDevice", err);
    if (!status) status = cai_transfer_unpack(&plan, &r.outside, address(r.buffers[1]), err);
    if (!status) status = cai_transfer_copy(&plan, pool->cuda, r.exchange.stream, err);
    return cai_exchange_end(&r.exchange, status, err);
}

cai_status swap_halos(std::vector<rank> &ranks, cai_event_pool *pool, cai_error *err)
{
    cai_status status = CAI_OK;
    size_t begun = 0;
    while (begun < ranks.size() && !status) {
        status = begin(ranks[begun], pool, err);
        if (!status) ++begun;
    }
    if (!status) status = send_and_receive(ranks, err);
    for (size_t i = 0; i < begun; ++i) status = end(ranks[i], pool, status, err);
    return status;
}

// -------------------------------------------------------------------- the ranks
cai_status build(rank &r, cai_event_pool *pool, cai_error *err)
{
    const int64_t shape[2] = {ROWS, COLUMNS};
    std::vector<float> &values = r.values;
    cai_array field;
    for (int64_t row = 0; row < ROWS; ++row) {
        for (int64_t column = 0; column < COLUMNS; ++column)
            values.push_back(value_of(r.device, row, column));
    }
    CAI_TRY(cuda_status(cudaSetDevice(r.device), "cudaSetDevice", err));
    CAI_TRY(
        cuda_status(cudaStreamCreateWithFlags(&r.producer, cudaStreamNonBlocking), "cudaStreamCreate", err));
    CAI_TRY(
        cuda_status(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking), "cudaStreamCreate", err));
    CAI_TRY(cuda_status(cudaMalloc(&r.memory, values.size() * sizeof(float)), "cudaMalloc", err));
    for (float *&buffer : r.buffers)
        CAI_TRY(cuda_status(cudaMalloc(&buffer, ROWS * sizeof(float)), "cudaMalloc", err));
    CAI_TRY(cuda_status(cudaMemcpyAsync(r.memory, values.data(), values.size() * sizeof(float),
                                        cudaMemcpyDefault, r.producer),
                        "cudaMemcpyAsync", err));
    CAI_TRY(cai_array_init(&field, CAI_FLOAT32, 2, shape, nullptr, r.memory, err));
    CAI_TRY(cai_stream_export(&field, pool, CAI_STREAM(r.producer), nullptr, 0, err));
    CAI_TRY(cai_view_slice(&field, 1, COLUMNS - 2, 1, 1, &r.inside, err));
    return cai_view_slice(&field, 1, 0, 1, 1, &r.outside, err);
}

// Reads the field back on the producer's stream, behind the back edge.
cai_status wrong_elements(rank &r, int64_t *wrong, cai_error *err)
{
    std::vector<float> values(ROWS * COLUMNS);
    const int previous = (r.device + r.peers - 1) % r.peers;
    CAI_TRY(cuda_status(cudaSetDevice(r.device), "cudaSetDevice", err));
    CAI_TRY(cuda_status(cudaMemcpyAsync(values.data(), r.memory, values.size() * sizeof(float),
                                        cudaMemcpyDefault, r.producer),
                        "cudaMemcpyAsync", err));
    CAI_TRY(cuda_status(cudaStreamSynchronize(r.producer), "cudaStreamSynchronize", err));
    for (int64_t row = 0; row < ROWS; ++row) {
        for (int64_t column = 0; column < COLUMNS; ++column) {
            const float right =
                column ? value_of(r.device, row, column) : value_of(previous, row, COLUMNS - 2);
            *wrong += values[static_cast<size_t>(row * COLUMNS + column)] != right;
        }
    }
    return CAI_OK;
}

cai_status run(int devices, int64_t *wrong, cai_error *err)
{
    static cai_cuda_driver driver;
    std::vector<rank> ranks(static_cast<size_t>(devices));
    std::vector<ncclComm_t> comms(static_cast<size_t>(devices));
    cai_event_pool pool;
    CAI_TRY(cai_cuda_linked(&driver, err));
    CAI_TRY(cai_event_pool_init(&pool, &driver.cuda, nullptr, 0, 0, err));
    CAI_TRY(nccl_status(ncclCommInitAll(comms.data(), devices, nullptr), "ncclCommInitAll", err));
    for (int i = 0; i < devices; ++i) {
        rank &r = ranks[static_cast<size_t>(i)];
        r.device = i;
        r.peers = devices;
        r.comm = comms[static_cast<size_t>(i)];
        CAI_TRY(build(r, &pool, err));
    }
    CAI_TRY(swap_halos(ranks, &pool, err));
    for (rank &r : ranks) CAI_TRY(wrong_elements(r, wrong, err));
    for (rank &r : ranks) {
        (void)ncclCommDestroy(r.comm);
        CAI_TRY(cuda_status(cudaFree(r.memory), "cudaFree", err));
        for (float *buffer : r.buffers) CAI_TRY(cuda_status(cudaFree(buffer), "cudaFree", err));
    }
    return cai_event_pool_destroy(&pool, err);
}

// cai_nccl_dtype knows these numbers without <nccl.h>.
int wrong_numbers()
{
    static const struct {
        int32_t code;
        ncclDataType_t type;
    } rows[] = {
        {CAI_INT8, ncclInt8},
        {CAI_UINT8, ncclUint8},
        {CAI_INT32, ncclInt32},
        {CAI_UINT32, ncclUint32},
        {CAI_INT64, ncclInt64},
        {CAI_UINT64, ncclUint64},
        {CAI_FLOAT16, ncclFloat16},
        {CAI_FLOAT32, ncclFloat32},
        {CAI_FLOAT64, ncclFloat64},
        {CAI_BFLOAT16, ncclBfloat16},
#if NCCL_VERSION_CODE >= 22400
        {CAI_FLOAT8_E4M3FN, ncclFloat8e4m3},
        {CAI_FLOAT8_E5M2, ncclFloat8e5m2},
#endif
    };
    int wrong = 0;
    for (const auto &row : rows) {
        cai_dtype dtype;
        int32_t type = -1, count = 0;
        if (cai_dtype_of(row.code, &dtype, nullptr) || cai_nccl_dtype(&dtype, &type, &count, nullptr))
            ++wrong;
        else wrong += type != row.type || count != 1;
    }
    return wrong;
}

} // namespace

int main(int argc, char **argv)
{
    int devices = 0;
    int64_t wrong = wrong_numbers();
    cai_error err;
    if (argc > 1 && !std::strcmp(argv[1], "unordered")) mode = CAI_MODE_IGNORE;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
        std::puts("skipped: no device");
        return 77;
    }
    if (run(devices, &wrong, &err)) {
        std::printf("%s\n", err.message);
        return 1;
    }
    std::printf("%d devices, %lld wrong\n", devices, static_cast<long long>(wrong));
    return wrong != 0;
}
