# SPDX-License-Identifier: MIT
"""Each thread has its stream and its array, and the main thread reads all after it joined them and waited."""
import threading

import numpy as np
from numba import cuda

cuda.select_device(0)
streams = [cuda.stream() for _ in range(3)]
arrays = [None] * len(streams)


def produce(i):
    host = np.full(256, i, np.float32)
    arrays[i] = cuda.to_device(host, stream=streams[i])
    streams[i].synchronize()


threads = [threading.Thread(target=produce, args=(i,)) for i in range(len(streams))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
results = [array.copy_to_host() for array in arrays]  # each on the stream of its array, so it may return early
for stream in streams:
    stream.synchronize()
assert [result[0] for result in results] == [0, 1, 2]
