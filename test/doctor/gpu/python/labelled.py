# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Ranges of NVTX label the nodes of a graph. run.py compares the labels' times with the program's own events.
# doctor: none - -

import torch
from torch.cuda import nvtx

x = torch.rand(4096, 4096, device="cuda")
y = torch.rand(4096, 4096, device="cuda")
for _ in range(3):
    (x @ y).relu().sum()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    with nvtx.range("step"):
        for _ in range(4):
            with nvtx.range("product"):
                z = x @ y
            with nvtx.range("activation"):
                z = z.relu()
    total = z.sum()  # has no label
graph.replay()
torch.cuda.synchronize()
first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
first.record()
for _ in range(100):
    graph.replay()
last.record()
torch.cuda.synchronize()
print(f"replay {first.elapsed_time(last) / 100 * 1e6:.0f} ns")
