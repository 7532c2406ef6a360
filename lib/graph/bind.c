// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Binding. All addresses are checked before the first node is touched, so a refusal changes nothing.
//
// Locking: the manager's mutex is held over the checks, which ask the driver what memory an address is in, and over the
// setting of nodes: a launch of another thread has all addresses of a bind, or none.

#include "lib/graph/bind.h"

#include "lib/graph/audit.h"
#include "lib/internal/cuda_guard.h"

static uintptr_t address_of(const gcap_graph_moving_t* moving, size_t buffer) {
  if (moving->relocation != NULL) return moving->relocation->buffers[buffer].address;
  return moving->buffers[buffer].address;
}

static gcap_status_t check_has_buffers(const gcap_graph_slot_t* slot) {
  if (slot->graph->moving != NULL) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "graph id %d was captured without buffers: give its runs buffers (gcap_run_t.buffers)", slot->id);
}

// Notes the address for the next apply, if it is another one.
static gcap_status_t plan(gcap_graph_slot_t* slot, size_t buffer, const void* address) {
  gcap_graph_moving_t* moving = slot->graph->moving;
  moving->addresses[buffer] = 0;
  if ((uintptr_t)address == address_of(moving, buffer)) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_moving_check(moving, slot->id, buffer, address));
  if (moving->relocation == NULL) {
    return gcap_status_annotate(gcap_status_clone(moving->refusal), GCAP_FAILED_PRECONDITION,
                                "graph id %d cannot be moved: buffer %zu '%s' stays at %p", slot->id, buffer,
                                moving->buffers[buffer].name, (void*)address_of(moving, buffer));
  }
  moving->addresses[buffer] = (uintptr_t)address;
  return NULL;
}

// On the graph's device, since the runtime sets copies and fills for the current one.
static gcap_status_t move(const gcap_graph_slot_t* slot, bool* out_torn) {
  gcap_graph_captured_t* graph = slot->graph;
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(graph->device_id, &previous));
  gcap_status_t status =
      gcap_relocation_move(graph->moving->relocation, graph->exec, graph->moving->addresses, out_torn);
  return gcap_status_join(status, gcap_thread_leave(graph->device_id, &previous));
}

static gcap_status_t apply(gcap_graph_slot_t* slot) {
  gcap_graph_moving_t* moving = slot->graph->moving;
  if (moving->relocation == NULL) return NULL;  // all stay
  bool is_torn = false;
  gcap_status_t status = move(slot, &is_torn);
  if (status == NULL) return gcap_graph_note_moved(slot);
  if (is_torn) slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_RECAPTURE);
  return gcap_status_annotate(status, gcap_status_code(status), "graph id %d could not be moved%s", slot->id,
                              is_torn ? ", nor put back: its next run is captured again" : "");
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

gcap_status_t gcap_graph_bind_all(gcap_graph_slot_t* slot, const gcap_graph_buffers_t* buffers) {
  GCAP_RETURN_IF_ERROR(check_has_buffers(slot));
  GCAP_RETURN_IF_ERROR(check_sizes(slot->graph->moving, slot->id, buffers));
  for (size_t i = 0; i < buffers->count; ++i) GCAP_RETURN_IF_ERROR(plan(slot, i, buffers->items[i].address));
  return apply(slot);
}

static gcap_status_t bind_one(gcap_graph_slot_t* slot, size_t buffer, void* address) {
  GCAP_RETURN_IF_ERROR(check_has_buffers(slot));
  gcap_graph_moving_t* moving = slot->graph->moving;
  if (buffer >= moving->count) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: there is no buffer %zu, the graph has %zu", slot->id,
                       buffer, moving->count);
  }
  for (size_t i = 0; i < moving->count; ++i) moving->addresses[i] = 0;
  GCAP_RETURN_IF_ERROR(plan(slot, buffer, address));
  return apply(slot);
}

gcap_status_t gcap_graph_manager_bind(gcap_graph_manager_t* manager, int id, size_t buffer, void* address) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = NULL;
  gcap_status_t status = gcap_graph_find_replayable(manager, id, &slot);
  if (status == NULL) status = bind_one(slot, buffer, address);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

// An address that the graph cannot be moved to, whatever memory it is.
static bool is_out_of_reach(const gcap_graph_moving_t* moving, size_t buffer, uintptr_t address) {
  if (address == 0 || address == address_of(moving, buffer)) return false;
  return moving->relocation == NULL || address % moving->buffers[buffer].alignment != 0;
}

// A wrong count, or size, is refused elsewhere.
bool gcap_graph_is_fixed(const gcap_graph_slot_t* slot, const gcap_graph_buffers_t* buffers) {
  const gcap_graph_moving_t* moving = slot->graph->moving;
  bool is_fixed = moving == NULL;
  for (size_t i = 0; moving != NULL && moving->count == buffers->count && i < buffers->count; ++i) {
    if (buffers->items[i].bytes != moving->buffers[i].bytes) return false;
    is_fixed |= is_out_of_reach(moving, i, (uintptr_t)buffers->items[i].address);
  }
  return is_fixed;
}

bool gcap_graph_is_fixed_for(const gcap_graph_slot_t* slot, const gcap_graph_moving_t* run) {
  const gcap_graph_moving_t* moving = slot->graph->moving;
  bool is_fixed = moving == NULL;
  for (size_t i = 0; moving != NULL && moving->count == run->count && i < run->count; ++i) {
    is_fixed |= is_out_of_reach(moving, i, run->buffers[i].address);
  }
  return is_fixed;
}
