# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Each call of an operator allocates its workspace and frees it on return, also in a capture (TensorRT-LLM 15534).
# doctor: stale_memory - cudaGraphLaunch
import cupy


def operator(x, y):
    workspace = cupy.empty_like(x)  # allocated
    cupy.multiply(x, 2, out=workspace)
    cupy.add(workspace, 1, out=y)
    del workspace  # freed


x = cupy.ones(1 << 16, dtype=cupy.float32)
y = cupy.empty_like(x)
operator(x, y)
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    operator(x, y)
    stream.begin_capture()
    operator(x, y)
    graph = stream.end_capture()
    graph.launch(stream)  # culprit
stream.synchronize()
