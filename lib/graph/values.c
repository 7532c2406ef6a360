// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Values that change: copied and checked when a run begins, and compared at each replay. They share the rehearsals, the
// proof and the setting of nodes with the buffers of their run. Nothing here is shared, so nothing is locked: the
// values belong to the run, the slot or the graph that their buffers belong to.

#include "lib/graph/values.h"

#include <stdlib.h>
#include <string.h>

#include "lib/internal/capture_check.h"

// --- Life -----------------------------------------------------------------------------------------------------------

// What the work finds in the block is aligned as any type.
#define BLOCK_ALIGNMENT ((size_t)16)

static gcap_status_t check_bytes(const gcap_graph_value_t* value, size_t index, const char* name) {
  const size_t most = value->in_memory ? GCAP_GRAPH_VALUE_IN_MEMORY_MAX_BYTES : GCAP_GRAPH_VALUE_MAX_BYTES;
  if (value->bytes >= 1 && value->bytes <= most) return NULL;
  if (value->in_memory) {
    return GCAP_STATUS(
        GCAP_INVALID_ARGUMENT,
        "value %zu '%s' is in memory and has %zu bytes, allowed are 1..%zu; name a larger one as a buffer", index, name,
        value->bytes, most);
  }
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "value %zu '%s' has %zu bytes, allowed are 1..%zu, and 1..%d of a value that is in_memory", index,
                     name, value->bytes, most, GCAP_GRAPH_VALUE_IN_MEMORY_MAX_BYTES);
}

static gcap_status_t check_given(const gcap_graph_value_t* value, size_t index) {
  const char* name = value->name != NULL ? value->name : "";
  const bool has_others = value->in_memory || (value->low != NULL && value->high != NULL);
  if (value->data != NULL && has_others) return check_bytes(value, index, name);
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "value %zu '%s' has data at %p, and others at %p and %p: none of them may be NULL", index, name,
                     value->data, value->low, value->high);
}

size_t gcap_graph_value_bytes_in_block(const gcap_graph_value_t* value) {
  return value->in_memory ? (value->bytes + BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT : 0;
}

gcap_status_t gcap_graph_values_measure(const gcap_graph_buffers_t* given, size_t* out_block_bytes) {
  *out_block_bytes = 0;
  for (size_t i = 0; i < given->num_values; ++i) {
    GCAP_RETURN_IF_ERROR(check_given(&given->values[i], i));
    *out_block_bytes += gcap_graph_value_bytes_in_block(&given->values[i]);
  }
  return NULL;
}

// One piece of memory: the values, what is wanted, what goes to the block, where it is there, the names.
static gcap_status_t allocate(const gcap_graph_buffers_t* given, gcap_graph_values_t* out_values) {
  const size_t count = given->num_values;
  size_t bytes = 0, block_bytes = 0;
  GCAP_RETURN_IF_ERROR(gcap_graph_values_measure(given, &block_bytes));
  const size_t each =
      sizeof(gcap_changing_value_t) + sizeof(gcap_value_bytes_t) + sizeof(gcap_graph_memory_value_t) + 1;
  bool too_many = __builtin_mul_overflow(count, each, &bytes);
  for (size_t i = 0; !too_many && i < count; ++i) {
    if (given->values[i].name != NULL) bytes += strlen(given->values[i].name);
  }
  too_many |= __builtin_add_overflow(bytes, block_bytes, &bytes);
  gcap_graph_values_t values = {.count = count, .block_bytes = block_bytes};
  values.items = too_many ? NULL : calloc(1, bytes);
  if (values.items == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu values", count);
  values.wanted = (gcap_value_bytes_t*)(values.items + count);
  values.in_block = (unsigned char*)(values.wanted + count);
  values.memory = (gcap_graph_memory_value_t*)(void*)(values.in_block + block_bytes);
  *out_values = values;
  return NULL;
}

// Of a value in memory the item is a byte that no argument carries.
static void copy_to_block(gcap_graph_values_t* values, const gcap_graph_value_t* given, size_t index, size_t* offset) {
  values->items[index].bytes = 1;
  values->items[index].type = GCAP_GRAPH_VALUE_BYTES;
  values->items[index].may_be_unused = true;
  values->memory[index] = (gcap_graph_memory_value_t){.offset = *offset, .bytes = given->bytes};
  memcpy(values->in_block + *offset, given->data, given->bytes);
  ++values->num_in_memory;
  *offset += gcap_graph_value_bytes_in_block(given);
}

static gcap_status_t copy_value(const gcap_graph_value_t* given, size_t index, gcap_changing_value_t* value) {
  value->bytes = given->bytes;
  value->type = given->type;
  value->may_be_unused = given->may_be_unused;
  memcpy(value->now.at, given->data, given->bytes);
  memcpy(value->low.at, given->low, given->bytes);
  memcpy(value->high.at, given->high, given->bytes);
  return gcap_value_check(value, index);
}

gcap_status_t gcap_graph_values_create(const gcap_graph_buffers_t* given, gcap_graph_values_t* out_values) {
  *out_values = (gcap_graph_values_t){0};
  if (given->num_values == 0) return NULL;
  gcap_graph_values_t values;
  GCAP_RETURN_IF_ERROR(allocate(given, &values));
  char* names = (char*)(values.memory + values.count);
  size_t offset = 0;
  gcap_status_t status = NULL;
  for (size_t i = 0; status == NULL && i < values.count; ++i) {
    const gcap_graph_value_t* value = &given->values[i];
    const char* name = value->name != NULL ? value->name : "";
    const size_t bytes = strlen(name) + 1;
    values.items[i].name = memcpy(names, name, bytes);
    names += bytes;
    if (value->in_memory) {
      copy_to_block(&values, value, i, &offset);
    } else {
      status = copy_value(value, i, &values.items[i]);
    }
  }
  if (status != NULL) return gcap_status_join(status, gcap_graph_values_end(&values));
  gcap_values_choose(values.items, values.count);
  *out_values = values;
  return NULL;
}

gcap_status_t gcap_graph_values_end(gcap_graph_values_t* values) {
  gcap_status_t status = gcap_graph_value_block_destroy(values->block);
  free(values->items);
  *values = (gcap_graph_values_t){0};
  return status;
}

// --- In memory ------------------------------------------------------------------------------------------------------

gcap_status_t gcap_graph_values_prepare(gcap_graph_values_t* values, cudaStream_t stream, bool* out_is_new) {
  gcap_graph_value_block_t* earlier = values->block;
  *out_is_new = false;
  bool serves = false;
  // The device of a stream that is capturing cannot be asked (rule R24 of the capture rules).
  if (values->num_in_memory != 0) {
    GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(stream, "a run with values in memory"));
  }
  if (earlier != NULL && values->num_in_memory != 0) {
    GCAP_RETURN_IF_ERROR(gcap_graph_value_block_serves(earlier, values->block_bytes, stream, &serves));
  }
  if (serves) return NULL;
  values->block = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_value_block_destroy(earlier));
  if (values->num_in_memory == 0) return NULL;
  *out_is_new = true;
  return gcap_graph_value_block_create(values->block_bytes, stream, &values->block);
}

gcap_status_t gcap_graph_values_begin_eager(gcap_graph_values_t* values, cudaStream_t stream) {
  if (values->num_in_memory == 0) return NULL;
  gcap_graph_value_block_t* unused = values->block;  // of a capture that the driver did not begin
  values->block = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_value_block_destroy(unused));
  return gcap_graph_value_block_create_eager(values->in_block, values->block_bytes, stream, &values->block);
}

gcap_status_t gcap_graph_values_end_eager(gcap_graph_values_t* values, cudaStream_t stream, bool is_drained) {
  gcap_graph_value_block_t* block = values->block;
  values->block = NULL;
  return block != NULL ? gcap_graph_value_block_end_eager(block, stream, is_drained) : NULL;
}

void gcap_graph_values_adopt(gcap_graph_values_t* values, gcap_graph_values_t* earlier) {
  values->block = earlier->block;
  earlier->block = NULL;
}

static bool is_in_memory(const gcap_graph_values_t* values, size_t value) { return values->memory[value].bytes != 0; }

const void* gcap_graph_values_place(const gcap_graph_values_t* values, size_t value, size_t set) {
  if (is_in_memory(values, value)) return values->block->device + values->memory[value].offset;
  const gcap_changing_value_t* item = &values->items[value];
  return set < GCAP_STAND_IN_SETS ? item->stand_ins[set].at : item->now.at;
}

gcap_status_t gcap_graph_values_write(gcap_graph_values_t* values, cudaStream_t stream) {
  return values->block != NULL ? gcap_graph_value_block_write(values->block, values->in_block, stream) : NULL;
}

gcap_status_t gcap_graph_values_settle(gcap_graph_values_t* values, cudaStream_t stream) {
  gcap_status_t status = values->block != NULL ? gcap_graph_value_block_settle(values->block, stream) : NULL;
  if (status != NULL) values->block = NULL;
  return status;
}

// --- Rehearsals -----------------------------------------------------------------------------------------------------

bool gcap_graph_values_are_alike(const gcap_graph_values_t* values, const gcap_graph_values_t* earlier) {
  if (values->count != earlier->count) return false;
  for (size_t i = 0; i < values->count; ++i) {
    const gcap_changing_value_t *a = &values->items[i], *b = &earlier->items[i];
    if (values->memory[i].bytes != earlier->memory[i].bytes) return false;
    if (a->bytes != b->bytes || a->type != b->type || memcmp(&a->now, &b->now, sizeof(a->now)) != 0) return false;
    if (memcmp(a->stand_ins, b->stand_ins, sizeof(a->stand_ins)) != 0) return false;
  }
  return true;
}

// --- Replays --------------------------------------------------------------------------------------------------------

static gcap_status_t check_same_bytes(const gcap_graph_values_t* values, int id, size_t value, size_t bytes) {
  if (bytes == values->memory[value].bytes) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "graph id %d: value %zu '%s' has %zu bytes in memory, and had %zu when captured; to capture "
                     "others, release the id",
                     id, value, values->items[value].name, bytes, values->memory[value].bytes);
}

gcap_status_t gcap_graph_values_check_same(const gcap_graph_values_t* values, int id,
                                           const gcap_graph_buffers_t* given) {
  if (given->num_values != values->count) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: the run has %zu values, and the graph has %zu", id,
                       given->num_values, values->count);
  }
  for (size_t i = 0; i < values->count; ++i) {
    const gcap_changing_value_t* known = &values->items[i];
    const gcap_graph_value_t* value = &given->values[i];
    const bool was_in_memory = is_in_memory(values, i);
    if (value->data == NULL) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: value %zu '%s' has no data", id, i, known->name);
    }
    if (value->in_memory != was_in_memory) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: value %zu '%s' is %sin memory, and was %swhen captured",
                         id, i, known->name, value->in_memory ? "" : "not ", value->in_memory ? "not " : "");
    }
    if (was_in_memory) {
      GCAP_RETURN_IF_ERROR(check_same_bytes(values, id, i, value->bytes));
      continue;
    }
    if (value->bytes == known->bytes && value->type == known->type) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "graph id %d: value %zu '%s' has %zu bytes of type %d, and had %zu of type %d when captured; to "
                       "capture others, release the id",
                       id, i, known->name, value->bytes, (int)value->type, known->bytes, (int)known->type);
  }
  return NULL;
}

const gcap_value_bytes_t* gcap_graph_values_present(const gcap_graph_values_t* values,
                                                    const gcap_relocation_t* relocation, size_t value) {
  return &(relocation != NULL ? gcap_relocation_values(relocation) : values->items)[value].now;
}

gcap_graph_value_t gcap_graph_values_as_given(const gcap_graph_values_t* values, const gcap_relocation_t* relocation,
                                              size_t value) {
  if (is_in_memory(values, value)) {
    const gcap_graph_memory_value_t* memory = &values->memory[value];
    return (gcap_graph_value_t){
        .data = values->block->written + memory->offset, .bytes = memory->bytes, .in_memory = true};
  }
  const gcap_changing_value_t* item = &values->items[value];
  const gcap_value_bytes_t* present = gcap_graph_values_present(values, relocation, value);
  return (gcap_graph_value_t){.data = present->at, .bytes = item->bytes, .type = item->type};
}

void gcap_graph_values_aim(gcap_graph_values_t* values, const gcap_relocation_t* relocation,
                           const gcap_graph_value_t* given) {
  for (size_t i = 0; i < values->count; ++i) {
    if (is_in_memory(values, i)) {
      const gcap_graph_memory_value_t* memory = &values->memory[i];
      if (given != NULL) memcpy(values->in_block + memory->offset, given[i].data, memory->bytes);
      continue;
    }
    values->wanted[i] = *gcap_graph_values_present(values, relocation, i);
    if (given != NULL) memcpy(values->wanted[i].at, given[i].data, values->items[i].bytes);
  }
}

void gcap_graph_values_aim_at(gcap_graph_values_t* values, const gcap_graph_values_t* run) {
  for (size_t i = 0; i < values->count; ++i) values->wanted[i] = run->items[i].now;
}

bool gcap_graph_values_move(const gcap_graph_values_t* values, const gcap_relocation_t* relocation) {
  for (size_t i = 0; i < values->count; ++i) {
    if (is_in_memory(values, i)) continue;
    const gcap_value_bytes_t* present = gcap_graph_values_present(values, relocation, i);
    if (memcmp(&values->wanted[i], present, sizeof(*present)) != 0) return true;
  }
  return false;
}

bool gcap_graph_values_reach(const gcap_graph_values_t* values, const gcap_relocation_t* relocation) {
  for (size_t i = 0; i < values->count; ++i) {
    if (is_in_memory(values, i)) continue;
    if (!gcap_value_may_be(&values->items[i], &values->wanted[i])) return false;
    if (!gcap_relocation_keeps_bytes(relocation, i, &values->wanted[i])) return false;
  }
  return true;
}

gcap_status_t gcap_graph_values_explain(const gcap_graph_values_t* values, const gcap_relocation_t* relocation) {
  char wanted[80], low[80], high[80];
  for (size_t i = 0; i < values->count; ++i) {
    const gcap_changing_value_t* value = &values->items[i];
    if (is_in_memory(values, i)) continue;
    gcap_value_write(value, &values->wanted[i], wanted, sizeof(wanted));
    gcap_value_write(value, &value->low, low, sizeof(low));
    gcap_value_write(value, &value->high, high, sizeof(high));
    if (!gcap_value_may_be(value, &values->wanted[i])) {
      return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "value %zu '%s' is %s, and was captured for %s to %s", i,
                         value->name, wanted, low, high);
    }
    if (gcap_relocation_keeps_bytes(relocation, i, &values->wanted[i])) continue;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "value %zu '%s' is %s, of which a byte is another one than in all captures", i, value->name,
                       wanted);
  }
  return NULL;
}
