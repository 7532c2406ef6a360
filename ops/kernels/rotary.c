// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The rotation of embeddings: checks, where tokens are, the launch. No state.
#include "ops/kernels/rotary.h"

#include <inttypes.h>

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/rotary_kernels.h"

#define ENTRY(T) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_rotary_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_ROTARY_KERNELS(ENTRY)};

static gcap_status_t check_operand(const char* name, const gcap_tensor_t* tensor, const gcap_tensor_t* x,
                                   const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor(name, tensor));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype(name, tensor, x->dtype, "the type of x"));
  return gcap_check_apart("y", y, name, tensor, /*or_same=*/false);
}

static gcap_status_t check(const gcap_rotary_t* how, const gcap_tensor_t* x, const gcap_tensor_t* y) {
  const unsigned floats = 1u << GCAP_DTYPE_F32 | 1u << GCAP_DTYPE_F16 | 1u << GCAP_DTYPE_BF16;
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(check_operand("x", x, x, y));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among("a rotation", x->dtype, floats));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("y", y, x->dtype, "the type of x"));
  GCAP_RETURN_IF_ERROR(gcap_check_shape("y", y, x->rank, x->shape, "the shape of x"));
  GCAP_RETURN_IF_ERROR(check_operand("cosines", how->cosines, x, y));
  GCAP_RETURN_IF_ERROR(check_operand("sines", how->sines, x, y));
  return gcap_check_shape("sines", how->sines, how->cosines->rank, how->cosines->shape, "the shape of the cosines");
}

// Where the tokens of x are.
static gcap_status_t take_layout(const gcap_rotary_t* how, const gcap_tensor_t* x, gcap_rotary_params_t* params) {
  if (x->rank != 3 && x->rank != 4) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "x.rank is %d, allowed are 3 and 4", x->rank);
  }
  const bool is_packed = x->rank == 3;
  if (is_packed && (how->heads < 1 || x->shape[2] % how->heads != 0)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "there are %" PRId64 " heads in rows of %" PRId64 ", which they must divide", how->heads,
                       x->shape[2]);
  }
  params->length = is_packed ? x->shape[1] : x->shape[2];
  params->size = is_packed ? x->shape[2] / how->heads : x->shape[3];
  params->token_step = is_packed ? x->shape[2] : x->shape[3];
  params->batch_step = params->token_step * x->shape[1] * (is_packed ? 1 : x->shape[2]);
  return NULL;
}

// Which row of the cosines and sines a token has.
static gcap_status_t take_rows(const gcap_rotary_t* how, const gcap_tensor_t* x, gcap_rotary_params_t* params) {
  const gcap_tensor_t *cosines = how->cosines, *positions = how->positions;
  const int64_t tokens[] = {x->shape[0], params->length, cosines->rank > 0 ? cosines->shape[cosines->rank - 1] : 0};
  params->half = tokens[2];
  if (params->half < 1 || params->half > params->size / 2) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "cosines have rows of %" PRId64 ", allowed are 1..%" PRId64 ", half a head", params->half,
                       params->size / 2);
  }
  if (positions == NULL) {
    params->rows = x->shape[0] * params->length;
    return gcap_check_shape("cosines", cosines, 3, tokens, "a row for each token");
  }
  if (cosines->rank != 2) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "cosines.rank is %d, allowed is 2: positions choose rows", cosines->rank);
  }
  params->rows = cosines->shape[0];
  params->positions = positions->data;
  params->is_offset = positions->rank == 1 && positions->shape[0] == 1;
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("positions", positions));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("positions", positions, GCAP_DTYPE_I64, "they are indices"));
  if (params->is_offset) return NULL;
  return gcap_check_shape("positions", positions, 2, tokens, "a position for each token");
}

gcap_status_t gcap_rotate(gcap_stream_t* stream, const gcap_rotary_t* how, const gcap_tensor_t* x,
                          const gcap_tensor_t* y) {
  gcap_rotary_params_t params = {.x = x->data,
                                 .cosines = how->cosines->data,
                                 .sines = how->sines->data,
                                 .y = y->data,
                                 .count = gcap_tensor_elements(x),
                                 .interleaved = how->interleaved};
  GCAP_RETURN_IF_ERROR(check(how, x, y));
  GCAP_RETURN_IF_ERROR(take_layout(how, x, &params));
  GCAP_RETURN_IF_ERROR(take_rows(how, x, &params));
  if (params.count == 0) return NULL;
  return gcap_op_launch(stream, kernels[x->dtype], params.count, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}
