# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# An error between begin and end leaves the stream capturing.
# doctor: left_open R7 -
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    graph.capture_begin()  # culprit
    y = x + 1
    raise ValueError("the model has no such layer")
