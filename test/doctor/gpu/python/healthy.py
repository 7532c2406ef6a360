# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A capture as it should be: warm-up on a side stream, static inputs, a fork that is joined.
# doctor: none - -
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
x = torch.randn(32, 64, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.no_grad(), torch.cuda.stream(side):
    for _ in range(3):
        model(x)
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()

fork = torch.cuda.Stream()
with torch.no_grad(), torch.cuda.graph(graph):
    y = model(x)
    fork.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(fork):
        z = x * 2
    torch.cuda.current_stream().wait_stream(fork)
    w = y.sum() + z.sum()
for _ in range(100):
    x.copy_(torch.randn(32, 64))
    graph.replay()
torch.cuda.synchronize()
assert torch.allclose(w, model(x).sum() + (x * 2).sum(), rtol=1e-3, atol=1e-2)
