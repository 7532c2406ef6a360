# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The capturing stream is waited for.
# doctor: culprit R11 cudaStreamSynchronize
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

with torch.cuda.graph(graph):
    y = x + 1
    torch.cuda.current_stream().synchronize()  # culprit
