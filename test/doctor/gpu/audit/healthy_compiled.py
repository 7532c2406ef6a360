# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# torch.compile with its graph trees, forward and backward, over several shapes.
# doctor: none - -
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64)).cuda()
compiled = torch.compile(model, mode="reduce-overhead")
for _ in range(8):
    for rows in (8, 16):
        torch.compiler.cudagraph_mark_step_begin()
        compiled(torch.randn(rows, 64, device="cuda")).sum().backward()
        model.zero_grad(set_to_none=True)
torch.cuda.synchronize()
