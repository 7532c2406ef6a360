// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The cuBLAS handle and its settings. The rules are NVIDIA's documentation of cuBLAS 13 (sections on cublasCreate,
// cublasDestroy, cublasSetStream, cublasSetWorkspace and CUDA graphs), and what an H200 answered. Creating allocates
// device memory, so it fails in a capture as cudaMalloc does, and breaks it. Destroying waits for the device, which
// breaks every capture. A workspace may have any alignment. A handle belongs to one thread at a time, as the real
// one.
#include "sim/api/submit.h"
#include "sim/cublas/internal.h"
#include "sim/cublaslt/internal.h"
#include "sim/library/object.h"

static const gcap_sim_object_kind_t handle_kind = {0x626c61732d68616eu, "cublas handle"};

cublasStatus_t gcap_sim_blas_enter(const char* function, cublasHandle_t handle) {
  cublasStatus_t status = gcap_sim_lt_enter(function);
  if (status == CUBLAS_STATUS_SUCCESS && handle == NULL) {
    status = CUBLAS_STATUS_NOT_INITIALIZED;
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    gcap_sim_object_check(&handle_kind, handle, function);
  }
  return status;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const cudaError_t error = gcap_sim_library_call("cublasCreate", GCAP_SIM_CALL_UNSAFE);
  if (error == cudaErrorStreamCaptureUnsupported) {
    return CUBLAS_STATUS_NOT_INITIALIZED;  // measured
  }
  if (error != cudaSuccess) {
    return gcap_sim_lt_status(error);
  }
  if (handle == NULL) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *handle = gcap_sim_object_create(&handle_kind, sizeof(struct cublasContext));
  if (*handle == NULL) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  }
  (*handle)->device = gcap_sim_current_device();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  cublasStatus_t status = gcap_sim_blas_enter("cublasDestroy", handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  gcap_sim_invalidate_captures("cublasDestroy");
  gcap_sim_object_destroy(&handle_kind, handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int* version) {
  (void)handle;  // the real library does without one
  cublasStatus_t status = gcap_sim_lt_enter("cublasGetVersion");
  if (status == CUBLAS_STATUS_SUCCESS && version == NULL) {
    status = CUBLAS_STATUS_INVALID_VALUE;
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    *version = CUBLAS_VERSION;
  }
  return status;
}

const char* cublasGetStatusName(cublasStatus_t status) { return cublasLtGetStatusName(status); }

const char* cublasGetStatusString(cublasStatus_t status) { return cublasLtGetStatusString(status); }

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId) {
  cublasStatus_t status = gcap_sim_blas_enter("cublasSetStream", handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  if (streamId != NULL && gcap_sim_stream_device(streamId) != handle->device) {
    gcap_sim_stop("cublasSetStream", "the stream is of another device than the handle's %d, which is undefined",
                  handle->device);
  }
  handle->stream = streamId;
  handle->workspace = NULL;
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* streamId) {
  cublasStatus_t status = gcap_sim_blas_enter("cublasGetStream", handle);
  if (status == CUBLAS_STATUS_SUCCESS && streamId == NULL) {
    status = CUBLAS_STATUS_INVALID_VALUE;
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    *streamId = handle->stream;
  }
  return status;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t workspaceSizeInBytes) {
  cublasStatus_t status = gcap_sim_blas_enter("cublasSetWorkspace", handle);
  if (status == CUBLAS_STATUS_SUCCESS) {
    handle->workspace = workspace;
    handle->workspace_bytes = workspace != NULL ? workspaceSizeInBytes : 0;
  }
  return status;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  cublasStatus_t status = gcap_sim_blas_enter("cublasSetPointerMode", handle);
  if (status == CUBLAS_STATUS_SUCCESS && mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE) {
    status = CUBLAS_STATUS_INVALID_VALUE;
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    handle->pointer_mode = mode;
  }
  return status;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  cublasStatus_t status = gcap_sim_blas_enter("cublasGetPointerMode", handle);
  if (status == CUBLAS_STATUS_SUCCESS && mode == NULL) {
    status = CUBLAS_STATUS_INVALID_VALUE;
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    *mode = handle->pointer_mode;
  }
  return status;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  cublasStatus_t status = gcap_sim_blas_enter(__func__, handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  switch ((int)mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) {
    case CUBLAS_DEFAULT_MATH:
    case CUBLAS_PEDANTIC_MATH:
    case CUBLAS_TF32_TENSOR_OP_MATH: handle->math_mode = mode; return CUBLAS_STATUS_SUCCESS;
    case CUBLAS_TENSOR_OP_MATH:
    case CUBLAS_FP32_EMULATED_BF16X9_MATH:
    case CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH: gcap_sim_stop(__func__, "math mode %d is not modelled", (int)mode);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  cublasStatus_t status = gcap_sim_blas_enter(__func__, handle);
  if (status == CUBLAS_STATUS_SUCCESS && mode == NULL) {
    status = CUBLAS_STATUS_INVALID_VALUE;
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    *mode = handle->math_mode;
  }
  return status;
}
