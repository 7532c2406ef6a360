// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Binding. All addresses are checked before the first node is touched, one by one and how they lie to one another, so a
// refusal changes nothing.
//
// Locking: the manager's mutex is held over the checks, which ask the driver what memory an address is in, and over the
// setting of nodes: a launch of another thread has all addresses of a bind, or none.

#include "lib/graph/bind.h"

#include "lib/graph/audit.h"
#include "lib/internal/cuda_guard.h"

static gcap_status_t check_has_buffers(const gcap_graph_slot_t* slot) {
  if (slot->graph->moving != NULL) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "graph id %d was captured without buffers: give its runs buffers (gcap_run_t.buffers)", slot->id);
}

// Where a buffer is to go, without a look at the memory there: NULL stays, as the present address does.
static void aim(gcap_graph_moving_t* moving, size_t buffer, uintptr_t address) {
  moving->addresses[buffer] = address == gcap_graph_moving_address(moving, buffer) ? 0 : address;
  moving->targets[buffer].address = 0;
}

// Looks at the memory that the buffers are to be moved to.
static gcap_status_t check_memory(gcap_graph_slot_t* slot) {
  gcap_graph_moving_t* moving = slot->graph->moving;
  for (size_t i = 0; i < moving->count; ++i) {
    const uintptr_t address = moving->addresses[i];
    if (address != 0) GCAP_RETURN_IF_ERROR(gcap_graph_moving_check(moving, slot->id, i, (const void*)address));
  }
  return NULL;
}

static gcap_status_t check_reach(const gcap_graph_slot_t* slot) {
  gcap_graph_moving_t* moving = slot->graph->moving;
  if (gcap_graph_moving_reaches(moving)) return NULL;
  size_t moved = 0;
  while (moved < moving->count && moving->addresses[moved] == 0) ++moved;
  if (moved == moving->count) {
    return gcap_status_annotate(gcap_graph_moving_explain(moving), GCAP_FAILED_PRECONDITION,
                                "graph id %d keeps its values", slot->id);
  }
  return gcap_status_annotate(gcap_graph_moving_explain(moving), GCAP_FAILED_PRECONDITION,
                              "graph id %d cannot be moved: buffer %zu '%s' stays at %p", slot->id, moved,
                              moving->buffers[moved].name, (void*)gcap_graph_moving_address(moving, moved));
}

static gcap_status_t move_here(const gcap_graph_captured_t* graph, bool* out_torn) {
  return gcap_relocation_move(graph->moving->relocation, gcap_graph_execs(graph), graph->moving->addresses,
                              graph->moving->values.wanted, out_torn);
}

// On the graph's device: the runtime sets copies and fills for the current one, and of kernels with another context
// nothing is measured. A move that succeeded and does not count, since the thread's device or mode could not be
// restored, is not undone: that takes the device again.
static gcap_status_t move(const gcap_graph_slot_t* slot, bool* out_torn) {
  const gcap_graph_captured_t* graph = slot->graph;
  if (!gcap_relocation_needs_mode(graph->moving->relocation)) {
    int current = 0;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGetDevice(&current)));
    if (current == graph->device_id) return move_here(graph, out_torn);
  }
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(graph->device_id, &previous));
  gcap_status_t status = move_here(graph, out_torn);
  gcap_status_t left = gcap_thread_leave(graph->device_id, &previous);
  *out_torn |= status == NULL && left != NULL;
  return gcap_status_join(status, left);
}

gcap_status_t gcap_graph_apply_bind(gcap_graph_slot_t* slot, bool* out_is_refused) {
  gcap_graph_moving_t* moving = slot->graph->moving;
  *out_is_refused = false;
  if (!gcap_graph_moving_moves(moving)) return NULL;
  bool is_torn = false;
  gcap_status_t status = move(slot, &is_torn);
  if (status == NULL) {
    gcap_graph_moving_note_moved(moving);
    return gcap_graph_note_moved(slot);
  }
  *out_is_refused = gcap_status_code(status) != GCAP_DEVICE_LOST;
  if (is_torn) slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_RECAPTURE);
  return gcap_status_annotate(status, gcap_status_code(status), "graph id %d could not be moved%s", slot->id,
                              is_torn ? ", nor put back: its next run is captured again" : "");
}

void gcap_graph_give_up_moving(gcap_graph_slot_t* slot, gcap_status_t refusal) {
  if (slot->info.state != GCAP_GRAPH_CAPTURED) return;
  slot->graph->moving->refusal = gcap_status_clone(refusal);
}

static gcap_status_t check_sizes(const gcap_graph_moving_t* moving, int id, const gcap_graph_buffers_t* buffers) {
  if (buffers->count != moving->count) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: the run has %zu buffers, and the graph has %zu", id,
                       buffers->count, moving->count);
  }
  for (size_t i = 0; i < buffers->count; ++i) {
    if (buffers->items[i].bytes == moving->buffers[i].bytes) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "graph id %d: buffer %zu '%s' has %zu bytes, and had %zu when captured; to "
                       "capture other sizes, release the id",
                       id, i, moving->buffers[i].name, buffers->items[i].bytes, moving->buffers[i].bytes);
  }
  return NULL;
}

gcap_status_t gcap_graph_plan_bind(gcap_graph_slot_t* slot, const gcap_graph_buffers_t* buffers, bool* out_is_fixed) {
  gcap_graph_moving_t* moving = slot->graph->moving;
  if (out_is_fixed != NULL) *out_is_fixed = moving == NULL;
  if (moving == NULL && out_is_fixed != NULL) return NULL;
  GCAP_RETURN_IF_ERROR(check_has_buffers(slot));
  GCAP_RETURN_IF_ERROR(check_sizes(moving, slot->id, buffers));
  GCAP_RETURN_IF_ERROR(gcap_graph_values_check_same(&moving->values, slot->id, buffers));
  for (size_t i = 0; i < buffers->count; ++i) aim(moving, i, (uintptr_t)buffers->items[i].address);
  gcap_graph_values_aim(&moving->values, moving->relocation, buffers->values);
  if (out_is_fixed != NULL) {
    *out_is_fixed = !gcap_graph_moving_reaches(moving);
    return *out_is_fixed ? NULL : check_memory(slot);
  }
  GCAP_RETURN_IF_ERROR(check_memory(slot));
  return check_reach(slot);
}

static gcap_status_t bind_one(gcap_graph_slot_t* slot, size_t buffer, void* address) {
  GCAP_RETURN_IF_ERROR(check_has_buffers(slot));
  gcap_graph_moving_t* moving = slot->graph->moving;
  if (buffer >= moving->count) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: there is no buffer %zu, the graph has %zu", slot->id,
                       buffer, moving->count);
  }
  for (size_t i = 0; i < moving->count; ++i) aim(moving, i, 0);
  gcap_graph_values_aim(&moving->values, moving->relocation, /*given=*/NULL);
  aim(moving, buffer, (uintptr_t)address);
  if (address == NULL) GCAP_RETURN_IF_ERROR(gcap_graph_moving_check(moving, slot->id, buffer, address));
  GCAP_RETURN_IF_ERROR(check_memory(slot));
  GCAP_RETURN_IF_ERROR(check_reach(slot));
  bool is_refused = false;
  return gcap_graph_apply_bind(slot, &is_refused);
}

bool gcap_graph_lies(gcap_graph_slot_t* slot, const gcap_graph_buffers_t* buffers) {
  gcap_graph_moving_t* moving = slot->graph->moving;
  if (moving == NULL || buffers->count != moving->count) return true;
  for (size_t i = 0; i < moving->count; ++i) {
    if (buffers->items[i].bytes != moving->buffers[i].bytes) return true;
    aim(moving, i, (uintptr_t)buffers->items[i].address);
  }
  return gcap_graph_moving_lies(moving);
}

gcap_status_t gcap_graph_check_alone(const gcap_graph_slot_t* slot) {
  if (slot->has_lost_later) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "graph id %d had another graph, whose run named its buffers later, and which was evicted: give "
                       "each replay its buffers (gcap_run_t.buffers)",
                       slot->id);
  }
  if (!slot->is_variant && slot->variant == NULL) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "graph id %d has several graphs, one for each set of decisions and for each way that buffers lie "
                     "to one another: give each replay its buffers (gcap_run_t.buffers)",
                     slot->id);
}

gcap_status_t gcap_graph_manager_bind(gcap_graph_manager_t* manager, int id, size_t buffer, void* address) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = NULL;
  gcap_status_t status = gcap_graph_find_replayable(manager, id, &slot);
  if (status == NULL) status = gcap_graph_check_alone(slot);
  if (status == NULL && slot->graph == manager->in_hole) status = gcap_graph_check_no_hole(manager);
  if (status == NULL) status = bind_one(slot, buffer, address);
  if (status == NULL) gcap_graph_slot_note_named(manager, slot);
  status = gcap_graph_name_failure(slot, status);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

// A wrong count is refused elsewhere.
bool gcap_graph_is_fixed_for(gcap_graph_slot_t* slot, const gcap_graph_moving_t* run) {
  gcap_graph_moving_t* moving = slot->graph->moving;
  if (moving == NULL) return true;
  if (moving->count != run->count || moving->values.count != run->values.count) return false;
  for (size_t i = 0; i < run->count; ++i) aim(moving, i, run->buffers[i].address);
  gcap_graph_values_aim_at(&moving->values, &run->values);
  if (gcap_graph_moving_reaches(moving)) return false;
  gcap_status_free(moving->conflict);
  moving->conflict = gcap_graph_moving_explain(moving);
  return true;
}
