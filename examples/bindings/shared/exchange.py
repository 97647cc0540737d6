"""An exchange between two streams through ctypes, with its proof: y = 2 x + 1.

    python3 exchange.py FOLDER        the folder has libcai.so and libcai_sim.so (docs/ffi.md)

A producer fills x on its stream and hands over the entries of a dictionary. The consumer checks them, works on a
stream of its own, and releases x at once. The owner, in Python, frees x in the order of the producer's stream. The
same runs again with one wait left out: the numbers are still right, and the race detector names the race.
"""

import ctypes
import pathlib
import sys
from ctypes import CFUNCTYPE, POINTER, byref, c_float, c_int64, c_void_p, cast, create_string_buffer

import cai_abi as c

N = 6  # elements of x and of y
BYTES = 4 * N
folder = pathlib.Path(sys.argv[1]).resolve()
cai, simulation = (ctypes.CDLL(str(folder / name)) for name in ("libcai.so", "libcai_sim.so"))
c.declare(cai, c.FUNCTIONS)
c.declare(simulation, c.SIM_FUNCTIONS)


class CaiError(Exception):
    """A status of libcai, with its message."""


def call(function, *arguments):
    """Calls a function whose last parameter is the error."""
    error = c.cai_error()
    status = function(*arguments, byref(error))
    if status:
        name = cai.cai_status_name(status).decode()
        raise CaiError(f"{name}: {error.message.decode('utf-8', 'replace')}")


class Memory:
    """What the producer owns: memory of a table of hooks, freed in the order of a stream."""

    def __init__(self, hooks, stream):
        self.hooks, self.stream, self.pointer = hooks, stream, c_void_p()
        call(cai.cai_emm_alloc, byref(self.pointer), hooks, BYTES, stream)

    def free(self):
        return cai.cai_emm_free(self.hooks, self.pointer, BYTES, self.stream, None)


owners = {}  # by array->owner: an owner lives until release


@CFUNCTYPE(None, POINTER(c.cai_array))
def release(array):
    """Runs once, on any thread, in any call of libcai. ctypes prints an exception of it and goes on."""
    array[0].release = None
    print("released by Python, status", owners.pop(array[0].owner).free())


def floats(address):
    return (c_float * N).from_address(address)


def launch(sim, stream, name, kernel, reads, writes):
    """Queues a kernel, which the simulation calls when its turn on the stream comes. Returns CUDA's error, and what
    must live until then."""
    function = CFUNCTYPE(None, c_void_p)(lambda _: kernel())
    rows = (c.cai_sim_access * 2)((reads, BYTES, 0), (writes, BYTES, 1))
    return simulation.cai_sim_launch(sim, stream, name, cast(function, c_void_p), None, rows, 2), function


def import_x(address, stream, x):
    """{'shape': (2, 3), 'typestr': '<f4', 'data': (address, False), 'version': 3, 'stream': stream}"""
    token = c.cai_token
    pair, version, on = token(c.CAI_TOKEN_TUPLE, 2), token(c.CAI_TOKEN_INT, 0, 3), token(c.CAI_TOKEN_INT, 0, stream)
    shape = (token * 3)(pair, token(c.CAI_TOKEN_INT, 0, 2), token(c.CAI_TOKEN_INT, 0, 3))
    data = (token * 3)(pair, token(c.CAI_TOKEN_INT, 0, address), token(c.CAI_TOKEN_BOOL, 0, 0))
    typestr = token(c.CAI_TOKEN_STR, 3, 0, b"<f4")
    entries = c.cai_interface(shape=shape, data=data)
    for name, value in (("typestr", typestr), ("version", version), ("stream", on)):
        setattr(entries, name, ctypes.pointer(value))
    call(cai.cai_import, entries, None, x)


def produce(sim, hooks, stream, x):
    memory = Memory(hooks, stream)
    address = memory.pointer.value

    def fill():
        floats(address)[:] = range(N)

    error, kept = launch(sim, stream, b"fill", fill, address, address)
    call(cai.cai_cuda_status, error, b"fill")
    import_x(address, stream, x)
    owners[address] = memory
    cai.cai_array_own(x, cast(release, c_void_p), address)
    x.flags |= c.CAI_ORDERED_FREE  # it is freed in the order of the stream that it names
    return kept


def consume(sim, pool, x, y, stream):
    def scale():
        floats(y.data)[:] = [2 * value + 1 for value in floats(x.data)]

    try:
        call(cai.cai_expect, x, b"x", c.CAI_FLOAT64, 1, c.CAI_ON_DEVICE)  # not what x is
    except CaiError as error:
        print(error)
    call(cai.cai_expect, x, b"x", c.CAI_FLOAT32, 2, c.CAI_ON_DEVICE)
    exchange, io = c.cai_exchange(), (POINTER(c.cai_array) * 1)(ctypes.pointer(x))
    call(cai.cai_exchange_begin, exchange, pool, io, 1, stream)
    error, kept = launch(sim, stream, b"scale", scale, x.data, y.data)
    call(cai.cai_exchange_finish, exchange, cai.cai_cuda_status(error, b"scale", None), io, 1)
    return kept


def exchange(sim):
    """Returns y."""
    x, y, pool, hooks = c.cai_array(), c.cai_array(), c.cai_event_pool(), c.cai_emm_hooks()
    cuda, streams = simulation.cai_sim_cuda(sim), [simulation.cai_sim_stream_create(sim, 1) for _ in range(2)]
    call(cai.cai_event_pool_init, pool, cuda, None, 0, 0)
    call(cai.cai_emm_hooks_async, hooks, cuda, None)  # CUDA's own pool: there is one thread
    kept = [produce(sim, hooks, streams[0], x)]
    call(cai.cai_emm_array, y, pool, hooks, c.CAI_FLOAT32, 2, (c_int64 * 2)(2, 3), streams[1])
    kept.append(consume(sim, pool, x, y, streams[1]))
    simulation.cai_sim_run(sim)  # the device does its work, here in the order of the calls
    numbers = [int(value) for value in floats(y.data)]
    cai.cai_array_release(y)
    simulation.cai_sim_run(sim)
    call(cai.cai_event_pool_destroy, pool)
    for stream in streams:
        simulation.cai_sim_stream_destroy(sim, stream)
    return numbers


if cai.cai_version() != c.CAI_H_INCLUDED or c.layout_fault():
    sys.exit(f"libcai is {cai.cai_version()}, cai_abi.py {c.CAI_H_INCLUDED} {c.layout_fault()}")
for omit in range(3):
    sim = simulation.cai_sim_create(1)
    simulation.cai_sim_set_context(sim, simulation.cai_sim_primary(sim, 0))
    simulation.cai_sim_omit_op(sim, b"stream_wait_event", omit)  # 0: none
    y = " ".join(map(str, exchange(sim)))
    race, text = c.cai_check_race(), create_string_buffer(c.CAI_CHECK_TEXT)
    races, leaks = simulation.cai_check_races(sim, race, 1), simulation.cai_sim_leaks(sim, None, 0)
    print(f"wait left out: {omit}; y [{y}], races {races}, leaks {leaks}")
    if races:
        simulation.cai_check_race_text(sim, race, text)
        print(f"    {text.value.decode()}")
    simulation.cai_sim_destroy(sim)
