# SPDX-License-Identifier: MIT
"""Stream 2 is the per-thread stream of whoever uses the number (NVIDIA/thrust#1128 tells of such mixtures).

The main thread waits for its own stream 2, and the work is on that of the other thread.
"""
import sys
import threading

from cuda.core import PER_THREAD_DEFAULT_STREAM, Device

device = Device()
device.set_current()
buffer = device.allocate(4096, stream=PER_THREAD_DEFAULT_STREAM)
PER_THREAD_DEFAULT_STREAM.sync()


def produce() -> None:
    Device().set_current()
    buffer.fill(1, stream=PER_THREAD_DEFAULT_STREAM)  # still queued when the thread ends
    if "--fixed" in sys.argv:
        PER_THREAD_DEFAULT_STREAM.sync()


producer = threading.Thread(target=produce)
producer.start()
producer.join()
PER_THREAD_DEFAULT_STREAM.sync()  # that of this thread
buffer.fill(2, stream=PER_THREAD_DEFAULT_STREAM)
PER_THREAD_DEFAULT_STREAM.sync()
