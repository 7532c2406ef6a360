# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A mask selects elements: their number is read on the host.
# doctor: culprit R11 cudaStreamSynchronize
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

x[x > 0]
with torch.cuda.graph(graph):
    y = x + 1
    chosen = y[y > 0]  # culprit
