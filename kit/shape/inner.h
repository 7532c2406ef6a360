// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// inner.h: what the kernels of ops/nodes need of attributes and contents, beside gcap/kit/shape_inference.h.
#ifndef GCAP_KIT_SHAPE_INNER_H_
#define GCAP_KIT_SHAPE_INNER_H_

#include <stdbool.h>
#include <stdint.h>

#include "gcap/kit/shape_inference.h"

// Whether a tensor, or a value of a model, of this shape stands for one that the node leaves out before others.
static inline bool gcap_shape_is_left_out(int rank, const int64_t* shape) { return rank == 1 && shape[0] == 0; }

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

// The sizes of a Resize's or an Upsample's output, by axis of input 0.
typedef struct gcap_resize {
  bool known;                  // false if the content of an input is unknown
  float scale[GCAP_MAX_RANK];  // of the output to the input; 1 where the axis is not resized
  int64_t size[GCAP_MAX_RANK];
} gcap_resize_t;

// Reads the sizes of a Resize or an Upsample.
//   INVALID_ARGUMENT  as gcap_infer_shapes
gcap_status_t gcap_infer_resize(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                gcap_resize_t* out_resize) GCAP_NODISCARD;

// True if the node is an Upsample, or a Resize of opset 10: its second input has the scales, where that of a later
// Resize is a region, which is followed by the scales or the sizes.
bool gcap_resize_is_old(const gcap_node_t* node);

// Reads how the window of a ConvTranspose spreads input 0: pads are those of the output, whose size is `count`.
//   INVALID_ARGUMENT  as gcap_infer_shapes
gcap_status_t gcap_infer_transposed_window(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                           gcap_window_t* out_window) GCAP_NODISCARD;

// Reads the number that input `input` is, of i64, i32 or f32, where the content is known.
//   INVALID_ARGUMENT  as gcap_infer_shapes; the message has `name`
gcap_status_t gcap_infer_number(const gcap_node_t* node, int input, const char* name, const gcap_tensor_t* tensor,
                                bool* out_known, int64_t* out_number) GCAP_NODISCARD;

#endif  // GCAP_KIT_SHAPE_INNER_H_
