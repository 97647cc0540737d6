# SPDX-License-Identifier: MIT
"""Programs in which the host itself reads or refills pinned and managed memory, for check_findings.py. Each is
run under python -m cai_sim. BEGIN comes first in all."""

BEGIN = """
import numpy as np
from numba import cuda
from cuda.bindings import driver as d
s, t = cuda.stream(), cuda.stream()
x = cuda.to_device(np.ones(4096, np.float32))
pinned = cuda.pinned_array(4096, np.float32)
pinned[:] = 0
"""

READ = r'"copy" writes on s1 .*"access before this call" reads on the host .*nothing makes the host wait for s1'
REFILL = r'"copy" reads on s1 .*"access before this call" writes on the host .*nothing makes the host wait for s1'

POSSIBLE = r"\d possible races?"

# The exit status, the first line of the report, and what it must say.
RACES = {
    "read": ("x.copy_to_host(pinned, stream=s)\nprint(pinned.sum())\ns.synchronize()", 7, POSSIBLE, READ),
    "read_at_the_end": ("x.copy_to_host(pinned, stream=s)\nprint(pinned.sum())",
                        7, POSSIBLE, r'"access after the last call" reads on the host'),
    "refill": ("for i in range(3):\n    pinned[:] = i\n    x.copy_to_device(pinned, stream=s)\ns.synchronize()", 7, POSSIBLE, REFILL),
    "read_small": ("y = cuda.pinned_array(4, np.float32)\nx[:4].copy_to_host(y, stream=s)\nprint(y[0])\ns.synchronize()", 7, POSSIBLE, READ),
    "read_half": ("x[:2048].copy_to_host(pinned[:2048], stream=s)\nprint(pinned[5])\ns.synchronize()", 7, POSSIBLE, READ),
    "wrong_stream": ("x.copy_to_host(pinned, stream=s)\nt.synchronize()\nprint(pinned.sum())\ns.synchronize()", 7, POSSIBLE, READ),
    "wrong_event": ("e = cuda.event()\ne.record(s)\nx.copy_to_host(pinned, stream=s)\ne.synchronize()\nprint(pinned[1])\ns.synchronize()",
                    7, POSSIBLE, READ),
    "thread": ("import threading\nx.copy_to_host(pinned, stream=s)\nw = threading.Thread(target=lambda: print(pinned[0]))\n"
               "w.start()\nw.join()\ns.synchronize()", 7, POSSIBLE, READ),
    "to_file": ("import tempfile\nx.copy_to_host(pinned, stream=s)\nf = tempfile.TemporaryFile()\nf.write(memoryview(pinned))\n"
                "f.flush()\ns.synchronize()", 7, POSSIBLE, READ),
    "managed": ("m = cuda.managed_array(4096, np.float32)\nd.cuMemsetD8Async(m.ctypes.data, 1, m.nbytes, int(s.handle))\n"
                "print(m[7])\ns.synchronize()", 7, POSSIBLE, r'"set" writes on s1 .*reads on the host'),
}  # fmt: skip

CLEAN = {
    "synchronized": "x.copy_to_host(pinned, stream=s)\ns.synchronize()\nprint(pinned.sum())\npinned[:] = 2",
    "polled": "e = cuda.event()\nx.copy_to_host(pinned, stream=s)\ne.record(s)\nwhile not e.query(): pass\nprint(pinned[0])",
    "other_stream": "e = cuda.event()\nx.copy_to_host(pinned, stream=s)\ne.record(s)\ne.wait(t)\nt.synchronize()\nprint(pinned[0])",
    "device": "x.copy_to_host(pinned, stream=s)\ncuda.synchronize()\nprint(pinned[0])",
    "blocking": "x.copy_to_host(pinned)\nprint(pinned[0])\npinned[:] = 1\nx.copy_to_device(pinned)\npinned[:] = 2",
    "both_read": "pinned[:] = 3\nx.copy_to_device(pinned, stream=s)\nprint(pinned.sum())\ns.synchronize()",
    "ring": """
buffers = [(cuda.pinned_array(4096, np.float32), cuda.event()) for i in range(3)]
for i in range(12):
    b, e = buffers[i % 3]
    if i >= 3:
        e.synchronize()
    b[:] = i
    x.copy_to_device(b, stream=s)
    e.record(s)
s.synchronize()""",
    "parts": """
big = cuda.pinned_array(64 * 1024, np.float32)
big[:] = 0
e = [cuda.event() for i in range(16)]
for i in range(16):
    x.copy_to_host(big[i * 4096:(i + 1) * 4096], stream=s)
    e[i].record(s)
for i in range(16):
    e[i].synchronize()
    print(big[i * 4096], big[i * 4096 + 4095])""",
    "host_function": """
import ctypes
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def add(data):
    pinned[0] += 1
x.copy_to_host(pinned, stream=s)
d.cuLaunchHostFunc(int(s.handle), ctypes.cast(add, ctypes.c_void_p).value, 0)
x.copy_to_device(pinned, stream=s)
s.synchronize()
print(pinned[0])""",
    "faulthandler": "import faulthandler\nfaulthandler.enable()\nx.copy_to_host(pinned, stream=s)\ns.synchronize()\nprint(pinned[0])",
    "threads": """
import threading
def work():
    s, b = cuda.stream(), cuda.pinned_array(4096, np.float32)
    for i in range(50):
        x.copy_to_host(b, stream=s)
        s.synchronize()
        assert b[9] == 1
        b[:] = 0
w = [threading.Thread(target=work) for i in range(4)]
for one in w: one.start()
for one in w: one.join()""",
}
