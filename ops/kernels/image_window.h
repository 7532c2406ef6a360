// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// image_window.h: a window that moves over images, NCHW or NHWC: where an output of it is, for kernels and their CPU
// twins.
#ifndef GCAP_OPS_KERNELS_IMAGE_WINDOW_H_
#define GCAP_OPS_KERNELS_IMAGE_WINDOW_H_

#include <stddef.h>

#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __CUDACC__
#define GCAP_READ_ONLY(pointer) __ldg(pointer)
#else
#define GCAP_READ_ONLY(pointer) (*(pointer))
#endif

// The window on one axis.
typedef struct gcap_window_side {
  int32_t input, output, kernel, stride, pad, dilation;  // pad: before the first element
} gcap_window_side_t;

// The distances of neighbours, in elements.
typedef struct gcap_image_strides {
  int64_t image, channel, row, column;
} gcap_image_strides_t;

typedef struct gcap_image_window {
  gcap_window_side_t h, w;
  int64_t outputs;   // all of them
  int32_t channels;  // of the output
  int32_t is_nhwc;
  int32_t narrow;  // 1: `outputs` fits into 31 bits
} gcap_image_window_t;

// Where an output is, and where its window begins, which may be before the input.
typedef struct gcap_image_place {
  int64_t image;
  int32_t channel, h, w;
} gcap_image_place_t;

// `*i` without its last digit to the base `size`, which is returned. Divisions of 32 bits take a fraction of the time
// of those of 64.
GCAP_INLINE int32_t gcap_last_digit(int32_t narrow, int32_t size, int64_t* i) {
  const int64_t rest = narrow ? (int64_t)((uint32_t)*i / (uint32_t)size) : *i / size;
  const int32_t digit = (int32_t)(*i - rest * size);
  *i = rest;
  return digit;
}

// Output `i`, in the order of memory.
GCAP_INLINE gcap_image_place_t gcap_image_place(const gcap_image_window_t* window, int64_t i) {
  gcap_image_place_t at;
  at.channel = window->is_nhwc ? gcap_last_digit(window->narrow, window->channels, &i) : 0;
  at.w = gcap_last_digit(window->narrow, window->w.output, &i) * window->w.stride - window->w.pad;
  at.h = gcap_last_digit(window->narrow, window->h.output, &i) * window->h.stride - window->h.pad;
  if (!window->is_nhwc) at.channel = gcap_last_digit(window->narrow, window->channels, &i);
  at.image = i;
  return at;
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_IMAGE_WINDOW_H_
