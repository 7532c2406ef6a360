// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// variants.h: the graphs of one id, which differ by their guards, or by how their buffers lie. Called with the
// manager's mutex held.
#ifndef GCAP_LIB_GRAPH_VARIANTS_H_
#define GCAP_LIB_GRAPH_VARIANTS_H_

#include "lib/graph/manager.h"

// What the guards of an id's graphs say, and the buffers of a run.
typedef struct gcap_graph_choice {
  gcap_graph_slot_t* held;  // replays, and is for the run; NULL: there is none
  bool has_graph;           // one replays, whatever it is for
  bool has_failed;          // a function of a guard gave no answer
  bool lies_otherwise;      // of one all guards hold, and the run's buffers lie otherwise
  bool is_one_of_many;      // of several all guards hold, and the run has no buffers that would tell
} gcap_graph_choice_t;

// Chooses the graph of a run's id, newest first: all its guards hold, and the run's buffers lie as its own. Where they
// lie otherwise, and the id has as many graphs as it may, the guards alone decide. Drops the mutex around functions of
// guards: the slot that the caller had may be gone afterwards. If there is no graph to launch, the id keeps why.
//   FAILED_PRECONDITION  a function of a guard was to be asked by one, or left a capture open; or the run has no
//                        buffers, and several graphs have
gcap_status_t gcap_graph_choose(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                gcap_graph_choice_t* out_choice) GCAP_NODISCARD;

// The slot that the next capture of an id is to fill whose graphs do not hold, as the id's first: one that has no graph
// to lose, or a new one, or that of the graph that was used longest ago. NULL when there is no memory.
gcap_graph_slot_t* gcap_graph_slot_to_capture(gcap_graph_manager_t* manager, gcap_graph_slot_t* first);

// The graph of the id that a run launched, or captured, last; NULL: it has none.
gcap_graph_slot_t* gcap_graph_find_launched(gcap_graph_manager_t* manager, int id);

// The slot of the id's graph that a verification gave this ticket; NULL: it is gone.
gcap_graph_slot_t* gcap_graph_find_verified(gcap_graph_manager_t* manager, int id, uint64_t ticket);

// Whether one of the id's graphs is for a run on these buffers, as far as that can be seen without a function. NULL: a
// run without.
bool gcap_graph_may_hold(const gcap_graph_manager_t* manager, gcap_graph_slot_t* first,
                         const gcap_graph_buffers_t* buffers);

// Whether one of the id's graphs was for the run that looked last, or was captured since. Looks at no guard.
bool gcap_graph_held_last(const gcap_graph_slot_t* first);

// Whether the guards of one of the id's graphs have a function.
bool gcap_graph_asks(const gcap_graph_slot_t* first);

// Why the newest graph was passed over when the id's were looked at last; NULL: it was not.
gcap_status_t gcap_graph_why_other(const gcap_graph_slot_t* first);

#endif  // GCAP_LIB_GRAPH_VARIANTS_H_
