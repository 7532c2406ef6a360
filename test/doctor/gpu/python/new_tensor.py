# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A tensor is made of Python numbers, which lie in pageable memory; PyTorch refuses.
# doctor: refused R38 cudaStreamIsCapturing
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

with torch.cuda.graph(graph):
    y = x + 1
    y = y + torch.tensor([1.0], device="cuda")  # culprit
