// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of softmax and layer normalization: the same formulas, row by row.
#include "ops/kernels/normalize_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_softmax(const gcap_softmax_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                           size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->x, (size_t)(p->rows * p->columns) * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)(p->rows * p->columns) * bytes, true);
  return list.count;
}

static size_t list_layer_norm(const gcap_layer_norm_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                              size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->x, (size_t)(p->rows * p->columns) * bytes, false);
  gcap_twin_access(&list, p->scale, (size_t)p->columns * bytes, false);
  if (p->bias != NULL) gcap_twin_access(&list, p->bias, (size_t)p->columns * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)(p->rows * p->columns) * bytes, true);
  if (p->mean != NULL) gcap_twin_access(&list, p->mean, (size_t)p->rows * sizeof(float), true);
  if (p->inv_std_dev != NULL) gcap_twin_access(&list, p->inv_std_dev, (size_t)p->rows * sizeof(float), true);
  return list.count;
}

#define DEFINE_SOFTMAX(name, type, result)                                                                             \
  GCAP_TWIN_HANDLE(gcap_kernel_##name##_##type, gcap_softmax_params_t)                                                 \
  static void row_##name##_##type(const gcap_##type##_t* x, gcap_##type##_t* y, int64_t n, int64_t step) {             \
    float largest = -INFINITY;                                                                                         \
    for (int64_t i = 0; i < n; ++i) largest = gcap_max_float(largest, gcap_load_##type(x[i * step]));                  \
    gcap_sum_t terms = gcap_sum_zero();                                                                                \
    for (int64_t i = 0; i < n; ++i) gcap_sum_add(&terms, expf(gcap_load_##type(x[i * step]) - largest));               \
    const float sum = gcap_sum_value(terms);                                                                           \
    for (int64_t i = 0; i < n; ++i) {                                                                                  \
      const float a = gcap_load_##type(x[i * step]) - largest;                                                         \
      y[i * step] = gcap_store_##type(result);                                                                         \
    }                                                                                                                  \
  }                                                                                                                    \
  static void run_##name##_##type(const gcap_sim_launch_t* launch, void* const* args) {                                \
    (void)launch;                                                                                                      \
    const gcap_softmax_params_t* p = args[0];                                                                          \
    for (int64_t row = 0; row < p->rows; ++row) {                                                                      \
      const int64_t first = row / p->inner * p->columns * p->inner + row % p->inner;                                   \
      row_##name##_##type((const gcap_##type##_t*)p->x + first, (gcap_##type##_t*)p->y + first, p->columns, p->inner); \
    }                                                                                                                  \
  }                                                                                                                    \
  static size_t accesses_##name##_##type(const gcap_sim_launch_t* launch, void* const* args,                           \
                                         gcap_sim_access_t* out_items, size_t capacity) {                              \
    (void)launch;                                                                                                      \
    return list_softmax(args[0], sizeof(gcap_##type##_t), out_items, capacity);                                        \
  }

#define DEFINE_LAYER_NORM(type)                                                                      \
  GCAP_TWIN_HANDLE(gcap_kernel_layer_norm_##type, gcap_layer_norm_params_t)                          \
  static void row_layer_norm_##type(const gcap_layer_norm_params_t* p, int64_t row) {                \
    const gcap_##type##_t *scale = p->scale, *bias = p->bias;                                        \
    const gcap_##type##_t* x = (const gcap_##type##_t*)p->x + row * p->columns;                      \
    gcap_##type##_t* y = (gcap_##type##_t*)p->y + row * p->columns;                                  \
    gcap_sum_t sum = gcap_sum_zero(), squares = gcap_sum_zero();                                     \
    for (int64_t i = 0; i < p->columns; ++i) gcap_sum_add(&sum, gcap_load_##type(x[i]));             \
    const float mean = gcap_sum_value(sum) / (float)p->columns;                                      \
    for (int64_t i = 0; i < p->columns; ++i) {                                                       \
      const float distance = gcap_load_##type(x[i]) - mean;                                          \
      gcap_sum_add(&squares, distance* distance);                                                    \
    }                                                                                                \
    const float deviation = sqrtf(gcap_sum_value(squares) / (float)p->columns + p->epsilon);         \
    if (p->mean != NULL) p->mean[row] = mean;                                                        \
    if (p->inv_std_dev != NULL) p->inv_std_dev[row] = 1.0f / deviation;                              \
    for (int64_t i = 0; i < p->columns; ++i) {                                                       \
      const float scaled = (gcap_load_##type(x[i]) - mean) / deviation * gcap_load_##type(scale[i]); \
      y[i] = gcap_store_##type(scaled + (bias == NULL ? 0.0f : gcap_load_##type(bias[i])));          \
    }                                                                                                \
  }                                                                                                  \
  static void run_layer_norm_##type(const gcap_sim_launch_t* launch, void* const* args) {            \
    (void)launch;                                                                                    \
    const gcap_layer_norm_params_t* p = args[0];                                                     \
    for (int64_t row = 0; row < p->rows; ++row) row_layer_norm_##type(p, row);                       \
  }                                                                                                  \
  static size_t accesses_layer_norm_##type(const gcap_sim_launch_t* launch, void* const* args,       \
                                           gcap_sim_access_t* out_items, size_t capacity) {          \
    (void)launch;                                                                                    \
    return list_layer_norm(args[0], sizeof(gcap_##type##_t), out_items, capacity);                   \
  }

GCAP_SOFTMAX_KERNELS(DEFINE_SOFTMAX)
GCAP_LAYER_NORM_KERNELS(DEFINE_LAYER_NORM)

#define REGISTER_SOFTMAX(name, type, result)                                                                   \
  gcap_twin_register((const void*)gcap_kernel_##name##_##type, "gcap_kernel_" #name "_" #type, &softmax_bytes, \
                     run_##name##_##type, accesses_##name##_##type);
#define REGISTER_LAYER_NORM(type)                                                                                    \
  gcap_twin_register((const void*)gcap_kernel_layer_norm_##type, "gcap_kernel_layer_norm_" #type, &layer_norm_bytes, \
                     run_layer_norm_##type, accesses_layer_norm_##type);

__attribute__((constructor)) static void register_twins(void) {
  static const size_t softmax_bytes = sizeof(gcap_softmax_params_t),
                      layer_norm_bytes = sizeof(gcap_layer_norm_params_t);
  GCAP_SOFTMAX_KERNELS(REGISTER_SOFTMAX)
  GCAP_LAYER_NORM_KERNELS(REGISTER_LAYER_NORM)
}
