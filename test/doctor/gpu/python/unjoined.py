# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A side stream does work in the capture and is never joined.
# doctor: unjoined R6 cudaStreamWaitEvent
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

side = torch.cuda.Stream()
with torch.cuda.graph(graph):
    y = x + 1
    side.wait_stream(torch.cuda.current_stream())  # culprit
    with torch.cuda.stream(side):
        z = x * 2
