// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Buffers that move: checked and copied, rehearsed at stand-ins, then bound, and values with them. Nothing here is
// shared, so nothing is locked: a moving belongs to its run, its slot or its graph.

#include "lib/graph/moving.h"

#include <stdlib.h>
#include <string.h>

// The alignment of an address that gives none: its own, up to this, which gcap's allocators and cudaMalloc give.
#define DEFAULT_ALIGNMENT ((size_t)256)
#define MAX_ALIGNMENT ((size_t)2 << 20)

// --- Places ---------------------------------------------------------------------------------------------------------

static const char* name_of_type(unsigned type) {
  switch (type) {
    case GCAP_DRIVER_NO_MEMORY: return "memory that the driver does not know";
    case GCAP_DRIVER_PINNED_MEMORY: return "pinned host memory";
    case GCAP_DRIVER_DEVICE_MEMORY: return "device memory";
    default: return "memory of another kind";
  }
}

// --- Life -----------------------------------------------------------------------------------------------------------

static size_t alignment_of(const gcap_graph_buffer_t* buffer) {
  if (buffer->alignment != 0) return buffer->alignment;
  const uintptr_t lowest = (uintptr_t)buffer->address & -(uintptr_t)buffer->address;
  return lowest < DEFAULT_ALIGNMENT ? lowest : DEFAULT_ALIGNMENT;
}

static gcap_status_t check_buffer(const gcap_graph_buffer_t* buffer, size_t index) {
  const char* name = buffer->name != NULL ? buffer->name : "";
  const uintptr_t address = (uintptr_t)buffer->address;
  const size_t alignment = alignment_of(buffer);
  if (address == 0 || buffer->bytes == 0 || buffer->bytes > SIZE_MAX - address) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "buffer %zu '%s' is %zu bytes at %p, allowed are an address and at least one byte", index, name,
                       buffer->bytes, buffer->address);
  }
  if ((alignment & (alignment - 1)) != 0 || alignment > MAX_ALIGNMENT) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "buffer %zu '%s' has the alignment %zu, allowed are 0 and powers of two up to %zu", index, name,
                       alignment, MAX_ALIGNMENT);
  }
  if (address % alignment == 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "buffer %zu '%s' is at %p, which is no multiple of its alignment %zu",
                     index, name, buffer->address, alignment);
}

gcap_status_t gcap_graph_moving_check_buffers(const gcap_graph_buffers_t* buffers) {
  for (size_t i = 0; i < buffers->count; ++i) GCAP_RETURN_IF_ERROR(check_buffer(&buffers->items[i], i));
  return NULL;
}

static gcap_status_t copy_buffer(const gcap_graph_buffer_t* buffer, gcap_moving_buffer_t* out_buffer,
                                 gcap_graph_place_t* out_place, char** names) {
  const char* name = buffer->name != NULL ? buffer->name : "";
  const size_t bytes = strlen(name) + 1;
  gcap_driver_allocation_t memory;
  GCAP_RETURN_IF_ERROR(gcap_driver_find_allocation((uintptr_t)buffer->address, &memory));
  *out_place = (gcap_graph_place_t){.type = memory.type, .device = memory.device, .buffer_id = memory.buffer_id};
  *out_buffer = (gcap_moving_buffer_t){.name = memcpy(*names, name, bytes),
                                       .address = (uintptr_t)buffer->address,
                                       .bytes = buffer->bytes,
                                       .alignment = alignment_of(buffer)};
  *names += bytes;
  return NULL;
}

gcap_status_t gcap_graph_moving_create(const gcap_graph_buffers_t* buffers, gcap_graph_moving_t** out_moving) {
  *out_moving = NULL;
  size_t name_bytes = 0;
  for (size_t i = 0; i < buffers->count; ++i) {
    if (buffers->items[i].name != NULL) name_bytes += strlen(buffers->items[i].name);
  }
  // One block: the struct, its arrays, the names.
  const size_t each = sizeof(gcap_moving_buffer_t) + sizeof(gcap_graph_place_t) + sizeof(gcap_graph_spot_t) +
                      sizeof(uintptr_t) + sizeof(bool) + 1;
  size_t bytes = 0;
  const bool too_many = __builtin_mul_overflow(buffers->count, each, &bytes) ||
                        __builtin_add_overflow(bytes, sizeof(gcap_graph_moving_t) + name_bytes, &bytes);
  gcap_graph_moving_t* moving = too_many ? NULL : calloc(1, bytes);
  if (moving == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu buffers", buffers->count);
  moving->count = buffers->count;
  moving->buffers = (gcap_moving_buffer_t*)(moving + 1);
  moving->places = (gcap_graph_place_t*)(moving->buffers + moving->count);
  moving->targets = (gcap_graph_spot_t*)(moving->places + moving->count);
  moving->addresses = (uintptr_t*)(moving->targets + moving->count);
  moving->may_be_unused = (bool*)(moving->addresses + moving->count);
  moving->needs_memory = buffers->stand_ins == GCAP_GRAPH_STAND_INS_MEMORY;
  moving->host_functions_may_stay = buffers->host_functions_may_stay;
  char* names = (char*)(moving->may_be_unused + moving->count);
  gcap_status_t status = NULL;
  for (size_t i = 0; status == NULL && i < moving->count; ++i) {
    status = copy_buffer(&buffers->items[i], &moving->buffers[i], &moving->places[i], &names);
    moving->may_be_unused[i] = buffers->may_be_unused != NULL && buffers->may_be_unused[i];
  }
  if (status == NULL) status = gcap_graph_values_create(buffers, &moving->values);
  if (status == NULL) *out_moving = moving;
  return status == NULL ? NULL : gcap_status_join(status, gcap_graph_moving_destroy(moving));
}

void gcap_graph_moving_forget_rehearsals(gcap_graph_moving_t* moving) {
  for (size_t set = 0; set < GCAP_STAND_IN_SETS; ++set) gcap_contents_free(&moving->rehearsed[set]);
  moving->num_rehearsed = 0;
  gcap_graph_stated_free(&moving->stated);
}

gcap_status_t gcap_graph_moving_destroy(gcap_graph_moving_t* moving) {
  if (moving == NULL) return NULL;
  gcap_status_t status = gcap_stand_ins_destroy(&moving->stand_ins);
  gcap_graph_moving_forget_rehearsals(moving);
  gcap_layout_free(&moving->layout);
  gcap_relocation_destroy(moving->relocation);
  status = gcap_status_join(status, gcap_graph_values_end(&moving->values));
  gcap_status_free(moving->refusal);
  gcap_status_free(moving->conflict);
  free(moving->spots);
  free(moving);
  return status;
}

// --- Rehearsals -----------------------------------------------------------------------------------------------------

// Whether what `b` rehearsed counts for `a`.
static bool is_alike(const gcap_graph_moving_t* a, const gcap_graph_moving_t* b) {
  const bool wants_memory = a->needs_memory && !b->needs_memory;
  if (a->count != b->count || wants_memory || !gcap_graph_values_are_alike(&a->values, &b->values)) return false;
  for (size_t i = 0; i < a->count; ++i) {
    if (a->buffers[i].bytes != b->buffers[i].bytes || a->buffers[i].alignment != b->buffers[i].alignment) return false;
    for (size_t set = 0; set < b->num_rehearsed; ++set) {  // a pointer that is equal in two captures is not found
      if (a->buffers[i].address == b->buffers[i].stand_ins[set]) return false;
    }
  }
  return gcap_layout_is_same(&a->layout, a->buffers, &b->layout, b->buffers) &&
         gcap_stand_ins_serve(a->buffers, &a->layout, b->buffers, &b->layout);
}

gcap_status_t gcap_graph_moving_adopt(gcap_graph_moving_t* moving, gcap_graph_moving_t* earlier) {
  GCAP_RETURN_IF_ERROR(gcap_layout_create(moving->buffers, moving->count, &moving->layout));
  if (earlier != NULL) gcap_graph_values_adopt(&moving->values, &earlier->values);
  if (earlier == NULL || !is_alike(moving, earlier)) return NULL;
  moving->needs_memory = earlier->needs_memory;
  moving->num_rehearsed = earlier->num_rehearsed;
  earlier->num_rehearsed = 0;
  moving->stated = earlier->stated;
  earlier->stated = (gcap_graph_stated_list_t){0};
  for (size_t set = 0; set < GCAP_STAND_IN_SETS; ++set) {
    moving->rehearsed[set] = earlier->rehearsed[set];
    earlier->rehearsed[set] = (gcap_contents_t){0};
    for (size_t i = 0; i < moving->count; ++i) {
      moving->buffers[i].stand_ins[set] = earlier->buffers[i].stand_ins[set];
    }
  }
  return NULL;
}

bool gcap_graph_moving_needs_rehearsal(const gcap_graph_moving_t* moving) {
  if (gcap_graph_values_num_rehearsed(&moving->values) != 0) return moving->num_rehearsed < GCAP_STAND_IN_SETS;
  if (moving->num_rehearsed == 0) return moving->count != 0 || moving->values.count == 0;
  return moving->num_rehearsed == 1 && gcap_stand_ins_need_second(moving->buffers, &moving->layout);
}

static gcap_status_t find_stand_ins(gcap_graph_moving_t* moving, cudaStream_t stream) {
  if (moving->count == 0) return NULL;
  int device_id = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(stream, &device_id)));
  return gcap_stand_ins_create(moving->buffers, &moving->layout, moving->num_rehearsed, device_id, moving->needs_memory,
                               &moving->stand_ins);
}

bool gcap_graph_moving_open_rehearsal(gcap_graph_moving_t* moving, cudaStream_t stream) {
  gcap_status_t status = find_stand_ins(moving, stream);
  if (status != NULL && !moving->needs_memory) {
    moving->needs_memory = true;
    gcap_status_t first = status;
    status = find_stand_ins(moving, stream);
    if (status == NULL) {
      gcap_status_free(first);
    } else {
      status = gcap_status_join(first, status);
    }
  }
  moving->refusal = status;
  return status == NULL;
}

void gcap_graph_moving_place(const gcap_graph_moving_t* moving, bool is_rehearsal, void** out_addresses) {
  const size_t set = moving->num_rehearsed;
  for (size_t i = 0; i < moving->count; ++i) {
    const gcap_moving_buffer_t* buffer = &moving->buffers[i];
    out_addresses[i] = (void*)(is_rehearsal ? buffer->stand_ins[set] : buffer->address);
  }
  for (size_t i = 0; i < moving->values.count; ++i) {
    out_addresses[moving->count + i] =
        (void*)gcap_graph_values_place(&moving->values, i, is_rehearsal ? set : GCAP_STAND_IN_SETS);
  }
}

gcap_status_t gcap_graph_moving_end_rehearsal(gcap_graph_moving_t* moving, const cudaGraph_t* graphs, size_t count) {
  const size_t set = moving->num_rehearsed;
  gcap_contents_t* contents = &moving->rehearsed[set];
  gcap_status_t status = gcap_contents_read_all(graphs, count, /*with_arguments=*/true, contents);
  if (status == NULL) status = gcap_left_behind_note_sources(contents, moving->buffers, moving->count, set);
  if (status == NULL) {
    ++moving->num_rehearsed;
  } else {
    gcap_contents_free(contents);
  }
  return gcap_status_join(status, gcap_stand_ins_destroy(&moving->stand_ins));
}

// --- Whether a graph can be moved -----------------------------------------------------------------------------------

static gcap_status_t check_host_functions(const gcap_graph_moving_t* moving, const gcap_contents_t* contents) {
  for (size_t i = 0; !moving->host_functions_may_stay && i < contents->count; ++i) {
    if (contents->nodes[i].type != cudaGraphNodeTypeHost) continue;
    char where[256];
    gcap_contents_write_node(contents, &contents->nodes[i], where, sizeof(where));
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "%s: what a host function reads may depend on the addresses of buffers, unless "
                       "host_functions_may_stay says that it does not",
                       where);
  }
  return NULL;
}

static gcap_status_t check_used(const gcap_graph_moving_t* moving) {
  for (size_t i = 0; i < moving->count; ++i) {
    if (moving->may_be_unused[i] || gcap_relocation_uses(moving->relocation, &moving->layout, i)) continue;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "no argument points into buffer %zu '%s', so the pointer may come from memory, unless "
                       "may_be_unused says that there is none",
                       i, moving->buffers[i].name);
  }
  return NULL;
}

static gcap_status_t make_spots(gcap_graph_moving_t* moving) {
  moving->spots = calloc(moving->count + GCAP_GRAPH_MOVED_SPOTS, sizeof(*moving->spots));
  if (moving->spots == NULL)
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu places", moving->count);
  for (size_t i = 0; i < moving->count; ++i) {
    moving->spots[i] = (gcap_graph_spot_t){i, moving->buffers[i].address, moving->places[i].buffer_id};
  }
  moving->num_spots = moving->next_spot = moving->count;
  return NULL;
}

static gcap_status_t relocate(gcap_graph_moving_t* moving, gcap_contents_t* contents) {
  const gcap_relocation_rehearsals_t rehearsals = {moving->rehearsed, moving->num_rehearsed};
  GCAP_RETURN_IF_ERROR(check_host_functions(moving, contents));
  GCAP_RETURN_IF_ERROR(gcap_left_behind_note_sources(contents, moving->buffers, moving->count, GCAP_STAND_IN_SETS));
  const gcap_relocation_changes_t changes = {moving->buffers, moving->count, moving->values.items,
                                             moving->values.count};
  GCAP_RETURN_IF_ERROR(gcap_relocation_create(contents, &rehearsals, &changes, &moving->relocation));
  GCAP_RETURN_IF_ERROR(check_used(moving));
  return make_spots(moving);
}

gcap_status_t gcap_graph_moving_relocate(gcap_graph_moving_t* moving, gcap_contents_t* contents) {
  if (moving->refusal != NULL) return NULL;  // it was not rehearsed
  gcap_status_t status = relocate(moving, contents);
  for (size_t set = 0; set < GCAP_STAND_IN_SETS; ++set) gcap_contents_free(&moving->rehearsed[set]);
  if (gcap_status_code(status) == GCAP_RESOURCE_EXHAUSTED) return status;
  moving->refusal = status;
  return NULL;
}

void gcap_graph_moving_try(gcap_graph_moving_t* moving, const cudaGraphExec_t* execs) {
  if (gcap_graph_moving_stays(moving)) return;
  moving->refusal = gcap_relocation_check_nodes(moving->relocation, execs);
}

// --- Binding --------------------------------------------------------------------------------------------------------

#define INTO(moving, id, index) (id), (index), (moving)->buffers[index].name

// Memory may consist of several ranges one behind the other.
static gcap_status_t check_range(const gcap_graph_moving_t* moving, int id, size_t buffer,
                                 gcap_driver_allocation_t memory, uintptr_t address) {
  const uintptr_t end = address + moving->buffers[buffer].bytes;
  const gcap_graph_place_t* place = &moving->places[buffer];
  while (memory.start + memory.bytes < end) {
    const uintptr_t next = memory.start + memory.bytes;
    GCAP_RETURN_IF_ERROR(gcap_driver_find_allocation(next, &memory));
    const bool goes_on =
        memory.bytes != 0 && memory.start == next && memory.type == place->type && memory.device == place->device;
    if (goes_on) continue;
    return GCAP_STATUS(
        GCAP_INVALID_ARGUMENT, "graph id %d: buffer %zu '%s' has %zu bytes, and the memory at %p ends after %zu",
        INTO(moving, id, buffer), moving->buffers[buffer].bytes, (void*)address, (size_t)(next - address));
  }
  return NULL;
}

gcap_status_t gcap_graph_moving_check(gcap_graph_moving_t* moving, int id, size_t buffer, const void* pointer) {
  const gcap_moving_buffer_t* known = &moving->buffers[buffer];
  const gcap_graph_place_t* place = &moving->places[buffer];
  const uintptr_t address = (uintptr_t)pointer;
  if (address == 0 || known->bytes > SIZE_MAX - address) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: buffer %zu '%s' cannot be at %p", INTO(moving, id, buffer),
                       pointer);
  }
  if (address % known->alignment != 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "graph id %d: buffer %zu '%s' at %p is no multiple of %zu bytes, as it was when captured",
                       INTO(moving, id, buffer), pointer, known->alignment);
  }
  gcap_driver_allocation_t memory;
  GCAP_RETURN_IF_ERROR(gcap_driver_find_allocation(address, &memory));
  if (memory.type != place->type) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: buffer %zu '%s' at %p is %s, and was captured in %s",
                       INTO(moving, id, buffer), pointer, name_of_type(memory.type), name_of_type(place->type));
  }
  if (memory.device != place->device) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "graph id %d: buffer %zu '%s' at %p is on device %d, and was captured on device %d",
                       INTO(moving, id, buffer), pointer, memory.device, place->device);
  }
  moving->targets[buffer] = (gcap_graph_spot_t){buffer, address, memory.buffer_id};
  return memory.bytes != 0 ? check_range(moving, id, buffer, memory, address) : NULL;
}

// --- What is in reach -----------------------------------------------------------------------------------------------

// Why one buffer cannot be where it is to go; NULL: it can.
static const char* find_fault(const gcap_graph_moving_t* moving, size_t buffer) {
  const uintptr_t address = moving->addresses[buffer];
  if (address == 0) return NULL;
  if (address % moving->buffers[buffer].alignment != 0) return "less aligned than when it was captured";
  if (!gcap_relocation_is_clear(moving->relocation, buffer, address)) {
    return "on an address that the graph has beside its buffers and that does not move";
  }
  if (gcap_relocation_keeps_halves(moving->relocation, buffer, address)) return NULL;
  return "in another 4 GiB than the capture and the rehearsals, and has words that may be pointers or two numbers each";
}

bool gcap_graph_moving_moves(const gcap_graph_moving_t* moving) {
  bool is_moved = false;
  for (size_t i = 0; i < moving->count; ++i) is_moved |= moving->addresses[i] != 0;
  return is_moved || gcap_graph_values_move(&moving->values, moving->relocation);
}

bool gcap_graph_moving_reaches(gcap_graph_moving_t* moving) {
  if (gcap_graph_moving_stays(moving)) return !gcap_graph_moving_moves(moving);
  for (size_t i = 0; i < moving->count; ++i) {
    if (find_fault(moving, i) != NULL) return false;
  }
  if (!gcap_graph_values_reach(&moving->values, moving->relocation)) return false;
  gcap_layout_conflict_t conflict;
  return gcap_layout_holds(&moving->layout, gcap_relocation_buffers(moving->relocation), moving->addresses, &conflict);
}

static gcap_status_t explain_conflict(const gcap_graph_moving_t* moving, const gcap_layout_conflict_t* conflict) {
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "buffers %zu '%s' and %zu '%s' %s", conflict->a,
                     moving->buffers[conflict->a].name, conflict->b, moving->buffers[conflict->b].name, conflict->what);
}

gcap_status_t gcap_graph_moving_explain(gcap_graph_moving_t* moving) {
  if (gcap_graph_moving_stays(moving)) return gcap_status_clone(moving->refusal);
  for (size_t i = 0; i < moving->count; ++i) {
    const char* fault = find_fault(moving, i);
    if (fault == NULL) continue;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "buffer %zu '%s' at %p is %s", i, moving->buffers[i].name,
                       (void*)moving->addresses[i], fault);
  }
  GCAP_RETURN_IF_ERROR(gcap_graph_values_explain(&moving->values, moving->relocation));
  gcap_layout_conflict_t conflict;
  if (gcap_layout_holds(&moving->layout, gcap_relocation_buffers(moving->relocation), moving->addresses, &conflict))
    return NULL;
  return explain_conflict(moving, &conflict);
}

bool gcap_graph_moving_lies(gcap_graph_moving_t* moving) {
  const gcap_moving_buffer_t* buffers = gcap_graph_moving_buffers(moving);
  gcap_layout_conflict_t conflict;
  const bool lies = gcap_layout_holds(&moving->layout, buffers, moving->addresses, &conflict) &&
                    (!gcap_graph_moving_stays(moving) ||
                     gcap_layout_still_touches(&moving->layout, buffers, moving->addresses, &conflict));
  if (!lies) moving->passed_by = conflict;
  return lies;
}

gcap_status_t gcap_graph_moving_explain_passed(const gcap_graph_moving_t* moving) {
  return moving->passed_by.what != NULL ? explain_conflict(moving, &moving->passed_by) : NULL;
}

static void note_spot(gcap_graph_moving_t* moving, const gcap_graph_spot_t* spot) {
  for (size_t i = 0; i < moving->num_spots; ++i) {
    gcap_graph_spot_t* known = &moving->spots[i];
    if (known->address != spot->address || known->buffer != spot->buffer) continue;
    known->buffer_id = spot->buffer_id;
    return;
  }
  const size_t room = moving->count + GCAP_GRAPH_MOVED_SPOTS;
  moving->spots[moving->next_spot] = *spot;
  moving->next_spot = moving->next_spot + 1 < room ? moving->next_spot + 1 : moving->count;
  if (moving->num_spots < room) ++moving->num_spots;
}

void gcap_graph_moving_note_moved(gcap_graph_moving_t* moving) {
  bool has_moved = false;
  for (size_t i = 0; i < moving->count; ++i) {
    if (moving->targets[i].address == 0) continue;
    note_spot(moving, &moving->targets[i]);
    moving->targets[i].address = 0;
    has_moved = true;
  }
  moving->num_moves += has_moved;
}
