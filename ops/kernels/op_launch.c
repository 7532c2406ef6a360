// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The one launch of this folder. No state.
#include "ops/kernels/op_launch.h"

#include "lib/internal/cuda_guard.h"

// A few times what fills the largest GPU of today (132 multiprocessors of 8 blocks of 256 threads).
enum { MAX_BLOCKS = 4096 };

gcap_status_t gcap_op_launch(gcap_stream_t* stream, const void* kernel, int64_t work, int64_t per_block,
                             unsigned block_threads, void* params) {
  const int64_t blocks = (work + per_block - 1) / per_block;
  const dim3 grid = {blocks < MAX_BLOCKS ? (unsigned)blocks : MAX_BLOCKS, 1, 1};
  const dim3 block = {block_threads, 1, 1};
  void* args[] = {params};
  const int device_id = gcap_stream_device(stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = GCAP_CUDA(cudaLaunchKernel(kernel, grid, block, args, 0, gcap_stream_handle(stream)));
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}
