// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// failed_capture.h: what becomes of an id whose capture failed.
#ifndef GCAP_LIB_GRAPH_FAILED_CAPTURE_H_
#define GCAP_LIB_GRAPH_FAILED_CAPTURE_H_

#include "lib/graph/manager.h"

// Notes for the open run that the capture, or the rehearsal, failed at a step that is a hole from the next one on, and
// tells the log. False, and nothing: `why` is NULL, or another reason, or there is no host memory. Without the mutex,
// since it calls back, while the run is busy and the slot CAPTURING.
bool gcap_graph_learn_refused(gcap_graph_open_run_t* run, const gcap_graph_slot_t* slot, gcap_status_t why);

// Lets the id of the open run remember what that run has learned; nothing, if it has learned nothing. With the mutex,
// as the next one.
void gcap_graph_keep_refused(gcap_graph_manager_t* manager, gcap_graph_slot_t* first);

// The capture of the open run failed: the id goes into its back-off, or captures its next run if the failure is that of
// a step which is a hole then.
void gcap_graph_capture_failed(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, gcap_status_t failure);

#endif  // GCAP_LIB_GRAPH_FAILED_CAPTURE_H_
