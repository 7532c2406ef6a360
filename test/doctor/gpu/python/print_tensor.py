# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A tensor is printed in a capture.
# doctor: culprit R11 cudaStreamSynchronize
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

print(x)
with torch.cuda.graph(graph):
    y = x + 1
    print(y)  # culprit
