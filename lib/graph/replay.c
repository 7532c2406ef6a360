// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Launches. Under the mutex a replay looks up the id, checks two fields, and makes one call of the runtime. A replay on
// another stream is ordered after the capturing stream's earlier work and before its later work, by an event each way.
// So an event on the capturing stream is behind every launch of the graph, on whatever stream.
//
// Locking: the mutex is held over the launch, and over what orders the streams (order.c). Functions of guards and of
// holes are called without the mutex (variants.c, segment_launch.c).

#include "gcap/log.h"
#include "lib/graph/audit.h"
#include "lib/graph/bind.h"
#include "lib/graph/inner.h"
#include "lib/graph/manager.h"
#include "lib/graph/run.h"
#include "lib/graph/segment_launch.h"
#include "lib/graph/variants.h"
#include "lib/internal/stream_table.h"
#include "lib/internal/synchronize.h"

// Of a stream that several wrappers share another one may be left, whose life is as good. A new stream that happens to
// have the handle of the old one has another id.
static __attribute__((noinline)) gcap_status_t adopt_life(gcap_graph_captured_t* captured) {
  gcap_status_t status = NULL;
  unsigned long long id = 0;
  gcap_life_t* life = gcap_stream_table_life(captured->stream);
  // The id of a capturing stream cannot be asked (rule R24 of the capture rules).
  if (life != NULL) status = gcap_check_stream_not_capturing(captured->stream, "graph id %d", captured->id);
  if (life != NULL && status == NULL) status = GCAP_CUDA(cudaStreamGetId(captured->stream, &id));
  if (status == NULL && id != captured->stream_id) {
    status = GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d: its stream %p was destroyed", captured->id,
                         (void*)captured->stream);
  }
  if (status != NULL) {
    gcap_life_release(life);
    return status;
  }
  gcap_life_release(captured->stream_life);
  captured->stream_life = life;
  return NULL;
}

// Whether the stream that captured it can be given work.
static inline gcap_status_t check_stream(const gcap_graph_manager_t* manager, gcap_graph_captured_t* captured) {
  if (manager->in_hole != NULL) return gcap_graph_check_no_hole(manager);
  if (!gcap_life_goes_on(captured->stream_life)) GCAP_RETURN_IF_ERROR(adopt_life(captured));
  // A launch into a capture of ours, by another thread, would break it. Unless that thread is gone, and its scope too.
  if (!gcap_graph_is_captured_on(manager, captured->stream)) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d: another thread is capturing graph id %d on its stream",
                     captured->id, manager->run.id);
}

static __attribute__((noinline)) gcap_status_t launch_with_holes(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot,
                                                                 cudaStream_t stream) {
  GCAP_RETURN_IF_ERROR(gcap_graph_run_check_abandoned(manager));
  if (manager->has_budget) gcap_graph_slot_touch(manager, slot);
  return gcap_graph_launch_segments(manager, slot, stream);
}

// Launches the slot's graph on the stream that captured it. A part of two ways, of which one is that of most replays.
static inline __attribute__((always_inline)) gcap_status_t launch(gcap_graph_manager_t* manager,
                                                                  gcap_graph_slot_t* slot) {
  gcap_graph_captured_t* captured = slot->graph;
  GCAP_RETURN_IF_ERROR(check_stream(manager, captured));
  if (manager->audits_replays) GCAP_RETURN_IF_ERROR(gcap_graph_check_memory(captured));
  if (captured->holes != NULL) return launch_with_holes(manager, slot, captured->stream);
  // Not GCAP_CUDA, whose success is a call: nobody's ledger is open here.
  const cudaError_t answer = cudaGraphLaunch(captured->exec, captured->stream);
  if (answer != cudaSuccess) {
    return gcap_status_from_cuda(answer, "cudaGraphLaunch(captured->exec, captured->stream)", __FILE__, __LINE__);
  }
  ++slot->info.replays;
  if (manager->has_budget) gcap_graph_slot_touch(manager, slot);
  return NULL;
}

// --- On another stream ----------------------------------------------------------------------------------------------

static gcap_status_t check_target(const gcap_graph_manager_t* manager, const gcap_graph_captured_t* captured,
                                  cudaStream_t stream) {
  if (!gcap_graph_is_captured_on(manager, stream))
    return gcap_check_stream_not_capturing(stream, "graph id %d", captured->id);
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d: stream %p is capturing graph id %d, for another thread",
                     captured->id, (void*)stream, manager->run.id);
}

static gcap_status_t check_device(const gcap_graph_captured_t* captured, cudaStream_t stream) {
  int device_id = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(stream, &device_id)));
  if (device_id == captured->device_id) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: stream %p is of device %d, the graph was captured on %d",
                     captured->id, (void*)stream, device_id, captured->device_id);
}

static gcap_status_t launch_elsewhere(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, cudaStream_t stream) {
  if (slot->graph->holes != NULL) return launch_with_holes(manager, slot, stream);
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphLaunch(slot->graph->exec, stream)));
  ++slot->info.replays;
  if (manager->has_budget) gcap_graph_slot_touch(manager, slot);
  return NULL;
}

// Whether the graph may be launched on the stream. A part of the way of each replay elsewhere.
static inline __attribute__((always_inline)) gcap_status_t check_launch(const gcap_graph_manager_t* manager,
                                                                        gcap_graph_captured_t* captured,
                                                                        cudaStream_t stream) {
  GCAP_RETURN_IF_ERROR(check_stream(manager, captured));
  if (stream == captured->stream) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(captured->stream, "graph id %d", captured->id));
  GCAP_RETURN_IF_ERROR(check_target(manager, captured, stream));
  return check_device(captured, stream);
}

gcap_status_t gcap_graph_check_launch(const gcap_graph_manager_t* manager, gcap_graph_captured_t* captured,
                                      cudaStream_t stream) {
  return check_launch(manager, captured, stream);
}

gcap_status_t gcap_graph_launch_on(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, cudaStream_t stream) {
  gcap_graph_captured_t* captured = slot->graph;
  if (stream == captured->stream) return launch(manager, slot);
  GCAP_RETURN_IF_ERROR(check_launch(manager, captured, stream));
  if (manager->audits_replays) GCAP_RETURN_IF_ERROR(gcap_graph_check_memory(captured));
  GCAP_RETURN_IF_ERROR(gcap_graph_order_there(captured, stream));
  const uint64_t replays = slot->info.replays;
  gcap_status_t status = launch_elsewhere(manager, slot, stream);
  if (slot->info.replays == replays) return status;  // nothing was launched
  return gcap_status_join(status, gcap_graph_order_back(captured, stream));
}

// --- Replays --------------------------------------------------------------------------------------------------------

// Refuses other bindings than the capture's.
static gcap_status_t check_bindings(const gcap_graph_slot_t* slot, const gcap_run_t* run) {
  gcap_status_t status = gcap_graph_signature_check(slot->graph->signature, run->bindings, run->num_bindings);
  return status == NULL ? NULL : gcap_status_annotate(status, gcap_status_code(status), "graph id %d", slot->id);
}

// Brings the values that the work reads on the device. The copy comes behind all launches so far, wherever they were.
static gcap_status_t write_values(gcap_graph_captured_t* captured) {
  gcap_status_t status = gcap_graph_values_write(&captured->moving->values, captured->stream);
  if (status == NULL) return NULL;
  return gcap_status_annotate(status, gcap_status_code(status), "graph id %d did not get its values", captured->id);
}

// Launches a graph as the run wants it, on buffers that were planned. `*out_is_left`: the driver refused to move it, so
// nothing was launched.
static inline gcap_status_t launch_as_asked(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot,
                                            const gcap_run_t* run, const gcap_graph_buffers_t* buffers,
                                            cudaStream_t stream, bool* out_is_left) {
  *out_is_left = false;
  if (run->bindings != NULL) GCAP_RETURN_IF_ERROR(check_bindings(slot, run));
  if (buffers != NULL) {  // bound only if the launch is not refused then
    GCAP_RETURN_IF_ERROR(check_launch(manager, slot->graph, stream));
    GCAP_RETURN_IF_ERROR(gcap_graph_apply_bind(slot, out_is_left));
    GCAP_RETURN_IF_ERROR(gcap_graph_note_named(slot->graph));
    gcap_graph_slot_note_named(manager, slot);
    GCAP_RETURN_IF_ERROR(write_values(slot->graph));
  }
  return stream == slot->graph->stream ? launch(manager, slot) : gcap_graph_launch_on(manager, slot, stream);
}

// What a replay found.
typedef struct found {
  gcap_graph_state_t state;
  bool is_left;           // to a run, which does the work: the graph cannot be moved to the buffers
  gcap_status_t refusal;  // why the driver did not move it; NULL: it was not asked
} found_t;

// Under the mutex. `may_leave`: a run will do the work where the graph cannot.
static inline gcap_status_t try_to_launch(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                          const gcap_graph_buffers_t* buffers, bool may_leave, gcap_graph_slot_t* slot,
                                          cudaStream_t stream, found_t* found) {
  if (buffers != NULL) {
    GCAP_RETURN_IF_ERROR(gcap_graph_plan_bind(slot, buffers, may_leave ? &found->is_left : NULL));
    if (found->is_left) return NULL;
  }
  bool is_refused = false;
  gcap_status_t status = launch_as_asked(manager, slot, run, buffers, stream, &is_refused);
  if (!is_refused || !may_leave) return status;
  gcap_graph_give_up_moving(slot, status);
  found->is_left = true;
  found->refusal = status;
  return NULL;
}

// Tells of a graph that the driver did not move. Without the mutex.
static void tell_of_refusal(gcap_status_t refusal) {
  if (refusal == NULL) return;
  gcap_log(GCAP_LOG_WARNING, "a run does the work that was to be replayed: %s", gcap_status_message(refusal));
  gcap_status_free(refusal);
}

// Chooses the graph of an id that has guards or several graphs. `*out_slot`: the slot of the graph; or the first of the
// id, which has none for now, or NULL. `*out_is_passed`: there is a graph, and none is for the run.
static gcap_status_t choose(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_slot_t** out_slot,
                            bool* out_is_passed) {
  gcap_graph_choice_t choice;
  gcap_status_t status = gcap_graph_choose(manager, run, &choice);
  *out_slot = choice.held != NULL ? choice.held : gcap_graph_find_slot_of_run(manager, run);
  *out_is_passed = choice.held == NULL && (status != NULL || choice.has_graph);
  return status;
}

// The answer to a replay of an id whose graphs were passed over.
static gcap_status_t passed(gcap_graph_manager_t* manager, const gcap_run_t* run) {
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_slot_t* slot = gcap_graph_find_slot_of_run(manager, run);
  gcap_status_t why = slot != NULL ? gcap_graph_name_failure(slot, gcap_graph_why_other(slot)) : NULL;
  pthread_mutex_unlock(&manager->mutex);
  return why != NULL ? why : GCAP_STATUS(GCAP_NOT_FOUND, "graph id %d is not captured any more", run->id);
}

static gcap_status_t not_captured(const gcap_run_t* run, gcap_graph_state_t state) {
  if (run->key == NULL) return gcap_graph_not_captured(run->id, state);
  return GCAP_STATUS(GCAP_NOT_FOUND, "graph key '%s' is not captured: it is %s",
                     run->key->name != NULL ? run->key->name : "", gcap_graph_state_name(state));
}

// A replay of the run on the buffers. No result is wanted where `result` is NULL.
static inline gcap_status_t replay(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                   const gcap_graph_buffers_t* buffers, gcap_run_result_t* result, bool* out_replayed) {
  if (run->num_bindings > 0) GCAP_RETURN_IF_ERROR(gcap_graph_bindings_check(run->bindings, run->num_bindings));
  if (buffers != NULL) GCAP_RETURN_IF_ERROR(gcap_graph_moving_check_buffers(buffers));
  cudaStream_t stream = run->stream;
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = gcap_graph_find_slot_of_run(manager, run);
  if (result != NULL && slot != NULL) result->id = slot->id;
  found_t found = {0};
  bool is_passed = false;
  gcap_status_t status = slot != NULL && slot->is_guarded ? choose(manager, run, &slot, &is_passed) : NULL;
  found.state = slot != NULL && !is_passed ? slot->info.state : GCAP_GRAPH_COLD;
  if (status == NULL && found.state == GCAP_GRAPH_CAPTURED) {
    const uint64_t replays = slot->info.replays;
    if (stream == GCAP_RUN_OWN_STREAM) stream = slot->graph->stream;
    status = try_to_launch(manager, run, buffers, out_replayed != NULL, slot, stream, &found);
    if (result != NULL) result->was_issued = slot->info.replays != replays;
    status = gcap_graph_name_failure(slot, status);
  }
  pthread_mutex_unlock(&manager->mutex);
  if (buffers != NULL) tell_of_refusal(found.refusal);
  if (status != NULL) return status;
  if (is_passed) return out_replayed != NULL ? NULL : passed(manager, run);
  if (found.state != GCAP_GRAPH_CAPTURED || found.is_left) {
    return out_replayed != NULL ? NULL : not_captured(run, found.state);
  }
  if (result != NULL) result->outcome = GCAP_RUN_REPLAYED;
  if (out_replayed != NULL) *out_replayed = true;
  return run->synchronize ? gcap_synchronize_stream(stream) : NULL;
}

gcap_status_t gcap_graph_replay(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_run_result_t* result,
                                bool* out_replayed) {
  if (out_replayed != NULL) *out_replayed = false;
  return replay(manager, run, run->buffers, result, out_replayed);
}

static __attribute__((noinline)) gcap_status_t read_and_replay(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                                               bool* out_replayed) {
  gcap_run_copy_t copy;
  GCAP_RETURN_IF_ERROR(gcap_run_read(run, &copy, &run));
  GCAP_RETURN_IF_ERROR(gcap_run_refuse_replay(run));
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_graph_manager_replay"));
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_status_t status = gcap_graph_replay(manager, run, &result, out_replayed);
  if (status == NULL && result.outcome == GCAP_RUN_REPLAYED) {
    status = gcap_graph_give_taps(manager, run, &result, run->stream);
  }
  gcap_run_give_result(run, &result);
  return status;
}

gcap_status_t gcap_graph_manager_replay(gcap_graph_manager_t* manager, const gcap_run_t* run, bool* out_replayed) {
  if (out_replayed != NULL) *out_replayed = false;
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_NULL(run);
  if (!gcap_run_is_bare(run)) return read_and_replay(manager, run, out_replayed);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  // A bare run, as most are: the same as the other replay, without all that such a run has not.
  cudaStream_t stream = run->stream;
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, run->id);
  bool is_passed = false;
  gcap_status_t status = slot != NULL && slot->is_guarded ? choose(manager, run, &slot, &is_passed) : NULL;
  const gcap_graph_state_t state = slot != NULL && !is_passed ? slot->info.state : GCAP_GRAPH_COLD;
  if (status == NULL && state == GCAP_GRAPH_CAPTURED) {
    if (stream == GCAP_RUN_OWN_STREAM) stream = slot->graph->stream;
    status = stream == slot->graph->stream ? launch(manager, slot) : gcap_graph_launch_on(manager, slot, stream);
  }
  pthread_mutex_unlock(&manager->mutex);
  if (status != NULL) return status;
  if (is_passed) return out_replayed != NULL ? NULL : passed(manager, run);
  if (state != GCAP_GRAPH_CAPTURED) return out_replayed != NULL ? NULL : gcap_graph_not_captured(run->id, state);
  if (out_replayed != NULL) *out_replayed = true;
  return run->synchronize ? gcap_synchronize_stream(stream) : NULL;
}
