// A stand-in for RMM's header: the exceptions of RMM 26.10, as far as the adapter and its test use them.
#pragma once
#include <new>
#include <string>

namespace rmm {
class bad_alloc : public std::bad_alloc {
public:
    bad_alloc(const char *message) : what_(message) {}
    bad_alloc(const std::string &message) : what_(message) {}
    const char *what() const noexcept override { return what_.c_str(); }

private:
    std::string what_;
};
class out_of_memory : public bad_alloc {
public:
    using bad_alloc::bad_alloc;
};
} // namespace rmm
