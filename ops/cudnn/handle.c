// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The cuDNN handle of a stream: an attachment, so it is made once, on the stream's device, and ends with the stream. A
// handle is bound to one stream for life: nobody ever has to call cudnnSetStream again, and two streams never share
// one.
//
// cudnnCreate inside a capture fails and breaks the capture; attachments are not made while the thread captures
// anything, also on another stream.
#include "gcap/kit/ops/cudnn.h"
#include "lib/internal/check_argument.h"
#include "ops/cudnn/cudnn_status.h"
#include "ops/handles/end_warning.h"

static gcap_status_t create_handle(gcap_stream_t* stream, void** out_object) {
  *out_object = NULL;
  cudnnHandle_t handle = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreate(&handle)));
  gcap_status_t status = GCAP_CUDNN(cudnnSetStream(handle, gcap_stream_handle(stream)));
  if (status != NULL) return gcap_status_join(status, GCAP_CUDNN(cudnnDestroy(handle)));
  *out_object = handle;
  return NULL;
}

static void destroy_handle(void* object) { gcap_warn_of_end(GCAP_CUDNN(cudnnDestroy((cudnnHandle_t)object))); }

gcap_status_t gcap_stream_cudnn_handle(gcap_stream_t* stream, cudnnHandle_t* out_handle) {
  static const gcap_attachment_key_t key = {"cudnnHandle_t", create_handle, destroy_handle};
  GCAP_RETURN_IF_NULL(out_handle);
  *out_handle = NULL;
  GCAP_RETURN_IF_NULL(stream);
  void* object = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_attachment(stream, &key, &object));
  *out_handle = (cudnnHandle_t)object;
  return NULL;
}
