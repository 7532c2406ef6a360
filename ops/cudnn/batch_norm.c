// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Batch normalization for inference by cuDNN, planned once for a shape. A plan does not change after creation, so there
// is no lock; the handle that run uses is the stream's own.
#include "gcap/kit/ops/batch_norm.h"

#include <stdlib.h>

#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/run_trace.h"
#include "lib/internal/sized.h"
#include "ops/cudnn/cudnn_status.h"
#include "ops/cudnn/cudnn_tensor.h"

struct gcap_batch_norm {
  cudnnTensorDescriptor_t x, parameters;
  gcap_dtype_t dtype;
  double epsilon;
  bool is_empty;  // there is nothing to compute, and nothing is described
};

GCAP_SIZED_OPTIONS(static, gcap_batch_norm_options);

static gcap_status_t check_options(const gcap_batch_norm_options_t* o) {
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_shape(o->n, o->c, o->h, o->w));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_type(o->dtype, false));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_layout(o->layout));
  if (o->epsilon >= 0.0f) return NULL;  // a NaN is not
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "epsilon is %g, it must be at least 0", (double)o->epsilon);
}

static gcap_status_t describe(gcap_batch_norm_t* norm, const gcap_batch_norm_options_t* o) {
  const int shape[] = {o->n, o->c, o->h, o->w};
  GCAP_RETURN_IF_ERROR(gcap_cudnn_describe_tensor(o->dtype, o->layout, shape, &norm->x));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateTensorDescriptor(&norm->parameters)));
  return GCAP_CUDNN(cudnnDeriveBNTensorDescriptor(norm->parameters, norm->x, CUDNN_BATCHNORM_SPATIAL));
}

gcap_status_t gcap_batch_norm_create(const gcap_batch_norm_options_t* options, gcap_batch_norm_t** out_norm) {
  GCAP_RETURN_IF_NULL(out_norm);
  *out_norm = NULL;
  GCAP_RETURN_IF_NULL(options);
  gcap_batch_norm_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_batch_norm_options_read(options, &known));
  GCAP_RETURN_IF_ERROR(check_options(&known));
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture("a batch normalization is planned before the capture"));
  gcap_trace_initialization(GCAP_INITIALIZED_PLAN);
  gcap_batch_norm_t* norm = calloc(1, sizeof(*norm));
  if (norm == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a batch normalization");
  norm->dtype = known.dtype;
  norm->epsilon = (double)known.epsilon;
  norm->is_empty = known.n == 0;
  gcap_status_t status = norm->is_empty ? NULL : describe(norm, &known);
  if (status != NULL) {
    gcap_batch_norm_destroy(norm);
    return status;
  }
  *out_norm = norm;
  return NULL;
}

void gcap_batch_norm_destroy(gcap_batch_norm_t* norm) {
  if (norm == NULL) return;
  gcap_cudnn_end_tensor(norm->parameters);
  gcap_cudnn_end_tensor(norm->x);
  free(norm);
}

// The addresses of a run.
typedef struct operands {
  const void* x;
  const float *scale, *bias, *mean, *variance;
  void* y;
} operands_t;

static gcap_status_t check_operands(const gcap_batch_norm_t* norm, const operands_t* p) {
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("x", p->x, norm->dtype));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("scale", p->scale, GCAP_DTYPE_F32));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("bias", p->bias, GCAP_DTYPE_F32));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("mean", p->mean, GCAP_DTYPE_F32));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("variance", p->variance, GCAP_DTYPE_F32));
  return gcap_cudnn_check_address("y", p->y, norm->dtype);
}

gcap_status_t gcap_batch_norm_run(const gcap_batch_norm_t* norm, gcap_stream_t* stream, const void* x,
                                  const float* scale, const float* bias, const float* mean, const float* variance,
                                  void* y) {
  static const float one = 1.0f, zero = 0.0f;
  GCAP_RETURN_IF_NULL(norm);
  GCAP_RETURN_IF_NULL(stream);
  if (norm->is_empty) return NULL;
  const operands_t p = {x, scale, bias, mean, variance, y};
  GCAP_RETURN_IF_ERROR(check_operands(norm, &p));
  cudnnHandle_t handle = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_cudnn_handle(stream, &handle));
  const int device_id = gcap_stream_device(stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = GCAP_CUDNN(
      cudnnBatchNormalizationForwardInference(handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, norm->x, p.x, norm->x, p.y,
                                              norm->parameters, p.scale, p.bias, p.mean, p.variance, norm->epsilon));
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}
