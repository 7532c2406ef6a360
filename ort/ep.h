// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep.h: the EP of one session, and what it knows of each thread's run.
#ifndef GCAP_ORT_EP_H_
#define GCAP_ORT_EP_H_

#include <stdatomic.h>

#include "kit/ep/hold.h"
#include "lib/internal/affine.h"
#include "ort/factory.h"
#include "ort/profiler.h"
#include "ort/run_options.h"
#include "ort/turn.h"

// Parts of what a run uses. A list that grows.
typedef struct gcap_ort_holds {
  gcap_hold_t** at;
  size_t count;
  size_t room;
} gcap_ort_holds_t;

// What the EP knows of one thread's run. ONNX Runtime does not tell OnRunEnd what became of the kernels, so they do.
typedef struct gcap_ort_run {
  bool open;                  // between OnRunStart and OnRunEnd
  struct gcap_ort_run* next;  // of the EP's open runs
  struct gcap_ort_session_ep* ep;
  bool captures;  // the run is being captured
  gcap_run_options_t options;
  gcap_run_t asked;  // the run as the runtime was told
  int previous_device;
  int64_t start_ns;
  gcap_run_resources_t resources;  // of the thread, while the run is open
  gcap_status_t failure;           // the first one of a kernel or copy; the run's
  int num_computed;                // kernels that were called
  uint64_t releases_seen;          // the last release that this thread took part in
  int attempts;                    // runs in a row that left the id without a graph
  bool settled;                    // this call of the application needs no further run
  pthread_mutex_t holds_mutex;     // of `holds`, to which other threads add with ORT_PARALLEL; a leaf
  gcap_ort_holds_t* holds;         // parts of the plans of its eager work; NULL: none yet
} gcap_ort_run_t;

// The ids that were released, for threads that have graphs of their own: each gives up its own when it comes by.
typedef struct gcap_ort_releases {
  pthread_mutex_t mutex;         // a leaf
  atomic_uint_fast64_t last;     // the number of the last release; 0: none yet
  struct gcap_ort_release* ids;  // each once, with the number of its last release
  size_t count;
  size_t room;
} gcap_ort_releases_t;

// An EP. `abi` is first.
typedef struct gcap_ort_session_ep {
  gcap_ort_ep_t abi;
  gcap_ort_factory_t* factory;
  struct gcap_ort_session_ep* next;  // of the factory's
  const gcap_ort_device_t* device;
  gcap_options_t options;
  gcap_ep_t* ep;
  gcap_runtime_t* runtime;     // of `ep`
  gcap_affine_t* runs;         // each thread's gcap_ort_run_t
  pthread_mutex_t open_mutex;  // of `open_runs`; a leaf
  gcap_ort_run_t* open_runs;   // of all threads
  gcap_ort_releases_t releases;
  gcap_ort_turn_t turn;
  _Atomic(gcap_ort_profiler_t*) profiler;  // NULL: none
  _Atomic(char*) warning;                  // of what the EP leaves to other EPs, until it is logged; NULL: none
  atomic_int num_kernels;                  // that live: a run computes each of them once
  atomic_int references;  // the session's, and one for each allocator, whose tensors may outlive the session
} gcap_ort_session_ep_t;

void gcap_ort_ep_retain(gcap_ort_session_ep_t* ep);
// The last one ends the EP. Failures are logged: the runtime does not ask.
void gcap_ort_ep_release(gcap_ort_session_ep_t* ep);

// --- run.c ----------------------------------------------------------------------------------------------------------

gcap_status_t gcap_ort_runs_create(gcap_ort_releases_t* releases, gcap_affine_t** out_runs) GCAP_NODISCARD;
// The calling thread's open run of the EP; NULL if there is none.
gcap_ort_run_t* gcap_ort_run_current(const gcap_ort_session_ep_t* ep);
// Before a copy between host and device in a run, or in none: FAILED_PRECONDITION if a graph shall come of the run,
// since a replay would neither read nor write host memory that the application gave to this run.
gcap_status_t gcap_ort_run_check_host_copy(const gcap_ort_run_t* run) GCAP_NODISCARD;
// Whether the run's failure is one of a capture, of which nothing was executed: it is then done again, eagerly.
bool gcap_ort_run_reruns(const gcap_ort_run_t* run);
// Keeps a copy of a failure that ONNX Runtime is given in a run, or in none, for the run's end.
void gcap_ort_run_note_failure(gcap_ort_run_t* run, gcap_status_t status);
// Gives the run a part, on whatever thread its kernels are computed: until its work is done.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_ort_run_hold(gcap_ort_run_t* run, gcap_hold_t* hold) GCAP_NODISCARD;
// The calling thread's open run, of whatever EP; NULL if there is none.
gcap_ort_run_t* gcap_ort_run_of_thread(gcap_ort_factory_t* factory);
// The run that a kernel is computed for: the calling thread's, or else the one of whatever thread on whose stream ONNX
// Runtime computes, since with ORT_PARALLEL it calls kernels on threads of its own. NULL if there is none.
gcap_status_t gcap_ort_run_of_kernel(gcap_ort_session_ep_t* ep, const gcap_ort_kernel_context_t* context,
                                     gcap_ort_run_t** out_run) GCAP_NODISCARD;
// Ends a run that the calling thread has left open: ONNX Runtime does not call OnRunEnd after every failure.
void gcap_ort_run_abandon(gcap_ort_session_ep_t* ep);

gcap_ort_status_t* gcap_ort_on_run_start(gcap_ort_ep_t* self, const gcap_ort_run_options_t* options);
gcap_ort_status_t* gcap_ort_on_run_end(gcap_ort_ep_t* self, const gcap_ort_run_options_t* options, bool synchronize);
gcap_ort_status_t* gcap_ort_sync(gcap_ort_ep_t* self);
bool gcap_ort_is_graph_capture_enabled(const gcap_ort_ep_t* self);
bool gcap_ort_is_graph_captured(const gcap_ort_ep_t* self, int graph_id);
gcap_ort_status_t* gcap_ort_replay_graph(gcap_ort_ep_t* self, int graph_id);

// --- release.c ------------------------------------------------------------------------------------------------------

void gcap_ort_releases_init(gcap_ort_releases_t* releases);
void gcap_ort_releases_deinit(gcap_ort_releases_t* releases);
// Gives up the calling thread's graphs of the ids that were released since it was here last.
gcap_status_t gcap_ort_releases_follow(gcap_ort_session_ep_t* ep, gcap_ort_run_t* run) GCAP_NODISCARD;
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
