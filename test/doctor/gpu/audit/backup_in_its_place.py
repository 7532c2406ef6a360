# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What a capture used for a while and freed is handed out again, to the backup that a step is rolled back to (CubeCL 1612).
# doctor: stale_memory - cudaGraphLaunch
import cupy

state = cupy.ones(1 << 16, dtype=cupy.float32)
other = cupy.ones(1 << 16, dtype=cupy.float32)
cupy.multiply(state, 2, out=other)
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    intermediate = cupy.empty_like(state)  # allocated
    place = intermediate.data.ptr
    stream.begin_capture()
    cupy.multiply(state, 2, out=intermediate)
    cupy.add(intermediate, 1, out=state)
    graph = stream.end_capture()
    del intermediate  # freed
    backup = cupy.empty_like(state)
    assert backup.data.ptr == place
    graph.launch(stream)  # culprit
stream.synchronize()
