# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The device is waited for in a capture.
# doctor: culprit R12 cudaDeviceSynchronize
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

with torch.cuda.graph(graph):
    y = x + 1
    torch.cuda.synchronize()  # culprit
