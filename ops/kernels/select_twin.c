// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of selections: the same keys, digits and comparisons, one after the other.
#include "ops/kernels/select_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_arg(const gcap_arg_params_t* p, size_t bytes, gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->x, (size_t)(p->rows * p->columns) * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->rows * sizeof(int64_t), true);
  return list.count;
}

static size_t list_top(const gcap_top_params_t* p, size_t bytes, gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->x, (size_t)(p->rows * p->columns) * bytes, false);
  gcap_twin_access(&list, p->values, (size_t)(p->rows * p->k) * bytes, true);
  gcap_twin_access(&list, p->indices, (size_t)(p->rows * p->k) * sizeof(int64_t), true);
  return list.count;
}

#define DEFINE_ARG(T, bits)                                                     \
  static void run_arg_##T(const gcap_sim_launch_t* launch, void* const* args) { \
    (void)launch;                                                               \
    const gcap_arg_params_t* p = args[0];                                       \
    for (int64_t row = 0; row < p->rows; ++row) {                               \
      const gcap_##T##_t* x = p->x;                                             \
      x += gcap_row_place(row, p->columns, p->inner);                           \
      uint64_t largest = 0;                                                     \
      int64_t index = -1;                                                       \
      for (int64_t i = 0; i < p->columns; ++i) {                                \
        const uint64_t key = gcap_arg_key_##T(x[i * p->inner], p->smallest);    \
        if (index >= 0 && (p->last ? key < largest : key <= largest)) continue; \
        largest = key;                                                          \
        index = i;                                                              \
      }                                                                         \
      p->y[row] = index;                                                        \
    }                                                                           \
  }
GCAP_SELECT_KERNELS(DEFINE_ARG)

#define DEFINE_TOP(T, bits)                                                                                  \
  static uint64_t find_key_##T(const gcap_top_params_t* p, const gcap_##T##_t* x, int64_t* left) {           \
    uint64_t prefix = 0;                                                                                     \
    *left = p->k;                                                                                            \
    for (int shift = bits - GCAP_DIGIT_BITS; shift >= 0; shift -= GCAP_DIGIT_BITS) {                         \
      unsigned long long counts[GCAP_NUM_DIGITS] = {0};                                                      \
      for (int64_t i = 0; i < p->columns; ++i) {                                                             \
        const uint64_t key = gcap_top_key_##T(x[i * p->inner], p->smallest);                                 \
        if (gcap_key_begins(key, shift, prefix)) ++counts[(key >> shift) % GCAP_NUM_DIGITS];                 \
      }                                                                                                      \
      prefix = prefix << GCAP_DIGIT_BITS | gcap_digit_of(counts, left);                                      \
    }                                                                                                        \
    return prefix;                                                                                           \
  }                                                                                                          \
  static void collect_##T(const gcap_top_params_t* p, const gcap_##T##_t* x, int64_t* indices) {             \
    int64_t left, taken = 0;                                                                                 \
    const uint64_t threshold = find_key_##T(p, x, &left);                                                    \
    for (int64_t i = 0; i < p->columns; ++i) {                                                               \
      const uint64_t key = gcap_top_key_##T(x[i * p->inner], p->smallest);                                   \
      if (key > threshold || (key == threshold && left-- > 0)) indices[taken++ * p->inner] = i;              \
    }                                                                                                        \
  }                                                                                                          \
  static void sort_##T(const gcap_top_params_t* p, const gcap_##T##_t* x, int64_t* indices) {                \
    for (int64_t size = 2; size / 2 < p->k; size *= 2) {                                                     \
      for (int64_t half = size / 2; half > 0; half /= 2) {                                                   \
        for (int64_t i = 0; i < p->k; ++i) {                                                                 \
          const int64_t partner = gcap_network_partner(i, size, half);                                       \
          if (partner <= i || partner >= p->k) continue;                                                     \
          gcap_top_order_##T(p, x, &indices[i * p->inner], &indices[partner * p->inner]);                    \
        }                                                                                                    \
      }                                                                                                      \
    }                                                                                                        \
  }                                                                                                          \
  static void run_top_##T(const gcap_sim_launch_t* launch, void* const* args) {                              \
    (void)launch;                                                                                            \
    const gcap_top_params_t* p = args[0];                                                                    \
    for (int64_t row = 0; row < p->rows; ++row) {                                                            \
      const gcap_##T##_t* x = p->x;                                                                          \
      x += gcap_row_place(row, p->columns, p->inner);                                                        \
      const int64_t place = gcap_row_place(row, p->k, p->inner);                                             \
      int64_t* indices = p->indices + place;                                                                 \
      gcap_##T##_t* values = p->values;                                                                      \
      collect_##T(p, x, indices);                                                                            \
      if (p->sorted) sort_##T(p, x, indices);                                                                \
      for (int64_t i = 0; i < p->k; ++i) values[place + i * p->inner] = x[indices[i * p->inner] * p->inner]; \
    }                                                                                                        \
  }
GCAP_SELECT_KERNELS(DEFINE_TOP)

#define DEFINE_TWIN(kernel, T)                                                              \
  GCAP_TWIN_HANDLE(gcap_kernel_##kernel##_##T, gcap_##kernel##_params_t)                    \
  static size_t accesses_##kernel##_##T(const gcap_sim_launch_t* launch, void* const* args, \
                                        gcap_sim_access_t* out_items, size_t capacity) {    \
    (void)launch;                                                                           \
    return list_##kernel(args[0], sizeof(gcap_##T##_t), out_items, capacity);               \
  }
#define DEFINE_TWINS(T, bits) DEFINE_TWIN(arg, T) DEFINE_TWIN(top, T)
GCAP_SELECT_KERNELS(DEFINE_TWINS)

#define REGISTER_TWIN(kernel, T)                                                                              \
  gcap_twin_register((const void*)gcap_kernel_##kernel##_##T, "gcap_kernel_" #kernel "_" #T, &kernel##_bytes, \
                     run_##kernel##_##T, accesses_##kernel##_##T);
#define REGISTER_TWINS(T, bits) REGISTER_TWIN(arg, T) REGISTER_TWIN(top, T)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t arg_bytes = sizeof(gcap_arg_params_t), top_bytes = sizeof(gcap_top_params_t);
  GCAP_SELECT_KERNELS(REGISTER_TWINS)
}
