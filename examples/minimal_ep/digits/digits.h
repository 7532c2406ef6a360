// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// digits.h: the trained network and the held-out digits, from files to a model.
#ifndef GCAP_EXAMPLES_MINIMAL_EP_DIGITS_DIGITS_H_
#define GCAP_EXAMPLES_MINIMAL_EP_DIGITS_DIGITS_H_

#include <stddef.h>
#include <stdint.h>

#include "examples/minimal_ep/digits/npy.h"
#include "examples/minimal_ep/digits/reference.h"
#include "gcap/kit/ep.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DIGITS_NUM_WEIGHTS 8

// digits_t: weights and images in host memory. Filled by digits_load.
// Thread:   read only once loaded.
// Lifetime: the caller's, until digits_free; models made of it read it when their session is created.
typedef struct digits {
  npy_array_t weights[DIGITS_NUM_WEIGHTS];
  npy_array_t images;  // [count][1][8][8], 0..1
  npy_array_t labels;  // [count], 0..9
  size_t count;
} digits_t;

// Reads the .npy files in `directory`. Returns 0, or -1 with a sentence in `error` that names the file, what was found
// and what was expected.
int digits_load(const char* directory, digits_t* out_digits, char* error, size_t error_bytes);
void digits_free(digits_t* digits);

// The same weights for the plain C reference.
reference_weights_t digits_reference_weights(const digits_t* digits);

// A model over `batch` images: input [batch,1,8,8], output probabilities [batch,10].
typedef struct digits_model digits_model_t;

digits_model_t* digits_model_create(const digits_t* digits, int64_t batch);  // NULL: no host memory
void digits_model_destroy(digits_model_t* model);                            // NULL is fine
const gcap_model_t* digits_model_get(const digits_model_t* model);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MINIMAL_EP_DIGITS_DIGITS_H_
