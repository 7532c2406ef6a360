// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Audits of captured graphs. The notes belong to the captured graph, as its executable does, and name what the manager
// knows and a graph does not: the run's buffers and bindings, and what the capture retained.
//
// Locking: notes are made without the manager's mutex, by the thread of the run, and looked at with it. What an audit
// tells is copied under the mutex, and told without.

#include "lib/graph/audit.h"

#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "lib/contents/inner.h"
#include "lib/graph/inner.h"
#include "lib/internal/forked.h"
#include "lib/internal/grow.h"

// --- Notes ----------------------------------------------------------------------------------------------------------

typedef struct owned_list {
  gcap_owned_t* items;  // NULL: only count
  size_t count;
} owned_list_t;

static void add_owned(owned_list_t* list, gcap_graph_owner_t owner, const char* name, const void* start, size_t bytes) {
  if (list->items != NULL) {
    list->items[list->count] = (gcap_owned_t){.owner = owner, .name = name, .start = (uintptr_t)start, .bytes = bytes};
  }
  ++list->count;
}

static void add_buffer(owned_list_t* list, const gcap_moving_buffer_t* buffer) {
  add_owned(list, GCAP_GRAPH_OWNER_BUFFER, buffer->name, (const void*)buffer->address, buffer->bytes);
  if (list->items != NULL) list->items[list->count - 1].is_named = true;
}

static void add_retained(void* list, const void* user) {
  if (user != NULL) add_owned(list, GCAP_GRAPH_OWNER_RETAINED, "", user, 1);
}

// Of bindings and entries the first byte alone is known.
static void list_owned(const gcap_graph_captured_t* captured, owned_list_t* list) {
  const gcap_graph_moving_t* moving = captured->moving;
  for (size_t i = 0; moving != NULL && i < moving->count; ++i) add_buffer(list, &moving->buffers[i]);
  const gcap_graph_signature_t* signature = captured->signature;
  for (size_t i = 0; signature != NULL && i < signature->count; ++i) {
    add_owned(list, GCAP_GRAPH_OWNER_BUFFER, signature->bindings[i].name, signature->bindings[i].address, 1);
  }
  for (size_t i = 0; i < captured->taps.count; ++i) {
    const gcap_graph_made_tap_t* tap = &captured->taps.items[i];
    add_owned(list, GCAP_GRAPH_OWNER_RETAINED, tap->label, tap->memory, tap->bytes);
  }
  gcap_retained_each(captured->retained, add_retained, list);
}

static gcap_status_t make_notes(const gcap_graph_manager_t* manager, gcap_graph_captured_t* captured) {
  owned_list_t list = {0};
  list_owned(captured, &list);
  list.items = calloc(list.count + 1, sizeof(*list.items));
  if (list.items == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the notes of a graph");
  list.count = 0;
  list_owned(captured, &list);
  const gcap_audit_subject_t subject = {
      .contents = &captured->contents,
      .finder = {manager->options.find_block, manager->options.find_block_user},
      .owned = list.items,
      .num_owned = list.count,
      .relocation = captured->moving != NULL ? captured->moving->relocation : NULL,
  };
  gcap_status_t status = gcap_notes_make(&subject, &captured->notes);
  free(list.items);
  return status;
}

gcap_status_t gcap_graph_note_memory(const gcap_graph_manager_t* manager, gcap_graph_captured_t* captured) {
  if (manager->options.audit == GCAP_GRAPH_AUDIT_OFF) return NULL;
  GCAP_RETURN_IF_ERROR(make_notes(manager, captured));
  gcap_status_t finding = gcap_notes_check(captured->notes);
  if (manager->audits_replays || gcap_status_code(finding) != GCAP_FAILED_PRECONDITION) return finding;
  gcap_log(GCAP_LOG_WARNING, "graph id %d: %s", captured->id, gcap_status_message(finding));
  gcap_status_free(finding);
  return NULL;
}

gcap_status_t gcap_graph_note_moved(gcap_graph_slot_t* slot) {
  gcap_graph_captured_t* captured = slot->graph;
  if (captured->notes == NULL) return NULL;
  gcap_status_t status = gcap_notes_follow(captured->notes, captured->moving->relocation);
  if (status == NULL) return NULL;
  slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_RECAPTURE);
  return gcap_status_annotate(status, gcap_status_code(status),
                              "graph id %d was moved, but not its notes: its next run is captured again", slot->id);
}

gcap_status_t gcap_graph_note_named(const gcap_graph_captured_t* captured) {
  if (captured->notes == NULL) return NULL;
  gcap_status_t status = gcap_notes_name(captured->notes);
  return status == NULL ? NULL : gcap_status_annotate(status, gcap_status_code(status), "graph id %d", captured->id);
}

gcap_status_t gcap_graph_check_memory(const gcap_graph_captured_t* captured) {
  gcap_status_t status = gcap_notes_check(captured->notes);
  return status == NULL ? NULL : gcap_status_annotate(status, gcap_status_code(status), "graph id %d", captured->id);
}

// --- On demand ------------------------------------------------------------------------------------------------------

// A copy of what an audit told.
typedef struct copied {
  gcap_graph_pointer_t pointer;
  char node[256], place[64], memory[448], now[384];
} copied_t;

typedef struct copies {
  copied_t* items;
  size_t count, room;
  bool is_short;  // of host memory
} copies_t;

static void copy_text(char* to, size_t capacity, const char* from) {
  const size_t length = strnlen(from, capacity - 1);
  memcpy(to, from, length);
  to[length] = '\0';
}

static void copy_pointer(void* user, const gcap_graph_pointer_t* pointer) {
  copies_t* copies = user;
  const bool has_room = gcap_grow(&copies->items, &copies->room, copies->count + 1, sizeof(*copies->items));
  copies->is_short |= !has_room;
  if (!has_room) return;
  copied_t* copy = &copies->items[copies->count++];
  copy->pointer = *pointer;
  copy_text(copy->node, sizeof(copy->node), pointer->node_text);
  copy_text(copy->place, sizeof(copy->place), pointer->place);
  copy_text(copy->memory, sizeof(copy->memory), pointer->memory);
  copy_text(copy->now, sizeof(copy->now), pointer->is_finding ? pointer->now : "");
}

static void tell_copies(const copies_t* copies, gcap_graph_pointer_fn on_pointer, void* user) {
  for (size_t i = 0; i < copies->count; ++i) {
    const copied_t* copy = &copies->items[i];
    gcap_graph_pointer_t pointer = copy->pointer;
    pointer.node_text = copy->node;
    pointer.place = copy->place;
    pointer.memory = copy->memory;
    pointer.now = pointer.is_finding ? copy->now : NULL;
    on_pointer(user, &pointer);
  }
}

// Called with the mutex. Of each graph of the id that replays.
static gcap_status_t audit(gcap_graph_manager_t* manager, int id, gcap_graph_pointer_fn on_pointer, copies_t* copies,
                           size_t* out_findings) {
  gcap_graph_slot_t* slot = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_find_replayable(manager, id, &slot));
  for (; slot != NULL; slot = slot->variant) {
    if (slot->info.state != GCAP_GRAPH_CAPTURED) continue;
    if (slot->graph->notes == NULL) {
      return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                         "graph id %d was captured without notes of its memory: set the manager's option audit", id);
    }
    size_t findings = 0;
    GCAP_RETURN_IF_ERROR(
        gcap_graph_audit(slot->graph->notes, on_pointer == NULL ? NULL : copy_pointer, copies, &findings));
    *out_findings += findings;
  }
  if (!copies->is_short) return NULL;
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "graph id %d: no host memory to tell of its pointers", id);
}

gcap_status_t gcap_graph_manager_audit(gcap_graph_manager_t* manager, int id, gcap_graph_pointer_fn on_pointer,
                                       void* user, size_t* out_findings) {
  if (out_findings != NULL) *out_findings = 0;
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  copies_t copies = {0};
  size_t findings = 0;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = audit(manager, id, on_pointer, &copies, &findings);
  status = gcap_graph_name_failure(gcap_graph_find_slot(manager, id), status);
  if (status == NULL) gcap_graph_hold_locked(manager);
  pthread_mutex_unlock(&manager->mutex);
  if (status == NULL) {
    if (out_findings != NULL) *out_findings = findings;
    tell_copies(&copies, on_pointer, user);
    gcap_graph_manager_let_go(manager);
  }
  free(copies.items);
  return status;
}
