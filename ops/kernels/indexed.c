// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Elements that move to and from places that indices name: checks and launches. A gather reads the data where a scatter
// writes them, so both have the same parameters but for their direction. No state.
#include "ops/kernels/indexed.h"

#include "ops/kernels/layout_copy.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

#define ELEMENT_ENTRY(bytes, type) \
  [bytes] = {(const void*)gcap_kernel_gather_elements_##bytes, (const void*)gcap_kernel_scatter_elements_##bytes},
static const struct { const void *gather, *scatter; } element_kernels[] = {GCAP_ELEMENT_KERNELS(ELEMENT_ENTRY)};

#define SLICE_ENTRY(bytes, type)                                                                              \
  [bytes] = {(const void*)gcap_kernel_gather_slices_##bytes, (const void*)gcap_kernel_scatter_slices_##bytes, \
             (const void*)gcap_kernel_write_cache_##bytes},
static const struct { const void *gather, *scatter, *write_cache; } slice_kernels[] = {GCAP_UNIT_KERNELS(SLICE_ENTRY)};

#define REDUCTION_ENTRY(T, kind, word) \
  [GCAP_DTYPE_OF_##T] = {(const void*)gcap_kernel_reduce_elements_##T, (const void*)gcap_kernel_reduce_slices_##T},
static const struct {
  const void *elements, *slices;
} reductions[GCAP_NUM_DTYPES] = {GCAP_SCATTER_OP_KERNELS(REDUCTION_ENTRY)};

static gcap_status_t check(const char* name, const gcap_tensor_t* values, const gcap_tensor_t* indices,
                           const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor(name, values));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("indices", indices));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, name, values, /*or_same=*/false));
  return gcap_check_apart("y", y, "indices", indices, /*or_same=*/false);
}

bool gcap_scatter_op_takes(gcap_scatter_op_t op, gcap_dtype_t dtype) {
  return op == GCAP_SCATTER_NONE || reductions[dtype].elements != NULL;
}

// --- Elements -------------------------------------------------------------------------------------------------------

static gcap_elements_params_t elements_params(const gcap_tensor_t* data, const gcap_tensor_t* indices, int axis) {
  int64_t strides[GCAP_MAX_RANK];
  gcap_dense_strides(data, strides);
  gcap_elements_params_t params = {.indices = indices->data,
                                   .axis_size = data->shape[axis],
                                   .axis_stride = strides[axis],
                                   .index_bytes = (int32_t)gcap_dtype_bytes(indices->dtype)};
  strides[axis] = 0;
  gcap_index_map_begin(&params.map);
  for (int i = 0; i < data->rank; ++i) {
    gcap_index_map_add_axis(&params.map, indices->shape[i], (const int64_t[]){strides[i], 0, 0});
  }
  gcap_index_map_end(&params.map);
  return params;
}

gcap_status_t gcap_gather_elements(gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* indices,
                                   int axis, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check("x", x, indices, y));
  if (gcap_tensor_elements(y) == 0) return NULL;
  gcap_elements_params_t params = elements_params(x, indices, axis);
  params.from = x->data;
  params.to = y->data;
  return gcap_op_launch(stream, element_kernels[gcap_dtype_bytes(x->dtype)].gather, params.map.count,
                        GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}

gcap_status_t gcap_scatter_elements(gcap_stream_t* stream, gcap_scatter_op_t op, const gcap_tensor_t* indices,
                                    const gcap_tensor_t* updates, int axis, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check("updates", updates, indices, y));
  if (gcap_tensor_elements(updates) == 0 || gcap_tensor_elements(y) == 0) return NULL;
  gcap_elements_params_t params = elements_params(y, indices, axis);
  params.from = updates->data;
  params.to = y->data;
  params.scatter_op = op;
  const void* plain = element_kernels[gcap_dtype_bytes(y->dtype)].scatter;
  return gcap_op_launch(stream, op == GCAP_SCATTER_NONE ? plain : reductions[y->dtype].elements, params.map.count,
                        GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}

// --- Slices ---------------------------------------------------------------------------------------------------------

static int64_t count(const gcap_tensor_t* tensor, int begin, int end) {
  int64_t product = 1;
  for (int i = begin; i < end; ++i) product *= tensor->shape[i];
  return product;
}

// In elements, of which a slice has at least one.
static gcap_slices_params_t slices_params(const gcap_tensor_t* data, const gcap_tensor_t* indices, int batch_dims) {
  const int last = indices->rank - 1, depth = (int)indices->shape[last], inner_axis = batch_dims + depth;
  gcap_slices_params_t params = {.indices = indices->data,
                                 .slices = count(indices, 0, last),
                                 .inner = count(data, inner_axis, data->rank),
                                 .slices_per_batch = count(indices, batch_dims, last),
                                 .batch_stride = count(data, batch_dims, inner_axis),
                                 .depth = depth};
  for (int k = 0; k < depth; ++k) {
    params.sizes[k] = data->shape[batch_dims + k];
    params.strides[k] = count(data, batch_dims + k + 1, inner_axis);
  }
  params.narrow = params.slices * params.inner <= INT32_MAX;
  return params;
}

// Slices move in the largest units that they allow: makes `*inner` elements as many units; returns the size of one.
static size_t widen(const void* from, const void* to, size_t element_bytes, int64_t* inner) {
  const size_t unit =
      gcap_unit_bytes(element_bytes, (uintptr_t)from | (uintptr_t)to | (uint64_t)*inner * element_bytes);
  *inner /= (int64_t)(unit / element_bytes);
  return unit;
}

static gcap_status_t launch(gcap_stream_t* stream, const void* kernel, gcap_slices_params_t* params) {
  return gcap_op_launch(stream, kernel, params->slices * params->inner, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, params);
}

gcap_status_t gcap_gather_nd(gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* indices,
                             int batch_dims, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check("x", x, indices, y));
  if (gcap_tensor_elements(y) == 0) return NULL;
  gcap_slices_params_t params = slices_params(x, indices, batch_dims);
  params.from = x->data;
  params.to = y->data;
  const size_t unit = widen(x->data, y->data, gcap_dtype_bytes(x->dtype), &params.inner);
  return launch(stream, slice_kernels[unit].gather, &params);
}

gcap_status_t gcap_scatter_nd(gcap_stream_t* stream, gcap_scatter_op_t op, const gcap_tensor_t* indices,
                              const gcap_tensor_t* updates, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check("updates", updates, indices, y));
  if (gcap_tensor_elements(updates) == 0 || gcap_tensor_elements(y) == 0) return NULL;
  gcap_slices_params_t params = slices_params(y, indices, 0);
  params.from = updates->data;
  params.to = y->data;
  params.scatter_op = op;
  if (op != GCAP_SCATTER_NONE) return launch(stream, reductions[y->dtype].slices, &params);
  const size_t unit = widen(updates->data, y->data, gcap_dtype_bytes(y->dtype), &params.inner);
  return launch(stream, slice_kernels[unit].scatter, &params);
}

// --- Caches ---------------------------------------------------------------------------------------------------------

gcap_status_t gcap_write_cache(gcap_stream_t* stream, const gcap_tensor_t* starts, const gcap_tensor_t* update,
                               int axis, bool circular, const gcap_tensor_t* cache) {
  const gcap_tensor_t none = {.dtype = GCAP_DTYPE_I64, .rank = 1};
  GCAP_RETURN_IF_ERROR(check("update", update, starts == NULL ? &none : starts, cache));
  if (gcap_tensor_elements(update) == 0) return NULL;
  gcap_cache_params_t params = {.starts = starts == NULL ? NULL : starts->data,
                                .from = update->data,
                                .to = cache->data,
                                .prefixes = count(update, 1, axis),
                                .rows = update->shape[axis],
                                .capacity = cache->shape[axis],
                                .inner = count(update, axis + 1, update->rank),
                                .circular = circular};
  const size_t unit = widen(update->data, cache->data, gcap_dtype_bytes(cache->dtype), &params.inner);
  params.units = count(update, 0, axis + 1) * params.inner;
  return gcap_op_launch(stream, slice_kernels[unit].write_cache, params.units, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS,
                        &params);
}
