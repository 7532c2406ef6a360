// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Buffers that move: checked and copied, rehearsed at stand-ins, then bound. Nothing here is shared, so nothing is
// locked: a moving belongs to its run, its slot or its graph.

#include "lib/graph/moving.h"

#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "lib/contents/inner.h"

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
  *out_place = (gcap_graph_place_t){.type = memory.type, .device = memory.device};
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
  // One block: the struct, three arrays, the names.
  const size_t each = sizeof(gcap_moving_buffer_t) + sizeof(gcap_graph_place_t) + sizeof(uintptr_t) + 1;
  size_t bytes = 0;
  const bool too_many = __builtin_mul_overflow(buffers->count, each, &bytes) ||
                        __builtin_add_overflow(bytes, sizeof(gcap_graph_moving_t) + name_bytes, &bytes);
  gcap_graph_moving_t* moving = too_many ? NULL : calloc(1, bytes);
  if (moving == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu buffers", buffers->count);
  moving->count = buffers->count;
  moving->buffers = (gcap_moving_buffer_t*)(moving + 1);
  moving->places = (gcap_graph_place_t*)(moving->buffers + moving->count);
  moving->addresses = (uintptr_t*)(moving->places + moving->count);
  moving->needs_memory = buffers->stand_ins == GCAP_GRAPH_STAND_INS_MEMORY;
  char* names = (char*)(moving->addresses + moving->count);
  gcap_status_t status = NULL;
  for (size_t i = 0; status == NULL && i < moving->count; ++i) {
    status = copy_buffer(&buffers->items[i], &moving->buffers[i], &moving->places[i], &names);
  }
  if (status == NULL) *out_moving = moving;
  return status == NULL ? NULL : gcap_status_join(status, gcap_graph_moving_destroy(moving));
}

gcap_status_t gcap_graph_moving_destroy(gcap_graph_moving_t* moving) {
  if (moving == NULL) return NULL;
  gcap_status_t status = gcap_stand_ins_destroy(&moving->stand_ins);
  gcap_contents_free(&moving->rehearsed);
  gcap_relocation_destroy(moving->relocation);
  gcap_status_free(moving->refusal);
  free(moving);
  return status;
}

// --- Rehearsals -----------------------------------------------------------------------------------------------------

static bool is_alike(const gcap_graph_moving_t* a, const gcap_graph_moving_t* b) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; ++i) {
    if (a->buffers[i].bytes != b->buffers[i].bytes || a->buffers[i].alignment != b->buffers[i].alignment) return false;
  }
  return true;
}

void gcap_graph_moving_adopt(gcap_graph_moving_t* moving, gcap_graph_moving_t* earlier) {
  if (earlier == NULL || !is_alike(moving, earlier)) return;
  moving->needs_memory = earlier->needs_memory;
  moving->is_rehearsed = earlier->is_rehearsed;
  moving->rehearsed = earlier->rehearsed;
  earlier->rehearsed = (gcap_contents_t){0};
  earlier->is_rehearsed = false;
  for (size_t i = 0; i < moving->count; ++i) moving->buffers[i].stand_in = earlier->buffers[i].stand_in;
}

static gcap_status_t find_stand_ins(gcap_graph_moving_t* moving, cudaStream_t stream) {
  int device_id = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(stream, &device_id)));
  return gcap_stand_ins_create(moving->buffers, moving->count, device_id, moving->needs_memory, &moving->stand_ins);
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

gcap_status_t gcap_graph_moving_end_rehearsal(gcap_graph_moving_t* moving, cudaGraph_t graph) {
  gcap_status_t status = gcap_contents_read(graph, /*with_arguments=*/true, &moving->rehearsed);
  moving->is_rehearsed = status == NULL;
  return gcap_status_join(status, gcap_stand_ins_destroy(&moving->stand_ins));
}

// So looks a graph whose only pointer to a buffer lies in device memory.
static void warn_of_unread(const gcap_graph_moving_t* moving, int id) {
  const size_t* first = moving->relocation->first_word;
  for (size_t i = 0; i < moving->count; ++i) {
    if (first[i] != first[i + 1]) continue;
    gcap_log(GCAP_LOG_WARNING,
             "graph id %d has no pointer into its buffer %zu '%s' among its arguments: binding it changes nothing", id,
             i, moving->buffers[i].name);
  }
}

static bool is_word(const gcap_relocation_t* relocation, size_t buffer, size_t node, size_t offset) {
  for (size_t i = relocation->first_word[buffer]; i < relocation->first_word[buffer + 1]; ++i) {
    if (relocation->words[i].node == node && relocation->words[i].offset == offset) return true;
  }
  return false;
}

// The first argument that is an address in the buffer, and was the same in the rehearsal: the work has it from
// elsewhere.
static bool find_fixed_word(const gcap_relocation_t* relocation, size_t buffer, char* text, size_t capacity) {
  const gcap_contents_t* contents = relocation->contents;
  for (size_t i = 0; i < contents->count; ++i) {
    const gcap_contents_node_t* node = &contents->nodes[i];
    for (size_t at = 0; node->type == cudaGraphNodeTypeKernel && at + sizeof(uintptr_t) <= node->bytes; at += 8) {
      uintptr_t word;
      memcpy(&word, gcap_contents_bytes_of(contents, node) + at, sizeof(word));
      if (word - relocation->buffers[buffer].address >= relocation->buffers[buffer].bytes) continue;
      if (is_word(relocation, buffer, i, at)) continue;
      gcap_contents_write_node(contents, node, text, capacity);
      return true;
    }
  }
  return false;
}

static void warn_of_fixed_words(const gcap_graph_moving_t* moving, int id) {
  char node[256];
  for (size_t i = 0; i < moving->count; ++i) {
    if (!find_fixed_word(moving->relocation, i, node, sizeof(node))) continue;
    gcap_log(GCAP_LOG_WARNING,
             "graph id %d: %s has an address in buffer %zu '%s' that it did not get from the run, so a bind does not "
             "change that address",
             id, node, i, moving->buffers[i].name);
  }
}

gcap_status_t gcap_graph_moving_relocate(gcap_graph_moving_t* moving, int id, gcap_contents_t* contents) {
  if (!moving->is_rehearsed) return NULL;  // its refusal says why
  gcap_status_t status =
      gcap_relocation_create(contents, &moving->rehearsed, moving->buffers, moving->count, &moving->relocation);
  gcap_contents_free(&moving->rehearsed);
  if (moving->relocation != NULL) {
    warn_of_unread(moving, id);
    warn_of_fixed_words(moving, id);
  }
  if (gcap_status_code(status) != GCAP_FAILED_PRECONDITION) return status;
  moving->refusal = status;
  return NULL;
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

gcap_status_t gcap_graph_moving_check(const gcap_graph_moving_t* moving, int id, size_t buffer, const void* pointer) {
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
  return memory.bytes != 0 ? check_range(moving, id, buffer, memory, address) : NULL;
}
