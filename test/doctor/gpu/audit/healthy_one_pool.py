# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Two graphs share one pool, and are replayed in the order of their captures.
# doctor: none - -
import torch

x = torch.ones(1 << 20, device="cuda")
(x + 1).mul_(2)
torch.cuda.synchronize()
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    y = (x + 1).mul_(2)
with torch.cuda.graph(second, pool=first.pool()):
    z = (y + 1).mul_(2)
for _ in range(20):
    torch.empty(1 << 20, device="cuda").fill_(7)
    first.replay()
    second.replay()
assert z[0].item() == 10
