// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// verified_run.h: a run of a session whose replays are compared with its work.
#ifndef GCAP_KIT_SESSION_VERIFIED_RUN_H_
#define GCAP_KIT_SESSION_VERIFIED_RUN_H_

#include "gcap/graph_verify.h"
#include "kit/session/parts.h"

// What the engine compares: the run as its main EP knows it, with the tensors as buffers.
// Thread: one.
typedef struct gcap_verified_run {
  gcap_run_t run;  // in the library's layout; `verify` NULL: the main EP is never asked for a replay
  gcap_graph_verify_t verify;
  gcap_graph_buffers_t buffers;  // the tensors that are in the memory of the main EP
  void* heap;
  gcap_graph_manager_t* manager;  // of the calling thread, on the main EP's runtime
} gcap_verified_run_t;

// `verified` stays where it is. `asked`: the run of the main EP, with `verify` as its caller gave it.
//   INVALID_ARGUMENT    as gcap_graph_verify_read
//   UNIMPLEMENTED       the main EP has graphs of its own
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_verified_run_init(const gcap_session_parts_t* parts, const gcap_model_t* model,
                                     const gcap_tensor_t* inputs, const gcap_tensor_t* outputs, const gcap_run_t* asked,
                                     const gcap_graph_verify_t* verify, gcap_verified_run_t* verified) GCAP_NODISCARD;
void gcap_verified_run_deinit(gcap_verified_run_t* verified);

#endif  // GCAP_KIT_SESSION_VERIFIED_RUN_H_
