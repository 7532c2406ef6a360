// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_info.h: the state of each id of a graph manager, its counters, and why something was so.
#ifndef GCAP_GRAPH_INFO_H_
#define GCAP_GRAPH_INFO_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/graph_contents.h"
#include "gcap/run.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_graph_manager gcap_graph_manager_t;  // graph.h

// The state of an id. Each line is a step: from, what happens, to. No other step changes a state, except a release
// and max_ids_without_graph, which forget the id: its state is then COLD.
//
//   COLD       --first run-->      WARMING
//   WARMING    --warm-->           READY      as the policy says, or for a run with capture_only
//   READY      --begin-->          CAPTURING
//   READY      --failure-->        COOLING    the driver would not begin a capture
//   CAPTURING  --commit-->         CAPTURED
//   CAPTURING  --failure-->        COOLING    some runs stay eager
//   CAPTURING  --give up-->        READY      never ended, cancelled, a rehearsal, or failed at a step that is a hole
//                                             from then on (graph_holes.h)
//   COOLING    --cooled-->         READY      after those runs, or for a run with capture_only
//   CAPTURED   --recapture-->      STALE
//   CAPTURED   --evict-->          READY
//   CAPTURED   --differs-->        COOLING    a replay left other results than its work (graph_verify.h)
//   STALE      --begin-->          CAPTURING
//   STALE      --failure-->        COOLING
//   STALE      --evict-->          READY
//
// The variants of an id, graphs that differ by their guards or by how their buffers lie (graph_guards.h,
// graph_buffers.h), have a state each. That of the id is CAPTURED if a graph replays and none is CAPTURING, else that
// of the newest.
typedef enum gcap_graph_state {
  GCAP_GRAPH_COLD = 0,
  GCAP_GRAPH_WARMING,
  GCAP_GRAPH_READY,
  GCAP_GRAPH_CAPTURING,
  GCAP_GRAPH_CAPTURED,
  GCAP_GRAPH_COOLING,
  GCAP_GRAPH_STALE,  // has a graph, which does not replay: the next run is captured again
} gcap_graph_state_t;

GCAP_API const char* gcap_graph_state_name(gcap_graph_state_t state);  // "CAPTURED"

// The state and the counters of one id. A release sets the counters to 0; an eviction keeps them, until the id is
// forgotten (max_ids_without_graph).
// Thread:   plain data; the call that fills the struct in is thread-safe.
// Capture:  legal: nothing here calls CUDA.
// Lifetime: the caller's. The struct is a copy, and does not follow the id.
typedef struct gcap_graph_info {
  size_t struct_size;  // set by gcap_graph_manager_get_info
  gcap_graph_state_t state;
  // gcap_graph_manager_begin_run would capture the next run. So do now what a capture forbids. Of an id whose graphs
  // have guards: the last run, or replay, found none for its decisions and buffers. Ask behind that replay: no guard is
  // looked at here.
  bool captures_next;
  uint64_t replays;           // launches, including the first one after each capture, unless the run is capture_only
  uint64_t eager_runs;        // that succeeded
  uint64_t captures;          // that succeeded
  uint64_t failures;          // captures that failed, and replays that differ from their work (graph_verify.h)
  size_t nodes;               // of the graph; 0 without a graph
  uint64_t capture_ns;        // host time of the last capture, from begin to end
  uint64_t instantiate_ns;    // host time of the last update or instantiation
  size_t bytes;               // retained now (gcap_capture_retain), of allocation nodes, values in memory, exec_bytes
  uint64_t updates;           // captures that updated the executable in place
  uint64_t reinstantiations;  // captures that made a new executable because the driver refused the update
  uint64_t evictions;         // see max_graphs
  size_t kernel_nodes;        // of the graph and its child graphs; 0 without a graph
  // The device memory of the executable: an estimate, since the driver takes memory in steps of some MiB for all
  // executables together. So much for an executable and so much for each kernel node, as measured on an H200 by
  // bench/graph:cost_bench, scaled by what this process saw go on this device, once it has seen some 64 MiB go. Nodes
  // that copy from device to device take as much as kernel nodes, and are not counted. 0 without a graph.
  size_t exec_bytes;
  size_t ids;     // of GCAP_GRAPH_ID_NONE: how many ids the manager remembers; else 0
  size_t graphs;  // of GCAP_GRAPH_ID_NONE: how many graphs there are; else how many of the id, one for each variant
  char name[GCAP_GRAPH_NAME_BYTES];  // of the id's key (gcap_graph_key_t); empty: it has none
  size_t holes;                      // of the id's graphs (graph_holes.h); each graph has one segment more than holes
  size_t refused_steps;              // of these, steps that a capture refused (gcap_graph_hole_t.break_where_refused)
} gcap_graph_info_t;

// --- Questions to a manager ------------------------------------------------------------------------------------------

// Reads the state and the counters of `id`. An id that was never run, was released, or was forgotten
// (max_ids_without_graph) is COLD with zeros. GCAP_GRAPH_ID_NONE: the sums over all ids that are remembered. Programs
// call gcap_graph_manager_get_info, which sets the size.
GCAP_API void gcap_graph_manager_read_info(gcap_graph_manager_t* manager, int id, gcap_graph_info_t* out_info);
static inline void gcap_graph_manager_get_info(gcap_graph_manager_t* manager, int id, gcap_graph_info_t* out_info) {
  if (out_info != NULL) out_info->struct_size = sizeof(*out_info);
  gcap_graph_manager_read_info(manager, id, out_info);
}

// What gcap_graph_manager_explain can explain.
typedef enum gcap_graph_question {
  GCAP_GRAPH_WHY_CAPTURE_FAILED = 0,  // why the last failed capture failed, or what of a replay differed
  GCAP_GRAPH_WHY_NOT_UPDATED,         // why an update in place was last refused: which node changed, and how
  GCAP_GRAPH_WHY_NOT_MOVABLE,         // why the id's graph cannot be bound to other buffers
  // What the last capture over a capture changed: how many differences, and the first one (gcap_graph_diff). Only of an
  // id whose graph before was kept (keep_source, or buffers that move).
  GCAP_GRAPH_WHAT_CHANGED,
  GCAP_GRAPH_WHY_EAGER,  // why the id's last run that was no replay was eager (gcap_why_eager_t)
  // Why a graph of the id was last passed over: which guard, both values, and the line that states it (graph_guards.h);
  // or which two buffers lie otherwise (graph_buffers.h). Of several graphs that were, the newest.
  GCAP_GRAPH_WHY_OTHER_VARIANT,
} gcap_graph_question_t;

// Returns a copy of the failure that answers the question, for messages; the caller owns the copy. NULL if no such
// failure happened.
//   INVALID_ARGUMENT  no such question
GCAP_API gcap_status_t gcap_graph_manager_explain(gcap_graph_manager_t* manager, int id,
                                                  gcap_graph_question_t question) GCAP_NODISCARD;

// Gives the id of a key that the manager remembers. Of the key, `name` does not count.
//   INVALID_ARGUMENT  no bytes, or more than GCAP_GRAPH_KEY_MAX_BYTES
//   NOT_FOUND         the key was never run, was released, or was forgotten (max_ids_without_graph)
GCAP_API gcap_status_t gcap_graph_manager_find(gcap_graph_manager_t* manager, const gcap_graph_key_t* key,
                                               int* out_id) GCAP_NODISCARD;

// Writes the ids that the manager remembers, also those of keys, to `out_ids`, at most `capacity` of them, in no order,
// and returns how many there are. `out_ids` may be NULL if `capacity` is 0.
GCAP_API size_t gcap_graph_manager_list_ids(gcap_graph_manager_t* manager, int* out_ids, size_t capacity);

// Writes the graph of `id` to `path` in the DOT language, and behind it a comment with the id and the name of its key;
// `flags`: enum cudaGraphDebugDotFlags.
//   NOT_FOUND            no graph of that id
//   FAILED_PRECONDITION  the graph was captured without the option keep_source, or has holes
//   CUDA_ERROR           the file could not be written
//   UNAVAILABLE          the comment could not be written behind the graph
GCAP_API gcap_status_t gcap_graph_manager_dump(gcap_graph_manager_t* manager, int id, const char* path,
                                               unsigned flags) GCAP_NODISCARD;

// Looks whether the memory that the graph of `id` works on is still the graph's: see gcap_graph_audit; of an id with
// several graphs looks at all that replay. Calls `on_pointer` for each pointer, without a lock of the manager; NULL:
// only counts. `*out_findings`: how many are findings; NULL is fine. Beside what gcap_graph_audit knows: the run's
// buffers, its bindings by their address, and what the graph retains.
//   NOT_FOUND            the id is not captured
//   FAILED_PRECONDITION  the graph was captured without notes: set the manager's option `audit`
//   others               as gcap_graph_audit
GCAP_API gcap_status_t gcap_graph_manager_audit(gcap_graph_manager_t* manager, int id, gcap_graph_pointer_fn on_pointer,
                                                void* user, size_t* out_findings) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_INFO_H_
