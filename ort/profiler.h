// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// profiler.h: events of gcap in ONNX Runtime's profile of a session.
#ifndef GCAP_ORT_PROFILER_H_
#define GCAP_ORT_PROFILER_H_

#include "ort/objects.h"

// The profiler of an EP. ONNX Runtime makes one, and ends it before the EP and after the EP's last run.
typedef struct gcap_ort_profiler gcap_ort_profiler_t;

// OrtEp.CreateProfiler.
gcap_ort_status_t* gcap_ort_create_profiler(gcap_ort_ep_t* self, gcap_ort_profiler_impl_t** out_profiler);

int64_t gcap_ort_profiler_now(void);  // nanoseconds of a clock of its own
// Adds what has taken place since `start_ns`, while the session is profiled. `what` is a literal: "replay of".
void gcap_ort_profiler_note(gcap_ort_session_ep_t* ep, const char* what, int graph_id, int64_t start_ns);

#endif  // GCAP_ORT_PROFILER_H_
