# SPDX-License-Identifier: MIT
"""A graph is built from a stream that is captured, completed, and launched between other work of its stream.
cuda.core's reference of `GraphBuilder`.
"""
from cuda.core import Device

device = Device()
device.set_current()
stream = device.create_stream()
buffer = device.allocate(64, stream=stream)
stream.sync()
builder = device.create_graph_builder().begin_building()
buffer.fill(1, stream=builder)
graph = builder.end_building().complete()
buffer.fill(2, stream=stream)
graph.launch(stream)
buffer.fill(3, stream=stream)
stream.sync()
buffer.close(stream)
