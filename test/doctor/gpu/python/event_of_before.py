# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The capture waits for an event that was recorded before.
# doctor: culprit R17 cudaStreamWaitEvent
import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()

event = torch.cuda.Event()
event.record()
with torch.cuda.graph(graph):
    y = x + 1
    torch.cuda.current_stream().wait_event(event)  # culprit
