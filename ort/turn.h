// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// turn.h: the right to use the stream that all threads of an EP share. If each thread has its own, nothing is done.
#ifndef GCAP_ORT_TURN_H_
#define GCAP_ORT_TURN_H_

#include "ort/objects.h"

void gcap_ort_turn_init(gcap_ort_turn_t* turn);
void gcap_ort_turn_deinit(gcap_ort_turn_t* turn);

// For a replay, a copy and the like. Waits for the turn of others, and so for a run that is under way.
void gcap_ort_turn_begin(gcap_ort_session_ep_t* ep);
// For a run. ONNX Runtime lets one thread at a time run such an EP, so a run that has the turn was left by its thread.
//   FAILED_PRECONDITION  another thread has left a run open
gcap_status_t gcap_ort_turn_begin_run(gcap_ort_session_ep_t* ep) GCAP_NODISCARD;
// For what need not be done while another has the turn, who may never give it up. False: another has it.
bool gcap_ort_turn_try_begin(gcap_ort_session_ep_t* ep);
void gcap_ort_turn_end(gcap_ort_session_ep_t* ep);

#endif  // GCAP_ORT_TURN_H_
