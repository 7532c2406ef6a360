// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run_lock.h: how the sessions of one EP keep out of each other's way.
#ifndef GCAP_LIB_EP_RUN_LOCK_H_
#define GCAP_LIB_EP_RUN_LOCK_H_

#include "gcap/ep.h"

// Makes a session the only one of an EP that captures graphs, for good: its graphs hold the session's addresses, on
// every thread that ran it. Does nothing for an EP that captures none.
//   FAILED_PRECONDITION  another session has claimed it
gcap_status_t gcap_ep_claim(gcap_ep_t* ep) GCAP_NODISCARD;
// Undoes a claim of a session that never ran.
void gcap_ep_unclaim(gcap_ep_t* ep);

// Held over a whole run, and over whatever else uses the EP's stream. Nothing happens when the EP supports concurrent
// runs: then each thread has a stream of its own.
void gcap_ep_lock_runs(gcap_ep_t* ep);
void gcap_ep_unlock_runs(gcap_ep_t* ep);

#endif  // GCAP_LIB_EP_RUN_LOCK_H_
