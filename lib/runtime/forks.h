// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// forks.h: the further streams of a run, as the run's begin and end see them.
#ifndef GCAP_LIB_RUNTIME_FORKS_H_
#define GCAP_LIB_RUNTIME_FORKS_H_

#include "lib/runtime/runtime_internal.h"

// Makes the set of the threads' forks, of a runtime that has its streams and its scratch. The set ends before scratch
// and streams: its end waits for the work of all forked streams.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_forks_create(gcap_own_runtime_t* runtime) GCAP_NODISCARD;

// Before a captured run of the calling thread: scratch prepares for the streams that the thread's last run forked, as
// gcap_scratch_prepare_for. A failure is a line in the log, since the capture says what it lacks.
void gcap_forks_prepare(gcap_own_runtime_t* runtime, uint64_t work);

// Before a run on `stream`: ends what a run that was left open forked.
gcap_status_t gcap_forks_end_left_run(gcap_own_runtime_t* runtime, gcap_stream_t* stream) GCAP_NODISCARD;

// At the end of a run on `stream`: joins what the work did not join. Takes `run_status`, and returns no less.
//   FAILED_PRECONDITION  the work succeeded and left streams that it did not join
gcap_status_t gcap_forks_close(gcap_own_runtime_t* runtime, gcap_stream_t* stream,
                               gcap_status_t run_status) GCAP_NODISCARD;

// Then: ends the scratch runs of the streams that the run forked, as gcap_scratch_end_run_of.
gcap_status_t gcap_forks_end_scratch_runs(gcap_own_runtime_t* runtime, uint64_t work, bool has_failed) GCAP_NODISCARD;

#endif  // GCAP_LIB_RUNTIME_FORKS_H_
