// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run_lock.h: how the sessions of one EP take turns when it does not support concurrent runs.
#ifndef GCAP_LIB_EP_RUN_LOCK_H_
#define GCAP_LIB_EP_RUN_LOCK_H_

#include "gcap/ep.h"

// Held over a whole run, and over whatever else uses the EP's stream. Nothing happens when the EP supports concurrent
// runs: then each thread has a stream of its own.
void gcap_ep_lock_runs(gcap_ep_t* ep);
void gcap_ep_unlock_runs(gcap_ep_t* ep);

#endif  // GCAP_LIB_EP_RUN_LOCK_H_
