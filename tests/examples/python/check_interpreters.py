#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The example module in several interpreters of one process: each has a state of its own, and takes it along.

    check_interpreters.py --cc COMPILER

Each interpreter imports the module, makes arrays on a stream, lets a thread run meanwhile, and leaves some imports
alive until it ends. From Python 3.12 on each has a GIL of its own, and all run at the same time. Exit status 77 where
this Python has no interpreters, or nothing to build with.
"""

import argparse
import importlib
import os
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
from build_module import build_example, needs, skip  # noqa: E402

INTERPRETERS, ROUNDS = 4, 300

CODE = """
import importlib.util, os
spec = importlib.util.spec_from_file_location("cai_saxpy", {path!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

class Source:  # a type of this interpreter, which the module remembers
    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__

class Host:
    def __init__(self, values):
        import array
        self.values = array.array("f", values)
        self.__array_interface__ = dict(shape=(len(values),), typestr="<f4", version=3,
                                        data=(self.values.buffer_info()[0], True))

stream = module.stream()
kept = []
for i in range({rounds}):
    host = Host([1.0, 2.0, float({number})])
    x, y = module.array(host, stream), module.array(host, stream)
    module.saxpy(2.0, x, Source(y), stream)  # by the exchange in C, and by the dictionary
    if i % 50 == 0:
        kept += [x, y]
    module.simulation(True)
state = module.simulation(True)
assert state["imported"] == 0 and state["waiting"] == 0 and state["queued"] == 0, state
memory = y.__array_interface__["data"][0]
if {read}:
    import ctypes
    values = list((ctypes.c_float * 3).from_address(memory))
    assert values == [3.0, 6.0, 3.0 * {number}], values
os.write({pipe}, b"{number}")
"""


def interpreters():
    """(create, run, destroy) of this Python, whatever it calls them."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return module.create, getattr(module, "run_string"), module.destroy
    return None


def run(path, number, pipe, functions, failures):
    create, execute, destroy = functions
    identity = create()
    try:
        # 3.12 has no ctypes in interpreters with a GIL of their own
        read = sys.version_info[:2] != (3, 12)
        text = CODE.format(path=str(path), rounds=ROUNDS, number=number, pipe=pipe, read=read)
        said = execute(identity, text)
        if said is not None:  # 3.13 returns what was raised
            failures.append(f"interpreter {number}: {said}")
    except Exception as error:
        failures.append(f"interpreter {number}: {error}")
    finally:
        destroy(identity)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cc", default="cc")
    options = parser.parse_args()
    needs(numpy=False, cc=options.cc)
    functions = interpreters()
    if not functions:
        skip("this Python has no interpreters beside the first")
    failures = []
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        path = build_example(options.cc, folder)
        threads = [threading.Thread(target=run, args=(path, number, writing, functions, failures))
                   for number in range(INTERPRETERS)]  # fmt: skip
        for thread in threads:
            thread.start()
            if sys.version_info < (3, 12):
                thread.join()  # one GIL for all: one after the other
        for thread in threads:
            thread.join()
        for number in range(INTERPRETERS, INTERPRETERS + 2):  # and again, once their states are gone
            run(path, number, writing, functions, failures)
    os.close(writing)
    finished = len(os.read(reading, 100))
    if finished != INTERPRETERS + 2:
        failures.append(f"{finished} of {INTERPRETERS + 2} came to their end")
    print(*failures, sep="\n", end="\n" if failures else "")
    print(f"Python {sys.version.split()[0]}: interpreters {INTERPRETERS + 2}, failures {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
