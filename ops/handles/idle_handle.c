// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The capture gate tells whether a scope is open, and holds up new ones while a handle ends. Captures that were begun
// without gcap are not seen. What is kept is bounded by the streams that lived at one time, and reachable.
//
// Locking: `mutex` of a list is a leaf; handles end without it.
#include "ops/handles/idle_handle.h"

#include <stddef.h>

#include "lib/internal/capture_gate.h"

gcap_idle_handle_t* gcap_idle_handle_take(gcap_idle_handles_t* handles, int device_id) {
  pthread_mutex_lock(&handles->mutex);
  gcap_idle_handle_t** at = &handles->first;
  while (*at != NULL && (*at)->device_id != device_id) at = &(*at)->next;
  gcap_idle_handle_t* taken = *at;
  if (taken != NULL) *at = taken->next;
  pthread_mutex_unlock(&handles->mutex);
  return taken;
}

static void keep(gcap_idle_handles_t* handles, gcap_idle_handle_t* handle) {
  pthread_mutex_lock(&handles->mutex);
  handle->next = handles->first;
  handles->first = handle;
  pthread_mutex_unlock(&handles->mutex);
}

void gcap_idle_handle_return(gcap_idle_handles_t* handles, gcap_idle_handle_t* handle) {
  if (!gcap_capture_gate_try_close()) {
    keep(handles, handle);
    return;
  }
  const int device_id = handle->device_id;
  for (; handle != NULL; handle = gcap_idle_handle_take(handles, device_id)) handles->end(handle);
  gcap_capture_gate_open();
}
