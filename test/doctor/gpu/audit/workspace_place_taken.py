# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A plan wants a few bytes more than the shared workspace has. It is freed and allocated elsewhere, and its old place is a
# tensor's at once (FlashInfer 4553).
# doctor: stale_memory - cudaGraphLaunch
import torch

x = torch.ones(1 << 22, device="cuda")
workspace = torch.empty(1 << 22, device="cuda")  # allocated
torch.add(x, 1, out=workspace)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    torch.add(x, 1, out=workspace)
place = workspace.data_ptr()
del workspace  # freed
tensor = torch.zeros(1 << 22, device="cuda")
assert tensor.data_ptr() == place
graph.replay()  # culprit
torch.cuda.synchronize()
