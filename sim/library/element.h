// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// element.h: loads and stores of matrix and tensor elements of the modelled types. Values travel as doubles, which hold
// every type exactly. What a GPU calculates in floats is rounded to a float after each sum, product, quotient or root,
// which then is the one that is made in floats, and once after a function such as tanh.
#ifndef GCAP_SIM_LIBRARY_ELEMENT_H_
#define GCAP_SIM_LIBRARY_ELEMENT_H_

#include <stddef.h>
#include <stdint.h>

#include "library_types.h"

// Bytes of one element; 0 for a type that is not modelled.
size_t gcap_sim_element_bytes(cudaDataType type);

// The type that elements of `type` are calculated in, which is that of their scalars too: doubles for doubles, floats
// for all others.
static inline cudaDataType gcap_sim_element_compute_type(cudaDataType type) {
  return type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
}

// `value`, the result of one operation, as a calculation in `compute_type` holds it.
static inline double gcap_sim_element_round(cudaDataType compute_type, double value) {
  return compute_type == CUDA_R_64F ? value : (double)(float)value;
}

// The same as the two below, for the 16-bit types.
float gcap_sim_element_load_16(const void* base, cudaDataType type, ptrdiff_t index);
void gcap_sim_element_store_16(void* base, cudaDataType type, ptrdiff_t index, float value);

// Element `index` of the array at `base`, exactly. Inline, for loops over floats.
static inline double gcap_sim_element_load(const void* base, cudaDataType type, ptrdiff_t index) {
  switch (type) {
    case CUDA_R_32F: return ((const float*)base)[index];
    case CUDA_R_64F: return ((const double*)base)[index];
    default: return gcap_sim_element_load_16(base, type, index);
  }
}

// Stores `value` rounded to nearest, ties to even, the 16-bit types by way of a float; what is too large becomes
// infinity.
static inline void gcap_sim_element_store(void* base, cudaDataType type, ptrdiff_t index, double value) {
  switch (type) {
    case CUDA_R_32F: ((float*)base)[index] = (float)value; break;
    case CUDA_R_64F: ((double*)base)[index] = value; break;
    default: gcap_sim_element_store_16(base, type, index, (float)value);
  }
}

// Where element `index` of the array at `base` is.
static inline void* gcap_sim_element_at(void* base, cudaDataType type, int64_t index) {
  return (char*)base + index * (int64_t)gcap_sim_element_bytes(type);
}

// `value` as a 16-bit type holds it.
float gcap_sim_element_round_to_16(cudaDataType type, float value);

// `value` rounded to the 10 mantissa bits that a TF32 multiplication keeps.
float gcap_sim_element_round_to_tf32(float value);

#endif  // GCAP_SIM_LIBRARY_ELEMENT_H_
