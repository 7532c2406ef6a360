// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Turns, where all threads share one stream. ONNX Runtime serializes the runs of such an EP, but neither replays nor
// copies, and may leave a run open. So a turn is not a mutex: who takes it may never give it up.
//
// Locking: `mutex` of a turn, a leaf, over who has it. A thread waits for its turn with no lock held.

#include "ort/turn.h"

void gcap_ort_turn_init(gcap_ort_turn_t* turn) {
  pthread_mutex_init(&turn->mutex, NULL);
  pthread_cond_init(&turn->given_up, NULL);
}

void gcap_ort_turn_deinit(gcap_ort_turn_t* turn) {
  pthread_mutex_destroy(&turn->mutex);
  pthread_cond_destroy(&turn->given_up);
}

static bool is_needed(const gcap_ort_session_ep_t* ep) { return !gcap_ep_supports_concurrent_runs(ep->ep); }

void gcap_ort_turn_begin(gcap_ort_session_ep_t* ep) {
  if (!is_needed(ep)) return;
  pthread_mutex_lock(&ep->turn.mutex);
  while (ep->turn.is_taken) pthread_cond_wait(&ep->turn.given_up, &ep->turn.mutex);
  ep->turn.is_taken = true;
  pthread_mutex_unlock(&ep->turn.mutex);
}

bool gcap_ort_turn_try_begin(gcap_ort_session_ep_t* ep) {
  if (!is_needed(ep)) return true;
  pthread_mutex_lock(&ep->turn.mutex);
  const bool is_free = !ep->turn.is_taken;
  if (is_free) ep->turn.is_taken = true;
  pthread_mutex_unlock(&ep->turn.mutex);
  return is_free;
}

gcap_status_t gcap_ort_turn_begin_run(gcap_ort_session_ep_t* ep) {
  if (!is_needed(ep)) return NULL;
  pthread_mutex_lock(&ep->turn.mutex);
  while (ep->turn.is_taken && !ep->turn.is_runs) pthread_cond_wait(&ep->turn.given_up, &ep->turn.mutex);
  const bool is_left = ep->turn.is_taken;
  if (!is_left) ep->turn.is_taken = ep->turn.is_runs = true;
  pthread_mutex_unlock(&ep->turn.mutex);
  if (!is_left) return NULL;
  return GCAP_STATUS(
      GCAP_FAILED_PRECONDITION,
      "ONNX Runtime did not end the run of another thread, which shares this EP's stream: run the session "
      "on that thread again, or let the thread exit");
}

void gcap_ort_turn_end(gcap_ort_session_ep_t* ep) {
  if (!is_needed(ep)) return;
  pthread_mutex_lock(&ep->turn.mutex);
  ep->turn.is_taken = ep->turn.is_runs = false;
  pthread_cond_broadcast(&ep->turn.given_up);
  pthread_mutex_unlock(&ep->turn.mutex);
}
