// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// element.h: loads and stores of matrix elements of the modelled types, as floats.
#ifndef GCAP_SIM_CUBLASLT_ELEMENT_H_
#define GCAP_SIM_CUBLASLT_ELEMENT_H_

#include <stddef.h>

#include "library_types.h"

// Bytes of one element; 0 for a type that is not modelled.
size_t sim_lt_element_bytes(cudaDataType type);

// Element `index` of the array at `base`, exactly.
float sim_lt_element_load(const void* base, cudaDataType type, ptrdiff_t index);

// Stores `value` rounded to nearest, ties to even; what is too large becomes infinity.
void sim_lt_element_store(void* base, cudaDataType type, ptrdiff_t index, float value);

// `value` rounded to the 10 mantissa bits that a TF32 multiplication keeps.
float sim_lt_round_to_tf32(float value);

#endif  // GCAP_SIM_CUBLASLT_ELEMENT_H_
