// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// op_launch.h: launches a kernel of one parameter struct.
#ifndef GCAP_OPS_KERNELS_OP_LAUNCH_H_
#define GCAP_OPS_KERNELS_OP_LAUNCH_H_

#include "gcap/status.h"
#include "gcap/stream.h"

enum { GCAP_BLOCK_THREADS = 256 };

// Launches `kernel` on `stream`, with the stream's device current meanwhile. `work` are the pieces that there are, of
// which a block does `per_block` at a time. The grid is bounded, since each kernel strides over what the grid does not
// cover, and depends on the work alone: to query the device would cost more than it gains.
//   CUDA_ERROR  the launch failed, or the device could not be made current
gcap_status_t gcap_op_launch(gcap_stream_t* stream, const void* kernel, int64_t work, int64_t per_block,
                             unsigned block_threads, void* params) GCAP_NODISCARD;

#endif  // GCAP_OPS_KERNELS_OP_LAUNCH_H_
