# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# CuPy copies a result to the host in a capture.
# doctor: refused - cudaStreamIsCapturing
import cupy

x = cupy.ones(1 << 16, dtype=cupy.float32)
y = cupy.empty_like(x)
cupy.multiply(x, 2, out=y)
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    stream.begin_capture()
    cupy.multiply(x, 2, out=y)
    print(float(y[0]))  # culprit
    graph = stream.end_capture()
