// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The graph manager: its life, its table of ids, and its getters. Runs are in run.c and whole_run.c, finished captures
// in exec.c, launches in replay.c, segment_launch.c and order.c, audits in audit.c, buffers that move in moving.c and
// bind.c, values in values.c and value_block.c, the end of graphs in release.c, states and policies in state.c, keys in
// keys.c, decisions in guards.c, holes in hole_issue.c and holes.c, and the graphs of one id in variants.c.
//
// An id that was run has a slot, or a chain of them, one for each variant. The slot holds the id's state, its counters
// and its graph, if any: the executable, the stream that captured it, and what the capture retained. A graph that a
// re-capture replaced or the budget evicted is on the list of retired graphs until its launches are done.
//
// Locking: one mutex guards the table, the slots, the open run and the lists. The mutex is held across cudaGraphLaunch,
// which serializes replays, and over the events behind launches. It is not held while a callback or the log sink runs
// (work, close steps, releases, `bytes`, on_evict, functions of guards and holes), nor over the begin and the end of a
// capture or a wait (order.c has one exception: a wait after a failure). Meanwhile the run is marked as busy, so that
// nobody else opens or ends one, the id is CAPTURING, so that nobody releases its slot, and `num_inside` says that the
// manager is used afterwards, so that nobody destroys it. A launch that was issued keeps its executable alive until the
// event behind the launch was seen.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/graph/begin.h"
#include "lib/graph/inner.h"
#include "lib/graph/manager.h"
#include "lib/graph/next_run.h"
#include "lib/graph/run.h"
#include "lib/graph/variants.h"
#include "lib/internal/cache_line.h"
#include "lib/internal/forked.h"

static const gcap_sized_type_t info_type = GCAP_SIZED_TYPE(gcap_graph_info);

gcap_status_t gcap_graph_manager_create(const gcap_graph_manager_options_t* options,
                                        gcap_graph_manager_t** out_manager) {
  GCAP_RETURN_IF_NULL(out_manager);
  *out_manager = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_graph_manager_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_options_read(options, &known));
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_options_check(&known));
  gcap_graph_manager_t* manager = gcap_calloc_line(sizeof(*manager));
  if (manager == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a graph manager");
  manager->options = known;
  manager->has_budget = known.max_graphs != 0 || known.max_bytes != 0;
  manager->audits_replays = known.audit == GCAP_GRAPH_AUDIT_EACH_REPLAY;
  manager->slots.cell_bytes = sizeof(gcap_graph_slot_cell_t);
  gcap_graph_keys_init(&manager->keys);
  pthread_mutex_init(&manager->mutex, NULL);
  *out_manager = manager;
  return NULL;
}

// Keeps the graphs that are left, which could not be marked, and frees everything else.
static void free_manager(gcap_graph_manager_t* manager) {
  while (manager->captured.newest != NULL) {
    gcap_keep_for_ever(&manager->captured.newest->graph->kept);
    gcap_graph_slot_remove(manager, manager->captured.newest);
  }
  while (manager->idle.newest != NULL) gcap_graph_slot_remove(manager, manager->idle.newest);
  while (manager->retired != NULL) {
    gcap_graph_captured_t* captured = manager->retired;
    manager->retired = captured->next;
    gcap_keep_for_ever(&captured->kept);
  }
  gcap_hash_table_deinit(&manager->slots);
  gcap_graph_keys_deinit(&manager->keys);
  pthread_mutex_destroy(&manager->mutex);
  free(manager);
}

// Called with the mutex held.
static gcap_status_t check_unused(const gcap_graph_manager_t* manager) {
  static const char function[] = "gcap_graph_manager_destroy";
  if (manager->num_inside > 0 || manager->is_ending) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: a call of this graph manager has not returned yet, or calls back",
                       function);
  }
  // Only a capture of the manager's own may be aborted here.
  return gcap_graph_run_is_own_capture(manager) ? NULL : gcap_check_thread_not_capturing(function);
}

// Whether the graph's last launch could be marked. Where the runtime does not say, the end itself tells.
static gcap_status_t check_graph_end(const gcap_graph_manager_t* manager, const gcap_graph_captured_t* captured) {
  if (captured->launched != NULL || !gcap_life_goes_on(captured->stream_life)) return NULL;
  if (gcap_graph_run_is_own_capture(manager) && manager->run.stream == captured->stream) return NULL;  // it is aborted
  gcap_status_t status = gcap_check_stream_not_capturing(captured->stream, "graph id %d", captured->id);
  if (gcap_status_code(status) == GCAP_FAILED_PRECONDITION) return status;
  gcap_status_ignore(status);
  return NULL;
}

static gcap_status_t check_end(const gcap_graph_manager_t* manager) {
  GCAP_RETURN_IF_ERROR(check_unused(manager));
  GCAP_RETURN_IF_ERROR(gcap_graph_run_check_abandoned(manager));
  for (const gcap_graph_slot_t* slot = manager->captured.newest; slot != NULL; slot = slot->older)
    GCAP_RETURN_IF_ERROR(check_graph_end(manager, slot->graph));
  for (const gcap_graph_captured_t* captured = manager->retired; captured != NULL; captured = captured->next)
    GCAP_RETURN_IF_ERROR(check_graph_end(manager, captured));
  return NULL;
}

gcap_status_t gcap_graph_manager_check_end(gcap_graph_manager_t* manager) {
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = check_end(manager);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

gcap_status_t gcap_graph_manager_destroy(gcap_graph_manager_t* manager) {
  if (manager == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_graph_captured_t* detached = NULL;
  gcap_status_t status = NULL;
  pthread_mutex_lock(&manager->mutex);
  // The streams are asked twice only if a run would be aborted in between.
  gcap_status_t refusal = manager->run.is_open ? check_end(manager) : check_unused(manager);
  if (refusal == NULL) refusal = gcap_graph_run_close_abandoned(manager);
  if (refusal == NULL) status = gcap_graph_detach_all(manager, &detached, &refusal);
  if (refusal == NULL) manager->is_ending = true;
  pthread_mutex_unlock(&manager->mutex);
  if (refusal != NULL) return refusal;
  status = gcap_status_join(status, gcap_graph_end_detached(detached));
  free_manager(manager);
  return gcap_status_annotate(status, GCAP_LEAKED, "the graph manager is gone; what could not be ended is kept");
}

// --- Questions ------------------------------------------------------------------------------------------------------

bool gcap_graph_manager_is_captured(gcap_graph_manager_t* manager, int id) {
  if (manager == NULL) return false;
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, id);
  while (slot != NULL && slot->info.state != GCAP_GRAPH_CAPTURED) slot = slot->variant;
  const bool captured = slot != NULL;
  pthread_mutex_unlock(&manager->mutex);
  return captured;
}

// Gives the info of one slot of `id`, the newest being 0, but for what its graph keeps, which is asked without the
// mutex. False: there are not as many.
static bool copy_info(gcap_graph_manager_t* manager, int id, size_t index, gcap_graph_info_t* out_info,
                      gcap_graph_memory_use_t* out_use, gcap_retained_t** out_retained) {
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* first = gcap_graph_find_slot(manager, id);
  gcap_graph_slot_t* slot = first;
  for (size_t i = 0; slot != NULL && i < index; ++i) slot = slot->variant;
  if (slot != NULL) *out_info = slot->info;
  out_info->graphs = slot != NULL && slot->graph != NULL;
  if (slot != NULL && slot->graph != NULL) {
    *out_use = slot->graph->use;
    *out_retained = gcap_retained_share(slot->graph->retained);
  }
  if (*out_retained != NULL) gcap_graph_hold_locked(manager);
  out_info->captures_next = gcap_graph_captures_next(manager, first, gcap_graph_held_last(first));
  pthread_mutex_unlock(&manager->mutex);
  return slot != NULL;
}

static void let_go(gcap_graph_manager_t* manager, gcap_retained_t* retained) {
  if (retained == NULL) return;
  gcap_retained_release(retained);
  gcap_graph_manager_let_go(manager);
}

static void add_slot(gcap_graph_info_t* sum, const gcap_graph_slot_t* slot) {
  gcap_graph_info_add(sum, &slot->info);
  sum->capture_ns += slot->info.capture_ns;
  sum->instantiate_ns += slot->info.instantiate_ns;
  if (!slot->is_variant) ++sum->ids;
}

// The sums over all ids. What each graph keeps is asked again first.
static gcap_graph_info_t sum_up(gcap_graph_manager_t* manager) {
  gcap_graph_info_t sum = {0};
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_hold_locked(manager);
  gcap_graph_slots_measure(manager);
  for (const gcap_graph_slot_t* slot = manager->captured.newest; slot != NULL; slot = slot->older) {
    add_slot(&sum, slot);
  }
  sum.graphs = manager->captured.count;
  for (const gcap_graph_slot_t* slot = manager->idle.newest; slot != NULL; slot = slot->older) add_slot(&sum, slot);
  gcap_graph_let_go_locked(manager);
  pthread_mutex_unlock(&manager->mutex);
  return sum;
}

static gcap_graph_info_t info_of(gcap_graph_manager_t* manager, int id) {
  gcap_graph_info_t info = {0};
  bool is_there = true;
  for (size_t i = 0; is_there; ++i) {
    gcap_graph_info_t one = {0};
    gcap_graph_memory_use_t use = {0};
    gcap_retained_t* retained = NULL;
    is_there = copy_info(manager, id, i, &one, &use, &retained);
    gcap_graph_measure(&use, retained, &one);
    let_go(manager, retained);
    if (i == 0) {
      info = one;
    } else if (is_there) {
      gcap_graph_info_add(&info, &one);
      info.graphs += one.graphs;
      if (info.state != GCAP_GRAPH_CAPTURING && one.state == GCAP_GRAPH_CAPTURED) info.state = one.state;
    }
  }
  return info;
}

void gcap_graph_manager_read_info(gcap_graph_manager_t* manager, int id, gcap_graph_info_t* out_info) {
  if (out_info == NULL) return;
  gcap_graph_info_t info = {0};
  if (manager != NULL) info = id == GCAP_GRAPH_ID_NONE ? sum_up(manager) : info_of(manager, id);
  info.struct_size = sizeof(info);
  gcap_sized_write(&info_type, &info, out_info);
}

static size_t add_ids(const gcap_graph_slot_list_t* list, size_t count, int* out_ids, size_t capacity) {
  for (const gcap_graph_slot_t* slot = list->newest; slot != NULL; slot = slot->older) {
    if (slot->is_variant) continue;
    if (count < capacity) out_ids[count] = slot->id;
    ++count;
  }
  return count;
}

size_t gcap_graph_manager_list_ids(gcap_graph_manager_t* manager, int* out_ids, size_t capacity) {
  if (manager == NULL) return 0;
  if (out_ids == NULL) capacity = 0;
  pthread_mutex_lock(&manager->mutex);
  size_t count = add_ids(&manager->captured, 0, out_ids, capacity);
  count = add_ids(&manager->idle, count, out_ids, capacity);
  pthread_mutex_unlock(&manager->mutex);
  return count;
}

gcap_status_t gcap_graph_manager_find(gcap_graph_manager_t* manager, const gcap_graph_key_t* key, int* out_id) {
  GCAP_RETURN_IF_NULL(out_id);
  *out_id = GCAP_GRAPH_ID_NONE;
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_NULL(key);
  GCAP_RETURN_IF_ERROR(gcap_graph_key_check(key));
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_slot_t* slot = gcap_graph_keys_find(&manager->keys, key);
  if (slot != NULL) *out_id = slot->id;
  pthread_mutex_unlock(&manager->mutex);
  if (slot != NULL) return NULL;
  return GCAP_STATUS(GCAP_NOT_FOUND, "graph key '%s' of %zu bytes is not known: it was not run, or was forgotten",
                     key->name != NULL ? key->name : "", key->size);
}

const char* gcap_why_eager_name(gcap_why_eager_t why) {
  switch (why) {
    case GCAP_EAGER_NOT: return "NOT";
    case GCAP_EAGER_NO_ID: return "NO_ID";
    case GCAP_EAGER_OFF: return "OFF";
    case GCAP_EAGER_WARMING: return "WARMING";
    case GCAP_EAGER_COOLING: return "COOLING";
    case GCAP_EAGER_NOT_MOVABLE: return "NOT_MOVABLE";
    case GCAP_EAGER_REFUSED: return "REFUSED";
    case GCAP_EAGER_CAPTURE_FAILED: return "CAPTURE_FAILED";
    case GCAP_EAGER_GUARD: return "GUARD";
    case GCAP_EAGER_STEP_REFUSED: return "STEP_REFUSED";
  }
  return "unknown gcap_why_eager_t";
}

// Why the id's last run was eager; NULL: it was not, or nobody knows of one.
static gcap_status_t explain_eager(const gcap_graph_slot_t* slot) {
  const char* failure = gcap_status_message(slot->last_failure);
  switch (slot->why_eager) {
    case GCAP_EAGER_WARMING:
      return GCAP_STATUS(GCAP_UNAVAILABLE, "graph id %d warms up: %llu eager runs so far", slot->id,
                         (unsigned long long)slot->info.eager_runs);
    case GCAP_EAGER_COOLING:
      return GCAP_STATUS(GCAP_UNAVAILABLE, "graph id %d cools down for %llu more runs, after: %s", slot->id,
                         (unsigned long long)slot->cooling_runs, failure);
    case GCAP_EAGER_NOT_MOVABLE: return gcap_graph_why_fixed(slot);
    case GCAP_EAGER_GUARD: return gcap_graph_why_other(slot);
    case GCAP_EAGER_REFUSED:
    case GCAP_EAGER_CAPTURE_FAILED:
    case GCAP_EAGER_STEP_REFUSED: return gcap_status_clone(slot->last_failure);
    default: return NULL;
  }
}

static gcap_status_t answer(const gcap_graph_slot_t* slot, gcap_graph_question_t question) {
  switch (question) {
    case GCAP_GRAPH_WHY_CAPTURE_FAILED: return gcap_status_clone(slot->last_failure);
    case GCAP_GRAPH_WHY_NOT_UPDATED: return gcap_status_clone(slot->update_refusal);
    case GCAP_GRAPH_WHAT_CHANGED: return gcap_status_clone(slot->change);
    case GCAP_GRAPH_WHY_NOT_MOVABLE:
      return slot->graph != NULL && slot->graph->moving != NULL ? gcap_status_clone(slot->graph->moving->refusal)
                                                                : NULL;
    case GCAP_GRAPH_WHY_EAGER: return explain_eager(slot);
    case GCAP_GRAPH_WHY_OTHER_VARIANT: return gcap_graph_why_other(slot);
  }
  return NULL;
}

gcap_status_t gcap_graph_manager_explain(gcap_graph_manager_t* manager, int id, gcap_graph_question_t question) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if ((unsigned)question > GCAP_GRAPH_WHY_OTHER_VARIANT) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "question is %d, allowed are WHY_CAPTURE_FAILED (0), WHY_NOT_UPDATED (1), WHY_NOT_MOVABLE (2), "
                       "WHAT_CHANGED (3), WHY_EAGER (4), WHY_OTHER_VARIANT (5)",
                       (int)question);
  }
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, id);
  gcap_status_t told = slot != NULL ? gcap_graph_name_failure(slot, answer(slot, question)) : NULL;
  pthread_mutex_unlock(&manager->mutex);
  return told;
}

// Adds the name of a graph behind its text in the DOT language, as a comment of one line.
static gcap_status_t add_name(const gcap_graph_slot_t* slot, const char* path) {
  FILE* file = fopen(path, "a");
  if (file == NULL) return GCAP_STATUS(GCAP_UNAVAILABLE, "the file cannot be opened again: %s", strerror(errno));
  char name[GCAP_GRAPH_SLOT_NAME_BYTES];
  gcap_graph_slot_write_name(slot, name);
  for (char* at = name; *at != '\0'; ++at) {
    if (*at == '\n' || *at == '\r') *at = ' ';
  }
  fprintf(file, "// %s\n", name);
  const bool is_whole = !ferror(file);
  if (fclose(file) == 0 && is_whole) return NULL;
  return GCAP_STATUS(GCAP_UNAVAILABLE, "the file is incomplete: %s", strerror(errno));
}

gcap_status_t gcap_graph_manager_dump(gcap_graph_manager_t* manager, int id, const char* path, unsigned flags) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_NULL(path);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = NULL;
  gcap_status_t status = gcap_graph_find(manager, id, &slot);
  if (status == NULL && slot->graph->holes != NULL) {
    status = GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d has %zu holes, and a file has one graph", id,
                         slot->graph->holes->list.count);
  }
  if (status == NULL && slot->graph->source == NULL) {
    status = GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                         "graph id %d was captured without its source: set the manager's option keep_source", id);
  }
  if (status == NULL) {
    status = GCAP_CUDA(cudaGraphDebugDotPrint(slot->graph->source, path, flags));
    if (status == NULL) status = add_name(slot, path);
    status = gcap_status_annotate(status, gcap_status_code(status), "graph id %d cannot be written to '%s'", id, path);
  }
  status = gcap_graph_name_failure(slot, status);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}
