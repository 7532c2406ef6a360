// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Products of matrices: multiply.inc for floats and for doubles, and the choice between the two. Stateless.
//
// NOTE: ISO C (-std=c11) keeps a compiler from fusing a product and a sum, which would round once less on some
// machines.
#include "sim/library/multiply.h"

#include <stdlib.h>
#include <string.h>

#include "sim/library/element.h"
#include "sim/library/object.h"

enum { kVectorBytes = 16, kVectors = 2, kTileRows = 4 };

#define NUMBER float
#define NAME(name) name##_f32
#include "sim/library/multiply.inc"
#undef NUMBER
#undef NAME

#define NUMBER double
#define NAME(name) name##_f64
#include "sim/library/multiply.inc"
#undef NUMBER
#undef NAME

void* gcap_sim_allocate_numbers(const char* name, cudaDataType type, int64_t count) {
  void* numbers = malloc(count > 0 ? (size_t)count * gcap_sim_element_bytes(type) : 1);
  if (numbers == NULL) {
    gcap_sim_stop(name, "the host has no memory for %lld numbers of %zu bytes", (long long)count,
                  gcap_sim_element_bytes(type));
  }
  return numbers;
}

void gcap_sim_multiply(const char* name, cudaDataType type, const void* rows, int64_t count, int64_t depth,
                       const void* columns, int64_t width, void* sums) {
  // malloc aligns for any vector of the machine.
  if (type == CUDA_R_64F) {
    void* panel = gcap_sim_allocate_numbers(name, type, depth * kTileWidth_f64);
    multiply_f64(rows, count, depth, columns, width, sums, panel);
    free(panel);
  } else {
    void* panel = gcap_sim_allocate_numbers(name, type, depth * kTileWidth_f32);
    multiply_f32(rows, count, depth, columns, width, sums, panel);
    free(panel);
  }
}
