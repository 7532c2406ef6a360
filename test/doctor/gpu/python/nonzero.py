# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The size of a result depends on data, so the host must read it.
# doctor: culprit R11 cudaStreamSynchronize
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

torch.nonzero(x)
with torch.cuda.graph(graph):
    y = x + 1
    indices = torch.nonzero(y)  # culprit
