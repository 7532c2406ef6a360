// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pooling by cuDNN, planned once for a shape. cuDNN pads both ends alike; what stands behind the last window is of no
// matter, so pads that differ are fine as long as there are as many windows. A plan does not change after creation, so
// there is no lock; the handle that run uses is the stream's own.
#include "gcap/ops/pool2d.h"

#include <stdlib.h>

#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/run_trace.h"
#include "lib/internal/sized.h"
#include "ops/cudnn/cudnn_status.h"
#include "ops/cudnn/cudnn_tensor.h"

struct gcap_pool2d {
  cudnnTensorDescriptor_t x, y;
  cudnnPoolingDescriptor_t pooling;
  gcap_dtype_t dtype;
  int output_shape[4];
  bool is_empty;  // there is nothing to compute, and nothing is described
};

GCAP_SIZED_OPTIONS(static, gcap_pool2d_options, .stride_h = 1, .stride_w = 1, .pad_h_end = -1, .pad_w_end = -1);

// One direction of a pooling.
typedef struct side {
  char name;
  int input, kernel, stride, begin, end;
} side_t;

static gcap_status_t check_pad(const char* name, char side, int pad, int least, int kernel) {
  if (pad >= least && pad < kernel) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "pad_%c%s is %d, allowed are %d..%d (kernel_%c %d)", side, name, pad, least,
                     kernel - 1, side, kernel);
}

static gcap_status_t check_side(const side_t* s) {
  const char kernel[] = {'k', 'e', 'r', 'n', 'e', 'l', '_', s->name, 0};
  const char stride[] = {'s', 't', 'r', 'i', 'd', 'e', '_', s->name, 0};
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_at_least(kernel, s->kernel, 1));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_at_least(stride, s->stride, 1));
  GCAP_RETURN_IF_ERROR(check_pad("", s->name, s->begin, 0, s->kernel));
  return check_pad("_end", s->name, s->end, -1, s->kernel);
}

static long long count_windows(const side_t* s, int end) {
  const long long room = (long long)s->input + s->begin + end - s->kernel;
  return room < 0 ? 0 : room / s->stride + 1;
}

// The length of one side of the output.
static gcap_status_t output_side(const side_t* s, int* out_length) {
  *out_length = 0;
  GCAP_RETURN_IF_ERROR(check_side(s));
  const int end = s->end < 0 ? s->begin : s->end;
  const long long windows = count_windows(s, end);
  if (windows == 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "kernel_%c is %d, the input is %c %d with pads %d and %d", s->name,
                       s->kernel, s->name, s->input, s->begin, end);
  }
  if (windows != count_windows(s, s->begin)) {
    return GCAP_STATUS(GCAP_UNIMPLEMENTED, "pad_%c is %d and pad_%c_end is %d: cuDNN pads both ends of a pooling alike",
                       s->name, s->begin, s->name, end);
  }
  *out_length = (int)windows;
  return NULL;
}

static gcap_status_t check_options(gcap_pool2d_options_t* o, int out_shape[4]) {
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_shape(o->n, o->c, o->h, o->w));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_type(o->dtype, false));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_layout(o->layout));
  if (o->mode != GCAP_POOL2D_MAX && o->mode != GCAP_POOL2D_AVERAGE) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "mode is %d, allowed are 0..%d", (int)o->mode, (int)GCAP_POOL2D_AVERAGE);
  }
  if (o->global) {
    o->kernel_h = o->h;
    o->kernel_w = o->w;
    o->stride_h = o->stride_w = 1;
    o->pad_h = o->pad_w = o->pad_h_end = o->pad_w_end = 0;
  }
  const side_t height = {'h', o->h, o->kernel_h, o->stride_h, o->pad_h, o->pad_h_end};
  const side_t width = {'w', o->w, o->kernel_w, o->stride_w, o->pad_w, o->pad_w_end};
  out_shape[0] = o->n;
  out_shape[1] = o->c;
  GCAP_RETURN_IF_ERROR(output_side(&height, &out_shape[2]));
  return output_side(&width, &out_shape[3]);
}

static cudnnPoolingMode_t library_mode(const gcap_pool2d_options_t* o) {
  if (o->mode == GCAP_POOL2D_MAX) return CUDNN_POOLING_MAX;
  return o->count_include_pad ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                              : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
}

static gcap_status_t describe(gcap_pool2d_t* pool, const gcap_pool2d_options_t* o) {
  const int x_shape[] = {o->n, o->c, o->h, o->w};
  GCAP_RETURN_IF_ERROR(gcap_cudnn_describe_tensor(o->dtype, o->layout, x_shape, &pool->x));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_describe_tensor(o->dtype, o->layout, pool->output_shape, &pool->y));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreatePoolingDescriptor(&pool->pooling)));
  return GCAP_CUDNN(cudnnSetPooling2dDescriptor(pool->pooling, library_mode(o), CUDNN_PROPAGATE_NAN, o->kernel_h,
                                                o->kernel_w, o->pad_h, o->pad_w, o->stride_h, o->stride_w));
}

gcap_status_t gcap_pool2d_create(const gcap_pool2d_options_t* options, gcap_pool2d_t** out_pool) {
  GCAP_RETURN_IF_NULL(out_pool);
  *out_pool = NULL;
  GCAP_RETURN_IF_NULL(options);
  gcap_pool2d_options_t known;
  int shape[4];
  GCAP_RETURN_IF_ERROR(gcap_pool2d_options_read(options, &known));
  GCAP_RETURN_IF_ERROR(check_options(&known, shape));
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture("a pooling is planned before the capture"));
  gcap_trace_initialization(GCAP_INITIALIZED_PLAN);
  gcap_pool2d_t* pool = calloc(1, sizeof(*pool));
  if (pool == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a pooling");
  pool->dtype = known.dtype;
  pool->is_empty = known.n == 0;
  for (int i = 0; i < 4; ++i) pool->output_shape[i] = shape[i];
  gcap_status_t status = pool->is_empty ? NULL : describe(pool, &known);
  if (status != NULL) {
    gcap_pool2d_destroy(pool);
    return status;
  }
  *out_pool = pool;
  return NULL;
}

void gcap_pool2d_destroy(gcap_pool2d_t* pool) {
  if (pool == NULL) return;
  if (pool->pooling != NULL) gcap_cudnn_warn(GCAP_CUDNN(cudnnDestroyPoolingDescriptor(pool->pooling)));
  gcap_cudnn_end_tensor(pool->y);
  gcap_cudnn_end_tensor(pool->x);
  free(pool);
}

void gcap_pool2d_output_shape(const gcap_pool2d_t* pool, int out_shape[4]) {
  for (int i = 0; i < 4; ++i) out_shape[i] = pool->output_shape[i];
}

gcap_status_t gcap_pool2d_run(const gcap_pool2d_t* pool, gcap_stream_t* stream, const void* x, void* y) {
  static const float one = 1.0f, zero = 0.0f;
  GCAP_RETURN_IF_NULL(pool);
  GCAP_RETURN_IF_NULL(stream);
  if (pool->is_empty) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("x", x, pool->dtype));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("y", y, pool->dtype));
  cudnnHandle_t handle = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_cudnn_handle(stream, &handle));
  const int device_id = gcap_stream_device(stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = GCAP_CUDNN(cudnnPoolingForward(handle, pool->pooling, &one, pool->x, x, &zero, pool->y, y));
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}
