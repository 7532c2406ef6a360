// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// manager.h: what the files of the graph manager share. Everything here is called with the manager's mutex held, unless
// its comment says otherwise.
#ifndef GCAP_LIB_GRAPH_MANAGER_H_
#define GCAP_LIB_GRAPH_MANAGER_H_

#include <pthread.h>
#include <stdatomic.h>

#include "gcap/graph.h"
#include "lib/graph/signature.h"
#include "lib/graph/state.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/clock.h"
#include "lib/internal/hash_table.h"
#include "lib/internal/kept.h"
#include "lib/internal/life.h"
#include "lib/internal/run_trace.h"

// A captured graph: what is launched, and what must live as long as a launch. It belongs to a slot, then, once it was
// replaced or evicted, to the list of retired ones, or to who releases it.
typedef struct gcap_graph_captured {
  // What a replay reads comes first, in one line of the cache: of a thousand graphs none is there by chance.
  int id;
  cudaGraphExec_t exec;      // NULL once an update in place handed it on
  cudaStream_t stream;       // that captured it
  gcap_life_t* stream_life;  // NULL: not a stream of gcap
  cudaGraph_t source;        // with the option keep_source
  gcap_retained_t* retained;
  gcap_graph_signature_t* signature;  // NULL: not signed
  size_t node_bytes;                  // of its allocation nodes
  unsigned long long stream_id;       // when it has a life
  int device_id;
  bool updated;            // it took its executable over from the one before
  bool stray;              // a launch on another stream, which this one does not wait for, may still run
  cudaEvent_t order;       // between the streams of a replay elsewhere; NULL: there was none
  cudaEvent_t launched;    // behind the last launch; NULL: it may be launched again, or was not recorded yet
  gcap_graph_info_t info;  // of the id when it was evicted
  struct gcap_graph_captured* next;
  gcap_kept_t kept;  // once it is quarantined
} gcap_graph_captured_t;

typedef struct gcap_graph_slot {
  // What a replay reads and writes comes first, up to info.replays.
  int id;
  gcap_graph_captured_t* graph;  // replays while CAPTURED; else waits to be updated
  uint64_t last_used;            // by the manager's clock
  gcap_graph_info_t info;
  uint32_t failures_in_a_row;
  uint64_t cooling_runs;             // eager runs still due
  gcap_graph_run_history_t history;  // for the STABLE policy
  gcap_status_t last_failure;
  gcap_status_t update_refusal;
} gcap_graph_slot_t;

// The run between begin_run and end_run; zero when there is none.
typedef struct gcap_graph_open_run {
  gcap_capture_t* capture;  // NULL: eager
  cudaStream_t stream;
  bool is_open;
  int id;
  gcap_life_t* thread;  // that opened it
  uint64_t begin_ns;
  gcap_run_trace_t trace;  // the thread's, when the run began
  gcap_graph_signature_t* signature;
} gcap_graph_open_run_t;

struct gcap_graph_manager {
  // What a replay reads and writes comes first, in two lines of the cache: up to run.stream.
  pthread_mutex_t mutex;
  uint64_t clock;           // launches and commits so far
  atomic_bool scope_open;   // the open run's capture scope is; its thread may close it at any time
  gcap_hash_table_t slots;  // of gcap_graph_slot_cell_t
  gcap_graph_open_run_t run;
  gcap_graph_captured_t* retired;  // to be destroyed once their launches are done
  gcap_graph_manager_options_t options;
};

// --- slots.c ---

// A cell of the table of slots.
typedef struct gcap_graph_slot_cell {
  uint64_t key;
  gcap_graph_slot_t* slot;
} gcap_graph_slot_cell_t;

// Ids are -1 and above; no key is 0.
static inline uint64_t gcap_graph_key_of(int id) { return (uint64_t)(uint32_t)id + 1; }

// The slot of `id`, or NULL. Inline: every replay looks one up.
static inline gcap_graph_slot_t* gcap_graph_find_slot(const gcap_graph_manager_t* manager, int id) {
  const gcap_graph_slot_cell_t* cell = gcap_hash_table_find(&manager->slots, gcap_graph_key_of(id));
  return cell != NULL ? cell->slot : NULL;
}
// The slot in a cell of the table, for walks; NULL where the cell is empty.
static inline gcap_graph_slot_t* gcap_graph_slot_at(const gcap_graph_manager_t* manager, size_t index) {
  const gcap_graph_slot_cell_t* cell = gcap_hash_table_used_at(&manager->slots, index);
  return cell != NULL ? cell->slot : NULL;
}
// Makes the slot of an id that has none. NULL when there is no memory.
gcap_graph_slot_t* gcap_graph_slot_add(gcap_graph_manager_t* manager, int id);
// Takes a slot out of the table, and frees it.
void gcap_graph_slot_remove(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot);

// NOT_FOUND for an id that is in this state. Makes the status alone, so needs no lock.
gcap_status_t gcap_graph_not_captured(int id, gcap_graph_state_t state);
// The slot of `id` when it has a graph, in whatever state; else NOT_FOUND.
gcap_status_t gcap_graph_find(gcap_graph_manager_t* manager, int id, gcap_graph_slot_t** out_slot);
// The same for a graph that replays.
gcap_status_t gcap_graph_find_replayable(gcap_graph_manager_t* manager, int id, gcap_graph_slot_t** out_slot);
void gcap_graph_slot_free(gcap_graph_slot_t* slot);
// Asks again what the slot's graph keeps: what several graphs share is less for each of them than when there was one.
void gcap_graph_slot_measure(gcap_graph_slot_t* slot);

// --- exec.c ---

// Makes what is kept of a finished capture and launches it once: `slot`'s executable is updated, or a new one made.
// Takes `source` and `retained`, and the run's signature on success. On failure `*out_captured` is NULL, nothing was
// launched, and what `slot` had it still has. A status beside a captured graph is one of cleaning up.
gcap_status_t gcap_graph_captured_build(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot,
                                        gcap_graph_open_run_t* run, cudaGraph_t source, gcap_retained_t* retained,
                                        gcap_graph_captured_t** out_captured);
// Destroys all of it. Needs no lock.
gcap_status_t gcap_graph_captured_destroy(gcap_graph_captured_t* captured);

// --- replay.c ---

// Launches the slot's graph on `stream`.
gcap_status_t gcap_graph_launch_on(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, cudaStream_t stream);

// --- release.c ---

// Records an event behind the last launch, so that its end can be seen.
gcap_status_t gcap_graph_mark_last_launch(gcap_graph_captured_t* captured);
// Puts a graph that is launched no more on the list of retired ones.
gcap_status_t gcap_graph_retire(gcap_graph_manager_t* manager, gcap_graph_captured_t* captured);
// Takes the graphs that the budget does not allow out of their slots, but for that of `kept`, as a list.
gcap_status_t gcap_graph_evict(gcap_graph_manager_t* manager, const gcap_graph_slot_t* kept,
                               gcap_graph_captured_t** out_evicted);
// Tells of evicted graphs, retires them, and destroys what is idle of all retired ones. Takes the mutex itself.
gcap_status_t gcap_graph_clean_up(gcap_graph_manager_t* manager, gcap_graph_captured_t* evicted);

#endif  // GCAP_LIB_GRAPH_MANAGER_H_
