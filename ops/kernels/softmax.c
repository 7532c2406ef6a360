// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Launches softmax over rows: a warp a row while a warp's lanes have enough to do and no more, else a block a row. No
// state.
#include <inttypes.h>

#include "gcap/ops/kernels.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "ops/kernels/device_kernels.h"

enum {
  WARP_THREADS = 32,
  WARP_KERNEL_THREADS = 256,
  BLOCK_KERNEL_THREADS = 512,
  WARP_MAX_COLS = 1024,  // 32 elements a lane; above, a row has work for a whole block
};

static const int64_t max_rows = INT32_MAX;
static const int64_t max_cols = INT64_C(1) << 20;

static gcap_status_t check_sizes(int64_t rows, int64_t cols) {
  if (rows < 1 || rows > max_rows) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "rows is %" PRId64 ", allowed are 1..%" PRId64, rows, max_rows);
  }
  if (cols < 1 || cols > max_cols) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "cols is %" PRId64 ", allowed are 1..%" PRId64, cols, max_cols);
  }
  return NULL;
}

static gcap_status_t launch(const float* x, float* y, int64_t rows, int64_t cols, cudaStream_t stream) {
  void* args[] = {&x, &y, &rows, &cols};
  if (cols > WARP_MAX_COLS) {
    const dim3 grid = {(unsigned)rows, 1, 1};
    const dim3 block = {BLOCK_KERNEL_THREADS, 1, 1};
    return GCAP_CUDA(cudaLaunchKernel((const void*)gcap_kernel_softmax_block_f32, grid, block, args, 0, stream));
  }
  const int64_t rows_per_block = WARP_KERNEL_THREADS / WARP_THREADS;
  const dim3 grid = {(unsigned)((rows + rows_per_block - 1) / rows_per_block), 1, 1};
  const dim3 block = {WARP_KERNEL_THREADS, 1, 1};
  return GCAP_CUDA(cudaLaunchKernel((const void*)gcap_kernel_softmax_warp_f32, grid, block, args, 0, stream));
}

gcap_status_t gcap_softmax_f32(gcap_stream_t* stream, const float* x, float* y, int64_t rows, int64_t cols) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(check_sizes(rows, cols));
  const int device_id = gcap_stream_device(stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = launch(x, y, rows, cols, gcap_stream_handle(stream));
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}
