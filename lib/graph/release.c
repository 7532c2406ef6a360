// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The end of graphs. A launch uses its executable and what the graph retained, so both are freed only after an event
// behind the last launch was seen. A release waits for that event. A graph that was replaced or evicted goes to the
// list of retired graphs, which is polled, without waiting, whenever a run ends.
//
// If the graph's stream was destroyed through gcap, no launch is in flight, since the stream was drained. A graph whose
// launches cannot be waited for is kept until the process ends.
//
// Locking: the event is recorded under the manager's mutex, so that no launch or capture of this manager comes between.
// Waiting, destroying and callbacks happen without the mutex.

#include "gcap/log.h"
#include "lib/graph/manager.h"
#include "lib/internal/cuda_event.h"

// --- Knowing when the last launch is done ---------------------------------------------------------------------------

gcap_status_t gcap_graph_mark_last_launch(gcap_graph_captured_t* captured) {
  if (captured->launched != NULL || !gcap_life_goes_on(captured->stream_life)) return NULL;
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
  bool idle = false;
  enum cudaStreamCaptureMode mode;
  gcap_status_t status = gcap_relaxed_push(&mode);
  if (status == NULL) {
    status = wait_until_idle(captured, &idle);
    status = gcap_status_join(status, gcap_relaxed_pop(mode));
  }
  if (idle) return gcap_status_join(status, gcap_graph_captured_destroy(captured));
  status =
      gcap_status_annotate(status, gcap_status_code(status),
                           "graph id %d may still be running and is kept for ever with all it retains", captured->id);
  gcap_keep_for_ever(&captured->kept);
  return status;
}

// --- Retired graphs -------------------------------------------------------------------------------------------------

// A stream that is capturing is no failure here: the event is recorded some other time.
static gcap_status_t try_to_mark(gcap_graph_captured_t* captured) {
  gcap_status_t status = gcap_graph_mark_last_launch(captured);
  if (gcap_status_code(status) != GCAP_FAILED_PRECONDITION) return status;
  gcap_status_ignore(status);
  return NULL;
}

gcap_status_t gcap_graph_retire(gcap_graph_manager_t* manager, gcap_graph_captured_t* captured) {
  captured->next = manager->retired;
  manager->retired = captured;
  return try_to_mark(captured);
}

static gcap_status_t ask_whether_idle(gcap_graph_captured_t* captured, bool* out_idle) {
  *out_idle = false;
  if (captured->stray) return NULL;
  if (!gcap_life_goes_on(captured->stream_life)) {
    *out_idle = true;
    return NULL;
  }
  GCAP_RETURN_IF_ERROR(try_to_mark(captured));
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
    status = gcap_status_join(status, ask_whether_idle(captured, &idle));
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

gcap_status_t gcap_graph_clean_up(gcap_graph_manager_t* manager, gcap_graph_captured_t* evicted) {
  if (manager->options.on_evict != NULL) {
    for (const gcap_graph_captured_t* captured = evicted; captured != NULL; captured = captured->next) {
      manager->options.on_evict(manager->options.user, captured->id, &captured->info);
    }
  }
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

typedef struct usage {
  size_t graphs;
  size_t bytes;
  gcap_graph_slot_t* oldest;  // of those that may go
} usage_t;

static usage_t measure(const gcap_graph_manager_t* manager, const gcap_graph_slot_t* kept) {
  usage_t usage = {0};
  for (size_t i = 0; i < manager->slots.capacity; ++i) {
    gcap_graph_slot_t* slot = gcap_graph_slot_at(manager, i);
    if (slot == NULL || slot->graph == NULL) continue;
    gcap_graph_slot_measure(slot);
    ++usage.graphs;
    usage.bytes += slot->info.bytes;
    if (slot == kept || slot->info.state == GCAP_GRAPH_CAPTURING) continue;
    if (usage.oldest == NULL || slot->last_used < usage.oldest->last_used) usage.oldest = slot;
  }
  return usage;
}

static bool is_over(const gcap_graph_manager_options_t* options, const usage_t* usage) {
  return (options->max_graphs != 0 && usage->graphs > options->max_graphs) ||
         (options->max_bytes != 0 && usage->bytes > options->max_bytes);
}

static gcap_graph_captured_t* take_graph(gcap_graph_slot_t* slot) {
  gcap_graph_captured_t* captured = slot->graph;
  captured->info = slot->info;
  slot->graph = NULL;
  slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_EVICT);
  slot->info.nodes = 0;
  slot->info.bytes = 0;
  ++slot->info.evictions;
  return captured;
}

gcap_status_t gcap_graph_evict(gcap_graph_manager_t* manager, const gcap_graph_slot_t* kept,
                               gcap_graph_captured_t** out_evicted) {
  const gcap_graph_manager_options_t* options = &manager->options;
  if (options->max_graphs == 0 && options->max_bytes == 0) return NULL;
  gcap_status_t status = NULL;
  for (usage_t usage = measure(manager, kept); is_over(options, &usage) && usage.oldest != NULL;
       usage = measure(manager, kept)) {
    gcap_graph_captured_t* captured = take_graph(usage.oldest);
    // At once: whoever is told of the eviction may destroy the stream.
    status = gcap_status_join(status, try_to_mark(captured));
    captured->next = *out_evicted;
    *out_evicted = captured;
  }
  return status;
}

// --- Release --------------------------------------------------------------------------------------------------------

// Takes a graph and its slot out of the table; on failure they stay there.
static gcap_status_t detach(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot,
                            gcap_graph_captured_t** out_captured) {
  if (slot->info.state == GCAP_GRAPH_CAPTURING) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d is being captured again", slot->id);
  }
  GCAP_RETURN_IF_ERROR(gcap_graph_mark_last_launch(slot->graph));
  *out_captured = slot->graph;
  gcap_graph_slot_remove(manager, slot);
  return NULL;
}

gcap_status_t gcap_graph_manager_release(gcap_graph_manager_t* manager, int id) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  gcap_graph_captured_t* captured = NULL;
  gcap_graph_slot_t* slot = NULL;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = gcap_graph_find(manager, id, &slot);
  if (status == NULL) status = detach(manager, slot, &captured);
  pthread_mutex_unlock(&manager->mutex);
  return status == NULL ? wait_and_destroy(captured) : status;
}

// Takes every graph that can be out of the table, as a list.
static gcap_status_t detach_slots(gcap_graph_manager_t* manager, gcap_graph_captured_t** out_detached) {
  gcap_status_t status = NULL;
  for (size_t i = 0; i < manager->slots.capacity;) {
    gcap_graph_slot_t* slot = gcap_graph_slot_at(manager, i);
    gcap_graph_captured_t* captured = NULL;
    if (slot != NULL && slot->graph != NULL) status = gcap_status_join(status, detach(manager, slot, &captured));
    if (captured != NULL) {
      captured->next = *out_detached;
      *out_detached = captured;
    } else {
      ++i;  // a slot that went made room for another one in its cell
    }
  }
  return status;
}

// The same for the retired ones.
static gcap_status_t detach_retired(gcap_graph_manager_t* manager, gcap_graph_captured_t** out_detached) {
  gcap_status_t status = NULL;
  for (gcap_graph_captured_t** link = &manager->retired; *link != NULL;) {
    gcap_graph_captured_t* captured = *link;
    gcap_status_t failure = gcap_graph_mark_last_launch(captured);
    if (failure != NULL) {
      status = gcap_status_join(status, failure);
      link = &captured->next;
    } else {
      *link = captured->next;
      captured->next = *out_detached;
      *out_detached = captured;
    }
  }
  return status;
}

gcap_status_t gcap_graph_manager_release_all(gcap_graph_manager_t* manager) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  gcap_graph_captured_t* detached = NULL;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = detach_slots(manager, &detached);
  status = gcap_status_join(status, detach_retired(manager, &detached));
  pthread_mutex_unlock(&manager->mutex);
  while (detached != NULL) {
    gcap_graph_captured_t* captured = detached;
    detached = captured->next;
    status = gcap_status_join(status, wait_and_destroy(captured));
  }
  return status;
}
