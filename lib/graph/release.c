// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The end of graphs. A launch uses its executable and what the graph retained, so both are freed only after an event
// behind the last launch was seen. A release waits for that event. A graph that was replaced or evicted goes to the
// list of retired graphs, which is polled, without waiting, whenever a run ends.
//
// If the graph's stream was destroyed through gcap, no launch is in flight, since the stream was drained. A graph whose
// launches cannot be waited for is kept until the process ends.
//
// A release of everything first records the events of all graphs, which is where it may be refused, and only then takes
// the first graph out of the tables: a refusal leaves all as it was.
//
// Locking: the event is recorded under the manager's mutex, so that no launch of this manager comes between, and none
// of its captures: a thread that is about to begin one has said so under the mutex. Waiting, destroying and callbacks
// happen without the mutex.

#include "lib/graph/manager.h"
#include "lib/internal/cuda_event.h"

// --- Knowing when the last launch is done ---------------------------------------------------------------------------

gcap_status_t gcap_graph_mark_last_launch(const gcap_graph_manager_t* manager, gcap_graph_captured_t* captured) {
  if (captured->launched != NULL || !gcap_life_goes_on(captured->stream_life)) return NULL;
  if (gcap_graph_is_captured_on(manager, captured->stream)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d: stream %p is capturing graph id %d, for another thread",
                       captured->id, (void*)captured->stream, manager->run.id);
  }
  GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(captured->stream, "graph id %d", captured->id));
  return gcap_event_record_new(captured->device_id, captured->stream, &captured->launched);
}

// Waits for the last launch, and tells whether that went well.
static gcap_status_t wait_until_idle(const gcap_graph_captured_t* captured, bool* out_idle) {
  *out_idle = false;
  if (captured->stray) {
    return GCAP_STATUS(GCAP_CUDA_ERROR, "a launch on another stream could neither be ordered nor waited for");
  }
  gcap_status_t status = NULL;
  if (captured->launched != NULL) status = GCAP_CUDA(cudaEventSynchronize(captured->launched));
  *out_idle = status == NULL;
  return status;
}

// Ends a graph that nobody can launch any more.
static gcap_status_t wait_and_destroy(gcap_graph_captured_t* captured) {
  const int id = captured->id;
  bool idle = false;
  enum cudaStreamCaptureMode mode;
  gcap_status_t status = gcap_relaxed_push(&mode);
  if (status == NULL) {
    status = wait_until_idle(captured, &idle);
    status = gcap_status_join(status, gcap_relaxed_pop(mode));
  }
  if (idle) {
    status = gcap_status_join(status, gcap_graph_captured_destroy(captured));
    return gcap_status_annotate(status, GCAP_LEAKED, "graph id %d is released, but not all of it could be ended", id);
  }
  gcap_keep_for_ever(&captured->kept);
  return gcap_status_annotate(status, GCAP_LEAKED,
                              "graph id %d may still be running and is kept for ever with all it retains", id);
}

gcap_status_t gcap_graph_end_detached(gcap_graph_captured_t* detached) {
  gcap_status_t status = NULL;
  while (detached != NULL) {
    gcap_graph_captured_t* captured = detached;
    detached = captured->next;
    status = gcap_status_join(status, wait_and_destroy(captured));
  }
  return status;
}

// --- Retired graphs -------------------------------------------------------------------------------------------------

// A stream that is capturing is no failure here: the event is recorded some other time.
static gcap_status_t try_to_mark(const gcap_graph_manager_t* manager, gcap_graph_captured_t* captured) {
  gcap_status_t status = gcap_graph_mark_last_launch(manager, captured);
  if (gcap_status_code(status) != GCAP_FAILED_PRECONDITION) return status;
  gcap_status_ignore(status);
  return NULL;
}

gcap_status_t gcap_graph_retire(gcap_graph_manager_t* manager, gcap_graph_captured_t* captured) {
  captured->next = manager->retired;
  manager->retired = captured;
  return try_to_mark(manager, captured);
}

static gcap_status_t ask_whether_idle(const gcap_graph_manager_t* manager, gcap_graph_captured_t* captured,
                                      bool* out_idle) {
  *out_idle = false;
  if (captured->stray) return NULL;
  if (!gcap_life_goes_on(captured->stream_life)) {
    *out_idle = true;
    return NULL;
  }
  GCAP_RETURN_IF_ERROR(try_to_mark(manager, captured));
  if (captured->launched == NULL) return NULL;
  return gcap_event_query(captured->launched, out_idle);
}

// Takes those that are idle off the list. Not while the thread captures something else, of which that is no part.
static gcap_status_t take_idle(gcap_graph_manager_t* manager, gcap_graph_captured_t** out_idle) {
  if (manager->retired == NULL || gcap_thread_captures()) return NULL;
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = NULL;
  for (gcap_graph_captured_t** link = &manager->retired; *link != NULL;) {
    gcap_graph_captured_t* captured = *link;
    bool idle = false;
    status = gcap_status_join(status, ask_whether_idle(manager, captured, &idle));
    if (idle) {
      *link = captured->next;
      captured->next = *out_idle;
      *out_idle = captured;
    } else {
      link = &captured->next;
    }
  }
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

// The graphs are nobody else's: their callbacks need no lock.
static void tell_of_evicted(const gcap_graph_manager_options_t* options, gcap_graph_captured_t* evicted) {
  for (gcap_graph_captured_t* captured = evicted; captured != NULL; captured = captured->next) {
    gcap_graph_measure(&captured->use, captured->retained, &captured->info);
    options->on_evict(options->user, captured->id, &captured->info);
  }
}

gcap_status_t gcap_graph_clean_up(gcap_graph_manager_t* manager, gcap_graph_captured_t* evicted) {
  if (manager->options.on_evict != NULL) tell_of_evicted(&manager->options, evicted);
  gcap_graph_captured_t* idle = NULL;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = NULL;
  while (evicted != NULL) {
    gcap_graph_captured_t* captured = evicted;
    evicted = captured->next;
    status = gcap_status_join(status, gcap_graph_retire(manager, captured));
  }
  status = gcap_status_join(status, take_idle(manager, &idle));
  pthread_mutex_unlock(&manager->mutex);
  while (idle != NULL) {
    gcap_graph_captured_t* captured = idle;
    idle = captured->next;
    status = gcap_status_join(status, gcap_graph_captured_destroy(captured));
  }
  return status;
}

// --- Budget ---------------------------------------------------------------------------------------------------------

static bool is_over(const gcap_graph_manager_t* manager) {
  const gcap_graph_manager_options_t* options = &manager->options;
  return (options->max_graphs != 0 && manager->captured.count > options->max_graphs) ||
         (options->max_bytes != 0 && manager->captured_bytes > options->max_bytes);
}

// The graph that was used longest ago, but for pinned ones and the newest of `kept_id`. While a run ends no id is being
// captured.
static gcap_graph_slot_t* find_oldest(const gcap_graph_manager_t* manager, int kept_id) {
  gcap_graph_slot_t* slot = manager->captured.oldest;
  while (slot != NULL && (slot->is_pinned || (slot->id == kept_id && !slot->is_variant))) slot = slot->newer;
  return slot;
}

static gcap_graph_captured_t* take_graph(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  const gcap_graph_info_t info = slot->info;
  slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_EVICT);
  slot->info.nodes = 0;
  gcap_graph_holes_count(/*holes=*/NULL, &slot->info);
  ++slot->info.evictions;
  gcap_graph_captured_t* captured = gcap_graph_slot_set_graph(manager, slot, NULL);
  captured->info = info;
  gcap_graph_slot_merge(manager, slot);
  return captured;
}

gcap_status_t gcap_graph_evict(gcap_graph_manager_t* manager, int kept_id, gcap_graph_captured_t** out_evicted) {
  if (manager->options.max_bytes != 0) gcap_graph_slots_measure(manager);
  gcap_status_t status = NULL;
  for (gcap_graph_slot_t* slot; is_over(manager) && (slot = find_oldest(manager, kept_id)) != NULL;) {
    gcap_graph_captured_t* captured = take_graph(manager, slot);
    // At once: whoever is told of the eviction may destroy the stream.
    status = gcap_status_join(status, try_to_mark(manager, captured));
    captured->next = *out_evicted;
    *out_evicted = captured;
  }
  return status;
}

// --- Release --------------------------------------------------------------------------------------------------------

// Whether the end of the last launch can be waited for, or needs no wait.
static bool is_marked(const gcap_graph_captured_t* captured) {
  return captured->launched != NULL || !gcap_life_goes_on(captured->stream_life);
}

// No graph of an id is released while one is captured, which would be `first`, the id's.
static gcap_status_t check_not_captured_now(const gcap_graph_slot_t* first) {
  if (first->info.state != GCAP_GRAPH_CAPTURING) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d is being captured%s", first->id,
                     first->graph != NULL ? " again" : "");
}

static gcap_status_t check_not_in_hole(const gcap_graph_manager_t* manager, const gcap_graph_slot_t* slot) {
  return slot->graph != NULL && slot->graph == manager->in_hole ? gcap_graph_check_no_hole(manager) : NULL;
}

// A graph that may be launched again must not have an event behind an earlier launch.
static gcap_status_t unmark(gcap_graph_captured_t* captured, gcap_status_t refusal) {
  if (captured->launched == NULL) return refusal;
  refusal = gcap_status_join(refusal, GCAP_CUDA(cudaEventDestroy(captured->launched)));
  captured->launched = NULL;
  return refusal;
}

// Marks the graphs of an id, or none of them.
static gcap_status_t mark_id(const gcap_graph_manager_t* manager, gcap_graph_slot_t* first) {
  gcap_status_t status = check_not_captured_now(first);
  gcap_graph_slot_t* slot = first;
  for (; status == NULL && slot != NULL; slot = slot->variant) {
    status = check_not_in_hole(manager, slot);
    if (status == NULL && slot->graph != NULL) status = gcap_graph_mark_last_launch(manager, slot->graph);
  }
  for (gcap_graph_slot_t* marked = first; status != NULL && marked != slot; marked = marked->variant) {
    if (marked->graph != NULL) status = unmark(marked->graph, status);
  }
  return status;
}

// Takes the slots of `id` out of the table. `*out_detached` lists the graphs. On failure nothing has changed.
static gcap_status_t detach(gcap_graph_manager_t* manager, int id, gcap_graph_captured_t** out_detached) {
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, id);
  if (slot == NULL)
    return GCAP_STATUS(GCAP_NOT_FOUND, "graph id %d is not known: it was not run, or was forgotten", id);
  gcap_status_t status = mark_id(manager, slot);
  if (status != NULL) return gcap_graph_name_failure(slot, status);
  while (slot != NULL) {
    gcap_graph_slot_t* older = slot->variant;
    gcap_graph_captured_t* captured = slot->graph;
    gcap_graph_slot_remove(manager, slot);
    if (captured != NULL) captured->next = *out_detached;
    if (captured != NULL) *out_detached = captured;
    slot = older;
  }
  return NULL;
}

gcap_status_t gcap_graph_manager_release(gcap_graph_manager_t* manager, int id) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  gcap_graph_captured_t* detached = NULL;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = detach(manager, id, &detached);
  gcap_graph_hold_locked(manager);
  pthread_mutex_unlock(&manager->mutex);
  status = gcap_status_join(status, gcap_graph_end_detached(detached));
  gcap_graph_manager_let_go(manager);
  return status;
}

// Marks a graph for the end of all. A failure that is no refusal goes to `*failures`.
static gcap_status_t mark_or_refuse(const gcap_graph_manager_t* manager, gcap_graph_captured_t* captured,
                                    gcap_status_t* failures) {
  gcap_status_t status = gcap_graph_mark_last_launch(manager, captured);
  if (gcap_status_code(status) == GCAP_FAILED_PRECONDITION) return status;
  *failures = gcap_status_join(*failures, status);
  return NULL;
}

// Those in slots may be launched again: an event behind an earlier launch must not stay.
static gcap_status_t unmark_slots(gcap_graph_manager_t* manager, gcap_status_t refusal) {
  for (gcap_graph_slot_t* slot = manager->captured.newest; slot != NULL; slot = slot->older) {
    refusal = unmark(slot->graph, refusal);
  }
  return refusal;
}

static gcap_status_t mark_all(gcap_graph_manager_t* manager, gcap_status_t* failures) {
  gcap_status_t refusal = NULL;
  for (gcap_graph_slot_t* slot = manager->captured.newest; refusal == NULL && slot != NULL; slot = slot->older) {
    refusal = check_not_captured_now(gcap_graph_find_slot(manager, slot->id));
    if (refusal == NULL) refusal = check_not_in_hole(manager, slot);
    if (refusal == NULL) refusal = mark_or_refuse(manager, slot->graph, failures);
  }
  for (gcap_graph_captured_t* captured = manager->retired; refusal == NULL && captured != NULL;
       captured = captured->next) {
    refusal = mark_or_refuse(manager, captured, failures);
  }
  return refusal == NULL ? NULL : unmark_slots(manager, refusal);
}

static void detach_retired(gcap_graph_manager_t* manager, gcap_graph_captured_t** out_detached) {
  for (gcap_graph_captured_t** link = &manager->retired; *link != NULL;) {
    gcap_graph_captured_t* captured = *link;
    if (!is_marked(captured)) {
      link = &captured->next;
      continue;
    }
    *link = captured->next;
    captured->next = *out_detached;
    *out_detached = captured;
  }
}

static void detach_slots(gcap_graph_manager_t* manager, gcap_graph_captured_t** out_detached) {
  for (gcap_graph_slot_t *slot = manager->captured.newest, *older; slot != NULL; slot = older) {
    older = slot->older;
    gcap_graph_captured_t* captured = slot->graph;
    if (!is_marked(captured)) continue;
    captured->next = *out_detached;
    *out_detached = captured;
    gcap_graph_slot_remove(manager, slot);
  }
  for (gcap_graph_slot_t *slot = manager->idle.newest, *older; slot != NULL; slot = older) {
    older = slot->older;
    if (slot->info.state != GCAP_GRAPH_CAPTURING) gcap_graph_slot_remove(manager, slot);
  }
}

gcap_status_t gcap_graph_detach_all(gcap_graph_manager_t* manager, gcap_graph_captured_t** out_detached,
                                    gcap_status_t* out_refusal) {
  gcap_status_t failures = NULL;
  *out_refusal = mark_all(manager, &failures);
  if (*out_refusal != NULL) {
    *out_refusal = gcap_status_join(*out_refusal, failures);
    return NULL;
  }
  detach_retired(manager, out_detached);
  detach_slots(manager, out_detached);
  return failures;
}

gcap_status_t gcap_graph_manager_release_all(gcap_graph_manager_t* manager) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  gcap_graph_captured_t* detached = NULL;
  gcap_status_t refusal = NULL;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = gcap_graph_detach_all(manager, &detached, &refusal);
  gcap_graph_hold_locked(manager);
  pthread_mutex_unlock(&manager->mutex);
  status = gcap_status_join(status, gcap_graph_end_detached(detached));
  gcap_graph_manager_let_go(manager);
  return refusal != NULL ? refusal : status;
}
