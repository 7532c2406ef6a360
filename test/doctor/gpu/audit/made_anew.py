# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Small tensors with the layout of block tables are made anew at a wake-up (vLLM 53197).
# doctor: stale_memory - cudaGraphLaunch
import torch

layout = torch.arange(1024, device="cuda")  # allocated
output = torch.empty_like(layout)
torch.add(layout, 1, out=output)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    torch.add(layout, 1, out=output)
graph.replay()
layout = None  # freed
layout = torch.arange(1024, device="cuda")
graph.replay()  # culprit
torch.cuda.synchronize()
