# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Work goes to the default stream, beside the capture.
# doctor: escaped R64 cudaLaunchKernel
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

x * 2
with torch.cuda.graph(graph):
    y = x + 1
    with torch.cuda.stream(torch.cuda.default_stream()):
        z = x * 2  # culprit
graph.replay()
torch.cuda.synchronize()
