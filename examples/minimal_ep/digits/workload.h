// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// workload.h: what one thread of the program does: classify all held-out digits eagerly and by replay, then time both.
#ifndef GCAP_EXAMPLES_MINIMAL_EP_DIGITS_WORKLOAD_H_
#define GCAP_EXAMPLES_MINIMAL_EP_DIGITS_WORKLOAD_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "examples/minimal_ep/digits/digits.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/session.h"

#ifdef __cplusplus
extern "C" {
#endif

// What all threads share; read only.
typedef struct workload {
  gcap_session_t* session;
  gcap_ep_t* ep;
  const digits_t* digits;
  const float* reference;  // [count][10], by the plain C reference
  size_t batch;
  size_t runs;       // timed runs of each kind
  bool use_graph;    // false: eager only
  bool synchronize;  // false: a timed run ends when its work is issued
} workload_t;

// What one thread found.
typedef struct workload_result {
  size_t correct;                    // images classified right, by the last kind of run
  double max_abs_diff_eager_replay;  // between probabilities; 0 when use_graph is false
  double max_abs_diff_reference;     // of either kind
  size_t eager_warm_ups;             // eager runs before the capture
  gcap_graph_info_t graph;           // of the thread's graph, at the end
  uint64_t* eager_ns;                // [runs], owned by the caller
  uint64_t* replay_ns;               // [runs]; not written when use_graph is false
} workload_result_t;

// Runs it on the calling thread, with device buffers of its own and graph id `graph_id`. `result->eager_ns` and
// `result->replay_ns` are given.
gcap_status_t workload_run(const workload_t* workload, int graph_id, workload_result_t* result) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MINIMAL_EP_DIGITS_WORKLOAD_H_
