// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// holds.h: what a run uses until its work is done: parts of the plans of its nodes.
#ifndef GCAP_ORT_HOLDS_H_
#define GCAP_ORT_HOLDS_H_

#include "ort/objects.h"

// Gives the run a part, on whatever thread its kernels are computed: until its work is done.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_ort_run_hold(gcap_ort_run_t* run, gcap_hold_t* hold) GCAP_NODISCARD;
// Lets go of what the run held: at once if its work is done, else when its stream has passed the work.
void gcap_ort_holds_end_run(gcap_ort_run_t* run, bool is_done);
// Of a run that a thread left open when it exited, it is unknown when its work is done: what it holds is then kept.
void gcap_ort_holds_forget(gcap_ort_run_t* run, bool by_thread_exit);

#endif  // GCAP_ORT_HOLDS_H_
