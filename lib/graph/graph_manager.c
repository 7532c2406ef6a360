// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The graph manager: its life, its table of ids, and its getters. Runs are in run.c, finished captures in exec.c,
// launches in replay.c, the end of graphs in release.c, states and policies in state.c.
//
// An id that was run has a slot. The slot holds the id's state, its counters and its graph, if any: the executable, the
// stream that captured it, and what the capture retained. A graph that a re-capture replaced or the budget evicted is
// on the list of retired graphs until its launches are done.
//
// Locking: one mutex guards the table, the slots, the open run and the list. The mutex is held across the begin and the
// end of a capture, so also while close steps run, and across cudaGraphLaunch, which serializes replays. It is not held
// while the caller's work runs, while a graph is waited for or released, or in on_evict (replay.c has one exception: a
// wait after a failure). A launch that was issued keeps its executable alive until the event behind the launch was
// seen.

#include <stdlib.h>

#include "gcap/log.h"
#include "lib/graph/manager.h"
#include "lib/graph/open_run.h"
#include "lib/graph/options.h"
#include "lib/graph/run.h"
#include "lib/internal/cache_line.h"

static const gcap_sized_type_t info_type = {.name = "gcap_graph_info", .bytes = sizeof(gcap_graph_info_t)};

gcap_status_t gcap_graph_manager_create(const gcap_graph_manager_options_t* options,
                                        gcap_graph_manager_t** out_manager) {
  GCAP_RETURN_IF_NULL(out_manager);
  *out_manager = NULL;
  gcap_graph_manager_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_options_read(options, &known));
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_options_check(&known));
  gcap_graph_manager_t* manager = gcap_calloc_line(sizeof(*manager));
  if (manager == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a graph manager");
  manager->options = known;
  manager->slots.cell_bytes = sizeof(gcap_graph_slot_cell_t);
  pthread_mutex_init(&manager->mutex, NULL);
  *out_manager = manager;
  return NULL;
}

// Tells whether anything is left that could not be released, and is kept.
static bool free_slots(gcap_graph_manager_t* manager) {
  bool keeps = false;
  for (size_t i = 0; i < manager->slots.capacity; ++i) {
    gcap_graph_slot_t* slot = gcap_graph_slot_at(manager, i);
    if (slot == NULL) continue;
    if (slot->graph != NULL) {
      keeps = true;
      gcap_keep_for_ever(&slot->graph->kept);
    }
    gcap_graph_slot_free(slot);
  }
  gcap_hash_table_deinit(&manager->slots);
  while (manager->retired != NULL) {
    gcap_graph_captured_t* captured = manager->retired;
    manager->retired = captured->next;
    keeps = true;
    gcap_keep_for_ever(&captured->kept);
  }
  return keeps;
}

// Whether the end of the graph's launches could be seen. Where the runtime does not say, its end tells.
static gcap_status_t check_graph_end(const gcap_graph_manager_t* manager, const gcap_graph_captured_t* captured) {
  if (captured->launched != NULL || !gcap_life_goes_on(captured->stream_life)) return NULL;
  if (gcap_graph_run_is_own_capture(manager) && manager->run.stream == captured->stream) return NULL;  // is aborted
  gcap_status_t status = gcap_check_stream_not_capturing(captured->stream, "graph id %d", captured->id);
  if (gcap_status_code(status) == GCAP_FAILED_PRECONDITION) return status;
  gcap_status_ignore(status);
  return NULL;
}

static gcap_status_t check_end_locked(const gcap_graph_manager_t* manager) {
  if (!gcap_graph_run_is_own_capture(manager))
    GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_graph_manager_destroy"));
  GCAP_RETURN_IF_ERROR(gcap_graph_run_check_abandoned(manager));
  for (size_t i = 0; i < manager->slots.capacity; ++i) {
    const gcap_graph_slot_t* slot = gcap_graph_slot_at(manager, i);
    if (slot != NULL && slot->graph != NULL) GCAP_RETURN_IF_ERROR(check_graph_end(manager, slot->graph));
  }
  for (const gcap_graph_captured_t* captured = manager->retired; captured != NULL; captured = captured->next)
    GCAP_RETURN_IF_ERROR(check_graph_end(manager, captured));
  return NULL;
}

gcap_status_t gcap_graph_manager_check_end(gcap_graph_manager_t* manager) {
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = check_end_locked(manager);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

gcap_status_t gcap_graph_manager_destroy(gcap_graph_manager_t* manager) {
  if (manager == NULL) return NULL;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = NULL;
  // Only a capture of the manager's own may be aborted here.
  if (!gcap_graph_run_is_own_capture(manager)) status = gcap_check_thread_not_capturing("gcap_graph_manager_destroy");
  if (status == NULL) status = gcap_graph_run_close_abandoned(manager);
  pthread_mutex_unlock(&manager->mutex);
  if (status != NULL) return status;
  status = gcap_graph_manager_release_all(manager);
  if (free_slots(manager)) {
    status = gcap_status_annotate(status, gcap_status_code(status), "what cannot be released is kept");
  }
  pthread_mutex_destroy(&manager->mutex);
  free(manager);
  return status;
}

// --- Questions ------------------------------------------------------------------------------------------------------

bool gcap_graph_manager_is_captured(gcap_graph_manager_t* manager, int id) {
  if (manager == NULL) return false;
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, id);
  bool captured = slot != NULL && slot->info.state == GCAP_GRAPH_CAPTURED;
  pthread_mutex_unlock(&manager->mutex);
  return captured;
}

void gcap_graph_manager_read_info(gcap_graph_manager_t* manager, int id, gcap_graph_info_t* out_info) {
  if (out_info == NULL) return;
  gcap_graph_info_t info = {.struct_size = sizeof(info)};
  if (manager != NULL) {
    pthread_mutex_lock(&manager->mutex);
    gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, id);
    if (slot != NULL) {
      gcap_graph_slot_measure(slot);
      info = slot->info;
      info.struct_size = sizeof(info);
    }
    info.captures_next = gcap_graph_captures_next(manager, id, slot);
    pthread_mutex_unlock(&manager->mutex);
  }
  gcap_sized_write(&info_type, &info, out_info);
}

gcap_status_t gcap_graph_manager_explain(gcap_graph_manager_t* manager, int id, gcap_graph_question_t question) {
  GCAP_RETURN_IF_NULL(manager);
  if (question != GCAP_GRAPH_WHY_CAPTURE_FAILED && question != GCAP_GRAPH_WHY_NOT_UPDATED) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "question is %d, allowed are WHY_CAPTURE_FAILED (0), WHY_NOT_UPDATED (1)",
                       (int)question);
  }
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, id);
  gcap_status_t answer = NULL;
  if (slot != NULL) answer = question == GCAP_GRAPH_WHY_NOT_UPDATED ? slot->update_refusal : slot->last_failure;
  answer = gcap_status_clone(answer);
  pthread_mutex_unlock(&manager->mutex);
  return answer;
}

gcap_status_t gcap_graph_manager_check_signature(gcap_graph_manager_t* manager, int id,
                                                 const gcap_graph_binding_t* bindings, size_t n) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_graph_bindings_check(bindings, n));
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = NULL;
  gcap_status_t status = gcap_graph_find(manager, id, &slot);
  if (status == NULL) status = gcap_graph_signature_check(slot->graph->signature, bindings, n);
  pthread_mutex_unlock(&manager->mutex);
  return gcap_status_annotate(status, gcap_status_code(status), "graph id %d", id);
}

gcap_status_t gcap_graph_manager_dump(gcap_graph_manager_t* manager, int id, const char* path, unsigned flags) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_NULL(path);
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = NULL;
  gcap_status_t status = gcap_graph_find(manager, id, &slot);
  if (status == NULL && slot->graph->source == NULL) {
    status = GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                         "graph id %d was captured without its source: set the manager's option keep_source", id);
  }
  if (status == NULL) {
    status = GCAP_CUDA(cudaGraphDebugDotPrint(slot->graph->source, path, flags));
    status = gcap_status_annotate(status, gcap_status_code(status), "graph id %d cannot be written to '%s'", id, path);
  }
  pthread_mutex_unlock(&manager->mutex);
  return status;
}
