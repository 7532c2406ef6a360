// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// elementwise.h: gcap_unary and gcap_binary for the nodes of models, with the operators of elementwise_ops.h too.
#ifndef GCAP_OPS_KERNELS_ELEMENTWISE_H_
#define GCAP_OPS_KERNELS_ELEMENTWISE_H_

#include "gcap/kit/ops/elementwise.h"
#include "ops/kernels/elementwise_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// gcap_unary with parameters. `op` has kernels. What has none for the type of `x` is refused.
gcap_status_t gcap_unary_of(gcap_stream_t* stream, int op, float alpha, float beta, const gcap_tensor_t* x,
                            const gcap_tensor_t* y) GCAP_NODISCARD;

// gcap_binary with a parameter. `op` has kernels.
gcap_status_t gcap_binary_of(gcap_stream_t* stream, int op, float alpha, const gcap_tensor_t* a, const gcap_tensor_t* b,
                             const gcap_tensor_t* y) GCAP_NODISCARD;

// gcap_clip of integers with bounds that a double may not hold. A bound that the type does not have is the
// nearest that it has.
gcap_status_t gcap_clip_integers(gcap_stream_t* stream, int64_t low, int64_t high, const gcap_tensor_t* x,
                                 const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_ELEMENTWISE_H_
