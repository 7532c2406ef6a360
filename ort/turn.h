// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// turn.h: the right to use the stream that all threads of an EP share. If each thread has its own, nothing is done.
#ifndef GCAP_ORT_TURN_H_
#define GCAP_ORT_TURN_H_

#include <pthread.h>
#include <stdbool.h>

#include "gcap/status.h"

struct gcap_ort_session_ep;

typedef struct gcap_ort_turn {
  pthread_mutex_t mutex;  // of the others; a leaf
  pthread_cond_t given_up;
  bool is_taken;
  bool is_runs;  // by a run
} gcap_ort_turn_t;

void gcap_ort_turn_init(gcap_ort_turn_t* turn);
void gcap_ort_turn_deinit(gcap_ort_turn_t* turn);

// For a replay, a copy and the like. Waits for the turn of others, and so for a run that is under way.
void gcap_ort_turn_begin(struct gcap_ort_session_ep* ep);
// For a run. ONNX Runtime lets one thread at a time run such an EP, so a run that has the turn was left by its thread.
//   FAILED_PRECONDITION  another thread has left a run open
gcap_status_t gcap_ort_turn_begin_run(struct gcap_ort_session_ep* ep) GCAP_NODISCARD;
// For what need not be done while another has the turn, who may never give it up. False: another has it.
bool gcap_ort_turn_try_begin(struct gcap_ort_session_ep* ep);
void gcap_ort_turn_end(struct gcap_ort_session_ep* ep);

#endif  // GCAP_ORT_TURN_H_
