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

// Lengths for batches, or a number for each key, of all queries or of each.
static gcap_status_t take_padding(const gcap_attention_how_t* how, const gcap_tensor_t* scores,
                                  const gcap_tensor_t* weights, gcap_attention_params_t* params) {
  const gcap_tensor_t* padding = how->padding;
  const int64_t batch = scores->shape[0], queries = scores->shape[2], keys = scores->shape[3];
  const int64_t shapes[][3] = {{batch}, {batch, keys}, {batch, queries, keys}};
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("padding", padding));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("padding", padding, GCAP_DTYPE_I32, "they are counted"));
  if (padding->rank < 1 || padding->rank > 3) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "padding.rank is %d, allowed are 1..3", padding->rank);
  }
  GCAP_RETURN_IF_ERROR(gcap_check_shape("padding", padding, padding->rank, shapes[padding->rank - 1],
                                        "[batch], [batch, keys] or [batch, queries, keys] of the scores"));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("weights", weights, "padding", padding, /*or_same=*/false));
  params->padding = padding->data;
  params->padding_is_length = padding->rank == 1;
  params->padding_steps[0] = padding->rank == 1 ? 1 : padding->rank == 2 ? keys : queries * keys;
  params->padding_steps[1] = padding->rank == 3 ? keys : 0;
  params->filter = how->filter;
  return NULL;
}

gcap_status_t gcap_attention_weights(gcap_stream_t* stream, const gcap_attention_how_t* how,
                                     const gcap_tensor_t* scores, const gcap_tensor_t* weights) {
  GCAP_RETURN_IF_ERROR(check(scores, how->mask, weights));
  gcap_attention_params_t params = {.scores = scores->data,
                                    .weights = weights->data,
                                    .heads = scores->shape[1],
                                    .queries = scores->shape[2],
                                    .keys = scores->shape[3],
                                    .rows = scores->shape[0] * scores->shape[1] * scores->shape[2],
                                    .is_causal = how->visible >= 0,
                                    .visible = how->visible,
                                    .softcap = how->softcap};
  if (how->mask != NULL) GCAP_RETURN_IF_ERROR(take_mask(how->mask, scores, &params));
  if (how->padding != NULL) GCAP_RETURN_IF_ERROR(take_padding(how, scores, weights, &params));
  if (params.rows == 0 || params.keys == 0) return NULL;
  const gcap_row_lanes_t lanes = gcap_choose_row_lanes(params.rows, params.keys, /*across=*/false);
  params.lanes = lanes.lanes;
  return gcap_op_launch(stream, kernels[weights->dtype], params.rows, lanes.block_threads / lanes.lanes,
                        lanes.block_threads, &params);
}
