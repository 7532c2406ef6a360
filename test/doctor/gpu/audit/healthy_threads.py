# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Four threads capture one after the other, and replay a graph each at the same time.
# doctor: none - -
import threading

import torch

lock = threading.Lock()


def work(number):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.full((1 << 16,), float(number), device="cuda")
        (x + 1).sum()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with lock, torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            y = x + 1
        for _ in range(200):
            graph.replay()
        stream.synchronize()
        assert y[0].item() == number + 1


threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
