# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A cache that is short of memory gives its blocks back to the driver, and the graph has them: the device faults.
# doctor: stale_memory - cudaGraphLaunch
import torch

x = torch.ones(1 << 25, device="cuda")
y = torch.empty_like(x)  # allocated
torch.add(x, 1, out=y)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    torch.add(x, 1, out=y)
torch.cuda.synchronize()
del y  # freed
torch.cuda.empty_cache()
graph.replay()  # culprit
torch.cuda.synchronize()
