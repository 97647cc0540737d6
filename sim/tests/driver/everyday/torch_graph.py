# SPDX-License-Identifier: MIT
"""A step of training in a captured graph, replayed with other inputs."""
import torch

layer = torch.nn.Linear(16, 16, device="cuda")
static = torch.zeros(8, 16, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    layer(static).sum().backward()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    out = layer(static) * 2
for value in (1.0, 2.0):
    static.fill_(value)
    graph.replay()
print(out.sum().item())
