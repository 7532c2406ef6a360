// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// engine.h: the way of every run: a replay, or rehearsals and the run, and once more the run after a failed capture, or
// all of it after a capture of another thread. A graph manager, a runtime and a session have steps of their own; the
// order is here.
#ifndef GCAP_LIB_GRAPH_ENGINE_H_
#define GCAP_LIB_GRAPH_ENGINE_H_

#include "gcap/run.h"

// The steps of one run.
typedef struct gcap_run_steps {
  void* self;  // passed to both
  // Replays the graph of the run's id, unless there is none that may be replayed. NULL: nothing replays.
  gcap_status_t (*replay)(void* self, gcap_run_result_t* result, bool* out_replayed);
  // Begins a run of `id`, issues its work, and ends the run. `*out_kind` is how the run was executed. ALREADY_EXISTS,
  // and nothing was issued: the id has been captured since the replay.
  gcap_status_t (*issue)(void* self, int id, gcap_run_result_t* result, gcap_graph_run_kind_t* out_kind);
  int id;
  bool reruns_failed_capture;  // else the failure of a capture is the run's
} gcap_run_steps_t;

// Does the run. `*result` is of the library's version.
//   errors of the steps
gcap_status_t gcap_run_by_steps(const gcap_run_steps_t* steps, gcap_run_result_t* result) GCAP_NODISCARD;

// Of a run that was begun as a capture: gives the work an array of the addresses that lives as long as the graph. Else,
// and without a capture scope of gcap, `resources` keeps the array that it has.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_run_keep_addresses(gcap_graph_run_kind_t kind, gcap_run_resources_t* resources) GCAP_NODISCARD;

// Takes the failure of a run whose capture failed, logs that the run is issued again, eagerly, and returns true. False:
// the run ended otherwise, and the status is the caller's still. gcap_graph_manager_explain has a copy of the failure.
bool gcap_run_take_failed_capture(int id, gcap_status_t failure);

#endif  // GCAP_LIB_GRAPH_ENGINE_H_
