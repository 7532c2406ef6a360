# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Each step captures anew what it runs once.
# doctor: recaptured - -
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

for step in range(20):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # culprit
        y = x + 1
    graph.replay()
torch.cuda.synchronize()
