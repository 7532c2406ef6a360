# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A result is copied to the host; PyTorch refuses.
# doctor: refused R38 cudaStreamIsCapturing
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

with torch.cuda.graph(graph):
    y = x + 1
    host = y.cpu()  # culprit
