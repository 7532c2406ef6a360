// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of normalizations of rows: the same formulas, row by row.
#include "ops/kernels/row_norm_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_row_norm(const gcap_row_norm_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                            size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  const int64_t scales = gcap_row_norm_scale_at(p, p->scale_rows - 1, p->columns - 1) + 1;
  const int64_t skipped = p->rows < p->skip_rows ? p->rows : p->skip_rows;
  gcap_twin_access(&list, p->x, (size_t)(p->rows * p->columns) * bytes, false);
  if (p->scale != NULL) gcap_twin_access(&list, p->scale, (size_t)scales * bytes, false);
  if (p->bias != NULL) gcap_twin_access(&list, p->bias, (size_t)scales * bytes, false);
  if (p->skip != NULL) gcap_twin_access(&list, p->skip, (size_t)(skipped * p->columns) * bytes, false);
  if (p->addend != NULL) gcap_twin_access(&list, p->addend, (size_t)p->columns * bytes, false);
  if (p->sum != NULL) gcap_twin_access(&list, p->sum, (size_t)(p->rows * p->columns) * bytes, true);
  gcap_twin_access(&list, p->y, (size_t)(p->rows * p->columns) * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(type)                                                                                  \
  GCAP_TWIN(row_norm, type, sizeof(gcap_##type##_t))                                                       \
  static const gcap_##type##_t* add_##type(const gcap_row_norm_params_t* p, int64_t row) {                 \
    const gcap_##type##_t *x = (const gcap_##type##_t*)p->x + row * p->columns, *addend = p->addend;       \
    const gcap_##type##_t* skip = (const gcap_##type##_t*)p->skip + row % p->skip_rows * p->columns;       \
    gcap_##type##_t* sum = (gcap_##type##_t*)p->sum + row * p->columns;                                    \
    for (int64_t i = 0; i < p->columns; ++i) {                                                             \
      const float more = addend == NULL ? 0.0f : gcap_load_##type(addend[i]);                              \
      sum[i] = gcap_store_##type(gcap_load_##type(x[i]) + gcap_load_##type(skip[i]) + more);               \
    }                                                                                                      \
    return sum;                                                                                            \
  }                                                                                                        \
  static void row_##type(const gcap_row_norm_params_t* p, int64_t row) {                                   \
    const gcap_##type##_t *scale = p->scale, *bias = p->bias;                                              \
    const gcap_##type##_t* x =                                                                             \
        p->skip != NULL ? add_##type(p, row) : (const gcap_##type##_t*)p->x + gcap_row_norm_first(p, row); \
    gcap_##type##_t* y = (gcap_##type##_t*)p->y + gcap_row_norm_first(p, row);                             \
    gcap_sum_t sum = gcap_sum_zero(), terms = gcap_sum_zero();                                             \
    for (int64_t i = 0; p->centers && i < p->columns; ++i) {                                               \
      gcap_sum_add(&sum, gcap_load_##type(x[gcap_row_norm_offset(p, i)]));                                 \
    }                                                                                                      \
    const float mean = gcap_sum_value(sum) / (float)p->columns;                                            \
    for (int64_t i = 0; i < p->columns; ++i) {                                                             \
      const float value = gcap_load_##type(x[gcap_row_norm_offset(p, i)]) - mean;                          \
      gcap_sum_add(&terms, gcap_row_norm_term(p, value));                                                  \
    }                                                                                                      \
    const float divisor = gcap_row_norm_divisor(p, gcap_sum_value(terms));                                 \
    for (int64_t i = 0; i < p->columns; ++i) {                                                             \
      const int64_t at = gcap_row_norm_offset(p, i), k = gcap_row_norm_scale_at(p, row, i);                \
      const float factor = scale == NULL ? 1.0f : gcap_load_##type(scale[k]);                              \
      const float shift = bias == NULL ? 0.0f : gcap_load_##type(bias[k]);                                 \
      y[at] = gcap_store_##type((gcap_load_##type(x[at]) - mean) / divisor * factor + shift);              \
    }                                                                                                      \
  }                                                                                                        \
  static void run_row_norm_##type(const gcap_sim_launch_t* launch, void* const* args) {                    \
    (void)launch;                                                                                          \
    const gcap_row_norm_params_t* p = args[0];                                                             \
    for (int64_t row = 0; row < p->rows; ++row) row_##type(p, row);                                        \
  }
GCAP_ROW_NORM_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(type) GCAP_TWIN_REGISTER(row_norm, type)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t row_norm_bytes = sizeof(gcap_row_norm_params_t);
  GCAP_ROW_NORM_KERNELS(REGISTER_TWIN)
}
