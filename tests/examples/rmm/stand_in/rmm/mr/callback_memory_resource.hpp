// A stand-in for RMM's header: callback_memory_resource of RMM 26.10 with cuda::stream_ref, or, with
// RMM_STAND_IN_OLD, of RMM 24.10 with rmm::cuda_stream_view.
#pragma once
#include <cstddef>
#include <functional>

struct CUstream_st;
namespace rmm {
#if defined(RMM_STAND_IN_OLD)
class cuda_stream_view {
public:
    cuda_stream_view(CUstream_st *stream) : stream_(stream) {}
    CUstream_st *value() const noexcept { return stream_; }
    operator CUstream_st *() const noexcept { return stream_; }

private:
    CUstream_st *stream_;
};
using stand_in_stream = cuda_stream_view;
#else
class stand_in_stream { // cuda::stream_ref
public:
    stand_in_stream(CUstream_st *stream) : stream_(stream) {}
    CUstream_st *get() const noexcept { return stream_; }

private:
    CUstream_st *stream_;
};
#endif

namespace mr {
using allocate_callback_t = std::function<void *(std::size_t, stand_in_stream, void *)>;
using deallocate_callback_t = std::function<void(void *, std::size_t, stand_in_stream, void *)>;

class callback_memory_resource {
public:
    callback_memory_resource(allocate_callback_t a, deallocate_callback_t d, void *a_arg = nullptr,
                             void *d_arg = nullptr)
        : allocate_(a), deallocate_(d), allocate_arg_(a_arg), deallocate_arg_(d_arg) {}
    void *allocate(stand_in_stream stream, std::size_t bytes, std::size_t = 256)
    {
        return allocate_(bytes, stream, allocate_arg_);
    }
    void deallocate(stand_in_stream stream, void *ptr, std::size_t bytes, std::size_t = 256) noexcept
    {
        deallocate_(ptr, bytes, stream, deallocate_arg_);
    }

private:
    allocate_callback_t allocate_;
    deallocate_callback_t deallocate_;
    void *allocate_arg_, *deallocate_arg_;
};
} // namespace mr
} // namespace rmm
