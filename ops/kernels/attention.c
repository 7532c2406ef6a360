// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The weights of an attention: checks, the steps of the mask, the launch. No state.
#include "ops/kernels/attention.h"

#include "ops/kernels/attention_kernels.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/row_lanes.h"

#define ENTRY(T) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_attention_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_ATTENTION_KERNELS(ENTRY)};

enum { RANK = 4 };

static gcap_status_t check(const gcap_tensor_t* scores, const gcap_tensor_t* mask, const gcap_tensor_t* weights) {
  const unsigned floats = 1u << GCAP_DTYPE_F32 | 1u << GCAP_DTYPE_F16 | 1u << GCAP_DTYPE_BF16;
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("scores", scores));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("weights", weights));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("scores", scores, GCAP_DTYPE_F32, "they are sums"));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among("attention", weights->dtype, floats));
  GCAP_RETURN_IF_ERROR(gcap_check_shape("weights", weights, RANK, scores->shape, "the shape of the scores"));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("weights", weights, "scores", scores, /*or_same=*/true));
  if (mask == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("mask", mask));
  if (mask->dtype != GCAP_DTYPE_BOOL) {
    GCAP_RETURN_IF_ERROR(gcap_check_dtype("mask", mask, weights->dtype, "the type of the weights, or bool"));
  }
  return gcap_check_apart("weights", weights, "mask", mask, /*or_same=*/false);
}

// An axis that the mask lacks, or has of size 1, is broadcast.
static gcap_status_t take_mask(const gcap_tensor_t* mask, const gcap_tensor_t* scores,
                               gcap_attention_params_t* params) {
  if (mask->rank < 1 || mask->rank > RANK) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "mask.rank is %d, allowed are 1..%d", mask->rank, RANK);
  }
  int64_t shape[RANK] = {0}, step = 1;
  for (int d = mask->rank - 1; d >= 0; --d) {
    const int axis = d + RANK - mask->rank;
    const bool is_one = mask->shape[d] == 1 && axis < RANK - 1;
    shape[d] = is_one ? 1 : scores->shape[axis];
    if (axis < RANK - 1) params->mask_steps[axis] = is_one ? 0 : step;
    step *= mask->shape[d];
  }
  params->mask = mask->data;
  params->mask_type = mask->dtype == GCAP_DTYPE_BOOL ? GCAP_MASK_BOOL : GCAP_MASK_NUMBER;
  return gcap_check_shape("mask", mask, mask->rank, shape, "the shape of the scores, or 1 for axes but the last");
}

gcap_status_t gcap_attention_weights(gcap_stream_t* stream, const gcap_tensor_t* scores, const gcap_tensor_t* mask,
                                     float softcap, int64_t visible, const gcap_tensor_t* weights) {
  GCAP_RETURN_IF_ERROR(check(scores, mask, weights));
  gcap_attention_params_t params = {.scores = scores->data,
                                    .weights = weights->data,
                                    .heads = scores->shape[1],
                                    .queries = scores->shape[2],
                                    .keys = scores->shape[3],
                                    .rows = scores->shape[0] * scores->shape[1] * scores->shape[2],
                                    .is_causal = visible >= 0,
                                    .visible = visible,
                                    .softcap = softcap};
  if (mask != NULL) GCAP_RETURN_IF_ERROR(take_mask(mask, scores, &params));
  if (params.rows == 0 || params.keys == 0) return NULL;
  const gcap_row_lanes_t lanes = gcap_choose_row_lanes(params.rows, params.keys, /*across=*/false);
  params.lanes = lanes.lanes;
  return gcap_op_launch(stream, kernels[weights->dtype], params.rows, lanes.block_threads / lanes.lanes,
                        lanes.block_threads, &params);
}
