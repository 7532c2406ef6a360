# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A new generator of random numbers is made in a capture; PyTorch refuses.
# doctor: refused - cudaStreamIsCapturing
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

with torch.cuda.graph(graph):
    y = x + 1
    generator = torch.Generator(device="cuda")  # culprit
