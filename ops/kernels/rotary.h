// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rotary.h: embeddings rotated by the positions of their tokens.
#ifndef GCAP_OPS_KERNELS_ROTARY_H_
#define GCAP_OPS_KERNELS_ROTARY_H_

#include <stdbool.h>

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_rotary {
  const gcap_tensor_t* cosines;    // [positions, n], 2 * n elements of an embedding are rotated; or, without
  const gcap_tensor_t* sines;      // `positions`, [batch, length, n]; of the type of x
  const gcap_tensor_t* positions;  // i64, [batch, length]; or [1], of the first token; NULL: each token has its row
  int64_t heads;                   // of an x of rank 3; else ignored
  bool interleaved;                // element 2i is rotated with 2i + 1, not i with i + n
} gcap_rotary_t;

// y = x with its embeddings rotated. x is [batch, heads, length, size] or [batch, length, heads * size], f32, f16 or
// bf16. A position that has no row gives zeros, and nothing outside of the rows is read.
//   INVALID_ARGUMENT  types or shapes that are not as said above; the message names them
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
gcap_status_t gcap_rotate(gcap_stream_t* stream, const gcap_rotary_t* how, const gcap_tensor_t* x,
                          const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_ROTARY_H_
