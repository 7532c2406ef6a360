// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// multiply.h: the product of two matrices of floats, to which every matmul and convolution comes down.
#ifndef GCAP_SIM_LIBRARY_MULTIPLY_H_
#define GCAP_SIM_LIBRARY_MULTIPLY_H_

#include <stdint.h>

// sums[i, j] = the sum over l of rows[i, l] * columns[l, j], for `count` rows of `depth` floats and `width` columns.
// All three are row-major and packed. Each sum starts at 0 and takes its products in the order of l, so results are
// those of the plain loop, bit for bit. `name` is the call that a lack of host memory is reported for.
void gcap_sim_multiply(const char* name, const float* rows, int64_t count, int64_t depth, const float* columns,
                       int64_t width, float* sums);

// Host memory for `count` floats, at least one; stops the program when there is none, since queued work has no caller
// to tell.
float* gcap_sim_allocate_floats(const char* name, int64_t count);

#endif  // GCAP_SIM_LIBRARY_MULTIPLY_H_
