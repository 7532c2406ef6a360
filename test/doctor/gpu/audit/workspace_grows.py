# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Graphs are captured for one batch size after the other, and a larger one lets the workspace grow: the earlier graph keeps
# the memory that went back to the allocator (vLLM 44053).
# doctor: stale_memory - cudaGraphLaunch
import torch


class Attention:
    workspace = None

    def run(self, x):
        if self.workspace is None or self.workspace.numel() < x.numel():
            self.workspace = torch.empty(x.numel(), device="cuda")  # allocated freed
        return torch.add(x, 1, out=self.workspace)


attention, graphs = Attention(), {}
inputs = {size: torch.ones(size << 16, device="cuda") for size in (1, 8)}
for size, x in inputs.items():
    attention.run(x)
    torch.cuda.synchronize()
    graphs[size] = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graphs[size]):
        attention.run(x)
graphs[8].replay()
graphs[1].replay()  # culprit
torch.cuda.synchronize()
