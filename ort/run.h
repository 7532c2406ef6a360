// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run.h: the runs of an EP that are no replays.
#ifndef GCAP_ORT_RUN_H_
#define GCAP_ORT_RUN_H_

#include "ort/objects.h"

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
// The calling thread's open run, of whatever EP; NULL if there is none.
gcap_ort_run_t* gcap_ort_run_of_thread(gcap_ort_factory_t* factory);
// The run that a kernel is computed for: the calling thread's, or else the one of whatever thread on whose stream ONNX
// Runtime computes, since with ORT_PARALLEL it calls kernels on threads of its own. NULL if there is none.
gcap_status_t gcap_ort_run_of_kernel(gcap_ort_session_ep_t* ep, const gcap_ort_kernel_context_t* context,
                                     gcap_ort_run_t** out_run) GCAP_NODISCARD;
// Ends a run that the calling thread has left open: ONNX Runtime does not call OnRunEnd after every failure.
void gcap_ort_run_abandon(gcap_ort_session_ep_t* ep);

// OrtEp.OnRunStart and OnRunEnd.
gcap_ort_status_t* gcap_ort_on_run_start(gcap_ort_ep_t* self, const gcap_ort_run_options_t* options);
gcap_ort_status_t* gcap_ort_on_run_end(gcap_ort_ep_t* self, const gcap_ort_run_options_t* options, bool synchronize);

#endif  // GCAP_ORT_RUN_H_
