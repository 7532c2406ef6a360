# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A warm-up after the capture asks for a larger workspace, which replaces the one that the graph has (vLLM 55336).
# doctor: stale_memory - cudaGraphLaunch
import torch

x = torch.ones(1 << 16, device="cuda")
workspace = torch.empty(1 << 16, device="cuda")  # allocated
torch.add(x, 1, out=workspace)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    torch.add(x, 1, out=workspace)
graph.replay()
workspace = torch.empty(1 << 20, device="cuda")  # freed
graph.replay()  # culprit
torch.cuda.synchronize()
