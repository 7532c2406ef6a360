// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// slot.h: what a graph manager knows of an id, or of one of the id's variants.
#ifndef GCAP_LIB_GRAPH_SLOT_H_
#define GCAP_LIB_GRAPH_SLOT_H_

#include <stdbool.h>
#include <stdint.h>

#include "gcap/graph_info.h"
#include "gcap/run.h"
#include "lib/graph/state.h"

struct gcap_graph_captured;
struct gcap_graph_known_key;
struct gcap_graph_moving;
struct gcap_graph_refused;

typedef struct gcap_graph_slot {
  // What a replay reads and writes comes first, up to info.replays.
  int id;
  bool is_guarded;                        // its graph has guards, or others of the id come behind it
  bool is_passed;                         // its graph was passed over when it was looked at last
  bool is_variant;                        // another one is the first of the id
  bool has_lost_later;                    // a graph of the id is gone whose run named its buffers later than this one's
  struct gcap_graph_captured* graph;      // replays while CAPTURED; else waits to be updated
  struct gcap_graph_slot *newer, *older;  // in the list of the slots with a graph, or of those without
  gcap_graph_info_t info;                 // its bytes: as last measured for the budget
  uint32_t failures_in_a_row;
  uint64_t cooling_runs;             // eager runs still due
  gcap_graph_run_history_t history;  // for the STABLE policy
  gcap_status_t last_failure;
  gcap_status_t update_refusal;
  gcap_status_t change;                 // from the graph before; NULL: none, or that was not kept
  struct gcap_graph_moving* rehearsed;  // for the capture to come; NULL: nothing
  uint64_t walk;                        // that measured it last
  gcap_why_eager_t why_eager;           // the id's last run
  struct gcap_graph_known_key* key;     // NULL: the id is the caller's own
  struct gcap_graph_slot* variant;      // the next older one of the id
  uint64_t last_use;                    // of a graph with guards: when they held last
  uint64_t last_named;                  // when a run or a bind named the graph's buffers last
  gcap_status_t why_other;  // of the first: why no graph of the id was launched; NULL: one was, or none is there
  bool is_pinned;           // the graph is not evicted
  struct gcap_graph_refused* refused;  // steps that are holes, of all slots of the id; NULL: none
} gcap_graph_slot_t;

#endif  // GCAP_LIB_GRAPH_SLOT_H_
