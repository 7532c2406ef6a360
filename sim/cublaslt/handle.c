// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The cuBLASLt handle, versions and status texts. A handle holds nothing: the simulated library keeps no device state.
#include "sim/api/submit.h"
#include "sim/cublaslt/internal.h"

struct cublasLtContext {
  uint64_t magic;
};

const gcap_sim_object_kind_t gcap_sim_lt_handle_kind = {0x6c742d68616e646cu, "cublasLt handle"};

cublasStatus_t gcap_sim_lt_status(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return CUBLAS_STATUS_SUCCESS;
    case cudaErrorInvalidValue: return CUBLAS_STATUS_INVALID_VALUE;
    case cudaErrorMemoryAllocation: return CUBLAS_STATUS_ALLOC_FAILED;
    case cudaErrorNotSupported: return CUBLAS_STATUS_NOT_SUPPORTED;
    default: return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

cublasStatus_t gcap_sim_lt_enter(const char* function) {
  return gcap_sim_lt_status(gcap_sim_library_call(function, GCAP_SIM_CALL_FREE));
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* lightHandle) {
  cublasStatus_t status = gcap_sim_lt_enter(__func__);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  if (lightHandle == NULL) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *lightHandle = gcap_sim_object_create(&gcap_sim_lt_handle_kind, sizeof(struct cublasLtContext));
  return *lightHandle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

// Measured: answers success and invalidates every capture, of whatever thread and mode. NULL is an invalid value here.
cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle) {
  cublasStatus_t status = gcap_sim_lt_enter(__func__);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  if (lightHandle == NULL) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  gcap_sim_object_check(&gcap_sim_lt_handle_kind, lightHandle, __func__);
  gcap_sim_invalidate_captures(__func__);
  gcap_sim_object_destroy(&gcap_sim_lt_handle_kind, lightHandle);
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }

size_t cublasLtGetCudartVersion(void) { return CUDART_VERSION; }

typedef struct status_text {
  cublasStatus_t status;
  const char* name;
  const char* text;
} status_text_t;

static const status_text_t status_texts[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "an unsupported value or parameter was passed"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", "the device lacks a required feature"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "an access to device memory failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the work failed to execute on the device"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "the requested functionality is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "the license check failed"},
};

static const status_text_t* find_status(cublasStatus_t status) {
  static const status_text_t unknown = {CUBLAS_STATUS_INTERNAL_ERROR, "unknown status", "unknown status"};
  for (size_t i = 0; i < sizeof(status_texts) / sizeof(status_texts[0]); ++i) {
    if (status_texts[i].status == status) {
      return &status_texts[i];
    }
  }
  return &unknown;
}

const char* cublasLtGetStatusName(cublasStatus_t status) { return find_status(status)->name; }

const char* cublasLtGetStatusString(cublasStatus_t status) { return find_status(status)->text; }
