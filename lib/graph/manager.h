// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// manager.h: what the files of the graph manager share. Everything here is called with the manager's mutex held, unless
// its comment says otherwise. No callback and no log message leaves with the mutex held: what may call one says so.
#ifndef GCAP_LIB_GRAPH_MANAGER_H_
#define GCAP_LIB_GRAPH_MANAGER_H_

#include <pthread.h>
#include <stdatomic.h>

#include "gcap/graph.h"
#include "gcap/graph_buffers.h"
#include "gcap/graph_plan.h"
#include "lib/capture/inner.h"
#include "lib/capture/steps.h"
#include "lib/contents/inner.h"
#include "lib/graph/cost.h"
#include "lib/graph/guards.h"
#include "lib/graph/holes.h"
#include "lib/graph/inner.h"
#include "lib/graph/keys.h"
#include "lib/graph/moving.h"
#include "lib/graph/signature.h"
#include "lib/graph/slot.h"
#include "lib/graph/state.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/clock.h"
#include "lib/internal/hash_table.h"
#include "lib/internal/kept.h"
#include "lib/internal/life.h"
#include "lib/internal/run_trace.h"

// What a graph takes beside what it retains.
typedef struct gcap_graph_memory_use {
  size_t node_bytes;   // of its allocation nodes
  size_t value_bytes;  // of its values in memory, on the device
  size_t kernels;      // kernel nodes of its executables
  size_t more_execs;   // beside one
  int device_id;
  bool has_exec;
} gcap_graph_memory_use_t;

// What runs that ask for a verification (gcap_run_t.verify) made of a graph.
typedef struct gcap_graph_verify_counts {
  uint64_t replays;
  uint64_t since_move;  // of its buffers
  uint64_t num_moves;   // when one replayed last
  uint64_t ticket;      // of the last one that was verified
  bool is_under_way;    // that one has not ended
} gcap_graph_verify_counts_t;

// A captured graph: what is launched, and what must live as long as a launch. It belongs to a slot, then, once it was
// replaced or evicted, to the list of retired ones, or to who releases it.
typedef struct gcap_graph_captured {
  // What a replay reads comes first, in one line of the cache: of a thousand graphs none is there by chance.
  int id;
  cudaGraphExec_t exec;         // NULL once an update in place handed it on
  cudaStream_t stream;          // that captured it
  gcap_life_t* stream_life;     // NULL: not a stream of gcap
  gcap_graph_guards_t* guards;  // NULL: the graph depends on no decision
  gcap_graph_holes_t* holes;    // NULL: it is one segment; else `exec` and `source` are those of the last one
  cudaGraph_t source;           // with the option keep_source, or if the graph can be moved
  gcap_retained_t* retained;
  gcap_graph_signature_t* signature;  // NULL: not signed
  gcap_contents_t contents;           // of what `exec` was made of, or updated to
  gcap_graph_moving_t* moving;        // NULL: captured without buffers
  gcap_graph_notes_t* notes;          // NULL: without audits
  gcap_graph_tap_list_t taps;
  gcap_capture_steps_t steps;
  gcap_graph_memory_use_t use;
  gcap_graph_verify_counts_t verify;
  unsigned long long stream_id;  // when it has a life
  int device_id;
  bool has_steps;          // and so `source`
  bool told_of_fixed;      // that it cannot be moved
  bool updated;            // it took its executable over from the one before
  bool stray;              // a launch on another stream, which this one does not wait for, may still run
  cudaEvent_t order;       // between the streams of a replay elsewhere; NULL: there was none
  cudaEvent_t launched;    // behind the last launch; NULL: it may be launched again, or was not recorded yet
  gcap_graph_info_t info;  // of the id when it was evicted
  struct gcap_graph_captured* next;
  gcap_kept_t kept;  // once it is quarantined
} gcap_graph_captured_t;

// Slots by their last use.
typedef struct gcap_graph_slot_list {
  gcap_graph_slot_t *newest, *oldest;
  size_t count;
} gcap_graph_slot_list_t;

// The run between begin_run and end_run; zero when there is none.
typedef struct gcap_graph_open_run {
  gcap_capture_t* capture;  // NULL: eager
  cudaStream_t stream;
  bool is_open;
  bool is_busy;  // its thread begins, ends or aborts it without the mutex: it is nobody else's, not even a callback's
  int id;
  gcap_life_t* stream_life;  // NULL: not a stream of gcap
  gcap_life_t* thread;       // that opened it
  uint64_t begin_ns;
  gcap_run_trace_t trace;  // the thread's, when the run began
  gcap_graph_signature_t* signature;
  gcap_graph_moving_t* moving;  // NULL: the run was begun without buffers
  gcap_graph_stated_list_t stated;
  gcap_capture_steps_t steps;
  bool keeps_steps;
  bool is_rehearsal;
  bool is_undecided;              // the guards or the holes of its captures differ
  bool is_left;                   // gcap_capture_is_left
  gcap_graph_refused_t* learned;  // with a step more than the id's; NULL: no step failed the capture
  gcap_why_eager_t why_eager;
  bool tells_of_fixed;  // the first run that is eager because the id's graph cannot be moved
  bool capture_only;
  bool pinned;
} gcap_graph_open_run_t;

struct gcap_graph_manager {
  // What a replay reads and writes comes first, in two lines of the cache: up to run.stream.
  pthread_mutex_t mutex;
  atomic_bool scope_open;  // the open run's capture scope is, or is about to be; its thread may close it at any time
  bool has_budget;         // replays keep `captured` in order
  bool audits_replays;     // each replay looks whether its memory is its own
  bool is_ending;          // gcap_graph_manager_destroy has begun to release
  bool keeps_steps;        // gcap_graph_keep_steps
  gcap_graph_captured_t* in_hole;  // between its first and its last segment; NULL: none is
  gcap_hash_table_t slots;         // of gcap_graph_slot_cell_t
  gcap_graph_keys_t keys;
  gcap_graph_open_run_t run;
  gcap_graph_slot_list_t captured;  // the slots with a graph
  gcap_graph_slot_list_t idle;      // the others, of which a bounded number is remembered
  uint64_t num_walks;               // over `captured` to measure
  size_t captured_bytes;            // the sum of their info.bytes
  uint64_t num_uses;                // of graphs with guards
  uint32_t num_inside;              // calls that may run callbacks now, and use the manager afterwards
  gcap_graph_captured_t* retired;   // to be destroyed once their launches are done
  gcap_graph_manager_options_t options;
};

// What gcap_graph_manager_hold and gcap_graph_manager_let_go do, for who has the mutex.
static inline void gcap_graph_hold_locked(gcap_graph_manager_t* manager) { ++manager->num_inside; }
static inline void gcap_graph_let_go_locked(gcap_graph_manager_t* manager) { --manager->num_inside; }

// Whether another thread captures on `stream` for this manager, or is about to: the mutex is not held while it begins.
// The capture of this thread has left its stream by the time a callback of its end may ask.
static inline bool gcap_graph_is_captured_on(const gcap_graph_manager_t* manager, cudaStream_t stream) {
  return manager->scope_open && manager->run.stream == stream && manager->run.thread != gcap_thread_life();
}

// --- hold.c ---

//   FAILED_PRECONDITION  a graph of the manager is in a hole
gcap_status_t gcap_graph_check_no_hole(const gcap_graph_manager_t* manager) GCAP_NODISCARD;

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
// The slot of a run's id, or of its key; NULL: there is none.
static inline gcap_graph_slot_t* gcap_graph_find_slot_of_run(const gcap_graph_manager_t* manager,
                                                             const gcap_run_t* run) {
  if (run->key == NULL) return gcap_graph_find_slot(manager, run->id);
  return gcap_graph_keys_find(&manager->keys, run->key);
}
// Makes the slot of an id that has none, without a graph. May forget the id that was run longest ago of those without.
// NULL when there is no memory.
gcap_graph_slot_t* gcap_graph_slot_add(gcap_graph_manager_t* manager, int id);
// The same of a key that is not known, under an id of its own.
gcap_graph_slot_t* gcap_graph_slot_add_key(gcap_graph_manager_t* manager, const gcap_graph_key_t* key);
// The same of another variant of a warm id, which becomes the first.
gcap_graph_slot_t* gcap_graph_slot_add_variant(gcap_graph_manager_t* manager, gcap_graph_slot_t* first);
// Makes a slot the first of its id.
void gcap_graph_slot_make_first(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot);
// Takes a slot out of its id, and the id out of the table if it was the last, and frees it.
void gcap_graph_slot_remove(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot);
// Notes that the slot is used now. Inline part: a replay under a budget does it.
void gcap_graph_slot_make_newest(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot);
static inline void gcap_graph_slot_touch(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  if (slot->newer != NULL) gcap_graph_slot_make_newest(manager, slot);
}
// Notes that a run or a bind has named where the buffers of the slot's graph are.
void gcap_graph_slot_note_named(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot);
// Takes a slot that lost its graph out of an id that has others, which keep its counters; else leaves it.
void gcap_graph_slot_merge(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot);
// Sends an id into its back-off, whose capture failed or whose replay was found wrong.
void gcap_graph_slot_cool_down(const gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, gcap_graph_step_t step,
                               gcap_status_t failure);
// Adds the counters of one slot, and what its graph takes, to a sum.
void gcap_graph_info_add(gcap_graph_info_t* sum, const gcap_graph_info_t* info);
// Gives the slot a graph, or NULL, and returns the one that it had. May forget an id, as gcap_graph_slot_add, but not
// this one.
gcap_graph_captured_t* gcap_graph_slot_set_graph(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot,
                                                 gcap_graph_captured_t* graph);
// Asks again what each graph keeps: what several graphs share is less for each of them than when there was one. Drops
// the mutex around each callback `bytes`.
void gcap_graph_slots_measure(gcap_graph_manager_t* manager);

// Writes what the events of a capture and the file of a graph call the graph: "graph id -3, key 'decode batch 4'".
#define GCAP_GRAPH_SLOT_NAME_BYTES (GCAP_GRAPH_NAME_BYTES + 32)
void gcap_graph_slot_write_name(const gcap_graph_slot_t* slot, char* name);

// NOT_FOUND for an id that is in this state. Makes the status alone, so needs no lock.
gcap_status_t gcap_graph_not_captured(int id, gcap_graph_state_t state);
// Names the slot's key once, if that has a name, in a failure: in place of its id, or before all. NULL is fine, as
// status and as slot.
gcap_status_t gcap_graph_name_failure(const gcap_graph_slot_t* slot, gcap_status_t status);
// The same by the id. Takes the mutex.
gcap_status_t gcap_graph_name_failure_of(gcap_graph_manager_t* manager, int id, gcap_status_t status);
// The newest slot of `id` that has a graph, in whatever state; else NOT_FOUND.
gcap_status_t gcap_graph_find(gcap_graph_manager_t* manager, int id, gcap_graph_slot_t** out_slot);
// The same for a graph that replays.
gcap_status_t gcap_graph_find_replayable(gcap_graph_manager_t* manager, int id, gcap_graph_slot_t** out_slot);
// Writes down what a graph keeps. Calls back: without the mutex, and with `retained` shared.
static inline void gcap_graph_measure(const gcap_graph_memory_use_t* use, const gcap_retained_t* retained,
                                      gcap_graph_info_t* info) {
  info->kernel_nodes = use->kernels;
  info->exec_bytes = use->has_exec ? gcap_graph_segments_bytes(use->device_id, use->kernels, use->more_execs) : 0;
  info->bytes = use->node_bytes + use->value_bytes + info->exec_bytes + gcap_retained_bytes(retained);
}

// --- exec.c ---

// What became of a finished capture.
typedef struct gcap_graph_build {
  gcap_graph_captured_t* captured;  // NULL: it failed
  size_t nodes;
  uint64_t instantiate_ns;       // 0: it did not come to that
  gcap_status_t update_refusal;  // why the old executable was not updated; NULL: it was, or there was none
  gcap_status_t change;          // what differs from the graph before
} gcap_graph_build_t;

// Makes what is kept of a finished capture and launches it once, unless the run is capture_only or has holes: `slot`'s
// executable is updated, or a new one made. Called without the mutex, by the thread of the run, while the id is
// CAPTURING, so that nobody else touches the slot's executable; of the slot nothing else is changed. Takes `source` and
// `retained`, and the run's signature. On failure nothing was launched, and what `slot` had it still has. A status
// beside a captured graph is one of cleaning up.
gcap_status_t gcap_graph_captured_build(const gcap_graph_manager_t* manager, gcap_graph_slot_t* slot,
                                        gcap_graph_open_run_t* run, cudaGraph_t source, gcap_retained_t* retained,
                                        gcap_graph_build_t* out_build);
// Instantiates a graph.
//   CUDA_ERROR  the driver refuses it; the message names the node at fault
gcap_status_t gcap_graph_instantiate(cudaGraph_t graph, cudaGraphExec_t* out_exec) GCAP_NODISCARD;
// Whether a segment has nodes: one without gets no executable, unless it is the last one.
bool gcap_graph_has_nodes(const gcap_contents_t* contents, size_t segment);
// The executables of its segments.
static inline const cudaGraphExec_t* gcap_graph_execs(const gcap_graph_captured_t* captured) {
  return captured->holes != NULL ? captured->holes->execs : &captured->exec;
}
// Destroys all of it. Needs no lock.
gcap_status_t gcap_graph_captured_destroy(gcap_graph_captured_t* captured);

// --- order.c ---

// Orders another stream behind the one that captured the graph.
gcap_status_t gcap_graph_order_there(gcap_graph_captured_t* captured, cudaStream_t stream) GCAP_NODISCARD;
// Orders the stream that captured the graph behind what was launched on another one, by an event or by a wait.
gcap_status_t gcap_graph_order_back(gcap_graph_captured_t* captured, cudaStream_t stream) GCAP_NODISCARD;

// --- replay.c ---

// Replays as gcap_graph_manager_replay does, a run of the library's layout. Without the mutex.
gcap_status_t gcap_graph_replay(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_run_result_t* result,
                                bool* out_replayed);

// Whether the graph may be launched on the stream.
//   errors of gcap_graph_manager_replay
gcap_status_t gcap_graph_check_launch(const gcap_graph_manager_t* manager, gcap_graph_captured_t* captured,
                                      cudaStream_t stream) GCAP_NODISCARD;
// Launches the slot's graph on `stream`.
gcap_status_t gcap_graph_launch_on(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, cudaStream_t stream);

// --- release.c ---

// Records an event behind the last launch, so that its end can be seen.
//   FAILED_PRECONDITION  the stream is capturing
//   CUDA_ERROR           the event could not be recorded
gcap_status_t gcap_graph_mark_last_launch(const gcap_graph_manager_t* manager, gcap_graph_captured_t* captured);
// Puts a graph that is launched no more on the list of retired ones.
gcap_status_t gcap_graph_retire(gcap_graph_manager_t* manager, gcap_graph_captured_t* captured);
// Takes the graphs that the budget does not allow out of their slots, but for that of `kept_id`, as a list. Drops the
// mutex, as gcap_graph_slots_measure.
gcap_status_t gcap_graph_evict(gcap_graph_manager_t* manager, int kept_id, gcap_graph_captured_t** out_evicted);
// For the end of everything. Marks the last launch of every graph. If a graph may not be released now, unmarks all and
// gives the refusal in `*out_refusal`. Else takes each graph, and each id but one that is being captured, out of the
// tables: `*out_detached` lists the graphs that can be waited for. A graph that could not be marked stays; the returned
// status says why.
gcap_status_t gcap_graph_detach_all(gcap_graph_manager_t* manager, gcap_graph_captured_t** out_detached,
                                    gcap_status_t* out_refusal);
// Waits for the launches of a list and ends its graphs. Called without the mutex, since it calls back. A failure is
// LEAKED: the graphs are gone, or kept until the process ends.
gcap_status_t gcap_graph_end_detached(gcap_graph_captured_t* detached);
// Tells of evicted graphs, retires them, and destroys what is idle of all retired ones. Takes the mutex itself, and
// calls back without it.
gcap_status_t gcap_graph_clean_up(gcap_graph_manager_t* manager, gcap_graph_captured_t* evicted);

#endif  // GCAP_LIB_GRAPH_MANAGER_H_
