// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Launches the ReLU kernel. The grid is bounded, since the kernel strides over whatever the grid does not cover, and
// depends on the count alone: asking the device would cost more than it gains. No state.
#include <inttypes.h>

#include "gcap/ops/kernels.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "ops/kernels/device_kernels.h"

enum {
  BLOCK_THREADS = 256,
  THREAD_ELEMENTS = 4,  // one float4
  MAX_BLOCKS = 4096,    // a few times what fills the largest GPU of today (132 multiprocessors of 8 such blocks)
};

static const int64_t max_count = INT64_C(1) << 40;

static gcap_status_t check_count(int64_t count) {
  if (count >= 1 && count <= max_count) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "count is %" PRId64 ", allowed are 1..%" PRId64, count, max_count);
}

gcap_status_t gcap_relu_f32(gcap_stream_t* stream, const float* x, float* y, int64_t count) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(check_count(count));
  const int64_t per_block = BLOCK_THREADS * THREAD_ELEMENTS;
  const int64_t blocks = (count + per_block - 1) / per_block;
  const dim3 grid = {blocks < MAX_BLOCKS ? (unsigned)blocks : MAX_BLOCKS, 1, 1};
  const dim3 block = {BLOCK_THREADS, 1, 1};
  void* args[] = {&x, &y, &count};
  const int device_id = gcap_stream_device(stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status =
      GCAP_CUDA(cudaLaunchKernel((const void*)gcap_kernel_relu_f32, grid, block, args, 0, gcap_stream_handle(stream)));
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}
