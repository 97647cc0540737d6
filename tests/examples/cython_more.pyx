# What test_cython.py asks of cai.pxd beside the saxpy of the example. Both are one module.
# SPDX-License-Identifier: MIT
include "saxpy_cython.pyx"
from libc.stdint cimport int64_t, uintptr_t
from libcpp.utility cimport move
from libcpp.vector cimport vector

cdef extern from *:
    """
    #include "caster_more.h"
    namespace more {
    static cai_cython::array cython_numbers(int64_t size)
    {
        cai_cython::array made;
        static_cast<cai::array &>(made) = numbers(size);
        return made;
    }
    }
    static inline void open_more(saxpy_device *opened)
    { more::open(opened); }
    """
    int saxpy_device_run(saxpy_device *)
    const char *saxpy_device_calls(saxpy_device *)
    void open_more(saxpy_device *)
    float[6] c_memory "more::memory"
    int64_t c_released "more::released"
    void c_make "more::make"(cai.array &, int64_t, uint64_t, bint) except +error
    cai.array c_numbers "more::cython_numbers"(int64_t) except +error
    object c_adopt_borrowed "more::adopt_borrowed"()
    int64_t c_alive "more::alive"()
    void c_make_ordered "more::make_ordered"(cai.array &, uint64_t) except +error
    void c_set_no_defaults "more::set_no_defaults"(bint)
    uint64_t c_new_stream "more::new_stream"()
    void c_make_written "more::make_written"(cai.array &, uint64_t) except +error
    int64_t c_early "more::early"
    int64_t c_lose "more::lose"(cai.array &)
    uint64_t c_thread "more::thread_of"(cai.array &)
    int c_synchronize "more::synchronize"(uint64_t)
    int c_capture "more::capture"(uint64_t, bint)
    void c_poll "more::poll"() except +error

open_more(device)


def which(x):
    """Overloads by the dtype, and for what is no array."""
    cdef cai.array taken
    if x is None:
        return "None"
    if not cai.try_take(x, 0, taken):
        return "text " + x if isinstance(x, str) else "object"
    if taken.dtype == cai.CAI_FLOAT32:
        return f"float32 {taken.size}"
    if taken.dtype == cai.CAI_FLOAT64:
        return f"float64 {taken.shape[0]} {taken.strides[0]}"
    raise TypeError("float32 or float64 is expected")


def only(x):
    cdef cai.array taken = cai.take(x, 0)
    return taken.size


def optional(x=None):
    cdef cai.array taken
    if x is not None:
        taken = cai.take(x, 0)
    return -1 if x is None else taken.size


def host(x):
    cdef cai.array taken = cai.take(x, cai.CAI_PYTHON_HOST)
    return taken.size


def sizes(objects):
    """A list of arrays, all or none."""
    cdef vector[cai.array] taken
    cdef size_t i
    taken.resize(len(objects))
    for i in range(taken.size()):
        taken[i] = move(cai.take(objects[i], cai.CAI_PYTHON_HOST))
    return sum([taken[i].size for i in range(taken.size())])


def stream(s):
    return cai.stream(s)


def made(int64_t size, s, bint owned):
    cdef cai.array array
    c_make(array, size, cai.stream(s), owned)
    return cai.give(array, s)


def ordered(s):
    cdef cai.array array
    c_make_ordered(array, cai.stream(s))
    return cai.give(array, s)


def written(s):
    cdef cai.array array
    c_make_written(array, cai.stream(s))
    return cai.give(array, s)


def by_value(x):
    cdef cai.array taken = cai.take(x, cai.CAI_PYTHON_HOST)
    return c_lose(taken)


def thread(x):
    cdef cai.array taken = cai.take(x, 0)
    return c_thread(taken)


def synchronize(uint64_t stream):
    return c_synchronize(stream)


def capture(uint64_t stream, bint begins):
    return c_capture(stream, begins)


def early():
    return c_early


def numbers(int64_t size):
    cdef cai.array array = c_numbers(size)
    return cai.give(array, None)


def adopt_borrowed():
    return c_adopt_borrowed()


def same(x):
    cdef cai.array taken = cai.take(x, 0)
    return cai.give(taken, None)


def throws(x, s, bint ends):
    """An exception of Python between begin and finish, and one after it."""
    cdef cai.array taken = cai.take(x, 0)
    cdef cai.exchange ex
    ex.begin(cai.stream(s), taken)
    if ends:
        ex.finish()
    raise RuntimeError("thrown between begin and finish")


def throws_in_c(x, s):
    cdef cai.array taken = cai.take(x, 0)
    cdef cai.exchange ex
    cdef uint64_t number = cai.stream(s)
    with nogil:
        ex.begin(number, taken)
        cai.expect(&taken, "x", cai.CAI_FLOAT64, 1, 0)
        ex.finish()


def no_begin():
    cdef cai.exchange ex
    ex.finish()


def memory():
    return <uintptr_t>c_memory


def fill(float value):
    cdef int i
    for i in range(6):
        c_memory[i] = value


def first():
    return c_memory[0]


def new_stream():
    return c_new_stream()


def run():
    return saxpy_device_run(device)


def calls():
    return saxpy_device_calls(device).decode()


def released():
    return c_released


def drain():
    cai.drain()


def poll():
    c_poll()


def set_no_defaults(bint on):
    c_set_no_defaults(on)


def alive():
    return c_alive()
