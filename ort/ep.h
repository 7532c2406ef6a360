// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep.h: the EP of one session, and what it knows of each thread's run.
#ifndef GCAP_ORT_EP_H_
#define GCAP_ORT_EP_H_

#include <stdatomic.h>

#include "lib/internal/affine.h"
#include "ort/factory.h"

// An EP. `abi` is first.
typedef struct gcap_ort_session_ep {
  gcap_ort_ep_t abi;
  gcap_ort_factory_t* factory;
  const gcap_ort_device_t* device;
  gcap_options_t options;
  gcap_ep_t* ep;
  gcap_affine_t* runs;  // each thread's gcap_ort_run_t
  atomic_int
      references;  // the session's, and one of each allocator, whose memory outlives the session with its tensors
} gcap_ort_session_ep_t;

// What the EP knows of one thread's run. ONNX Runtime does not tell OnRunEnd what became of the kernels, so they do.
typedef struct gcap_ort_run {
  bool open;  // between OnRunStart and OnRunEnd
  int graph_id;
  int previous_device;
  gcap_run_resources_t resources;  // of the thread, while the run is open
  gcap_status_t failure;           // of the first kernel that failed; the run's
  int attempts;                    // runs in a row that left the id without a graph
  bool settled;                    // this call of the application needs no further run
} gcap_ort_run_t;

void gcap_ort_ep_retain(gcap_ort_session_ep_t* ep);
// The last one ends the EP. Failures are logged: the runtime does not ask.
void gcap_ort_ep_release(gcap_ort_session_ep_t* ep);

// --- run.c ----------------------------------------------------------------------------------------------------------

gcap_status_t gcap_ort_runs_create(gcap_affine_t** out_runs) GCAP_NODISCARD;
// The calling thread's open run; NULL if there is none.
gcap_ort_run_t* gcap_ort_run_current(gcap_ort_session_ep_t* ep);
// Ends a run that the calling thread has left open: ONNX Runtime does not call OnRunEnd after every failure.
void gcap_ort_run_abandon(gcap_ort_session_ep_t* ep);

gcap_ort_status_t* gcap_ort_on_run_start(gcap_ort_ep_t* self, const gcap_ort_run_options_t* options);
gcap_ort_status_t* gcap_ort_on_run_end(gcap_ort_ep_t* self, const gcap_ort_run_options_t* options, bool synchronize);
gcap_ort_status_t* gcap_ort_sync(gcap_ort_ep_t* self);
bool gcap_ort_is_graph_capture_enabled(const gcap_ort_ep_t* self);
bool gcap_ort_is_graph_captured(const gcap_ort_ep_t* self, int graph_id);
gcap_ort_status_t* gcap_ort_replay_graph(gcap_ort_ep_t* self, int graph_id);
gcap_ort_status_t* gcap_ort_release_captured_graph(gcap_ort_ep_t* self, int graph_id);

// --- capability.c ---------------------------------------------------------------------------------------------------

gcap_ort_status_t* gcap_ort_get_capability(gcap_ort_ep_t* self, const gcap_ort_graph_t* graph,
                                           gcap_ort_graph_support_t* info);

// --- options.c ------------------------------------------------------------------------------------------------------

// Reads what the session options say for the plugin's EP on `device`.
gcap_status_t gcap_ort_options_read(const gcap_ort_factory_t* factory, const gcap_ort_device_t* device,
                                    const gcap_ort_session_options_t* session,
                                    gcap_options_t* out_options) GCAP_NODISCARD;

#endif  // GCAP_ORT_EP_H_
