// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Max-pooling by cuDNN, planned once for a shape. A plan does not change after creation, so there is no lock; the
// handle that run uses is the stream's own.
#include <stdlib.h>

#include "gcap/ops/conv2d.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/run_trace.h"
#include "lib/internal/sized.h"
#include "ops/cudnn/cudnn_status.h"

struct gcap_maxpool2d {
  cudnnTensorDescriptor_t x, y;
  cudnnPoolingDescriptor_t pooling;
  int output_shape[4];
};

GCAP_SIZED_OPTIONS(static, gcap_maxpool2d_options, .stride = 1);

static gcap_status_t check_options(const gcap_maxpool2d_options_t* o) {
  const struct {
    const char* name;
    int value;
  } members[] = {{"n", o->n}, {"c", o->c}, {"h", o->h}, {"w", o->w}, {"window", o->window}, {"stride", o->stride}};
  for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); ++i) {
    GCAP_RETURN_IF_ERROR(gcap_cudnn_check_at_least(members[i].name, members[i].value, 1));
  }
  if (o->window <= o->h && o->window <= o->w) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "window is %d, the input is h %d, w %d", o->window, o->h, o->w);
}

static gcap_status_t describe(gcap_maxpool2d_t* pool, const gcap_maxpool2d_options_t* o) {
  const int* shape = pool->output_shape;
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateTensorDescriptor(&pool->x)));
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDNN(cudnnSetTensor4dDescriptor(pool->x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, o->n, o->c, o->h, o->w)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateTensorDescriptor(&pool->y)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnSetTensor4dDescriptor(pool->y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, shape[0],
                                                             shape[1], shape[2], shape[3])));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreatePoolingDescriptor(&pool->pooling)));
  return GCAP_CUDNN(cudnnSetPooling2dDescriptor(pool->pooling, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, o->window,
                                                o->window, 0, 0, o->stride, o->stride));
}

gcap_status_t gcap_maxpool2d_create(const gcap_maxpool2d_options_t* options, gcap_maxpool2d_t** out_pool) {
  GCAP_RETURN_IF_NULL(out_pool);
  *out_pool = NULL;
  GCAP_RETURN_IF_NULL(options);
  gcap_maxpool2d_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_maxpool2d_options_read(options, &known));
  options = &known;
  GCAP_RETURN_IF_ERROR(check_options(options));
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture("a pooling is planned before the capture"));
  gcap_trace_initialization();
  gcap_maxpool2d_t* pool = calloc(1, sizeof(*pool));
  if (pool == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a pooling");
  pool->output_shape[0] = options->n;
  pool->output_shape[1] = options->c;
  pool->output_shape[2] = (options->h - options->window) / options->stride + 1;
  pool->output_shape[3] = (options->w - options->window) / options->stride + 1;
  gcap_status_t status = describe(pool, options);
  if (status != NULL) {
    gcap_maxpool2d_destroy(pool);
    return status;
  }
  *out_pool = pool;
  return NULL;
}

void gcap_maxpool2d_destroy(gcap_maxpool2d_t* pool) {
  if (pool == NULL) return;
  if (pool->pooling != NULL) gcap_cudnn_warn(GCAP_CUDNN(cudnnDestroyPoolingDescriptor(pool->pooling)));
  if (pool->y != NULL) gcap_cudnn_warn(GCAP_CUDNN(cudnnDestroyTensorDescriptor(pool->y)));
  if (pool->x != NULL) gcap_cudnn_warn(GCAP_CUDNN(cudnnDestroyTensorDescriptor(pool->x)));
  free(pool);
}

void gcap_maxpool2d_output_shape(const gcap_maxpool2d_t* pool, int out_shape[4]) {
  for (int i = 0; i < 4; ++i) out_shape[i] = pool->output_shape[i];
}

gcap_status_t gcap_maxpool2d_run(const gcap_maxpool2d_t* pool, gcap_stream_t* stream, const float* x, float* y) {
  static const float one = 1.0f, zero = 0.0f;
  GCAP_RETURN_IF_NULL(pool);
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(y);
  cudnnHandle_t handle = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_cudnn_handle(stream, &handle));
  const int device_id = gcap_stream_device(stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = GCAP_CUDNN(cudnnPoolingForward(handle, pool->pooling, &one, pool->x, x, &zero, pool->y, y));
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}
