# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# An event that was recorded in the capture is waited for.
# doctor: culprit R13 cudaEventSynchronize
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

with torch.cuda.graph(graph):
    y = x + 1
    event = torch.cuda.Event()
    event.record()
    event.synchronize()  # culprit
