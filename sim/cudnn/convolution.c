// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Convolution calls: the workspace, the forward pass and the fused one. What convolution_problem.c made of descriptors
// gets its pointers here, and becomes queued work. Stateless.
#include "sim/cudnn/internal.h"

static cudnnStatus_t check_algorithm(const char* function, const gcap_sim_dnn_conv_t* conv,
                                     cudnnConvolutionFwdAlgo_t algo) {
  if (!gcap_sim_dnn_conv_has(conv, algo)) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED, "algorithm %d is not supported", (int)algo);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
                                                      const cudnnFilterDescriptor_t wDesc,
                                                      const cudnnConvolutionDescriptor_t convDesc,
                                                      const cudnnTensorDescriptor_t yDesc,
                                                      cudnnConvolutionFwdAlgo_t algo, size_t* sizeInBytes) {
  gcap_sim_dnn_conv_t conv;
  cudnnStatus_t status = gcap_sim_dnn_enter_with_handle(__func__, handle);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_make_conv(__func__, xDesc, wDesc, convDesc, yDesc, &conv);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_algorithm(__func__, &conv, algo);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (sizeInBytes == NULL) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "the out pointer is NULL");
  }
  *sizeInBytes = gcap_sim_dnn_conv_workspace(&conv, algo);
  return CUDNN_STATUS_SUCCESS;
}

// Where the algorithm's loads and stores in the workspace may begin. Vectors of four floats for the transforms: a
// workspace that is aligned worse faults for the FFT (measured: 716 at the synchronization), and is refused for
// Winograd.
static size_t workspace_alignment(const gcap_sim_dnn_conv_t* conv, cudnnConvolutionFwdAlgo_t algo) {
  const size_t element_bytes = gcap_sim_element_bytes(gcap_sim_dnn_conv_compute_type(conv));
  switch (algo) {
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT:
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING:
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED: return 4 * element_bytes;
    default: return element_bytes;
  }
}

static cudnnStatus_t check_alignment(const char* function, const gcap_sim_dnn_conv_t* conv,
                                     cudnnConvolutionFwdAlgo_t algo, const void* workspace) {
  const size_t alignment = workspace_alignment(conv, algo);
  if ((uintptr_t)workspace % alignment == 0) {
    return CUDNN_STATUS_SUCCESS;
  }
  if (algo == CUDNN_CONVOLUTION_FWD_ALGO_FFT || algo == CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING) {
    gcap_sim_stop(function, "the workspace %p is not aligned to %zu bytes, which faults on a GPU (716)", workspace,
                  alignment);
  }
  return gcap_sim_dnn_fail(function, CUDNN_STATUS_INTERNAL_ERROR, "the workspace %p is misaligned", workspace);
}

static cudnnStatus_t bind_workspace(const char* function, cudnnConvolutionFwdAlgo_t algo, void* workspace, size_t bytes,
                                    gcap_sim_dnn_conv_t* conv) {
  cudnnStatus_t status = check_algorithm(function, conv, algo);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const size_t needed = gcap_sim_dnn_conv_workspace(conv, algo);
  if (bytes < needed || (needed != 0 && workspace == NULL)) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM,
                             "the workspace is %p of %zu bytes, algorithm %d needs %zu", workspace, bytes, (int)algo,
                             needed);
  }
  conv->algo = algo;
  conv->workspace = needed != 0 ? workspace : NULL;
  return needed != 0 ? check_alignment(function, conv, algo, workspace) : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t gcap_sim_dnn_bind_conv(const char* function, const void* x, const void* w, void* y,
                                     gcap_sim_dnn_conv_t* conv) {
  if (x == NULL || w == NULL || y == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "a data pointer is NULL");
  }
  if (((uintptr_t)x | (uintptr_t)w | (uintptr_t)y) % gcap_sim_element_bytes(conv->x.type) != 0) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "a data pointer is misaligned");
  }
  if (x == y) {  // measured; other overlaps are the access checks' to find
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED, "a convolution does not run in place");
  }
  conv->x.data = (void*)x;  // const ends here: one struct serves inputs and outputs
  conv->w.data = (void*)w;
  conv->y.data = y;
  return CUDNN_STATUS_SUCCESS;
}

// Enters a forward call and checks all that the plain and the fused one have in common.
static cudnnStatus_t begin(const char* function, cudnnHandle_t handle, const void* alpha,
                           cudnnTensorDescriptor_t x_desc, const void* x, cudnnFilterDescriptor_t w_desc, const void* w,
                           cudnnConvolutionDescriptor_t conv_desc, const void* beta, cudnnTensorDescriptor_t y_desc,
                           void* y, gcap_sim_dnn_conv_t* out) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with_handle(function, handle);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_make_conv(function, x_desc, w_desc, conv_desc, y_desc, out);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (alpha == NULL || beta == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "a scalar is NULL");
  }
  out->alpha = gcap_sim_element_load(alpha, gcap_sim_dnn_conv_compute_type(out), 0);
  out->beta = gcap_sim_element_load(beta, gcap_sim_dnn_conv_compute_type(out), 0);
  return gcap_sim_dnn_bind_conv(function, x, w, y, out);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t xDesc,
                                      const void* x, const cudnnFilterDescriptor_t wDesc, const void* w,
                                      const cudnnConvolutionDescriptor_t convDesc, cudnnConvolutionFwdAlgo_t algo,
                                      void* workSpace, size_t workSpaceSizeInBytes, const void* beta,
                                      const cudnnTensorDescriptor_t yDesc, void* y) {
  gcap_sim_dnn_conv_t conv;
  cudnnStatus_t status = begin(__func__, handle, alpha, xDesc, x, wDesc, w, convDesc, beta, yDesc, y, &conv);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = bind_workspace(__func__, algo, workSpace, workSpaceSizeInBytes, &conv);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (conv.beta != 0.0) {
    conv.z = conv.y;
  }
  return gcap_sim_dnn_submit_conv(__func__, handle->stream, &conv);
}

// The activation of a fused call: ReLU with any algorithm, identity with IMPLICIT_PRECOMP_GEMM alone. So the
// documentation; cuDNN 9.19 takes identity with others too, which older ones refuse.
static cudnnStatus_t check_activation(const char* function, cudnnActivationDescriptor_t activation,
                                      cudnnConvolutionFwdAlgo_t algo) {
  cudnnStatus_t status =
      gcap_sim_dnn_check(function, &gcap_sim_dnn_activation_kind, activation, "the activation's descriptor");
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (activation->mode == CUDNN_ACTIVATION_IDENTITY && algo != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED, "identity goes with IMPLICIT_PRECOMP_GEMM alone");
  }
  if (activation->mode != CUDNN_ACTIVATION_IDENTITY && activation->mode != CUDNN_ACTIVATION_RELU) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED, "activation %d cannot be fused",
                             (int)activation->mode);
  }
  return CUDNN_STATUS_SUCCESS;
}

// A further operand of a fused call, which has the output's type.
static cudnnStatus_t bind_operand(const char* function, cudnnTensorDescriptor_t desc, const void* data,
                                  const gcap_sim_dnn_conv_t* conv, gcap_sim_dnn_operand_t* out) {
  *out = gcap_sim_dnn_operand(function, desc, data);
  if (out->type != conv->y.type) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                             "z and the bias must have the output's type");
  }
  return CUDNN_STATUS_SUCCESS;
}

// The bias is 1 x k x 1 x 1, of a volume 1 x k x 1 x 1 x 1.
static cudnnStatus_t bind_bias(const char* function, cudnnTensorDescriptor_t desc, const void* bias,
                               gcap_sim_dnn_conv_t* conv) {
  cudnnStatus_t status = gcap_sim_dnn_check(function, &gcap_sim_dnn_tensor_kind, desc, "the bias's descriptor");
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const int64_t* dims = desc->shape.dims;
  if (bias == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the bias is NULL");
  }
  if (desc->shape.rank != conv->y.shape.rank || dims[0] != 1 || dims[1] != conv->w.shape.dims[0] || dims[2] != 1 ||
      dims[3] != 1 || dims[4] != 1) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "the bias must be 1 x %lld x 1 x 1, as y is",
                             (long long)conv->w.shape.dims[0]);
  }
  return bind_operand(function, desc, bias, conv, &conv->bias);
}

static cudnnStatus_t bind_addend(const char* function, cudnnTensorDescriptor_t desc, const void* z,
                                 gcap_sim_dnn_conv_t* conv) {
  cudnnStatus_t status = gcap_sim_dnn_check(function, &gcap_sim_dnn_tensor_kind, desc, "z's descriptor");
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (z == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "z is NULL");
  }
  if (!gcap_sim_dnn_same_dims(&desc->shape, &conv->y.shape)) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "z must have the output's dimensions");
  }
  return bind_operand(function, desc, conv->beta != 0.0 ? z : NULL, conv, &conv->z);
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnFilterDescriptor_t wDesc, const void* w, const cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionFwdAlgo_t algo, void* workSpace, size_t workSpaceSizeInBytes, const void* alpha2,
    const cudnnTensorDescriptor_t zDesc, const void* z, const cudnnTensorDescriptor_t biasDesc, const void* bias,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t yDesc, void* y) {
  gcap_sim_dnn_conv_t conv;
  cudnnStatus_t status = begin(__func__, handle, alpha1, xDesc, x, wDesc, w, convDesc, alpha2, yDesc, y, &conv);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = bind_addend(__func__, zDesc, z, &conv);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = bind_bias(__func__, biasDesc, bias, &conv);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_activation(__func__, activationDesc, algo);
  }
  // Measured: Winograd, which the plain call and the query of its workspace refuse, is taken here, and needs none.
  if (algo == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD) {
    algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = bind_workspace(__func__, algo, workSpace, workSpaceSizeInBytes, &conv);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  conv.relu = activationDesc->mode == CUDNN_ACTIVATION_RELU;
  conv.propagate_nan = activationDesc->nan == CUDNN_PROPAGATE_NAN;
  return gcap_sim_dnn_submit_conv(__func__, handle->stream, &conv);
}
