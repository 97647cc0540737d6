# cython: subinterpreters_compatible = own_gil
# cython: freethreading_compatible = True
# caster_interpreters.pyx - the module of test_caster_interpreters.py, by Cython
# SPDX-License-Identifier: MIT
cimport cai
from cai cimport error
from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    #include "caster_interpreters.h"
    static void drop_here(cai_cython::array &from)
    {
        const cai_cython::array mine(std::move(from));
    }
    """
    void drop_here(cai.array &) nogil

cdef extern from "caster_interpreters.h" namespace "several":
    const cai.cai_cuda *cuda()
    void c_make "several::make"(cai.array &, int64_t, uint64_t) except +error
    int64_t exchange(cai.array &, uint64_t) except +error
    void c_run "several::run"() except +error
    void c_drain "several::drain"() except +error
    int64_t c_alive "several::alive"()
    uint64_t c_pool "several::pool"()
    int64_t c_states "several::states"()
    int64_t c_lost "several::lost"()
    uint64_t c_new_stream "saxpy_device_new_stream(several::device()) + "(int)

array = cai.open(cuda())


def made(int64_t size, s):
    cdef cai.array array
    c_make(array, size, cai.stream(s))
    return cai.give(array, s)


def size(x):
    cdef cai.array taken = cai.take(x, 0)
    return taken.size


def exchanged(s, x):
    cdef cai.array taken = cai.take(x, 0)
    return exchange(taken, cai.stream(s))


def new_stream():
    return c_new_stream(0)


def run():
    c_run()


def drain():
    c_drain()


def alive():
    return c_alive()


def drop_without_gil(x):
    cdef cai.array taken = cai.take(x, 0)
    with nogil:
        drop_here(taken)


def pool():
    return c_pool()


def states():
    return c_states()


def lost():
    return c_lost()
