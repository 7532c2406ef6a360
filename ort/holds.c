// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a run holds: a part of each plan whose eager work it issued (plans.h). A graph has the parts of captured work.
//
// Locking: `holds_mutex` of the run, a leaf: with ORT_PARALLEL several threads add. The end of a run is its own
// thread's.

#include "ort/holds.h"

#include <stdlib.h>

#include "lib/internal/grow.h"

static gcap_status_t make_room(gcap_ort_run_t* run) {
  if (run->holds == NULL) run->holds = calloc(1, sizeof(*run->holds));
  gcap_ort_holds_t* holds = run->holds;
  const size_t count = holds != NULL ? holds->count + 1 : 1;
  if (holds != NULL && gcap_grow(&holds->at, &holds->room, count, sizeof(holds->at[0]))) return NULL;
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a run of %zu kernels", count);
}

gcap_status_t gcap_ort_run_hold(gcap_ort_run_t* run, gcap_hold_t* hold) {
  pthread_mutex_lock(&run->holds_mutex);
  gcap_status_t status = make_room(run);
  if (status == NULL) {
    gcap_hold_take(hold);
    run->holds->at[run->holds->count++] = hold;
  }
  pthread_mutex_unlock(&run->holds_mutex);
  return status;
}

static void let_go_all(gcap_ort_holds_t* holds) {
  for (size_t i = 0; i < holds->count; ++i) gcap_hold_let_go(holds->at[i]);
  holds->count = 0;
}

static void end_holds(void* user) {
  gcap_ort_holds_t* holds = user;
  let_go_all(holds);
  free(holds->at);
  free(holds);
}

void gcap_ort_holds_end_run(gcap_ort_run_t* run, bool is_done) {
  gcap_ort_holds_t* holds = run->holds;
  if (holds == NULL || holds->count == 0) return;
  if (is_done) {
    let_go_all(holds);
    return;
  }
  run->holds = NULL;
  gcap_status_t status = gcap_stream_defer(run->resources.stream, end_holds, holds);
  if (status == NULL) return;
  for (size_t i = 0; i < holds->count; ++i) {
    gcap_hold_give_to_stream(holds->at[i], run->ep->runtime, run->resources.stream);
  }
  end_holds(holds);
  gcap_status_ignore(status);  // each part found another way
}

void gcap_ort_holds_forget(gcap_ort_run_t* run, bool by_thread_exit) {
  gcap_ort_holds_t* holds = run->holds;
  if (holds == NULL) return;
  for (size_t i = 0; by_thread_exit && i < holds->count; ++i) gcap_hold_keep(holds->at[i]);
  if (by_thread_exit) holds->count = 0;
  end_holds(holds);
}
