// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Resize, Upsample and GridSample. Scales and sizes are read on the host when the work is issued; a grid stays on the
// device.

#include "ops/kernels/resize.h"

#include <string.h>

#include "kit/shape/inner.h"
#include "ops/kernels/grid_sample.h"
#include "ops/nodes/op.h"

// A value of an attribute, and what it means to the kernel.
typedef struct choice {
  const char* text;
  int code;
} choice_t;

static const choice_t modes[] = {
    {"nearest", GCAP_RESIZE_NEAREST}, {"linear", GCAP_RESIZE_LINEAR}, {"cubic", GCAP_RESIZE_CUBIC}, {NULL, 0}};

static const choice_t all_coordinates[] = {{"half_pixel", GCAP_RESIZE_HALF_PIXEL},
                                           {"half_pixel_symmetric", GCAP_RESIZE_HALF_PIXEL_SYMMETRIC},
                                           {"pytorch_half_pixel", GCAP_RESIZE_PYTORCH_HALF_PIXEL},
                                           {"tf_half_pixel_for_nn", GCAP_RESIZE_TF_HALF_PIXEL_FOR_NN},
                                           {"align_corners", GCAP_RESIZE_ALIGN_CORNERS},
                                           {"asymmetric", GCAP_RESIZE_ASYMMETRIC},
                                           {NULL, 0}};

static const choice_t roundings[] = {{"round_prefer_floor", GCAP_RESIZE_ROUND_PREFER_FLOOR},
                                     {"round_prefer_ceil", GCAP_RESIZE_ROUND_PREFER_CEIL},
                                     {"floor", GCAP_RESIZE_FLOOR},
                                     {"ceil", GCAP_RESIZE_CEIL},
                                     {NULL, 0}};

// The code of an attribute; -1 if it has none of these values.
static int choose(const gcap_node_t* node, const char* name, const char* fallback, const choice_t* choices) {
  const char* text = gcap_node_string(node, name, fallback);
  while (choices->text != NULL && strcmp(choices->text, text) != 0) ++choices;
  return choices->text != NULL ? choices->code : -1;
}

static int mode_of(const gcap_node_t* node) { return choose(node, "mode", "nearest", modes); }

static int coordinates_of(const gcap_node_t* node) {
  return choose(node, "coordinate_transformation_mode", "half_pixel", all_coordinates);
}

static int rounding_of(const gcap_node_t* node) {
  return choose(node, "nearest_mode", "round_prefer_floor", roundings);
}

bool gcap_node_resize_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  static const unsigned floats = 1u << GCAP_DTYPE_F32 | 1u << GCAP_DTYPE_F16 | 1u << GCAP_DTYPE_BF16;
  const int mode = mode_of(node);
  const bool is_float = (floats >> gcap_node_input(model, node, 0)->dtype & 1) != 0;
  if (mode < 0 || (mode != GCAP_RESIZE_NEAREST && !is_float)) return false;
  if (gcap_resize_is_old(node)) return true;
  return coordinates_of(node) >= 0 && rounding_of(node) >= 0 && gcap_node_int(node, "antialias", 0) == 0;
}

gcap_status_t gcap_node_resize(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_node_t* node = kernel->node;
  const bool is_old = gcap_resize_is_old(node);
  gcap_resize_t resize;
  GCAP_RETURN_IF_ERROR(gcap_infer_resize(node, context->inputs, &resize));
  if (!resize.known) return GCAP_NODE_REFUSE(node, "the %s are at NULL", "scales or sizes");
  const gcap_resize_options_t options = {
      .mode = (gcap_resize_mode_t)mode_of(node),
      .coordinates = is_old ? GCAP_RESIZE_ASYMMETRIC : (gcap_resize_coordinates_t)coordinates_of(node),
      .rounding = is_old ? -1 : rounding_of(node),
      .cubic_coeff = gcap_node_float(node, "cubic_coeff_a", -0.75f),
      .exclude_outside = gcap_node_int(node, "exclude_outside", 0) != 0,
      .scales = resize.scale};
  return gcap_resize(context->resources.stream, &options, &context->inputs[0], &context->outputs[0]);
}

// --- GridSample -----------------------------------------------------------------------------------------------------

// The first names are those before opset 20.
static const choice_t grid_modes[] = {{"bilinear", GCAP_GRID_LINEAR}, {"linear", GCAP_GRID_LINEAR},
                                      {"nearest", GCAP_GRID_NEAREST}, {"bicubic", GCAP_GRID_CUBIC},
                                      {"cubic", GCAP_GRID_CUBIC},     {NULL, 0}};

static const choice_t grid_paddings[] = {
    {"zeros", GCAP_GRID_ZEROS}, {"border", GCAP_GRID_BORDER}, {"reflection", GCAP_GRID_REFLECTION}, {NULL, 0}};

static int grid_mode_of(const gcap_node_t* node) { return choose(node, "mode", "linear", grid_modes); }
static int grid_padding_of(const gcap_node_t* node) { return choose(node, "padding_mode", "zeros", grid_paddings); }

bool gcap_node_grid_sample_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const int rank = gcap_node_input(model, node, 0)->rank;
  return rank > 2 && rank <= 2 + GCAP_VOLUME_AXES && gcap_node_input(model, node, 1)->rank == rank &&
         grid_mode_of(node) >= 0 && grid_padding_of(node) >= 0;
}

gcap_status_t gcap_node_grid_sample(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_node_t* node = kernel->node;
  return gcap_grid_sample(context->resources.stream, (gcap_grid_mode_t)grid_mode_of(node),
                          (gcap_grid_padding_t)grid_padding_of(node), gcap_node_int(node, "align_corners", 0) != 0,
                          &context->inputs[0], &context->inputs[1], &context->outputs[0]);
}
