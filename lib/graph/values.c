// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Values that change: copied and checked when a run begins, and compared at each replay. They share the rehearsals, the
// proof and the setting of nodes with the buffers of their run. Nothing here is shared, so nothing is locked: the
// values belong to the run, the slot or the graph that their buffers belong to.

#include "lib/graph/values.h"

#include <stdlib.h>
#include <string.h>

// --- Life -----------------------------------------------------------------------------------------------------------

static gcap_status_t check_given(const gcap_graph_value_t* value, size_t index) {
  const char* name = value->name != NULL ? value->name : "";
  const bool has_others = value->in_memory || (value->low != NULL && value->high != NULL);
  if (value->data == NULL || !has_others) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "value %zu '%s' has data at %p, and others at %p and %p: none of them may be NULL", index, name,
                       value->data, value->low, value->high);
  }
  if (value->bytes >= 1 && value->bytes <= GCAP_GRAPH_VALUE_MAX_BYTES) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "value %zu '%s' has %zu bytes, allowed are 1..%d", index, name,
                     value->bytes, GCAP_GRAPH_VALUE_MAX_BYTES);
}

static gcap_status_t copy_value(const gcap_graph_value_t* given, size_t index, char** names,
                                gcap_changing_value_t* out_value) {
  GCAP_RETURN_IF_ERROR(check_given(given, index));
  const char* name = given->name != NULL ? given->name : "";
  const size_t bytes = strlen(name) + 1;
  *out_value = (gcap_changing_value_t){.name = memcpy(*names, name, bytes),
                                       .bytes = given->bytes,
                                       .type = given->type,
                                       .may_be_unused = given->may_be_unused};
  *names += bytes;
  memcpy(out_value->now.at, given->data, given->bytes);
  if (given->in_memory) {  // as one that no argument carries
    out_value->type = GCAP_GRAPH_VALUE_BYTES;
    out_value->may_be_unused = true;
    return NULL;
  }
  memcpy(out_value->low.at, given->low, given->bytes);
  memcpy(out_value->high.at, given->high, given->bytes);
  return gcap_value_check(out_value, index);
}

gcap_status_t gcap_graph_values_create(const gcap_graph_buffers_t* given, gcap_graph_values_t* out_values) {
  *out_values = (gcap_graph_values_t){0};
  const size_t count = given->num_values;
  if (count == 0) return NULL;
  size_t bytes = 0;  // one block: the values, what is wanted, room for a move, which are in memory, the names
  const size_t each = sizeof(gcap_changing_value_t) + 2 * sizeof(gcap_value_bytes_t) + sizeof(bool) + 1;
  const bool too_many = __builtin_mul_overflow(count, each, &bytes);
  for (size_t i = 0; !too_many && i < count; ++i) {
    if (given->values[i].name != NULL) bytes += strlen(given->values[i].name);
  }
  gcap_graph_values_t values = {.count = count, .items = too_many ? NULL : calloc(1, bytes)};
  if (values.items == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu values", count);
  values.wanted = (gcap_value_bytes_t*)(values.items + count);
  values.moved = values.wanted + count;
  values.is_in_memory = (bool*)(values.moved + count);
  char* names = (char*)(values.is_in_memory + count);
  gcap_status_t status = NULL;
  for (size_t i = 0; status == NULL && i < count; ++i) {
    status = copy_value(&given->values[i], i, &names, &values.items[i]);
  }
  if (status != NULL) return gcap_status_join(status, gcap_graph_values_end(&values));
  gcap_values_choose(values.items, count);
  for (size_t i = 0; i < count; ++i) {
    values.is_in_memory[i] = given->values[i].in_memory;
    values.num_in_memory += values.is_in_memory[i];
    for (size_t set = 0; values.is_in_memory[i] && set < GCAP_STAND_IN_SETS; ++set) {
      values.items[i].stand_ins[set] = values.items[i].now;
    }
  }
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

gcap_status_t gcap_graph_values_prepare(gcap_graph_values_t* values, cudaStream_t stream) {
  if (values->num_in_memory == 0 || values->block != NULL) return NULL;
  return gcap_graph_value_block_create(values->count * sizeof(*values->wanted), stream, &values->block);
}

static void aim_at_items(gcap_graph_values_t* values) {
  for (size_t i = 0; i < values->count; ++i) values->wanted[i] = values->items[i].now;
}

gcap_status_t gcap_graph_values_begin_eager(gcap_graph_values_t* values, cudaStream_t stream) {
  if (values->num_in_memory == 0) return NULL;
  gcap_graph_value_block_t* unused = values->block;  // of a capture that the driver did not begin
  values->block = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_value_block_destroy(unused));
  aim_at_items(values);
  return gcap_graph_value_block_create_eager(values->wanted, values->count * sizeof(*values->wanted), stream,
                                             &values->block);
}

gcap_status_t gcap_graph_values_end_eager(gcap_graph_values_t* values, cudaStream_t stream) {
  gcap_graph_value_block_t* block = values->block;
  values->block = NULL;
  return block != NULL ? gcap_graph_value_block_end_eager(block, stream) : NULL;
}

void gcap_graph_values_adopt(gcap_graph_values_t* values, gcap_graph_values_t* earlier) {
  if (values->num_in_memory == 0 || values->count != earlier->count) return;
  values->block = earlier->block;
  earlier->block = NULL;
}

const void* gcap_graph_values_place(const gcap_graph_values_t* values, size_t value, size_t set) {
  if (values->is_in_memory[value]) return values->block->device + value * sizeof(*values->wanted);
  const gcap_changing_value_t* item = &values->items[value];
  return set < GCAP_STAND_IN_SETS ? item->stand_ins[set].at : item->now.at;
}

gcap_status_t gcap_graph_values_write(gcap_graph_values_t* values, cudaStream_t stream) {
  return values->block != NULL ? gcap_graph_value_block_write(values->block, values->wanted, stream) : NULL;
}

gcap_status_t gcap_graph_values_write_first(gcap_graph_values_t* values, cudaStream_t stream) {
  aim_at_items(values);
  return gcap_graph_values_write(values, stream);
}

// --- Rehearsals -----------------------------------------------------------------------------------------------------

bool gcap_graph_values_are_alike(const gcap_graph_values_t* values, const gcap_graph_values_t* earlier) {
  if (values->count != earlier->count) return false;
  for (size_t i = 0; i < values->count; ++i) {
    const gcap_changing_value_t *a = &values->items[i], *b = &earlier->items[i];
    if (values->is_in_memory[i] != earlier->is_in_memory[i]) return false;
    if (values->is_in_memory[i]) continue;
    if (a->bytes != b->bytes || a->type != b->type || memcmp(&a->now, &b->now, sizeof(a->now)) != 0) return false;
    if (memcmp(a->stand_ins, b->stand_ins, sizeof(a->stand_ins)) != 0) return false;
  }
  return true;
}

// --- Replays --------------------------------------------------------------------------------------------------------

gcap_status_t gcap_graph_values_check_same(const gcap_graph_values_t* values, int id,
                                           const gcap_graph_buffers_t* given) {
  if (given->num_values != values->count) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: the run has %zu values, and the graph has %zu", id,
                       given->num_values, values->count);
  }
  for (size_t i = 0; i < values->count; ++i) {
    const gcap_changing_value_t* known = &values->items[i];
    const gcap_graph_value_t* value = &given->values[i];
    if (value->data == NULL) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: value %zu '%s' has no data", id, i, known->name);
    }
    if (value->in_memory != values->is_in_memory[i]) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: value %zu '%s' is %sin memory, and was %swhen captured",
                         id, i, known->name, value->in_memory ? "" : "not ", value->in_memory ? "not " : "");
    }
    if (value->bytes == known->bytes && (value->in_memory || value->type == known->type)) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "graph id %d: value %zu '%s' has %zu bytes of type %d, and had %zu of type %d when captured; to "
                       "capture others, release the id",
                       id, i, known->name, value->bytes, (int)value->type, known->bytes, (int)known->type);
  }
  return NULL;
}

const gcap_value_bytes_t* gcap_graph_values_present(const gcap_graph_values_t* values,
                                                    const gcap_relocation_t* relocation, size_t value) {
  if (values->is_in_memory[value]) return (const gcap_value_bytes_t*)values->block->written + value;
  return &(relocation != NULL ? gcap_relocation_values(relocation) : values->items)[value].now;
}

void gcap_graph_values_aim(gcap_graph_values_t* values, const gcap_relocation_t* relocation,
                           const gcap_graph_value_t* given) {
  for (size_t i = 0; i < values->count; ++i) {
    values->wanted[i] = *gcap_graph_values_present(values, relocation, i);
    if (given != NULL) memcpy(values->wanted[i].at, given[i].data, values->items[i].bytes);
  }
}

void gcap_graph_values_aim_at(gcap_graph_values_t* values, const gcap_graph_values_t* run) {
  for (size_t i = 0; i < values->count; ++i) values->wanted[i] = run->items[i].now;
}

bool gcap_graph_values_move(const gcap_graph_values_t* values, const gcap_relocation_t* relocation) {
  for (size_t i = 0; i < values->count; ++i) {
    const gcap_value_bytes_t* present = gcap_graph_values_present(values, relocation, i);
    if (values->is_in_memory[i]) continue;
    if (memcmp(&values->wanted[i], present, sizeof(*present)) != 0) return true;
  }
  return false;
}

bool gcap_graph_values_reach(const gcap_graph_values_t* values, const gcap_relocation_t* relocation) {
  for (size_t i = 0; i < values->count; ++i) {
    if (values->is_in_memory[i]) continue;
    if (!gcap_value_may_be(&values->items[i], &values->wanted[i])) return false;
    if (!gcap_relocation_keeps_bytes(relocation, i, &values->wanted[i])) return false;
  }
  return true;
}

gcap_status_t gcap_graph_values_explain(const gcap_graph_values_t* values, const gcap_relocation_t* relocation) {
  char wanted[80], low[80], high[80];
  for (size_t i = 0; i < values->count; ++i) {
    const gcap_changing_value_t* value = &values->items[i];
    if (values->is_in_memory[i]) continue;
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
