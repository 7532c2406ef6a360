// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The cuBLAS handle of a stream: an attachment, so it is made once, on the stream's device, and ends with the stream,
// unless somebody captures then (ops/handles); it then waits, workspace and all, for another stream of the device.
//
// The workspace is ours since the library's own is memory that it gets when it needs some: in a capture by nodes that
// allocate and free (rule R44 of docs/capture_rules.md), which a child graph cannot have. cublasSetStream gives a
// handle the library's own workspace back, so ours is set after it, each time.
#include <stdlib.h>
#include <string.h>

#include "gcap/kit/ops/cublas.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "ops/handles/end_warning.h"
#include "ops/handles/idle_handle.h"

// cuBLAS's own defaults (its documentation of cublasSetWorkspace).
enum { HOPPER_MAJOR = 9, HOPPER_BYTES = 32 << 20, OLDER_BYTES = 4 << 20 };

typedef struct handle {
  gcap_idle_handle_t idle;  // first
  cublasHandle_t library;
  void* workspace;
  size_t workspace_bytes;
} handle_t;

static gcap_status_t from_cublas(cublasStatus_t code, const char* call, int line) {
  gcap_note_in_capture(call, __FILE__, line);
  if (code == CUBLAS_STATUS_SUCCESS) return NULL;
  (void)cudaGetLastError();  // the status carries the failure from here on
  return gcap_status_make(GCAP_LIBRARY_ERROR, __FILE__, line, "%.*s failed: %s (%d), %s", (int)strcspn(call, "("), call,
                          cublasGetStatusName(code), (int)code, cublasGetStatusString(code));
}
// The macro's name, not what cublas_v2.h makes of it.
#define CUBLAS(function, ...) from_cublas(function(__VA_ARGS__), #function, __LINE__)

static gcap_status_t free_parts(const handle_t* handle) {
  gcap_status_t status = NULL;
  if (handle->library != NULL) status = CUBLAS(cublasDestroy, handle->library);
  if (handle->workspace != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaFree(handle->workspace)));
  return status;
}

static void end_handle(gcap_idle_handle_t* idle) {
  handle_t* handle = (handle_t*)idle;
  gcap_warn_of_end(free_parts(handle));
  free(handle);
}

static gcap_idle_handles_t idle_handles = {end_handle, PTHREAD_MUTEX_INITIALIZER, NULL};

static gcap_status_t make_parts(handle_t* handle) {
  int major = 0;
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, handle->idle.device_id)));
  handle->workspace_bytes = major >= HOPPER_MAJOR ? HOPPER_BYTES : OLDER_BYTES;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc(&handle->workspace, handle->workspace_bytes)));
  return CUBLAS(cublasCreate, &handle->library);
}

static gcap_status_t make_handle(int device_id, handle_t** out_handle) {
  *out_handle = NULL;
  handle_t* handle = calloc(1, sizeof(*handle));
  if (handle == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a cuBLAS handle");
  handle->idle.device_id = device_id;
  gcap_status_t status = make_parts(handle);
  if (status != NULL) {
    status = gcap_status_join(status, free_parts(handle));
    free(handle);
    return status;
  }
  *out_handle = handle;
  return NULL;
}

static void destroy_handle(void* object) { gcap_idle_handle_return(&idle_handles, object); }

static gcap_status_t create_handle(gcap_stream_t* stream, void** out_object) {
  *out_object = NULL;
  const int device_id = gcap_stream_device(stream);
  handle_t* handle = (handle_t*)gcap_idle_handle_take(&idle_handles, device_id);
  if (handle == NULL) GCAP_RETURN_IF_ERROR(make_handle(device_id, &handle));
  gcap_status_t status = CUBLAS(cublasSetStream, handle->library, gcap_stream_handle(stream));
  if (status == NULL) status = CUBLAS(cublasSetWorkspace, handle->library, handle->workspace, handle->workspace_bytes);
  if (status != NULL) {
    destroy_handle(handle);
    return status;
  }
  *out_object = handle;
  return NULL;
}

gcap_status_t gcap_stream_cublas_handle(gcap_stream_t* stream, cublasHandle_t* out_handle) {
  static const gcap_attachment_key_t key = {"cublasHandle_t", create_handle, destroy_handle};
  GCAP_RETURN_IF_NULL(out_handle);
  *out_handle = NULL;
  GCAP_RETURN_IF_NULL(stream);
  void* object = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_attachment(stream, &key, &object));
  *out_handle = ((handle_t*)object)->library;
  return NULL;
}
