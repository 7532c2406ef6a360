# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Another thread allocates while a capture in global mode is open.
# doctor: culprit R26 cudaMalloc
import threading

import torch

x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
graph = torch.cuda.CUDAGraph()


def load():
    return torch.empty(1 << 28, device="cuda")  # culprit


with torch.cuda.graph(graph):
    y = x + 1
    thread = threading.Thread(target=load, name="loader")
    thread.start()
    thread.join()
