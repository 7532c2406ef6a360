// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a convolution may be asked for, and the shape of its output. No state.
#include <limits.h>

#include "lib/internal/check_argument.h"
#include "lib/internal/sized.h"
#include "ops/cudnn/conv2d_plan.h"
#include "ops/cudnn/cudnn_tensor.h"

GCAP_SIZED_OPTIONS(static, gcap_conv2d_options);

static gcap_status_t check_numbers(const gcap_conv2d_options_t* o) {
  const struct {
    const char* name;
    int value, minimum;
  } members[] = {{"n", o->n, 0},
                 {"c", o->c, 1},
                 {"h", o->h, 1},
                 {"w", o->w, 1},
                 {"k", o->k, 1},
                 {"kernel_h", o->kernel_h, 1},
                 {"kernel_w", o->kernel_w, 1},
                 {"stride_h", o->stride_h, 1},
                 {"stride_w", o->stride_w, 1},
                 {"pad_h", o->pad_h, 0},
                 {"pad_w", o->pad_w, 0},
                 {"pad_h_end", o->pad_h_end, -1},
                 {"pad_w_end", o->pad_w_end, -1},
                 {"dilation_h", o->dilation_h, 1},
                 {"dilation_w", o->dilation_w, 1},
                 {"groups", o->groups, 1},
                 {"d", o->d, 0},
                 {"kernel_d", o->kernel_d, 1},
                 {"stride_d", o->stride_d, 1},
                 {"pad_d", o->pad_d, 0},
                 {"pad_d_end", o->pad_d_end, -1},
                 {"dilation_d", o->dilation_d, 1}};
  for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); ++i) {
    GCAP_RETURN_IF_ERROR(gcap_cudnn_check_at_least(members[i].name, members[i].value, members[i].minimum));
  }
  if (o->c % o->groups == 0 && o->k % o->groups == 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "groups is %d, it must divide c %d and k %d", o->groups, o->c, o->k);
}

// A convolution of two axes has a third one of size 1.
static void leave_out_depth(gcap_conv2d_options_t* o) {
  o->d = o->kernel_d = o->stride_d = o->dilation_d = 1;
  o->pad_d = o->pad_d_end = 0;
}

static gcap_status_t check_volume(const gcap_conv2d_options_t* o) {
  if (o->layout != GCAP_IMAGE_NCHW) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "layout is %d and d is %d: with a third axis, the layout is NCHW (%d)",
                       (int)o->layout, o->d, (int)GCAP_IMAGE_NCHW);
  }
  if (o->direct != GCAP_CONV2D_DIRECT_ALWAYS) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "direct is ALWAYS (%d) and d is %d: gcap's kernel has no third axis",
                     (int)o->direct, o->d);
}

static gcap_status_t check_choices(const gcap_conv2d_options_t* o) {
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_type(o->dtype, o->tf32));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_layout(o->layout));
  if ((unsigned)o->direct > GCAP_CONV2D_DIRECT_ALWAYS) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "direct is %d, allowed are 0..%d", (int)o->direct,
                       (int)GCAP_CONV2D_DIRECT_ALWAYS);
  }
  if (o->search != GCAP_CONV2D_SEARCH_HEURISTIC && o->search != GCAP_CONV2D_SEARCH_EXHAUSTIVE) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "search is %d, allowed are 0..%d", (int)o->search,
                       (int)GCAP_CONV2D_SEARCH_EXHAUSTIVE);
  }
  if (o->search == GCAP_CONV2D_SEARCH_HEURISTIC) return NULL;
  GCAP_RETURN_IF_NULL(o->search_stream);
  GCAP_RETURN_IF_NULL(o->search_scratch);
  return NULL;
}

// The length of one side of the output: the kernel's positions on the padded input.
static gcap_status_t output_side(char side, int input, int begin, int end, int kernel, int dilation, int stride,
                                 int* out_length) {
  *out_length = 0;
  const long long padded = (long long)input + begin + end, reach = (kernel - 1LL) * dilation + 1;
  if (padded > INT_MAX) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "%c is %d, pad_%c is %d and pad_%c_end is %d: the padded input exceeds %d", side, input, side,
                       begin, side, end, INT_MAX);
  }
  if (reach > padded) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "kernel_%c is %d with dilation %d, the padded input is %lld (%c %d, pad_%c %d and %d)", side,
                       kernel, dilation, padded, side, input, side, begin, end);
  }
  *out_length = (int)((padded - reach) / stride + 1);
  return NULL;
}

gcap_status_t gcap_conv2d_check_options(const gcap_conv2d_options_t* given, gcap_conv2d_options_t* out_options,
                                        int out_shape[5], bool* out_is_volume) {
  gcap_conv2d_options_t* o = out_options;
  GCAP_RETURN_IF_ERROR(gcap_conv2d_options_read(given, o));
  *out_is_volume = o->d != 0;
  if (!*out_is_volume) leave_out_depth(o);
  if (o->handle == NULL && o->direct != GCAP_CONV2D_DIRECT_ALWAYS) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gcap_conv2d_create: handle is NULL");
  }
  GCAP_RETURN_IF_ERROR(check_numbers(o));
  GCAP_RETURN_IF_ERROR(check_choices(o));
  if (*out_is_volume) GCAP_RETURN_IF_ERROR(check_volume(o));
  if (o->pad_d_end < 0) o->pad_d_end = o->pad_d;
  if (o->pad_h_end < 0) o->pad_h_end = o->pad_h;
  if (o->pad_w_end < 0) o->pad_w_end = o->pad_w;
  out_shape[0] = o->n;
  out_shape[1] = o->k;
  GCAP_RETURN_IF_ERROR(
      output_side('h', o->h, o->pad_h, o->pad_h_end, o->kernel_h, o->dilation_h, o->stride_h, &out_shape[2]));
  GCAP_RETURN_IF_ERROR(
      output_side('w', o->w, o->pad_w, o->pad_w_end, o->kernel_w, o->dilation_w, o->stride_w, &out_shape[3]));
  return output_side('d', o->d, o->pad_d, o->pad_d_end, o->kernel_d, o->dilation_d, o->stride_d, &out_shape[4]);
}
