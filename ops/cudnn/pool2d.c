// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pooling by cuDNN or by gcap's kernel, planned once for a shape. cuDNN pads both ends alike, and dilates nothing; what
// stands behind the last window is of no matter, so pads that differ are fine as long as there are as many windows.
// What is left does the kernel. A plan does not change after creation, so there is no lock; the handle that run uses is
// the stream's own.
#include "gcap/kit/ops/pool2d.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/run_trace.h"
#include "lib/internal/sized.h"
#include "ops/cudnn/cudnn_status.h"
#include "ops/cudnn/cudnn_tensor.h"
#include "ops/handles/end_warning.h"
#include "ops/kernels/direct_pool.h"

// Rows or columns with pads: the last window begins inside, and ends where an int still is.
enum { MAX_PADDED = 1 << 30 };

struct gcap_pool2d {
  gcap_pool2d_options_t options;  // checked: all pads are given
  cudnnTensorDescriptor_t x, y;
  cudnnPoolingDescriptor_t pooling;
  int output_shape[4];
  bool is_empty;                     // there is nothing to compute, and nothing is described
  bool is_direct;                    // gcap's kernel does it: nothing is described
  gcap_direct_pool_params_t direct;  // then; without operands
};

GCAP_SIZED_OPTIONS(static, gcap_pool2d_options);

// One direction of a pooling.
typedef struct side {
  char name;
  int input, kernel, stride, begin, end, dilation;
  bool ceil_mode;
} side_t;

static long long reach(const side_t* s) { return (long long)s->dilation * (s->kernel - 1) + 1; }

static gcap_status_t check_pad(const char* name, const side_t* s, int pad, int least) {
  if (pad >= least && pad < reach(s)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "pad_%c%s is %d, allowed are %d..%lld (kernel_%c %d, dilation_%c %d)",
                     s->name, name, pad, least, reach(s) - 1, s->name, s->kernel, s->name, s->dilation);
}

static gcap_status_t check_side(const side_t* s) {
  const struct {
    const char* name;
    int value;
  } members[] = {{"kernel", s->kernel}, {"stride", s->stride}, {"dilation", s->dilation}};
  for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); ++i) {
    char name[] = "dilation_h";
    snprintf(name, sizeof(name), "%s_%c", members[i].name, s->name);
    GCAP_RETURN_IF_ERROR(gcap_cudnn_check_at_least(name, members[i].value, 1));
  }
  GCAP_RETURN_IF_ERROR(check_pad("", s, s->begin, 0));
  return check_pad("_end", s, s->end, -1);
}

static int end_of(const side_t* s) { return s->end < 0 ? s->begin : s->end; }

// The length of one side of the output.
static gcap_status_t output_side(const side_t* s, int* out_length) {
  *out_length = 0;
  GCAP_RETURN_IF_ERROR(check_side(s));
  const long long padded = (long long)s->input + s->begin + end_of(s), room = padded - reach(s);
  if (padded > MAX_PADDED) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%c is %d with pads %d and %d, allowed are %d with pads", s->name,
                       s->input, s->begin, end_of(s), MAX_PADDED);
  }
  if (room < 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "kernel_%c is %d with dilation %d, the input is %c %d with pads %d and %d", s->name, s->kernel,
                       s->dilation, s->name, s->input, s->begin, end_of(s));
  }
  long long windows = room / s->stride + 1;
  if (s->ceil_mode && room % s->stride != 0 && windows * s->stride - s->begin < s->input) ++windows;
  *out_length = (int)windows;
  return NULL;
}

// cuDNN has no dilation, and its windows are those of the pad at the beginning at both ends. If an average counts pads,
// it counts whole windows, also what is behind the pads.
static bool fits_cudnn(const side_t* s, int windows, bool counts_pads) {
  const long long room = (long long)s->input + 2LL * s->begin - s->kernel;
  if (s->dilation != 1 || room < 0 || room / s->stride + 1 != windows) return false;
  return !counts_pads || (windows - 1LL) * s->stride + s->kernel <= (long long)s->input + s->begin + end_of(s);
}

static gcap_status_t check_options(gcap_pool2d_options_t* o, int out_shape[4], bool* out_is_direct) {
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_shape(o->n, o->c, o->h, o->w));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_type(o->dtype, false));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_layout(o->layout));
  if (o->mode != GCAP_POOL2D_MAX && o->mode != GCAP_POOL2D_AVERAGE) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "mode is %d, allowed are 0..%d", (int)o->mode, (int)GCAP_POOL2D_AVERAGE);
  }
  if (o->global) {
    o->kernel_h = o->h;
    o->kernel_w = o->w;
    o->stride_h = o->stride_w = o->dilation_h = o->dilation_w = 1;
    o->pad_h = o->pad_w = o->pad_h_end = o->pad_w_end = 0;
    o->ceil_mode = false;
  }
  const side_t height = {'h', o->h, o->kernel_h, o->stride_h, o->pad_h, o->pad_h_end, o->dilation_h, o->ceil_mode};
  const side_t width = {'w', o->w, o->kernel_w, o->stride_w, o->pad_w, o->pad_w_end, o->dilation_w, o->ceil_mode};
  out_shape[0] = o->n;
  out_shape[1] = o->c;
  GCAP_RETURN_IF_ERROR(output_side(&height, &out_shape[2]));
  GCAP_RETURN_IF_ERROR(output_side(&width, &out_shape[3]));
  o->pad_h_end = end_of(&height);
  o->pad_w_end = end_of(&width);
  const bool counts_pads = o->mode == GCAP_POOL2D_AVERAGE && o->count_include_pad;
  *out_is_direct = !fits_cudnn(&height, out_shape[2], counts_pads) || !fits_cudnn(&width, out_shape[3], counts_pads);
  return NULL;
}

static cudnnPoolingMode_t library_mode(const gcap_pool2d_options_t* o) {
  if (o->mode == GCAP_POOL2D_MAX) return CUDNN_POOLING_MAX;
  return o->count_include_pad ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                              : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
}

static gcap_status_t describe(gcap_pool2d_t* pool) {
  const gcap_pool2d_options_t* o = &pool->options;
  const int x_shape[] = {o->n, o->c, o->h, o->w};
  GCAP_RETURN_IF_ERROR(gcap_cudnn_describe_tensor(o->dtype, o->layout, x_shape, &pool->x));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_describe_tensor(o->dtype, o->layout, pool->output_shape, &pool->y));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreatePoolingDescriptor(&pool->pooling)));
  return GCAP_CUDNN(cudnnSetPooling2dDescriptor(pool->pooling, library_mode(o), CUDNN_PROPAGATE_NAN, o->kernel_h,
                                                o->kernel_w, o->pad_h, o->pad_w, o->stride_h, o->stride_w));
}

static gcap_status_t plan_direct(gcap_pool2d_t* pool) {
  const gcap_pool2d_options_t* o = &pool->options;
  const int *y = pool->output_shape, counted_end[] = {o->pad_h_end, o->pad_w_end};
  const gcap_image_problem_t problem = {.x = {.dtype = o->dtype, .rank = 4, .shape = {o->n, o->c, o->h, o->w}},
                                        .y = {.dtype = o->dtype, .rank = 4, .shape = {y[0], y[1], y[2], y[3]}},
                                        .kernel = {o->kernel_h, o->kernel_w},
                                        .stride = {o->stride_h, o->stride_w},
                                        .pad = {o->pad_h, o->pad_w},
                                        .dilation = {o->dilation_h, o->dilation_w},
                                        .is_nhwc = o->layout == GCAP_IMAGE_NHWC};
  return gcap_direct_pool_plan(&problem, o->mode == GCAP_POOL2D_MAX, o->count_include_pad ? counted_end : NULL,
                               &pool->direct);
}

static gcap_status_t plan(gcap_pool2d_t* pool) {
  pool->is_empty = pool->options.n == 0;
  if (pool->is_empty) return NULL;
  return pool->is_direct ? plan_direct(pool) : describe(pool);
}

gcap_status_t gcap_pool2d_create(const gcap_pool2d_options_t* options, gcap_pool2d_t** out_pool) {
  GCAP_RETURN_IF_NULL(out_pool);
  *out_pool = NULL;
  GCAP_RETURN_IF_NULL(options);
  gcap_pool2d_options_t known;
  int shape[4];
  bool is_direct = false;
  GCAP_RETURN_IF_ERROR(gcap_pool2d_options_read(options, &known));
  GCAP_RETURN_IF_ERROR(check_options(&known, shape, &is_direct));
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture("a pooling is planned before the capture"));
  gcap_trace_initialization(GCAP_INITIALIZED_PLAN);
  gcap_pool2d_t* pool = calloc(1, sizeof(*pool));
  if (pool == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a pooling");
  pool->options = known;
  pool->is_direct = is_direct;
  for (int i = 0; i < 4; ++i) pool->output_shape[i] = shape[i];
  gcap_status_t status = plan(pool);
  if (status != NULL) {
    gcap_pool2d_destroy(pool);
    return status;
  }
  *out_pool = pool;
  return NULL;
}

void gcap_pool2d_destroy(gcap_pool2d_t* pool) {
  if (pool == NULL) return;
  if (pool->pooling != NULL) gcap_warn_of_end(GCAP_CUDNN(cudnnDestroyPoolingDescriptor(pool->pooling)));
  gcap_cudnn_end_tensor(pool->y);
  gcap_cudnn_end_tensor(pool->x);
  free(pool);
}

static gcap_status_t run_direct(const gcap_pool2d_t* pool, gcap_stream_t* stream, const void* x, void* y) {
  gcap_direct_pool_params_t params = pool->direct;
  params.x = x;
  params.y = y;
  return gcap_direct_pool(stream, pool->options.dtype, &params);
}

gcap_status_t gcap_pool2d_run(const gcap_pool2d_t* pool, gcap_stream_t* stream, const void* x, void* y) {
  static const float one = 1.0f, zero = 0.0f;
  GCAP_RETURN_IF_NULL(pool);
  GCAP_RETURN_IF_NULL(stream);
  if (pool->is_empty) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("x", x, pool->options.dtype));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("y", y, pool->options.dtype));
  if (pool->is_direct) return run_direct(pool, stream, x, y);
  cudnnHandle_t handle = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_cudnn_handle(stream, &handle));
  const int device_id = gcap_stream_device(stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = GCAP_CUDNN(cudnnPoolingForward(handle, pool->pooling, &one, pool->x, x, &zero, pool->y, y));
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}
