// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Padding: axes that are walked as one are merged, neighbours that stay neighbours move together, and a fill is a pad
// of nothing. No state.
#include "ops/kernels/pad.h"

#include <inttypes.h>
#include <string.h>

#include "lib/internal/check_argument.h"
#include "ops/kernels/layout_copy.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

#define ENTRY(bytes, type) [bytes] = (const void*)gcap_kernel_pad_##bytes,
static const void* const kernels[] = {GCAP_UNIT_KERNELS(ENTRY)};

static bool is_whole(const gcap_pad_axis_t* axis) { return axis->begin == 0 && axis->size == axis->extent; }

// Adds the next inner axis, to the last one if y and x walk both as one. Of a padded outer axis only the constant does:
// other modes choose among its own elements.
static void add_axis(gcap_pad_params_t* params, const gcap_pad_axis_t* axis) {
  gcap_pad_axis_t* last = params->rank > 0 ? &params->axes[params->rank - 1] : NULL;
  const bool merges = last != NULL && is_whole(axis) && last->stride == axis->extent * axis->stride &&
                      (is_whole(last) || params->mode == GCAP_PAD_CONSTANT);
  if (!merges) {
    params->axes[params->rank++] = *axis;
    return;
  }
  last->size *= axis->size;
  last->begin *= axis->size;
  last->extent *= axis->size;
  last->stride = axis->stride;
}

// Makes the sizes those of larger units; returns the size of a unit.
static size_t widen(gcap_pad_params_t* params, size_t element_bytes) {
  gcap_pad_axis_t* last = &params->axes[params->rank - 1];
  if (last->stride != 1 || (!is_whole(last) && params->mode != GCAP_PAD_CONSTANT)) return element_bytes;
  uint64_t multiples =
      (uintptr_t)params->x | (uintptr_t)params->y | (uint64_t)(last->size | last->begin | last->extent) * element_bytes;
  for (int32_t k = 0; k < params->rank - 1; ++k) multiples |= (uint64_t)params->axes[k].stride * element_bytes;
  const size_t unit = gcap_unit_bytes(element_bytes, multiples);
  const int64_t elements = (int64_t)(unit / element_bytes);
  params->count /= elements;
  last->size /= elements;
  last->begin /= elements;
  last->extent /= elements;
  for (int32_t k = 0; k < params->rank - 1; ++k) params->axes[k].stride /= elements;
  return unit;
}

static gcap_status_t launch(gcap_stream_t* stream, size_t element_bytes, const void* value, gcap_pad_params_t* params) {
  if (params->rank == 0) params->axes[params->rank++] = (gcap_pad_axis_t){1, 0, 1, 1};
  const size_t unit = widen(params, element_bytes);
  params->narrow = params->count <= INT32_MAX;
  for (size_t at = 0; value != NULL && at < sizeof(params->value); at += element_bytes) {
    memcpy((char*)&params->value + at, value, element_bytes);
  }
  return gcap_op_launch(stream, kernels[unit], params->count, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, params);
}

// --- Pad ------------------------------------------------------------------------------------------------------------

static int64_t cropped(int64_t padding) { return padding < 0 ? -padding : 0; }

// Gives an axis what is left of x, which begins `*out_first` elements later.
static gcap_status_t crop(int axis, int64_t size, int64_t begin, gcap_pad_mode_t mode, gcap_pad_axis_t* out,
                          int64_t* out_first) {
  const int64_t end = out->size - size - begin, before = cropped(begin);
  *out_first = 0;
  // What is cropped lies before y or behind it. So may all of x.
  out->begin = begin < -size ? -size : begin > out->size ? out->size : begin;
  out->extent = size;
  if (mode == GCAP_PAD_CONSTANT) return NULL;
  out->extent = size - before - cropped(end);
  if (out->size == 0 || (begin == 0 && end == 0)) return NULL;
  if (out->extent < 1) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "nothing is left of the %" PRId64 " elements of axis %d of x", size,
                       axis);
  }
  const int64_t most = begin > end ? begin : end;
  if (mode == GCAP_PAD_REFLECT && most >= out->extent) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "%" PRId64 " elements of padding on axis %d mirror x, allowed are %" PRId64 " of what is left",
                       most, axis, out->extent - 1);
  }
  *out_first = before;
  out->begin = begin > 0 ? begin : 0;
  return NULL;
}

gcap_status_t gcap_pad(gcap_stream_t* stream, const gcap_tensor_t* x, const int64_t* begins, gcap_pad_mode_t mode,
                       const void* value, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(y);
  if (x->rank > 0) GCAP_RETURN_IF_NULL(begins);
  if (mode == GCAP_PAD_CONSTANT) GCAP_RETURN_IF_NULL(value);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("y", y, x->dtype, "the type of x"));
  if (y->rank != x->rank) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "y.rank is %d, must be %d: the rank of x", y->rank, x->rank);
  }
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "x", x, /*or_same=*/false));
  gcap_pad_params_t params = {.y = y->data, .count = gcap_tensor_elements(y), .mode = (int32_t)mode};
  int64_t strides[GCAP_MAX_RANK], offset = 0;
  gcap_dense_strides(x, strides);
  for (int i = 0; i < x->rank; ++i) {
    gcap_pad_axis_t axis = {.size = y->shape[i], .stride = strides[i]};
    int64_t first = 0;
    GCAP_RETURN_IF_ERROR(crop(i, x->shape[i], begins[i], mode, &axis, &first));
    offset += first * strides[i];
    add_axis(&params, &axis);
  }
  if (params.count == 0) return NULL;
  const size_t bytes = gcap_dtype_bytes(x->dtype);
  params.x = x->data == NULL ? NULL : (const char*)x->data + offset * (int64_t)bytes;
  return launch(stream, bytes, value, &params);
}

gcap_status_t gcap_fill(gcap_stream_t* stream, const void* value, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(value);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  gcap_pad_params_t params = {.y = y->data, .count = gcap_tensor_elements(y), .mode = GCAP_PAD_CONSTANT};
  if (params.count == 0) return NULL;
  add_axis(&params, &(gcap_pad_axis_t){.size = params.count, .stride = 1});
  return launch(stream, gcap_dtype_bytes(y->dtype), value, &params);
}
