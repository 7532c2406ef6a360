// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// recording.h: the work of a run, captured once more to be looked at, and thrown away.
#ifndef GCAP_LIB_GRAPH_RECORDING_H_
#define GCAP_LIB_GRAPH_RECORDING_H_

#include "gcap/capture.h"
#include "lib/capture/steps.h"
#include "lib/graph/guards.h"

// All zeros: nothing.
struct gcap_graph_recording {
  bool keeps_steps;  // set by the caller
  gcap_capture_steps_t steps;
  gcap_graph_stated_list_t stated;  // with the segments before the last one
  cudaGraph_t last;
  gcap_retained_t* retained;
};

// Destroys all of it.
gcap_status_t gcap_graph_recording_free(struct gcap_graph_recording* recording) GCAP_NODISCARD;

#endif  // GCAP_LIB_GRAPH_RECORDING_H_
