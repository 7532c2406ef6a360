// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a thread may use of each EP, and the device that must be current meanwhile. A session on one device asks for the
// device once, and changes nothing if it is current already.
//
// Locking: the turns of the EPs, in the order of the EPs' addresses.

#include "kit/session/resources.h"
#include "lib/internal/cuda_guard.h"

gcap_status_t gcap_session_get_resources(const gcap_session_parts_t* parts, int ep,
                                         gcap_run_resources_t* out_resources) {
  gcap_run_resources_init(out_resources);
  if (parts->ep_facts[ep].runs_on_host) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(parts->ep_facts[ep].runtime, out_resources));
  const char* missing = NULL;
  if (out_resources->allocator == NULL) missing = "allocator";
  if (out_resources->scratch == NULL) missing = "scratch";
  if (out_resources->stream == NULL) missing = "stream";
  if (missing == NULL) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "EP '%s': get_resources of its runtime left %s NULL",
                     gcap_ep_name(parts->eps[ep]), missing);
}

gcap_status_t gcap_session_synchronize(const gcap_session_parts_t* parts, int ep) {
  gcap_runtime_t* runtime = parts->ep_facts[ep].runtime;
  return runtime != NULL ? gcap_runtime_synchronize(runtime) : NULL;
}

void gcap_session_begin_turns(const gcap_session_parts_t* parts) {
  for (int i = 0; i < parts->num_used; ++i) gcap_ep_begin_turn(parts->turns[i]);
}

void gcap_session_end_turns(const gcap_session_parts_t* parts) {
  for (int i = parts->num_used - 1; i >= 0; --i) gcap_ep_end_turn(parts->turns[i]);
}

gcap_status_t gcap_session_order(gcap_stream_t* earlier, gcap_stream_t* later) {
  gcap_notification_t* notification = NULL;
  GCAP_RETURN_IF_ERROR(gcap_notification_create(earlier, &notification));
  gcap_status_t status = gcap_notification_record(notification);
  if (status == NULL) status = gcap_notification_wait(notification, later);
  gcap_notification_destroy(notification);
  return status;
}

gcap_status_t gcap_device_visit_enter(gcap_device_visit_t* visit, const gcap_session_parts_t* parts, int ep) {
  if (parts->ep_facts[ep].runs_on_host) return NULL;
  const int device_id = parts->ep_facts[ep].device_id;
  if (visit->is_there && visit->device_id == device_id) return NULL;
  if (visit->is_there) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaSetDevice(device_id)));
  } else {
    GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &visit->previous));
    visit->is_there = true;
  }
  visit->device_id = device_id;
  return NULL;
}

gcap_status_t gcap_device_visit_leave(gcap_device_visit_t* visit) {
  if (!visit->is_there) return NULL;
  visit->is_there = false;
  return gcap_device_pop(visit->device_id, visit->previous);
}
