// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Descriptors checked into a convolution, and which algorithms there are for it: as a GPU has them, by layout, type,
// stride, dilation and filter (measured on 9.19; for doubles as documented: the GEMMs alone). A call then binds its
// data and submits the algorithm's pieces of work. Stateless.
#include <string.h>

#include "sim/cudnn/internal.h"

static cudnnStatus_t check_descriptors(const char* function, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                       cudnnConvolutionDescriptor_t conv) {
  cudnnStatus_t status = gcap_sim_dnn_check(function, &gcap_sim_dnn_tensor_kind, x, "the input's descriptor");
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_check(function, &gcap_sim_dnn_filter_kind, w, "the filter's descriptor");
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_check(function, &gcap_sim_dnn_convolution_kind, conv, "the convolution's descriptor");
  }
  return status;
}

static cudnnStatus_t output_dims(const char* function, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                 cudnnConvolutionDescriptor_t conv, int64_t* out) {
  const int64_t* w_dims = w->shape.dims;
  const int groups = 1 + conv->more_groups;
  if (x->shape.rank != conv->axes + 2 || w->shape.rank != conv->axes + 2) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM,
                             "an input of %lld dimensions, a filter of %lld and %d spatial dimensions do not match",
                             (long long)x->shape.rank, (long long)w->shape.rank, conv->axes);
  }
  // NOTE: cuDNN 9.19 computes something when the groups do not match; nobody wants that.
  if (w_dims[1] * groups != x->shape.dims[1] || w_dims[0] % groups != 0) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM,
                             "%lld input channels, %d groups and a filter of %lld x %lld channels do not match",
                             (long long)x->shape.dims[1], groups, (long long)w_dims[0], (long long)w_dims[1]);
  }
  out[0] = x->shape.dims[0];
  out[1] = w_dims[0];
  for (int i = 0; i < 3; ++i) {
    const int64_t window = (w_dims[2 + i] - 1) * conv->dilation[i] + 1;
    out[2 + i] = gcap_sim_dnn_windows(x->shape.dims[2 + i], window, conv->pad[i], conv->stride[i]);
    if (out[2 + i] == 0) {
      return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the filter is larger than the padded input");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t gcap_sim_dnn_conv_output_dims(const char* function, cudnnConvolutionDescriptor_t conv,
                                            cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, int64_t* out) {
  cudnnStatus_t status = gcap_sim_dnn_enter(function);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_descriptors(function, x, w, conv);
  }
  return status == CUDNN_STATUS_SUCCESS ? output_dims(function, x, w, conv, out) : status;
}

// One type for all three; doubles to compute in for doubles, floats for the others. Halves may compute in halves on a
// GPU.
static cudnnStatus_t check_types(const char* function, cudnnDataType_t x, cudnnDataType_t w, cudnnDataType_t y,
                                 cudnnDataType_t compute) {
  const int same = x == w && x == y;
  if (same && x == CUDNN_DATA_HALF && compute == CUDNN_DATA_HALF) {
    gcap_sim_stop(function, "computing in halves is not modelled");
  }
  const int is_single = x == CUDNN_DATA_FLOAT || x == CUDNN_DATA_HALF || x == CUDNN_DATA_BFLOAT16;
  const int is_double = x == CUDNN_DATA_DOUBLE;
  if (!same || (is_single && compute != CUDNN_DATA_FLOAT) || (is_double && compute != CUDNN_DATA_DOUBLE)) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED,
                             "types %d (input), %d (filter), %d (output), %d (compute)", (int)x, (int)w, (int)y,
                             (int)compute);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t gcap_sim_dnn_make_conv(const char* function, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                     cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y,
                                     gcap_sim_dnn_conv_t* out) {
  gcap_sim_dnn_shape_t expected = {0};
  cudnnStatus_t status = check_descriptors(function, x, w, conv);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_check(function, &gcap_sim_dnn_tensor_kind, y, "the output's descriptor");
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = output_dims(function, x, w, conv, expected.dims);
    expected.rank = x->shape.rank;
  }
  if (status == CUDNN_STATUS_SUCCESS && !gcap_sim_dnn_same_dims(&expected, &y->shape)) {
    const int64_t* dims = expected.dims;
    status = gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM,
                               "the output must be %lld x %lld x %lld x %lld, of depth %lld", (long long)dims[0],
                               (long long)dims[1], (long long)dims[2], (long long)dims[3], (long long)dims[4]);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_types(function, x->type, w->type, y->type, conv->compute_type);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const int64_t *dims = x->shape.dims, deepest = (dims[4] - 1) * x->shape.strides[4];
  if (gcap_sim_dnn_offset(&x->shape, 0, 0, dims[2] - 1, dims[3] - 1) + deepest > INT32_MAX) {
    gcap_sim_stop(function, "a channel that spans more than 2^31 elements is not modelled");
  }
  *out = (gcap_sim_dnn_conv_t){.x = gcap_sim_dnn_operand(function, x, NULL),
                               .w = {.shape = w->shape, .type = gcap_sim_dnn_element_type(function, w->type)},
                               .y = gcap_sim_dnn_operand(function, y, NULL),
                               .axes = conv->axes,
                               .groups = 1 + conv->more_groups,
                               .flip = conv->mode == CUDNN_CONVOLUTION};
  memcpy(out->pad, conv->pad, sizeof(out->pad));
  memcpy(out->stride, conv->stride, sizeof(out->stride));
  memcpy(out->dilation, conv->dilation, sizeof(out->dilation));
  return CUDNN_STATUS_SUCCESS;
}

// Channels innermost, where that makes a difference.
static int is_nhwc(const gcap_sim_dnn_shape_t* shape) {
  return shape->dims[1] > 1 && shape->strides[1] == 1 && (shape->dims[2] > 1 || shape->dims[3] > 1);
}

static int is_all(const int* values, int value) { return values[0] == value && values[1] == value; }

static int has_fft(const gcap_sim_dnn_conv_t* conv) {
  const int is_nchw = !is_nhwc(&conv->x.shape) && !is_nhwc(&conv->y.shape);
  const int has_type = conv->x.type == CUDA_R_32F || conv->x.type == CUDA_R_16F;
  return is_nchw && has_type && is_all(conv->dilation, 1);
}

int gcap_sim_dnn_conv_has(const gcap_sim_dnn_conv_t* conv, cudnnConvolutionFwdAlgo_t algo) {
  const int64_t* w = conv->w.shape.dims;
  const int is_nchw = !is_nhwc(&conv->x.shape) && !is_nhwc(&conv->w.shape);
  if (conv->axes == 3) {  // NOTE: as documented; cuDNN tiles some volumes for FFT_TILING too
    return algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM || algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  }
  switch (algo) {
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM:
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM: return 1;
    case CUDNN_CONVOLUTION_FWD_ALGO_GEMM: return is_nchw;
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT: return is_nchw && has_fft(conv) && is_all(conv->stride, 1);
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING: return is_nchw && has_fft(conv);
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED:
      return is_nchw && conv->x.type != CUDA_R_64F && w[2] == w[3] && (w[2] == 3 || w[2] == 5) &&
             is_all(conv->stride, 1) && is_all(conv->dilation, 1);
    default: return 0;
  }
}

static void add_parts(gcap_sim_access_list_t* list, const gcap_sim_dnn_conv_t* conv, unsigned parts,
                      gcap_sim_access_kind_t kind) {
  for (int part = 0; part < GCAP_SIM_DNN_NUM_PARTS; ++part) {
    size_t offset;
    size_t bytes;
    gcap_sim_dnn_conv_part(conv, conv->algo, part, &offset, &bytes);
    if ((parts >> part & 1u) != 0 && bytes != 0) {
      gcap_sim_access_add(list, (const char*)conv->workspace + offset, bytes, kind);
    }
  }
}

static void describe(const void* payload, gcap_sim_access_list_t* list) {
  const gcap_sim_dnn_conv_t* conv = payload;
  size_t count;
  const gcap_sim_dnn_stage_t* stage = gcap_sim_dnn_conv_stages(conv->algo, &count);
  if ((size_t)conv->stage >= count) {
    gcap_sim_stop(__func__, "a convolution by algorithm %d has no stage %d", (int)conv->algo, conv->stage);
  }
  stage += conv->stage;
  if (stage->reads_x) {
    gcap_sim_dnn_add_access(list, &conv->x, GCAP_SIM_READ);
  }
  if (stage->reads_w) {
    gcap_sim_dnn_add_access(list, &conv->w, GCAP_SIM_READ);
  }
  add_parts(list, conv, stage->reads, GCAP_SIM_READ);
  add_parts(list, conv, stage->writes, GCAP_SIM_WRITE);
  if (stage->is_last) {
    gcap_sim_dnn_add_access(list, &conv->z, GCAP_SIM_READ);
    gcap_sim_dnn_add_access(list, &conv->bias, GCAP_SIM_READ);
    gcap_sim_dnn_add_access(list, &conv->y, GCAP_SIM_WRITE);
  }
}

static cudaError_t submit_stage(const char* function, cudaStream_t stream, const gcap_sim_dnn_conv_t* conv, int index,
                                const gcap_sim_dnn_stage_t* stage) {
  const char* name = stage->name != NULL ? stage->name : function;
  const gcap_sim_library_kernel_t kernel = {name, stage->run, describe, sizeof(*conv), 0};
  gcap_sim_dnn_conv_t payload = *conv;
  payload.stage = index;
  return gcap_sim_access_submit(stream, &kernel, &payload);
}

cudnnStatus_t gcap_sim_dnn_submit_conv(const char* function, cudaStream_t stream, const gcap_sim_dnn_conv_t* conv) {
  size_t count;
  const gcap_sim_dnn_stage_t* stages = gcap_sim_dnn_conv_stages(conv->algo, &count);
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; i < count && error == cudaSuccess; ++i) {
    error = submit_stage(function, stream, conv, (int)i, &stages[i]);
  }
  if (error == cudaErrorStreamCaptureInvalidated && conv->algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_EXECUTION_FAILED,
                             "the stream's capture is invalidated");  // measured
  }
  return gcap_sim_dnn_status(function, error);
}
