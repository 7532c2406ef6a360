// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The cuBLASLt handle of a stream: an attachment, so it is made once, on the stream's device, and ends with the stream,
// unless somebody captures then (ops/handles).
#include <stdlib.h>

#include "gcap/kit/ops/cublaslt.h"
#include "lib/internal/check_argument.h"
#include "ops/cublaslt/cublaslt_status.h"
#include "ops/handles/end_warning.h"
#include "ops/handles/idle_handle.h"

typedef struct handle {
  gcap_idle_handle_t idle;  // first
  cublasLtHandle_t library;
} handle_t;

static void end_handle(gcap_idle_handle_t* idle) {
  handle_t* handle = (handle_t*)idle;
  gcap_warn_of_end(GCAP_CUBLASLT(cublasLtDestroy(handle->library)));
  free(handle);
}

static gcap_idle_handles_t idle_handles = {end_handle, PTHREAD_MUTEX_INITIALIZER, NULL};

static gcap_status_t create_handle(gcap_stream_t* stream, void** out_object) {
  const int device_id = gcap_stream_device(stream);
  *out_object = gcap_idle_handle_take(&idle_handles, device_id);
  if (*out_object != NULL) return NULL;
  handle_t* handle = calloc(1, sizeof(*handle));
  if (handle == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a cuBLASLt handle");
  handle->idle.device_id = device_id;
  gcap_status_t status = GCAP_CUBLASLT(cublasLtCreate(&handle->library));
  if (status != NULL) {
    free(handle);
    return status;
  }
  *out_object = handle;
  return NULL;
}

static void destroy_handle(void* object) { gcap_idle_handle_return(&idle_handles, object); }

gcap_status_t gcap_stream_cublaslt_handle(gcap_stream_t* stream, cublasLtHandle_t* out_handle) {
  static const gcap_attachment_key_t key = {"cublasLtHandle_t", create_handle, destroy_handle};
  GCAP_RETURN_IF_NULL(out_handle);
  *out_handle = NULL;
  GCAP_RETURN_IF_NULL(stream);
  void* object = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_attachment(stream, &key, &object));
  *out_handle = ((handle_t*)object)->library;
  return NULL;
}
