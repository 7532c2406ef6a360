// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the kernels that choose elements by where they are: the same functions, unit by unit.
#include <string.h>

#include "ops/kernels/arrange_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_triangle(const gcap_triangle_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                            size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  if (p->x != NULL) gcap_twin_access(&list, p->x, (size_t)p->count * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->count * bytes, true);
  return list.count;
}

static size_t list_one_hot(const gcap_one_hot_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                           size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->indices, (size_t)(p->count / p->depth) * (size_t)p->index_bytes, false);
  gcap_twin_access(&list, p->values, 2 * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->count * bytes, true);
  return list.count;
}

static size_t list_reverse(const gcap_reverse_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                           size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->x, (size_t)p->count * bytes, false);
  gcap_twin_access(&list, p->lengths, (size_t)(p->time_is_outer ? p->middle : p->outer) * sizeof(int64_t), false);
  gcap_twin_access(&list, p->y, (size_t)p->count * bytes, true);
  return list.count;
}

#define DEFINE_RUNS(bytes, type)                                                                              \
  static void run_triangle_##bytes(const gcap_sim_launch_t* launch, void* const* args) {                      \
    (void)launch;                                                                                             \
    const gcap_triangle_params_t* p = args[0];                                                                \
    static const type zero;                                                                                   \
    type value;                                                                                               \
    memcpy(&value, &p->value, sizeof(value));                                                                 \
    for (int64_t i = 0; i < p->count; ++i) {                                                                  \
      const type element = p->x != NULL ? ((const type*)p->x)[i] : value;                                     \
      ((type*)p->y)[i] = gcap_triangle_has(p, i) ? element : zero;                                            \
    }                                                                                                         \
  }                                                                                                           \
  static void run_one_hot_##bytes(const gcap_sim_launch_t* launch, void* const* args) {                       \
    (void)launch;                                                                                             \
    const gcap_one_hot_params_t* p = args[0];                                                                 \
    const type* values = p->values;                                                                           \
    for (int64_t i = 0; i < p->count; ++i) ((type*)p->y)[i] = values[gcap_one_hot_is_on(p, i)];               \
  }                                                                                                           \
  static void run_reverse_##bytes(const gcap_sim_launch_t* launch, void* const* args) {                       \
    (void)launch;                                                                                             \
    const gcap_reverse_params_t* p = args[0];                                                                 \
    for (int64_t i = 0; i < p->count; ++i) ((type*)p->y)[i] = ((const type*)p->x)[gcap_reverse_source(p, i)]; \
  }

#define DEFINE_TWINS(bytes, type) \
  DEFINE_RUNS(bytes, type)        \
  GCAP_TWIN(triangle, bytes, bytes) GCAP_TWIN(one_hot, bytes, bytes) GCAP_TWIN(reverse, bytes, bytes)
GCAP_UNIT_KERNELS(DEFINE_TWINS)

#define REGISTER_TWINS(bytes, type)   \
  GCAP_TWIN_REGISTER(triangle, bytes) \
  GCAP_TWIN_REGISTER(one_hot, bytes) GCAP_TWIN_REGISTER(reverse, bytes)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t triangle_bytes = sizeof(gcap_triangle_params_t);
  static const size_t one_hot_bytes = sizeof(gcap_one_hot_params_t);
  static const size_t reverse_bytes = sizeof(gcap_reverse_params_t);
  GCAP_UNIT_KERNELS(REGISTER_TWINS)
}
