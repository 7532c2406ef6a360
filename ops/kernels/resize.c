// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The parameters and the launch of resizes. All that coordinates have in common is computed here, in f32 and in ONNX
// Runtime's order, and neighbouring axes that are copied become one. No state.
#include "ops/kernels/resize.h"

#include <math.h>

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

_Static_assert((int)GCAP_RESIZE_MAX_AXES == GCAP_MAX_RANK, "a kernel has any rank");

#define ENTRY(T) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_resize_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_RESIZE_KERNELS(ENTRY)};

#define NEAREST_ENTRY(bytes, type) [bytes] = (const void*)gcap_kernel_resize_nearest_##bytes,
static const void* const nearest_kernels[] = {GCAP_RESIZE_NEAREST_KERNELS(NEAREST_ENTRY)};

// Half an element is added before, and taken away behind.
static void place_halves(gcap_resize_axis_t* axis, float scale, bool symmetric) {
  axis->shift = axis->back = 0.5f;
  axis->divisor = scale;
  if (!symmetric) return;
  // The middle of the input is that of the output, also where scale * input is not the output.
  const float adjustment = (float)axis->output / (scale * (float)axis->input);
  axis->begin = (float)axis->input / 2.0f * (1.0f - adjustment);
}

// The length of the output before it was cut to whole elements, as ONNX's reference has it; ONNX Runtime takes the
// size. So it is the size where the two differ by the rounding of the scale alone.
static float length_of(const gcap_resize_axis_t* axis, float scale) {
  const float size = (float)axis->output, length = scale * (float)axis->input;
  return fabsf(length - size) <= 1e-5f * length ? size : length;
}

static void place(gcap_resize_axis_t* axis, gcap_resize_coordinates_t coordinates, float scale) {
  axis->factor = 1.0f;
  axis->divisor = scale;
  switch (coordinates) {
    case GCAP_RESIZE_HALF_PIXEL: place_halves(axis, scale, false); break;
    case GCAP_RESIZE_HALF_PIXEL_SYMMETRIC: place_halves(axis, scale, true); break;
    case GCAP_RESIZE_PYTORCH_HALF_PIXEL:
      if (axis->output > 1) {
        place_halves(axis, scale, false);
      } else {
        axis->factor = 0.0f;
      }
      break;
    case GCAP_RESIZE_TF_HALF_PIXEL_FOR_NN: axis->shift = 0.5f; break;
    case GCAP_RESIZE_ALIGN_CORNERS:
      axis->factor = axis->output > 1 ? (float)(axis->input - 1) : 0.0f;
      axis->divisor = axis->output > 1 ? length_of(axis, scale) - 1.0f : 1.0f;
      break;
    case GCAP_RESIZE_ASYMMETRIC: break;
  }
}

// Puts an axis before the first of the parameters, or into it.
static void add_axis(const gcap_resize_options_t* options, int64_t input, int64_t output, float scale, int64_t stride,
                     gcap_resize_axis_t* axes, int* count) {
  const bool is_same = scale == 1.0f && input == output;
  if (is_same && *count > 0 && axes[*count - 1].is_same) {
    axes[*count - 1].input *= input;
    axes[*count - 1].output *= output;
    return;
  }
  gcap_resize_axis_t* axis = &axes[(*count)++];
  *axis = (gcap_resize_axis_t){.input = input, .output = output, .stride = stride, .is_same = is_same};
  axis->rounding = options->rounding >= 0 ? options->rounding : scale < 1 ? GCAP_RESIZE_CEIL : GCAP_RESIZE_FLOOR;
  place(axis, options->coordinates, scale);
}

static gcap_status_t check(const gcap_resize_options_t* options, const gcap_tensor_t* x, const gcap_tensor_t* y) {
  static const unsigned floats = 1u << GCAP_DTYPE_F32 | 1u << GCAP_DTYPE_F16 | 1u << GCAP_DTYPE_BF16;
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("y", y, x->dtype, "the type of x"));
  if (options->mode != GCAP_RESIZE_NEAREST) {
    GCAP_RETURN_IF_ERROR(gcap_check_dtype_among("an interpolation", x->dtype, floats));
  }
  return gcap_check_apart("y", y, "x", x, /*or_same=*/false);
}

gcap_status_t gcap_resize(gcap_stream_t* stream, const gcap_resize_options_t* options, const gcap_tensor_t* x,
                          const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check(options, x, y));
  const int64_t outputs = gcap_tensor_elements(y);
  if (outputs == 0) return NULL;
  gcap_resize_axis_t axes[GCAP_RESIZE_MAX_AXES];  // the last one first
  int count = 0;
  int64_t stride = 1;
  for (int i = x->rank - 1; i >= 0; --i) {
    add_axis(options, x->shape[i], y->shape[i], options->scales[i], stride, axes, &count);
    stride *= x->shape[i];
  }
  gcap_resize_params_t params = {.x = x->data,
                                 .y = y->data,
                                 .outputs = outputs,
                                 .rank = count,
                                 .narrow = outputs <= INT32_MAX,
                                 .taps = options->mode == GCAP_RESIZE_CUBIC ? 4 : 2,
                                 .exclude_outside = options->mode == GCAP_RESIZE_CUBIC && options->exclude_outside,
                                 .cubic_coeff = options->cubic_coeff};
  for (int k = 0; k < count; ++k) params.axes[k] = axes[count - 1 - k];
  const void* kernel =
      options->mode == GCAP_RESIZE_NEAREST ? nearest_kernels[gcap_dtype_bytes(x->dtype)] : kernels[x->dtype];
  return gcap_op_launch(stream, kernel, outputs, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}
