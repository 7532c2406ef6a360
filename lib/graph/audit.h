// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// audit.h: whether the memory that a captured graph works on is still the graph's.
#ifndef GCAP_LIB_GRAPH_AUDIT_H_
#define GCAP_LIB_GRAPH_AUDIT_H_

#include "lib/graph/manager.h"

// Makes the notes of a graph that was just captured, if the manager audits. Called without the mutex, since it may log.
//   FAILED_PRECONDITION  a finding, and each replay is audited
//   others               as gcap_graph_notes_create
gcap_status_t gcap_graph_note_memory(const gcap_graph_manager_t* manager, gcap_graph_captured_t* captured);

// Buffers of the slot's graph were moved: notes where they are now, if there are notes. On failure the id is STALE,
// since the notes are not those of the executable. With the mutex.
gcap_status_t gcap_graph_note_moved(gcap_graph_slot_t* slot);

// A run named the graph's buffers, so their memory is the graph's: notes the memory of those that are other memory at
// the same address, if there are notes. With the mutex.
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the driver does not tell
gcap_status_t gcap_graph_note_named(const gcap_graph_captured_t* captured);

// Before a replay that is audited. With the mutex.
//   FAILED_PRECONDITION  the memory is not the graph's any more
//   CUDA_ERROR           the driver does not tell
gcap_status_t gcap_graph_check_memory(const gcap_graph_captured_t* captured);

#endif  // GCAP_LIB_GRAPH_AUDIT_H_
