# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A pool that is short of memory gives its buffers back to the driver, and the graph has them (llama.cpp 26771).
# doctor: stale_memory - cudaGraphLaunch
import cupy

x = cupy.ones(1 << 24, dtype=cupy.float32)
y = cupy.empty_like(x)  # allocated
cupy.multiply(x, 2, out=y)
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    stream.begin_capture()
    cupy.multiply(x, 2, out=y)
    graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    y = None  # freed
    cupy.get_default_memory_pool().free_all_blocks()
    graph.launch(stream)  # culprit
stream.synchronize()
