// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The begin of a run: which slot the run is of, and whether it is captured, rehearsed or eager. The capture module does
// the capture itself. Where the driver would not start one, the run is eager.
//
// Locking: the manager's mutex; as run.c says.

#include "lib/graph/begin.h"

#include <stdio.h>

#include "gcap/log.h"
#include "lib/capture/inner.h"
#include "lib/graph/bind.h"
#include "lib/graph/failed_capture.h"
#include "lib/graph/inner.h"
#include "lib/graph/next_run.h"
#include "lib/graph/run.h"
#include "lib/graph/variants.h"
#include "lib/internal/forked.h"
#include "lib/internal/stream_table.h"
#include "lib/internal/unwind.h"

// A scope may be closed behind the manager's back, and the next one may lie at its address: the scope itself must tell.
static void note_scope_closed(void* user, bool committed) {
  (void)committed;
  ((gcap_graph_manager_t*)user)->scope_open = false;
}

// Lets the events of a capture name the id or the key of the slot, which stays, since it is CAPTURING.
static void label_scope(const gcap_graph_slot_t* slot, bool is_rehearsal, gcap_capture_t* capture) {
  char name[GCAP_GRAPH_SLOT_NAME_BYTES], label[GCAP_CAPTURE_LABEL_BYTES];
  gcap_graph_slot_write_name(slot, name);
  snprintf(label, sizeof(label), "%s%s", name, is_rehearsal ? ", a rehearsal" : "");
  gcap_capture_set_label(capture, label);
}

// Begins to capture `stream`. On failure no scope is open. Called without the mutex.
static gcap_status_t open_scope(gcap_graph_manager_t* manager, const gcap_graph_slot_t* slot, cudaStream_t stream,
                                gcap_capture_t** out_capture) {
  GCAP_RETURN_IF_ERROR(gcap_capture_begin(stream, &manager->options.capture, out_capture));
  label_scope(slot, manager->run.is_rehearsal, *out_capture);
  gcap_capture_set_work(*out_capture, gcap_graph_key_of(manager->run.id), manager->run.is_rehearsal);
  const gcap_graph_moving_t* moving = manager->run.moving;
  const bool was_rehearsed = moving != NULL && moving->num_rehearsed > 0;
  manager->run.stated.taps.rehearsed = was_rehearsed ? &moving->stated.taps : NULL;
  gcap_capture_set_owner(*out_capture, &manager->run.stated);
  if (manager->run.keeps_steps && !manager->run.is_rehearsal) {
    gcap_capture_keep_steps(*out_capture, &manager->run.steps);
  }
  gcap_status_t status = gcap_capture_on_close(*out_capture, note_scope_closed, manager);
  if (status == NULL) return NULL;
  gcap_capture_abort(*out_capture);
  *out_capture = NULL;
  return status;
}

static gcap_status_t find_or_add_slot(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                      gcap_graph_slot_t** out_slot) {
  *out_slot = gcap_graph_find_slot_of_run(manager, run);
  if (*out_slot == NULL) {
    *out_slot = run->key != NULL ? gcap_graph_slot_add_key(manager, run->key) : gcap_graph_slot_add(manager, run->id);
  }
  if (*out_slot == NULL && run->key != NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for graph key '%s'",
                       run->key->name != NULL ? run->key->name : "");
  }
  if (*out_slot == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for graph id %d", run->id);
  gcap_graph_slot_touch(manager, *out_slot);
  return NULL;
}

// A run on buffers that may move is rehearsed, as far as earlier ones were not.
static gcap_status_t take_rehearsed(gcap_graph_open_run_t* run, gcap_graph_slot_t* slot) {
  if (run->moving == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_moving_adopt(run->moving, slot->rehearsed));
  gcap_status_ignore(gcap_graph_moving_destroy(slot->rehearsed));  // its stand-ins are gone already
  slot->rehearsed = NULL;
  return NULL;
}

// Begins to capture the busy run, or to rehearse it.
static gcap_status_t open_scope_of_run(gcap_graph_manager_t* manager, const gcap_graph_slot_t* slot,
                                       gcap_capture_t** out_capture) {
  gcap_graph_open_run_t* run = &manager->run;
  gcap_graph_moving_t* moving = run->moving;
  bool has_new_block = false;
  if (moving != NULL) GCAP_RETURN_IF_ERROR(gcap_graph_values_prepare(&moving->values, run->stream, &has_new_block));
  if (has_new_block) gcap_graph_moving_forget_rehearsals(moving);
  run->is_rehearsal = moving != NULL && gcap_graph_moving_needs_rehearsal(moving) &&
                      gcap_graph_moving_open_rehearsal(moving, run->stream);
  gcap_status_t status = open_scope(manager, slot, run->stream, out_capture);
  if (status == NULL || !run->is_rehearsal) return status;
  run->is_rehearsal = false;
  return gcap_status_join(status, gcap_stand_ins_destroy(&moving->stand_ins));
}

// Begins to capture the open run. Where the driver would not start one the run becomes an eager one.
static gcap_status_t begin_capture(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, const gcap_run_t* given) {
  gcap_graph_open_run_t* run = &manager->run;
  if (given->bindings != NULL) {
    GCAP_RETURN_IF_ERROR(gcap_graph_signature_create(given->bindings, given->num_bindings, &run->signature));
  }
  GCAP_RETURN_IF_ERROR(take_rehearsed(run, slot));
  run->stated.holes.refused = gcap_graph_refused_retain(slot->refused);
  const gcap_graph_state_t before = slot->info.state;
  slot->info.state = gcap_graph_state_after(before, GCAP_GRAPH_STEP_BEGIN);
  manager->scope_open = true;
  gcap_capture_t* capture = NULL;
  gcap_graph_run_begin_busy(manager);
  const uint64_t begin_ns = gcap_now_ns();
  gcap_status_t status = open_scope_of_run(manager, slot, &capture);
  const bool is_refused = gcap_status_code(status) == GCAP_CUDA_ERROR;
  if (is_refused && !run->capture_only) {
    gcap_log(GCAP_LOG_WARNING, "graph id %d runs eagerly: %s", slot->id, gcap_status_message(status));
  }
  gcap_graph_run_end_busy(manager);
  run->begin_ns = begin_ns;
  run->capture = capture;
  if (status == NULL) return NULL;
  manager->scope_open = false;
  slot->info.state = before;
  if (!is_refused) return status;
  gcap_graph_capture_failed(manager, slot, status);
  if (run->capture_only) return status;
  run->why_eager = GCAP_EAGER_REFUSED;
  gcap_status_free(status);
  return NULL;
}

// A function of a guard did not return, and nobody has the mutex. The run is not begun.
static void forget_run_on_unwind(gcap_graph_manager_t** asking) {
  gcap_graph_manager_t* manager = *asking;
  if (manager == NULL) return;
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_moving_t* moving = manager->run.moving;
  manager->run.moving = NULL;
  gcap_graph_run_forget(&manager->run);
  pthread_mutex_unlock(&manager->mutex);
  gcap_status_ignore(gcap_graph_moving_destroy(moving));  // the exception tells
}

// Finds the graph of the run's id that is for the run, or the slot of its next capture. Functions of guards are asked
// with the run busy, and may release the id.
static gcap_status_t begin_guarded(gcap_graph_manager_t* manager, const gcap_run_t* given,
                                   gcap_graph_slot_t** out_slot) {
  gcap_graph_open_run_t* run = &manager->run;
  gcap_graph_choice_t choice;
  *out_slot = NULL;  // it may be gone
  run->is_busy = true;
  GCAP_AT_SCOPE_END(forget_run_on_unwind) gcap_graph_manager_t* asking = manager;
  gcap_status_t status = gcap_graph_choose(manager, given, &choice);
  asking = NULL;
  run->is_busy = false;
  if (status == NULL) status = find_or_add_slot(manager, given, out_slot);
  if (status != NULL) return status;
  run->id = (*out_slot)->id;
  if (choice.held != NULL) *out_slot = choice.held;
  if (choice.held != NULL || !choice.has_graph) return NULL;
  if (choice.has_failed && run->capture_only) {
    return gcap_status_annotate(gcap_graph_why_other(*out_slot), GCAP_UNAVAILABLE, "the run is capture_only");
  }
  if (choice.has_failed) run->why_eager = GCAP_EAGER_GUARD;
  if (choice.has_failed) return NULL;
  gcap_graph_slot_t* slot = gcap_graph_slot_to_capture(manager, *out_slot);
  if (slot != NULL) *out_slot = slot;
  return slot != NULL ? NULL : GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for graph id %d", run->id);
}

// Finds the slot of the run's id, and tells whether the run is to be captured.
static gcap_status_t begin_id(gcap_graph_manager_t* manager, const gcap_run_t* given, gcap_graph_slot_t** out_slot,
                              bool* out_captures) {
  GCAP_RETURN_IF_ERROR(find_or_add_slot(manager, given, out_slot));
  gcap_graph_open_run_t* run = &manager->run;
  run->id = (*out_slot)->id;
  const bool may_lie_otherwise = run->moving != NULL && (*out_slot)->info.state == GCAP_GRAPH_CAPTURED;
  if ((*out_slot)->is_guarded || may_lie_otherwise) GCAP_RETURN_IF_ERROR(begin_guarded(manager, given, out_slot));
  if (run->why_eager != GCAP_EAGER_NOT) return NULL;
  if ((*out_slot)->info.state == GCAP_GRAPH_CAPTURED) {
    if (!run->capture_only && run->moving != NULL && gcap_graph_is_fixed_for(*out_slot, run->moving)) {
      run->tells_of_fixed = !(*out_slot)->graph->told_of_fixed;
      (*out_slot)->graph->told_of_fixed = true;
      run->why_eager = GCAP_EAGER_NOT_MOVABLE;
      return NULL;
    }
    return GCAP_STATUS(GCAP_ALREADY_EXISTS, "graph id %d is captured: replay it, or release it first", run->id);
  }
  if (run->capture_only) gcap_graph_skip_to_capture(*out_slot);
  *out_captures = gcap_graph_plan_run(manager, *out_slot);
  if (*out_captures) return NULL;
  run->why_eager = (*out_slot)->info.state == GCAP_GRAPH_COOLING ? GCAP_EAGER_COOLING : GCAP_EAGER_WARMING;
  return NULL;
}

static gcap_graph_run_kind_t kind_of(const gcap_graph_open_run_t* run) {
  if (run->capture == NULL) return GCAP_GRAPH_RUN_EAGER;
  return run->is_rehearsal ? GCAP_GRAPH_RUN_REHEARSAL : GCAP_GRAPH_RUN_CAPTURE;
}

// Takes `moving` if it succeeds.
static gcap_status_t begin_run_locked(gcap_graph_manager_t* manager, const gcap_run_t* given,
                                      gcap_graph_moving_t* moving, gcap_graph_run_kind_t* out_kind) {
  const int id = given->id;
  if (manager->is_ending) return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the graph manager is being destroyed");
  GCAP_RETURN_IF_ERROR(gcap_graph_run_close_abandoned(manager));
  gcap_graph_open_run_t* run = &manager->run;
  gcap_life_t* thread = gcap_life_retain(gcap_thread_life());
  if (thread == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to open a run of id %d", id);
  *run = (gcap_graph_open_run_t){.is_open = true, .id = id, .stream = given->stream, .thread = thread};
  run->stream_life = gcap_stream_table_life(given->stream);
  run->moving = moving;
  run->capture_only = given->capture_only;
  run->pinned = given->pinned;
  run->keeps_steps = manager->keeps_steps;
  gcap_graph_slot_t* slot = NULL;
  bool captures = false;
  const bool has_id = id != GCAP_GRAPH_ID_NONE || given->key != NULL;
  if (!has_id) run->why_eager = GCAP_EAGER_NO_ID;
  gcap_status_t status = has_id ? begin_id(manager, given, &slot, &captures) : NULL;
  if (captures) status = begin_capture(manager, slot, given);
  if (status == NULL && run->capture == NULL && moving != NULL) {
    status = gcap_graph_values_begin_eager(&moving->values, run->stream);
  }
  if (slot != NULL) gcap_graph_find_slot(manager, slot->id)->why_eager = slot->why_eager = run->why_eager;
  if (status != NULL) {
    run->moving = NULL;
    gcap_graph_run_forget(run);
    return gcap_graph_name_failure(slot, status);
  }
  if (run->capture == NULL) gcap_graph_eager_run_begins();
  run->trace = gcap_graph_trace_begin();
  *out_kind = kind_of(run);
  return NULL;
}

gcap_status_t gcap_graph_check_id(const gcap_run_t* run) {
  const cudaStream_t stream = run->stream;
  const int id = run->id;
  if (id < GCAP_GRAPH_ID_NONE) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id is %d, allowed are ids >= 0, and -1 for no capture", id);
  }
  if (stream == GCAP_RUN_OWN_STREAM) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: a run of a graph manager names its stream: set stream", id);
  }
  if ((id == GCAP_GRAPH_ID_NONE && run->key == NULL) || !gcap_stream_is_alias(stream)) return NULL;
  return GCAP_STATUS(
      GCAP_INVALID_ARGUMENT,
      "graph id %d: the stream is %s; pass one created with cudaStreamNonBlocking, or the id -1, which is "
      "never captured",
      id,
      stream == cudaStreamPerThread ? "cudaStreamPerThread, which is another stream on each thread"
                                    : "the legacy default stream (0), which cannot be captured");
}

// The variant that the id's last run found and could not move.
static const gcap_graph_slot_t* find_fixed(const gcap_graph_slot_t* first) {
  const gcap_graph_slot_t* found = NULL;
  for (const gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    if (slot->graph == NULL || slot->why_eager != GCAP_EAGER_NOT_MOVABLE) continue;
    if (found == NULL || slot->last_use > found->last_use) found = slot;
  }
  return found;
}

gcap_status_t gcap_graph_why_fixed(const gcap_graph_slot_t* first) {
  const gcap_graph_slot_t* slot = find_fixed(first);
  const gcap_graph_moving_t* moving = slot != NULL ? slot->graph->moving : NULL;
  if (moving != NULL && moving->refusal != NULL) return gcap_status_clone(moving->refusal);
  if (moving != NULL) return gcap_status_clone(moving->conflict);
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "it was captured without buffers");
}

// Why the open run is eager although its id has a graph, once for each graph; else NULL.
static gcap_status_t explain_fixed(const gcap_graph_manager_t* manager) {
  if (!manager->run.tells_of_fixed) return NULL;
  const gcap_graph_slot_t* first = gcap_graph_find_slot(manager, manager->run.id);
  const gcap_graph_moving_t* moving = find_fixed(first)->graph->moving;
  const bool is_here_alone = moving != NULL && moving->refusal == NULL;
  return gcap_status_annotate(
      gcap_graph_why_fixed(first), GCAP_FAILED_PRECONDITION, "graph id %d cannot be moved%s", first->id,
      is_here_alone ? " to the buffers of a run, which is eager" : ", so its runs on other buffers are eager");
}

// Without the mutex. Consumes `why`.
static void tell_of_fixed(gcap_status_t why) {
  if (why == NULL) return;
  gcap_log(GCAP_LOG_WARNING, "%s", gcap_status_message(why));
  gcap_status_free(why);
}

// Begins a run that takes `moving`, and tells where the work finds the buffers.
static gcap_status_t begin_and_place(gcap_graph_manager_t* manager, const gcap_run_t* given,
                                     gcap_graph_moving_t* moving, gcap_graph_run_kind_t* out_kind,
                                     void** out_addresses) {
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = begin_run_locked(manager, given, moving, out_kind);
  if (status == NULL && moving != NULL) {
    gcap_graph_moving_place(moving, *out_kind == GCAP_GRAPH_RUN_REHEARSAL, out_addresses);
  }
  gcap_status_t why = status == NULL ? explain_fixed(manager) : NULL;
  pthread_mutex_unlock(&manager->mutex);
  tell_of_fixed(why);
  return status;
}

gcap_status_t gcap_graph_begin(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind,
                               void** out_addresses) {
  *out_kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_guard("the begin of a run"));
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_attempt("the begin of a run"));
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_work(manager));
  GCAP_RETURN_IF_ERROR(gcap_graph_check_id(run));
  GCAP_RETURN_IF_ERROR(gcap_run_check_capture_only(run));
  GCAP_RETURN_IF_ERROR(gcap_run_refuse_verify(run, "a begin"));
  GCAP_RETURN_IF_ERROR(gcap_run_refuse_taps(run, "a begin"));
  GCAP_RETURN_IF_ERROR(gcap_graph_bindings_check(run->bindings, run->num_bindings));
  gcap_graph_moving_t* moving = NULL;
  if (run->buffers != NULL) {
    if (run->buffers->count > 0 || run->buffers->num_values > 0) GCAP_RETURN_IF_NULL(out_addresses);
    GCAP_RETURN_IF_ERROR(gcap_graph_moving_check_buffers(run->buffers));
    GCAP_RETURN_IF_ERROR(gcap_graph_moving_create(run->buffers, &moving));
  }
  gcap_status_t status = begin_and_place(manager, run, moving, out_kind, out_addresses);
  if (status != NULL) status = gcap_status_join(status, gcap_graph_moving_destroy(moving));
  return status;
}

gcap_status_t gcap_graph_manager_begin_run(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                           gcap_graph_run_kind_t* out_kind, void** out_addresses) {
  GCAP_RETURN_IF_NULL(out_kind);
  *out_kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_NULL(run);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_run_copy_t copy;
  GCAP_RETURN_IF_ERROR(gcap_run_read(run, &copy, &run));
  return gcap_graph_begin(manager, run, out_kind, out_addresses);
}
