# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# An exception of the program's own leaves torch.cuda.graph, which ends the capture as it passes.
# doctor: exception - raise

import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()


def layer(name):
    raise KeyError(f"the model has no layer {name}")  # culprit


try:
    with torch.cuda.graph(graph):
        y = x + 1
        layer("head")
except KeyError:
    y = x + 1
torch.cuda.synchronize()
