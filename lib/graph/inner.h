// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// inner.h: what other modules use of the graph module, and users do not see: options and runs in the library's layout,
// the order of the steps of a run, what a manager's owner asks before its end, and rehearsals, of which plans are made.
#ifndef GCAP_LIB_GRAPH_INNER_H_
#define GCAP_LIB_GRAPH_INNER_H_

#include "gcap/graph.h"
#include "gcap/graph_options.h"
#include "gcap/graph_plan.h"
#include "gcap/run.h"
#include "lib/graph/value_block.h"
#include "lib/internal/sized.h"

// --- Options ---------------------------------------------------------------------------------------------------------

extern const gcap_sized_type_t gcap_graph_manager_options_type;

// The caller's options in the library's layout; of NULL the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_graph_manager_options_read(const gcap_graph_manager_options_t* given,
                                              gcap_graph_manager_options_t* out_options) GCAP_NODISCARD;

// Of options in the library's layout.
//   INVALID_ARGUMENT  a capture mode, policy or audit level that does not exist, or too large a ledger
gcap_status_t gcap_graph_manager_options_check(const gcap_graph_manager_options_t* options) GCAP_NODISCARD;

// --- The struct of a run ---------------------------------------------------------------------------------------------

// What a run of another version, or one with buffers, is copied into.
typedef struct gcap_run_copy {
  gcap_run_t run;
  gcap_graph_buffers_t buffers;
  gcap_graph_verify_t verify;
} gcap_run_copy_t;

//   INVALID_ARGUMENT  no bytes, or too many
gcap_status_t gcap_graph_key_check(const gcap_graph_key_t* key) GCAP_NODISCARD;

// Of a run with a key.
//   INVALID_ARGUMENT  as gcap_graph_key_check; or an id beside the key
gcap_status_t gcap_run_check_key(const gcap_run_t* run) GCAP_NODISCARD;

// As gcap_run_read, of a run that is not of this version as it is.
gcap_status_t gcap_run_read_slowly(const gcap_run_t* given, gcap_run_copy_t* copy,
                                   const gcap_run_t** out_run) GCAP_NODISCARD;

// Whether the run is of this version, without buffers, a verification or taps, and nobody asks for its result.
static inline bool gcap_run_is_plain(const gcap_run_t* run) {
  return run->struct_size == sizeof(*run) && run->buffers == NULL && run->result == NULL && run->verify == NULL &&
         run->num_taps == 0;
}

// Whether the run is of this version, and an id, a stream and work alone, as most replays are. What an older version
// lacks is not read.
static inline bool gcap_run_is_bare(const gcap_run_t* run) {
  if (run->struct_size != sizeof(*run)) return false;
  return ((uintptr_t)run->buffers | (uintptr_t)run->result | (uintptr_t)run->bindings | run->num_bindings |
          (uintptr_t)run->key | (uintptr_t)run->verify | run->capture_only | run->num_taps) == 0;
}

// The caller's run in the library's layout, its buffers too: `given` itself, or `copy`. The caller's result is cleared.
// Inline: every replay reads one.
//   INVALID_ARGUMENT  as gcap_sized_read; buffers as gcap_graph_buffers_read; the key as gcap_run_check_key; `verify` as
//                     gcap_graph_verify_read
static inline gcap_status_t gcap_run_read(const gcap_run_t* given, gcap_run_copy_t* copy, const gcap_run_t** out_run) {
  *out_run = given;
  if (!gcap_run_is_plain(given)) return gcap_run_read_slowly(given, copy, out_run);
  return given->key != NULL ? gcap_run_check_key(given) : NULL;
}

// Checks the taps of a run, and says of each that nothing was read yet.
//   INVALID_ARGUMENT  no array, a tap without a label, or one with bytes and without memory
gcap_status_t gcap_run_read_taps(const gcap_run_t* run) GCAP_NODISCARD;

// What the end of a run reads of it: what to wait for, and where the result goes. Without buffers, which the caller may
// have ended. NULL: the defaults. On failure `*out_run` has the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_run_read_end(const gcap_run_t* given, gcap_run_t* out_run) GCAP_NODISCARD;

// Gives the caller the result, if the caller asked for one. Both structs are of the library's version.
void gcap_run_give_result(const gcap_run_t* run, const gcap_run_result_t* result);

//   INVALID_ARGUMENT  as gcap_sized_read; no items although there is a count; or stand-ins that do not exist
gcap_status_t gcap_graph_buffers_read(const gcap_graph_buffers_t* given,
                                      gcap_graph_buffers_t* out_buffers) GCAP_NODISCARD;

// `*out_verify` keeps the caller's report, which is cleared.
//   INVALID_ARGUMENT  as gcap_sized_read; or no buffers although there is a count
gcap_status_t gcap_graph_verify_read(const gcap_graph_verify_t* given, gcap_graph_verify_t* out_verify) GCAP_NODISCARD;

// Gives the caller the report, if the caller asked for one. `verify` and `report` are of the library's version.
void gcap_graph_verify_give_report(const gcap_graph_verify_t* verify, const gcap_graph_verify_report_t* report);

// The buffers' own addresses, and behind them those of the values' data: [count + num_values].
void gcap_graph_buffers_list_addresses(const gcap_graph_buffers_t* buffers, void** out_addresses);
// The same, as an array that the caller frees.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_buffers_copy_addresses(const gcap_graph_buffers_t* buffers,
                                                void*** out_addresses) GCAP_NODISCARD;

// Gives the work such an array. NULL: without buffers.
void gcap_run_give_addresses(const gcap_graph_buffers_t* buffers, void* const* addresses,
                             gcap_run_resources_t* resources);

// --- The work of a run -----------------------------------------------------------------------------------------------

// A call of the work of a run in one call, on its thread's stack.
typedef struct gcap_graph_work_call {
  const void* frame;  // what lies deeper on the stack is gone when the work has returned: a guard must not look there
  const gcap_graph_manager_t* manager;  // that has the run open; NULL: none of gcap's
  gcap_graph_tap_t* taps;               // of the run
  size_t num_taps;
  const struct gcap_graph_work_call* outer;
} gcap_graph_work_call_t;

// The call that this thread is in; NULL: none.
const gcap_graph_work_call_t* gcap_graph_innermost_work(void);

void gcap_graph_enter_work(gcap_graph_work_call_t* call);
void gcap_graph_leave_work(gcap_graph_work_call_t* call);

// FAILED_PRECONDITION while this thread is in the work of such a run of the manager, whose begin would abort it; else
// NULL.
gcap_status_t gcap_graph_refuse_in_work(const gcap_graph_manager_t* manager) GCAP_NODISCARD;

// FAILED_PRECONDITION while the thread is in the function of a hole; else NULL.
gcap_status_t gcap_graph_refuse_in_hole(const char* operation) GCAP_NODISCARD;

// --- The way of every run --------------------------------------------------------------------------------------------

// A replay, or rehearsals and the run, and once more the run after a failed capture, or all of it after a capture of
// another thread. A graph manager, a runtime and a session have steps of their own; the order is here.

struct gcap_graph_recording;  // recording.h

// The steps of one run.
typedef struct gcap_run_steps {
  void* self;  // passed to both
  // Replays the graph of the run's id, unless there is none that may be replayed. NULL: nothing replays.
  gcap_status_t (*replay)(void* self, gcap_run_result_t* result, bool* out_replayed);
  // Begins a run of `id`, which gcap_run_as_step sets, issues its work, and ends the run. `*out_kind` is how the run
  // was executed. ALREADY_EXISTS, and nothing was issued: the id has been captured since the replay.
  gcap_status_t (*issue)(void* self, int id, gcap_run_result_t* result, gcap_graph_run_kind_t* out_kind);
  int id;                      // gcap_run_step_id
  bool reruns_failed_capture;  // else the failure of a capture is the run's
  bool captures_only;          // but that of a step with break_where_refused: then the run is captured again
  // The run whose replays are compared with its work (gcap_run_t.verify), in the library's layout; NULL: none is. The
  // manager replays it, and is not destroyed meanwhile. `work` issues the work eagerly, and waits for it.
  const gcap_run_t* verified;
  gcap_graph_manager_t* manager;
  gcap_status_t (*work)(void* self, gcap_run_result_t* result);
  // Has the work captured once more, by gcap_graph_record, where nothing is launched. `addresses`: of the buffers, and
  // behind them of the values; NULL without buffers.
  gcap_status_t (*record)(void* self, void** addresses, struct gcap_graph_recording* recording);
} gcap_run_steps_t;

// What stands for the id of a run with a key, which GCAP_GRAPH_ID_NONE cannot: that is the id of the run after a failed
// capture.
#define GCAP_GRAPH_ID_OF_KEY (-2)

static inline int gcap_run_step_id(const gcap_run_t* run) { return run->key != NULL ? GCAP_GRAPH_ID_OF_KEY : run->id; }

// Makes a copy of the run that of a step.
static inline void gcap_run_as_step(gcap_run_t* run, int step_id) {
  if (run->key == NULL) run->id = step_id;  // else it is GCAP_GRAPH_ID_NONE
  if (step_id == GCAP_GRAPH_ID_NONE) run->key = NULL;
}

// Does the run. `*result` is of the library's version.
//   errors of the steps
gcap_status_t gcap_run_by_steps(const gcap_run_steps_t* steps, gcap_run_result_t* result) GCAP_NODISCARD;

// Of a run that was begun as a capture: gives the work an array of the addresses that lives as long as the graph. Else,
// and without a capture scope of gcap, `resources` keeps the array that it has.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_run_keep_addresses(gcap_graph_run_kind_t kind, gcap_run_resources_t* resources) GCAP_NODISCARD;

// Whether a message begins with the name of a graph, and so needs no such name before it.
bool gcap_graph_is_named(const char* message);

// Takes the failure of a run whose capture failed, logs that the run is issued again, eagerly, and returns true. False:
// the run ended otherwise, and the status is the caller's still. gcap_graph_manager_explain has a copy of the failure.
bool gcap_run_take_failed_capture(int id, gcap_status_t failure);

// INVALID_ARGUMENT for a run with `verify`, which `call` has no work for.
gcap_status_t gcap_run_refuse_verify(const gcap_run_t* run, const char* call) GCAP_NODISCARD;

// The same for a run with taps that are to be read.
gcap_status_t gcap_run_refuse_taps(const gcap_run_t* run, const char* call) GCAP_NODISCARD;

// Gives a run that is done the copies of its taps, those of a graph from the device. Waits for `stream`, which is the
// run's; of a replay GCAP_RUN_OWN_STREAM: that of the graph. Without the mutex.
//   CUDA_ERROR          a copy or the wait failed
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_give_taps(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                   const gcap_run_result_t* result, cudaStream_t stream) GCAP_NODISCARD;

// --- Runs that launch nothing ----------------------------------------------------------------------------------------

//   INVALID_ARGUMENT  a run with capture_only, and without an id
gcap_status_t gcap_run_check_capture_only(const gcap_run_t* run) GCAP_NODISCARD;
//   INVALID_ARGUMENT  a run with capture_only, or with `verify`, which is no replay's
gcap_status_t gcap_run_refuse_replay(const gcap_run_t* run) GCAP_NODISCARD;

// Instead of the replay of a run with capture_only: whether its id has a graph, and so the run is done.
bool gcap_run_is_recorded(bool is_captured, int id, gcap_run_result_t* result);

// --- Warm-up ---------------------------------------------------------------------------------------------------------

// What a warm-up does with its runs; a graph manager and a runtime have steps of their own.
typedef struct gcap_warm_up_steps {
  void* self;                                       // passed to all
  int (*id_of)(void* self, const gcap_run_t* run);  // of its key: GCAP_GRAPH_ID_NONE as long as it is not known
  bool (*has_graph)(void* self, const gcap_run_t* run);
  gcap_status_t (*run)(void* self, const gcap_run_t* run);
  gcap_status_t (*explain)(void* self, int id, gcap_graph_question_t question);
} gcap_warm_up_steps_t;

// Does the warm-up, as gcap_graph_manager_warm_up does.
gcap_status_t gcap_warm_up_by_steps(const gcap_warm_up_steps_t* steps, const gcap_run_t* runs, size_t num_runs,
                                    gcap_warm_up_fn on_run, void* user) GCAP_NODISCARD;

// --- Open runs, and the end of a manager -----------------------------------------------------------------------------

// Tells whether the calling thread has a run of the manager open. Takes the manager's mutex.
// `*out_id`: of that run, also that of its key.
bool gcap_graph_manager_has_own_run(gcap_graph_manager_t* manager, int* out_id);

// The id of a run, or of its key: GCAP_GRAPH_ID_NONE for a key that is not known. Takes the manager's mutex.
int gcap_graph_manager_id_of(gcap_graph_manager_t* manager, const gcap_run_t* run);

// Whether the run's id has a graph whose guards hold, and of a run with buffers one that is for them. Takes the
// manager's mutex, and asks functions of guards without it.
bool gcap_graph_manager_has_graph(gcap_graph_manager_t* manager, const gcap_run_t* run);

// Tells whether a run that is begun now may be captured, also of a key that is not known yet. No function of a guard is
// asked, so each is taken to have another answer. Takes the manager's mutex.
bool gcap_graph_manager_captures_next(gcap_graph_manager_t* manager, const gcap_run_t* run);

// The refusal that gcap_graph_manager_destroy would answer now; NULL: it would end the manager. Changes nothing. Takes
// the manager's mutex.
//   FAILED_PRECONDITION  as gcap_graph_manager_destroy
gcap_status_t gcap_graph_manager_check_end(gcap_graph_manager_t* manager) GCAP_NODISCARD;

// Between these two the caller uses callbacks, and the manager afterwards: nobody destroys it. They take the mutex.
void gcap_graph_manager_hold(gcap_graph_manager_t* manager);
void gcap_graph_manager_let_go(gcap_graph_manager_t* manager);

// --- Rehearsals ------------------------------------------------------------------------------------------------------

// Begins a plan of the library's layout, and makes the caller's one of nothing.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_graph_plan_begin(gcap_graph_plan_t* out_plan, gcap_graph_plan_t* plan) GCAP_NODISCARD;
// Gives the caller the plan.
void gcap_graph_plan_give(const gcap_graph_plan_t* plan, gcap_graph_plan_t* out_plan);

// Captures the work of a run, in the library's layout, and adds what its graph would hold to `plan`, but for what it
// would retain, which `*out_retained` is; then the graph is gone. `resources` is what the work gets. On failure the
// plan is unchanged. The work may end with an exception.
//   CAPTURE_INVALIDATED  the capture or the work failed
//   others               as gcap_capture_begin
gcap_status_t gcap_graph_rehearse(const gcap_run_t* run, const gcap_run_resources_t* resources,
                                  const gcap_capture_options_t* options, gcap_retained_t** out_retained,
                                  gcap_graph_plan_t* plan) GCAP_NODISCARD;

// Captures the work of a run, in the library's layout, into `recording`, which the caller frees. `resources` is what
// the work gets. The work may end with an exception.
//   CAPTURE_INVALIDATED  the capture or the work failed
//   others               as gcap_capture_begin
gcap_status_t gcap_graph_record(const gcap_run_t* run, const gcap_run_resources_t* resources,
                                const gcap_capture_options_t* options,
                                struct gcap_graph_recording* recording) GCAP_NODISCARD;

// The runs of an array, whose structs may be of another version: run number `index`, read into the library's layout and
// checked.
//   INVALID_ARGUMENT  an id below 0 without a key, or no work; the message has the index
gcap_status_t gcap_planned_run_read(const gcap_run_t* runs, size_t index, gcap_run_copy_t* copy,
                                    const gcap_run_t** out_run) GCAP_NODISCARD;
// Whether all of them can be read so: before the first one is run.
gcap_status_t gcap_planned_runs_check(const gcap_run_t* runs, size_t num_runs) GCAP_NODISCARD;

// The bytes on the device that the values of a run take: 0 if none is in memory.
//   INVALID_ARGUMENT  of a value: as gcap_graph_manager_begin_run
gcap_status_t gcap_planned_values_measure(const gcap_run_t* run, size_t* out_bytes) GCAP_NODISCARD;
// Has the work of a rehearsed run find its values in `block`, which nobody reads, and counts them. `addresses`: of
// gcap_graph_buffers_copy_addresses.
void gcap_planned_values_place(const gcap_run_t* run, const gcap_graph_value_block_t* block, void** addresses,
                               gcap_graph_plan_t* plan);
// Ends the block beside a failure or an exception, which tells. For GCAP_AT_SCOPE_END; NULL is fine.
static inline void gcap_planned_values_drop(gcap_graph_value_block_t** block) {
  gcap_status_ignore(gcap_graph_value_block_destroy(*block));
}

// Waits for the whole device: nobody knows all streams of a work.
//   UNAVAILABLE  other threads go on capturing, which the wait would break
gcap_status_t gcap_graph_wait_for_device(int device_id) GCAP_NODISCARD;

// Adds what a rehearsed graph would retain now.
void gcap_graph_plan_add_retained(gcap_graph_plan_t* plan, const gcap_retained_t* retained);

// Adds what the graph of `id` holds; false: it has none that replays.
bool gcap_graph_plan_add_captured(gcap_graph_plan_t* plan, gcap_graph_manager_t* manager, int id);

#endif  // GCAP_LIB_GRAPH_INNER_H_
