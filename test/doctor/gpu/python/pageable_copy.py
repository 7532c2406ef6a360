# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Memory of the host that is not pinned is copied; PyTorch refuses.
# doctor: refused R38 cudaStreamIsCapturing
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

host = torch.ones(1024)
with torch.cuda.graph(graph):
    y = x + 1
    y.copy_(host, non_blocking=True)  # culprit
