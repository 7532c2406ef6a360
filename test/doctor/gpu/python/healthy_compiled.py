# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# torch.compile captures by itself: mode="reduce-overhead" makes trees of graphs that share a pool.
# doctor: none - -
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 10)).cuda()
compiled = torch.compile(model, mode="reduce-overhead")
with torch.no_grad():
    for size in (8, 16):
        x = torch.randn(size, 64, device="cuda")
        for _ in range(10):
            torch.compiler.cudagraph_mark_step_begin()
            y = compiled(x)
        assert torch.allclose(y, model(x), rtol=1e-2, atol=1e-2)
torch.cuda.synchronize()
