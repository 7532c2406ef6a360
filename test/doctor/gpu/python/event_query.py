# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# An event of before the capture is queried.
# doctor: culprit R14 cudaEventQuery
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

event = torch.cuda.Event()
event.record()
with torch.cuda.graph(graph):
    y = x + 1
    done = event.query()  # culprit
