# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# An exception in a capture of CuPy, without a call of CUDA: it ends the program, and nobody the capture.
# doctor: exception - raise

import cupy

x = cupy.ones(1 << 16, dtype=cupy.float32)
y = cupy.empty_like(x)
cupy.multiply(x, 2, out=y)
stream = cupy.cuda.Stream(non_blocking=True)


def check():
    raise RuntimeError("a capture cannot be waited for")  # culprit


with stream:
    stream.begin_capture()
    cupy.multiply(x, 2, out=y)
    check()
    graph = stream.end_capture()
