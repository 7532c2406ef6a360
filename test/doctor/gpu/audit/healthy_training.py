# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A whole training step in one graph, with inputs that are copied in, and tensors that come and go beside it.
# doctor: none - -
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
x, target = torch.randn(64, 256, device="cuda"), torch.randn(64, 10, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
for _ in range(50):
    x.copy_(torch.randn(64, 256, device="cuda"))
    target.copy_(torch.randn(64, 10, device="cuda"))
    graph.replay()
    loss.item()
