// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// multiply.h: the product of two matrices of floats or doubles, to which every matmul and convolution comes down.
#ifndef GCAP_SIM_LIBRARY_MULTIPLY_H_
#define GCAP_SIM_LIBRARY_MULTIPLY_H_

#include <stddef.h>
#include <stdint.h>

#include "library_types.h"

// sums[i, j] = the sum over l of rows[i, l] * columns[l, j], for `count` rows of `depth` numbers and `width` columns.
// All three are row-major and packed, and their numbers are of `type`: CUDA_R_32F or CUDA_R_64F. Each sum starts at 0
// and takes its products in the order of l, so results are those of the plain loop, bit for bit. `name` is the call
// that a lack of host memory is reported for.
void gcap_sim_multiply(const char* name, cudaDataType type, const void* rows, int64_t count, int64_t depth,
                       const void* columns, int64_t width, void* sums);

// Host memory for `count` numbers, at least one, of `type`; stops the program when there is none, since queued work has
// no caller to tell. To be freed with free.
void* gcap_sim_allocate_numbers(const char* name, cudaDataType type, int64_t count);

#endif  // GCAP_SIM_LIBRARY_MULTIPLY_H_
