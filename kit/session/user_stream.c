// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A run on the streams of its EPs that its caller sees on a stream of its own: one event before the run, and one behind
// it, for each EP. The stream is the caller's, and stays a handle: the end of a gcap_stream_t would wait for its work.
// A replay needs none of this: it is launched with the option on_stream.
//
// Locking: none; in a turn of the EPs.

#include "kit/session/user_stream.h"

#include "lib/internal/capture_check.h"
#include "lib/internal/cuda_event.h"
#include "lib/internal/stream_table.h"

static gcap_status_t check_stream(cudaStream_t user_stream, int device_id) {
  if (user_stream == cudaStreamLegacy) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "user_compute_stream is %p, the legacy default stream, which waits for every blocking stream: "
                       "pass a stream created with cudaStreamNonBlocking",
                       (void*)user_stream);
  }
  GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(user_stream, "user_compute_stream"));
  if (gcap_stream_is_alias(user_stream)) return NULL;  // of any device
  int device = device_id;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(user_stream, &device)));
  if (device == device_id) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "user_compute_stream is %p, of device %d; the run is on device %d",
                     (void*)user_stream, device, device_id);
}

// Lets what `later` is given from now on come after all that `earlier`, a stream of the device, was given so far.
static gcap_status_t put_in_order(int device_id, cudaStream_t earlier, cudaStream_t later) {
  cudaEvent_t passed = NULL;
  GCAP_RETURN_IF_ERROR(gcap_event_record_new(device_id, earlier, &passed));
  gcap_status_t status = GCAP_CUDA(cudaStreamWaitEvent(later, passed, 0));
  return gcap_status_join(status, GCAP_CUDA(cudaEventDestroy(passed)));
}

static gcap_status_t order_all(const gcap_session_parts_t* parts, cudaStream_t user_stream, bool before) {
  const int user_device = parts->ep_facts[parts->main_ep].device_id;
  GCAP_RETURN_IF_ERROR(check_stream(user_stream, user_device));
  for (int i = 0; i < parts->num_used; ++i) {
    const gcap_session_ep_t* facts = &parts->ep_facts[parts->used[i]];
    if (facts->runs_on_host) continue;
    gcap_run_resources_t resources;
    GCAP_RETURN_IF_ERROR(gcap_session_get_resources(parts, parts->used[i], &resources));
    const cudaStream_t own = gcap_stream_handle(resources.stream);
    if (own == user_stream) continue;
    GCAP_RETURN_IF_ERROR(before ? put_in_order(facts->device_id, own, user_stream)
                                : put_in_order(user_device, user_stream, own));
  }
  return NULL;
}

gcap_status_t gcap_session_run_after(const gcap_session_parts_t* parts, cudaStream_t user_stream) {
  return order_all(parts, user_stream, /*before=*/false);
}

gcap_status_t gcap_session_run_before(const gcap_session_parts_t* parts, cudaStream_t user_stream) {
  return order_all(parts, user_stream, /*before=*/true);
}
