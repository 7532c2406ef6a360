# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A framework that keeps its own account of captures refuses an operation: an exception and no call of CUDA, as NVIDIA
# Warp does. Its context manager ends the capture as the exception passes.
# doctor: exception - raise

import torch

captures = []


class Captured:
    def __enter__(self):
        captures.append(self)
        self.graph = torch.cuda.CUDAGraph()
        self.stream = torch.cuda.Stream()
        self.before = torch.cuda.current_stream()
        torch.cuda.set_stream(self.stream)
        self.graph.capture_begin()
        return self

    def __exit__(self, kind, error, trace):
        self.graph.capture_end()
        torch.cuda.set_stream(self.before)
        captures.remove(self)


def synchronize():
    if captures:
        raise RuntimeError("a stream that captures cannot be synchronized")
    torch.cuda.synchronize()


x = torch.ones(1024, device="cuda")
(x + 1).sum().item()  # warms up
torch.cuda.synchronize()
with Captured():
    y = x + 1
    synchronize()  # culprit
