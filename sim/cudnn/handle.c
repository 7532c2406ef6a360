// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The cuDNN handle, versions, statuses and the last error's text. Creating and destroying a handle touches the device
// on a GPU, and so fails in a capture and invalidates it; everything else here is legal. A handle is bound to the
// device that was current when it was created, and takes streams of no other. The text is each thread's own; a handle
// belongs to one thread at a time, as the real one.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/api/submit.h"
#include "sim/cudnn/internal.h"

const gcap_sim_object_kind_t gcap_sim_dnn_handle_kind = {0x646e6e2d68616e64u, "cudnn handle"};

static _Thread_local char last_message[256];

cudnnStatus_t gcap_sim_dnn_fail(const char* function, cudnnStatus_t status, const char* format, ...) {
  const int length = snprintf(last_message, sizeof(last_message), "%s: ", function);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_message + length, sizeof(last_message) - (size_t)length, format, arguments);
  va_end(arguments);
  return status;
}

cudnnStatus_t gcap_sim_dnn_status(const char* function, cudaError_t error) {
  cudnnStatus_t status;
  switch (error) {
    case cudaSuccess: return CUDNN_STATUS_SUCCESS;
    case cudaErrorInvalidValue: status = CUDNN_STATUS_BAD_PARAM; break;
    case cudaErrorMemoryAllocation: status = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED; break;
    case cudaErrorNotSupported: status = CUDNN_STATUS_NOT_SUPPORTED; break;
    default: status = CUDNN_STATUS_EXECUTION_FAILED_CUDART; break;  // measured: work for a capture already invalid
  }
  return gcap_sim_dnn_fail(function, status, "the CUDA runtime answered %d", (int)error);
}

cudnnStatus_t gcap_sim_dnn_enter(const char* function) {
  return gcap_sim_dnn_status(function, gcap_sim_library_call(function, GCAP_SIM_CALL_FREE));
}

cudnnStatus_t gcap_sim_dnn_enter_with_handle(const char* function, cudnnHandle_t handle) {
  cudnnStatus_t status = gcap_sim_dnn_enter(function);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (handle == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the handle is NULL");
  }
  gcap_sim_object_check(&gcap_sim_dnn_handle_kind, handle, function);
  return CUDNN_STATUS_SUCCESS;
}

// Measured: 4004 and an invalidated capture, where the thread's modes do not allow unsafe calls.
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const cudaError_t error = gcap_sim_library_call(__func__, GCAP_SIM_CALL_UNSAFE);
  if (error == cudaErrorStreamCaptureUnsupported && handle != NULL) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
                             "device memory cannot be allocated during a capture");
  }
  if (handle == NULL) {  // measured: refused, but not before the capture is broken
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "the out pointer is NULL");
  }
  if (error != cudaSuccess) {
    return gcap_sim_dnn_status(__func__, error);
  }
  *handle = gcap_sim_object_create(&gcap_sim_dnn_handle_kind, sizeof(struct cudnnContext));
  if (*handle == NULL) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of host memory");
  }
  (*handle)->device = gcap_sim_current_device();
  return CUDNN_STATUS_SUCCESS;
}

// Measured: 4000 and an invalidated capture, under the same modes; the handle is gone all the same. NULL is fine
// always.
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  const cudaError_t error = gcap_sim_library_call(__func__, handle != NULL ? GCAP_SIM_CALL_UNSAFE : GCAP_SIM_CALL_FREE);
  const int is_refused = error == cudaErrorStreamCaptureUnsupported;
  if (error != cudaSuccess && !is_refused) {
    return gcap_sim_dnn_status(__func__, error);
  }
  if (handle != NULL) {
    gcap_sim_object_check(&gcap_sim_dnn_handle_kind, handle, __func__);
    gcap_sim_object_destroy(&gcap_sim_dnn_handle_kind, handle);
  }
  if (is_refused) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_INTERNAL_ERROR, "device memory cannot be freed during a capture");
  }
  return CUDNN_STATUS_SUCCESS;
}

// Measured: a stream that the handle cannot have, of another device or in an invalidated capture, is a mismatch and
// leaves the handle as it is; its own stream in an invalidated capture is an internal error.
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with_handle(__func__, handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const int is_invalidated = gcap_sim_stream_is_invalidated(streamId);
  if (is_invalidated && streamId == handle->stream) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_INTERNAL_ERROR, "the stream's capture is invalidated");
  }
  if (is_invalidated || (streamId != NULL && gcap_sim_stream_device(streamId) != handle->device)) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH,
                             "the stream is of another device than the handle's %d, or its capture is invalidated",
                             handle->device);
  }
  handle->stream = streamId;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* streamId) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with_handle(__func__, handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (streamId == NULL) {
    gcap_sim_stop(__func__, "the out pointer is NULL, which crashes the real library");
  }
  *streamId = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void) { return CUDNN_VERSION; }

size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }

void cudnnGetLastErrorString(char* message, size_t max_size) {
  if (message == NULL || max_size == 0) {
    return;
  }
  snprintf(message, max_size, "%s", last_message);
  last_message[0] = '\0';
}

#define STATUS(name) \
  case name: return #name

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    STATUS(CUDNN_STATUS_SUCCESS);
    STATUS(CUDNN_STATUS_NOT_INITIALIZED);
    STATUS(CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH);
    STATUS(CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH);
    STATUS(CUDNN_STATUS_DEPRECATED);
    STATUS(CUDNN_STATUS_LICENSE_ERROR);
    STATUS(CUDNN_STATUS_RUNTIME_IN_PROGRESS);
    STATUS(CUDNN_STATUS_RUNTIME_FP_OVERFLOW);
    STATUS(CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED);
    STATUS(CUDNN_STATUS_BAD_PARAM);
    STATUS(CUDNN_STATUS_INVALID_VALUE);
    STATUS(CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    STATUS(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
    STATUS(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    STATUS(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    STATUS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
    STATUS(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH);
    STATUS(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
    STATUS(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
    STATUS(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    STATUS(CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
    STATUS(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_PADDING);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API);
    STATUS(CUDNN_STATUS_NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE);
    STATUS(CUDNN_STATUS_INTERNAL_ERROR);
    STATUS(CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED);
    STATUS(CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE);
    STATUS(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    STATUS(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
    STATUS(CUDNN_STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM);
    STATUS(CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED);
    STATUS(CUDNN_STATUS_EXECUTION_FAILED);
    STATUS(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    STATUS(CUDNN_STATUS_EXECUTION_FAILED_CUBLAS);
    STATUS(CUDNN_STATUS_EXECUTION_FAILED_CUDART);
    STATUS(CUDNN_STATUS_EXECUTION_FAILED_CURAND);
  }
  return "CUDNN_UNKNOWN_STATUS";
}
