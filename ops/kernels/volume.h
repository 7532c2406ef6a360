// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// volume.h: a window that moves over up to three axes behind batch and channels: where an output of it is, for kernels
// and their CPU twins. Fewer axes have size 1 before them.
#ifndef GCAP_OPS_KERNELS_VOLUME_H_
#define GCAP_OPS_KERNELS_VOLUME_H_

#include "ops/kernels/image_window.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GCAP_VOLUME_AXES = 3 };

typedef struct gcap_volume {
  gcap_window_side_t side[GCAP_VOLUME_AXES];
  int64_t outputs;   // all of them
  int32_t channels;  // of the output
  int32_t narrow;    // 1: `outputs` fits into 31 bits
} gcap_volume_t;

// Where an output is.
typedef struct gcap_volume_place {
  int64_t image;
  int32_t channel;
  int32_t at[GCAP_VOLUME_AXES];
} gcap_volume_place_t;

// Output `i`, in the order of memory.
GCAP_INLINE gcap_volume_place_t gcap_volume_place(const gcap_volume_t* volume, int64_t i) {
  gcap_volume_place_t place;
  for (int k = GCAP_VOLUME_AXES - 1; k >= 0; --k) {
    place.at[k] = gcap_last_digit(volume->narrow, volume->side[k].output, &i);
  }
  place.channel = gcap_last_digit(volume->narrow, volume->channels, &i);
  place.image = i;
  return place;
}

// The elements of one channel of the input.
GCAP_INLINE int64_t gcap_volume_inputs(const gcap_volume_t* volume) {
  return (int64_t)volume->side[0].input * volume->side[1].input * volume->side[2].input;
}

// The places of the window.
GCAP_INLINE int64_t gcap_volume_taps(const gcap_volume_t* volume) {
  return (int64_t)volume->side[0].kernel * volume->side[1].kernel * volume->side[2].kernel;
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_VOLUME_H_
