// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Parts of a hold for what may outlive a run: its graph, and the streams that still execute it.
//
// Locking: none; the count is atomic.

#include "kit/ep/hold.h"

gcap_status_t gcap_hold_give_to_capture(gcap_hold_t* hold, gcap_capture_t* capture) {
  gcap_hold_take(hold);
  gcap_status_t status = gcap_capture_retain(capture, gcap_hold_let_go, /*bytes=*/NULL, hold);
  if (status != NULL) gcap_hold_let_go(hold);
  return status;
}

void gcap_hold_keep(gcap_hold_t* hold) {
  if (!atomic_exchange(&hold->is_kept, true)) gcap_keep_for_ever(&hold->kept);
}

void gcap_hold_give_to_stream(gcap_hold_t* hold, gcap_runtime_t* runtime, gcap_stream_t* stream) {
  gcap_hold_take(hold);
  gcap_status_t status = gcap_stream_defer(stream, gcap_hold_let_go, hold);
  if (status == NULL) return;
  gcap_status_t waited = gcap_runtime_synchronize(runtime);
  if (waited == NULL) {
    gcap_hold_let_go(hold);
  } else {
    gcap_hold_keep(hold);
  }
  gcap_status_ignore(gcap_status_join(status, waited));  // the run's own outcome stands
}
