// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// element.h: loads and stores of matrix and tensor elements of the modelled types, as floats.
#ifndef GCAP_SIM_LIBRARY_ELEMENT_H_
#define GCAP_SIM_LIBRARY_ELEMENT_H_

#include <stddef.h>

#include "library_types.h"

// Bytes of one element; 0 for a type that is not modelled.
size_t gcap_sim_element_bytes(cudaDataType type);

// The same as the two below, for the 16-bit types.
float gcap_sim_element_load_16(const void* base, cudaDataType type, ptrdiff_t index);
void gcap_sim_element_store_16(void* base, cudaDataType type, ptrdiff_t index, float value);

// Element `index` of the array at `base`, exactly. Inline, for loops over floats.
static inline float gcap_sim_element_load(const void* base, cudaDataType type, ptrdiff_t index) {
  return type == CUDA_R_32F ? ((const float*)base)[index] : gcap_sim_element_load_16(base, type, index);
}

// Stores `value` rounded to nearest, ties to even; what is too large becomes infinity.
static inline void gcap_sim_element_store(void* base, cudaDataType type, ptrdiff_t index, float value) {
  if (type == CUDA_R_32F) {
    ((float*)base)[index] = value;
  } else {
    gcap_sim_element_store_16(base, type, index, value);
  }
}

// `value` as a 16-bit type holds it.
float gcap_sim_element_round_to_16(cudaDataType type, float value);

// `value` rounded to the 10 mantissa bits that a TF32 multiplication keeps.
float gcap_sim_element_round_to_tf32(float value);

#endif  // GCAP_SIM_LIBRARY_ELEMENT_H_
