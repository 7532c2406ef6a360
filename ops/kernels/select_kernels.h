// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// select_kernels.h: the kernels that select elements of rows by their order: the first or last extremum, and the k
// largest or smallest. What orders elements, and the steps of a selection, are here for the GPU's kernels and their CPU
// twins.
//
// A key is an unsigned integer that is ordered as the elements are: of floats the bits, with negative ones inverted.
// Zeros of both signs are one key. Each NaN is the largest key, whatever its sign: a GPU and x86 make NaNs of different
// signs.
//
// The k elements are found by their keys, 8 bits at a time from the top: the elements whose key begins as the k-th
// largest key does are counted by their next digit, which tells the next digit of the k-th largest key. Then all with
// larger keys are taken, and as many of the equal ones as there is room for, the first ones first; so they come out in
// the order of their indices. A bitonic network sorts them, all of whose comparisons go the same way, so that k need be
// no power of two: what is missing is behind all others and stays there (Knuth, The Art of Computer Programming, volume
// 3, 5.3.4).
#ifndef GCAP_OPS_KERNELS_SELECT_KERNELS_H_
#define GCAP_OPS_KERNELS_SELECT_KERNELS_H_

#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

// x as [outer, columns, inner]; a row has one column and steps of `inner`.
typedef struct gcap_arg_params {
  const void* x;
  int64_t* y;  // a row's index each
  int64_t rows;
  int64_t columns;
  int64_t inner;
  int32_t smallest;
  int32_t last;    // 1: the last extremum; 0: the first
  uint32_t lanes;  // threads that share a row
} gcap_arg_params_t;

// `values` and `indices` as [outer, k, inner].
typedef struct gcap_top_params {
  const void* x;
  void* values;
  int64_t* indices;
  int64_t rows;
  int64_t columns;
  int64_t inner;
  int64_t k;  // 1..columns
  int32_t smallest;
  int32_t sorted;
} gcap_top_params_t;

// The place of the first element of a row that has `count` elements.
GCAP_INLINE int64_t gcap_row_place(int64_t row, int64_t count, int64_t inner) {
  const int64_t outer = row / inner;
  return outer * count * inner + (row - outer * inner);
}

// --- Keys -----------------------------------------------------------------------------------------------------------

#ifdef __CUDACC__
GCAP_INLINE uint32_t gcap_bits_of_f32(gcap_f32_t v) { return __float_as_uint(v); }
GCAP_INLINE uint32_t gcap_bits_of_f16(gcap_f16_t v) { return __half_as_ushort(v); }
GCAP_INLINE uint32_t gcap_bits_of_bf16(gcap_bf16_t v) { return __bfloat16_as_ushort(v); }
#else
GCAP_INLINE uint32_t gcap_bits_of_f32(gcap_f32_t v) { return gcap_f32_bits(v); }
GCAP_INLINE uint32_t gcap_bits_of_f16(gcap_f16_t v) { return v; }
GCAP_INLINE uint32_t gcap_bits_of_bf16(gcap_bf16_t v) { return v; }
#endif

GCAP_INLINE int gcap_is_nan_f32(gcap_f32_t v) { return (gcap_bits_of_f32(v) & 0x7fffffff) > 0x7f800000; }
GCAP_INLINE int gcap_is_nan_f16(gcap_f16_t v) { return (gcap_bits_of_f16(v) & 0x7fff) > 0x7c00; }
GCAP_INLINE int gcap_is_nan_bf16(gcap_bf16_t v) { return (gcap_bits_of_bf16(v) & 0x7fff) > 0x7f80; }
GCAP_INLINE int gcap_is_nan_i64(gcap_i64_t v) { return (void)v, 0; }
GCAP_INLINE int gcap_is_nan_i32(gcap_i32_t v) { return (void)v, 0; }

// `sign`: the sign's bit, the highest one.
GCAP_INLINE uint64_t gcap_float_key(uint32_t bits, uint32_t sign, int is_nan) {
  const uint32_t magnitude = sign - 1;
  if (is_nan) return sign | magnitude;
  if ((bits & magnitude) == 0) bits = 0;
  return bits & sign ? ~bits & (sign | magnitude) : bits | sign;
}
GCAP_INLINE uint64_t gcap_key_f32(gcap_f32_t v) {
  return gcap_float_key(gcap_bits_of_f32(v), UINT32_C(1) << 31, gcap_is_nan_f32(v));
}
GCAP_INLINE uint64_t gcap_key_f16(gcap_f16_t v) {
  return gcap_float_key(gcap_bits_of_f16(v), UINT32_C(1) << 15, gcap_is_nan_f16(v));
}
GCAP_INLINE uint64_t gcap_key_bf16(gcap_bf16_t v) {
  return gcap_float_key(gcap_bits_of_bf16(v), UINT32_C(1) << 15, gcap_is_nan_bf16(v));
}
GCAP_INLINE uint64_t gcap_key_i64(gcap_i64_t v) { return (uint64_t)v ^ UINT64_C(1) << 63; }
GCAP_INLINE uint64_t gcap_key_i32(gcap_i32_t v) { return (uint32_t)v ^ UINT32_C(1) << 31; }

// K(type, bits of a key)
#define GCAP_SELECT_KERNELS(K) K(f32, 32) K(f16, 16) K(bf16, 16) K(i64, 64) K(i32, 32)

// The key by which an extremum is the largest, and by which an element is among the first of a selection. A NaN is an
// extremum of both kinds.
#define GCAP_DEFINE_KEYS(T, bits)                                           \
  GCAP_INLINE uint64_t gcap_arg_key_##T(gcap_##T##_t v, int32_t smallest) { \
    if (gcap_is_nan_##T(v)) return UINT64_MAX;                              \
    return smallest ? ~gcap_key_##T(v) : gcap_key_##T(v);                   \
  }                                                                         \
  GCAP_INLINE uint64_t gcap_top_key_##T(gcap_##T##_t v, int32_t smallest) { \
    const uint64_t key = gcap_key_##T(v);                                   \
    return smallest ? ~key & UINT64_MAX >> (64 - bits) : key;               \
  }
GCAP_SELECT_KERNELS(GCAP_DEFINE_KEYS)
#undef GCAP_DEFINE_KEYS

// --- The k largest keys ---------------------------------------------------------------------------------------------

enum { GCAP_DIGIT_BITS = 8, GCAP_NUM_DIGITS = 1 << GCAP_DIGIT_BITS };

// Whether a key begins with `prefix`, all of its digits above that at `shift`.
GCAP_INLINE int gcap_key_begins(uint64_t key, int shift, uint64_t prefix) {
  return key >> shift >> GCAP_DIGIT_BITS == prefix;
}

// The digit of the key that is the *left-th largest of those that are counted. `*left` becomes which one it is among
// the keys with this digit.
GCAP_INLINE uint32_t gcap_digit_of(const unsigned long long* counts, int64_t* left) {
  uint32_t digit = GCAP_NUM_DIGITS - 1;
  for (; digit > 0 && (int64_t)counts[digit] < *left; --digit) *left -= (int64_t)counts[digit];
  return digit;
}

// The place that a network of `size` compares with place `i` in its step of `half`.
GCAP_INLINE int64_t gcap_network_partner(int64_t i, int64_t size, int64_t half) {
  return half == size / 2 ? i ^ (size - 1) : i ^ half;
}

// Orders two selected elements of a row, of which the place of the first comes first.
#define GCAP_DEFINE_ORDER(T, bits)                                                                       \
  GCAP_INLINE void gcap_top_order_##T(const gcap_top_params_t* p, const gcap_##T##_t* x, int64_t* first, \
                                      int64_t* second) {                                                 \
    const int64_t a = *first, b = *second;                                                               \
    const uint64_t key_a = gcap_top_key_##T(x[a * p->inner], p->smallest);                               \
    const uint64_t key_b = gcap_top_key_##T(x[b * p->inner], p->smallest);                               \
    if (key_a > key_b || (key_a == key_b && a < b)) return;                                              \
    *first = b;                                                                                          \
    *second = a;                                                                                         \
  }
GCAP_SELECT_KERNELS(GCAP_DEFINE_ORDER)
#undef GCAP_DEFINE_ORDER

// Any one-dimensional grid; of the k largest, blocks of whole warps.
#define GCAP_DECLARE_KERNEL(T, bits)                              \
  GCAP_KERNEL void gcap_kernel_arg_##T(gcap_arg_params_t params); \
  GCAP_KERNEL void gcap_kernel_top_##T(gcap_top_params_t params);
GCAP_SELECT_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_SELECT_KERNELS_H_
