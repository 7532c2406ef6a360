// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that move blocks of an image into channels and back: SpaceToDepth, DepthToSpace.

#include <string.h>

#include "kit/shape/infer.h"

// Batch, channels, height and width, and `blocksize`, whose square is computed with.
static gcap_status_t read_block(const gcap_node_t* node, const gcap_tensor_t* data, int64_t* out_block) {
  *out_block = gcap_node_int(node, "blocksize", 0);
  if (*out_block < 1 || *out_block > INT32_MAX) {
    return GCAP_SHAPE_REFUSE(node, "blocksize is %lld, allowed is 1..%d", (long long)*out_block, INT32_MAX);
  }
  if (data->rank == 4) return NULL;
  return GCAP_SHAPE_REFUSE(node, "input 0 has rank %d, allowed is 4", data->rank);
}

static gcap_status_t check_multiple(const gcap_node_t* node, const gcap_tensor_t* data, int axis, int64_t of) {
  if (data->shape[axis] % of == 0) return NULL;
  return GCAP_SHAPE_REFUSE(node, "dimension %d of input 0 is %lld, allowed is a multiple of %lld", axis,
                           (long long)data->shape[axis], (long long)of);
}

static gcap_status_t too_large(const gcap_node_t* node) {
  return GCAP_SHAPE_REFUSE(node, "a dimension of output 0 would be more than %lld", (long long)INT64_MAX);
}

gcap_status_t gcap_infer_space_to_depth(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t* data = &inputs[0];
  int64_t block = 0;
  GCAP_RETURN_IF_ERROR(read_block(node, data, &block));
  GCAP_RETURN_IF_ERROR(check_multiple(node, data, 2, block));
  GCAP_RETURN_IF_ERROR(check_multiple(node, data, 3, block));
  gcap_shape_t shape = {.rank = 4, .at = {data->shape[0], 0, data->shape[2] / block, data->shape[3] / block}};
  if (__builtin_mul_overflow(data->shape[1], block * block, &shape.at[1])) return too_large(node);
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

gcap_status_t gcap_infer_depth_to_space(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t* data = &inputs[0];
  int64_t block = 0;
  GCAP_RETURN_IF_ERROR(read_block(node, data, &block));
  const char* mode = gcap_node_string(node, "mode", "DCR");
  if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0) {
    return GCAP_SHAPE_REFUSE(node, "mode is %s, allowed is DCR or CRD", mode);
  }
  GCAP_RETURN_IF_ERROR(check_multiple(node, data, 1, block * block));
  gcap_shape_t shape = {.rank = 4, .at = {data->shape[0], data->shape[1] / (block * block)}};
  for (int i = 2; i < 4; ++i) {
    if (__builtin_mul_overflow(data->shape[i], block, &shape.at[i])) return too_large(node);
  }
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}
