# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Nothing is captured.
# doctor: empty_graph R8 -
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

with torch.cuda.graph(graph):  # culprit
    pass
graph.replay()
torch.cuda.synchronize()
