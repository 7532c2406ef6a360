# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A healthy graph of a thousand kernels, replayed a hundred times. Large enough that the device is busy throughout.
# doctor: none - -
import torch

x = torch.randn(1 << 24, device="cuda")


def layer(y, step):
    if step % 4 == 0:
        return y * 1.0001
    if step % 4 == 1:
        return torch.relu(y)
    if step % 4 == 2:
        return y + x
    return torch.tanh(y)


def model():
    y = x
    for step in range(1000):
        y = layer(y, step)
    return y


with torch.no_grad():
    layer(x, 0), layer(x, 1), layer(x, 2), layer(x, 3)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model()
    graph.replay()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(10):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
print(f"replay_us {begin.elapsed_time(end) * 100:.1f}")
