# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# CuPy captures a stream of its own.
# doctor: none - -
import cupy

x = cupy.ones(1 << 16, dtype=cupy.float32)
y = cupy.empty_like(x)
cupy.multiply(x, 2, out=y)
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    stream.begin_capture()
    cupy.multiply(x, 2, out=y)
    cupy.add(y, 1, out=y)
    graph = stream.end_capture()
    for _ in range(5):
        graph.launch(stream)
stream.synchronize()
assert float(y[0]) == 3
