// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// verify.h: a replay that is compared with the work of its run.
#ifndef GCAP_LIB_GRAPH_VERIFY_H_
#define GCAP_LIB_GRAPH_VERIFY_H_

#include "lib/graph/inner.h"

// Replays as steps->replay does, of a run with steps->verified. If the replay is due, gcap_graph_verify.h says what
// comes of it. Without a mutex.
gcap_status_t gcap_graph_verify_replay(const gcap_run_steps_t* steps, gcap_run_result_t* result,
                                       bool* out_replayed) GCAP_NODISCARD;

#endif  // GCAP_LIB_GRAPH_VERIFY_H_
