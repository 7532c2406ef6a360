// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// inner.h: what the kernels of ops/nodes need of attributes and contents, beside gcap/kit/shape_inference.h.
#ifndef GCAP_KIT_SHAPE_INNER_H_
#define GCAP_KIT_SHAPE_INNER_H_

#include "gcap/kit/shape_inference.h"

// How much a Pad adds to each axis of input 0, before it and behind it; what is negative is cropped.
typedef struct gcap_pads {
  bool known;  // false if the content of an input is unknown
  int64_t begin[GCAP_MAX_RANK];
  int64_t end[GCAP_MAX_RANK];
} gcap_pads_t;

// Reads what a Pad adds, from attributes (before opset 11) or inputs. Inputs are checked as gcap_infer_shapes does.
//   INVALID_ARGUMENT  as gcap_infer_shapes
gcap_status_t gcap_infer_pads(const gcap_node_t* node, const gcap_tensor_t* inputs,
                              gcap_pads_t* out_pads) GCAP_NODISCARD;

#endif  // GCAP_KIT_SHAPE_INNER_H_
