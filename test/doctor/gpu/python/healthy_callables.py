# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A training step of graphed callables: forward and backward graphs, on the threads of autograd too.
# doctor: none - -
import torch

torch.manual_seed(0)
layers = [torch.nn.Linear(32, 32).cuda() for _ in range(3)]
samples = tuple((torch.randn(16, 32, device="cuda", requires_grad=True),) for _ in layers)
graphed = torch.cuda.make_graphed_callables(tuple(layers), samples)
optimizer = torch.optim.SGD([p for layer in layers for p in layer.parameters()], lr=0.01)
x, target = torch.randn(16, 32, device="cuda"), torch.randn(16, 32, device="cuda")
losses = []
for _ in range(20):
    optimizer.zero_grad(set_to_none=True)
    y = x
    for layer in graphed:
        y = torch.relu(layer(y))
    loss = torch.nn.functional.mse_loss(y, target)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0]
