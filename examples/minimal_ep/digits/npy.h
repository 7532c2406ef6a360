// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// npy.h: a strict reader of NumPy's .npy files that hold float32 or int32 arrays.
#ifndef GCAP_EXAMPLES_MINIMAL_EP_DIGITS_NPY_H_
#define GCAP_EXAMPLES_MINIMAL_EP_DIGITS_NPY_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The most dimensions that an array may have here; the program's own have up to 4.
#define NPY_MAX_RANK 8

// In an expected shape: any length of at least 1.
#define NPY_ANY (-1)

typedef enum npy_dtype {
  NPY_FLOAT32 = 0,  // '<f4'
  NPY_INT32,        // '<i4'
} npy_dtype_t;

// npy_array_t: an array in memory, in C order. Filled by npy_load.
// Thread:   thread-compatible
// Capture:  no CUDA call is made; load before the capture begins all the same, since loading blocks
// Lifetime: the caller owns it until npy_free
typedef struct npy_array {
  npy_dtype_t dtype;
  size_t rank;
  size_t shape[NPY_MAX_RANK];
  size_t count;  // elements: the product of the shape
  void* data;    // float[count] or int32_t[count]
} npy_array_t;

// Reads the file at `path`, of format version 1.0, 2.0 or 3.0, whose element type must be `dtype` and whose shape must
// be `expected_shape[0..rank)`, where NPY_ANY stands for any length of at least 1. `rank` is at most NPY_MAX_RANK.
//
// Returns 0, or -1 with one sentence in `error` (cut to `error_bytes`, always terminated, unless that is 0) that names
// the file, what was found and what was expected; `out_array` is then all zeros. What fails: a larger rank, a file that
// cannot be opened or is not a regular file, another magic or version, a malformed header, Fortran order, another dtype
// or shape, too few or too many bytes, a float that is NaN or infinite, and memory that cannot be had. No input crashes
// it.
int npy_load(const char* path, npy_dtype_t dtype, const int64_t* expected_shape, size_t rank, npy_array_t* out_array,
             char* error, size_t error_bytes);

// Frees the data and zeroes the struct. An all-zero struct is fine.
void npy_free(npy_array_t* array);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MINIMAL_EP_DIGITS_NPY_H_
