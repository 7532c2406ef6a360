// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Two slots of a state, compared on the host, a chunk of each at a time. Chunks with equal bytes, as nearly all are,
// are looked at no further: they have no difference, and no NaN that the other lacks.
//
// Nothing is locked, as in state.c.

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lib/internal/synchronize.h"
#include "lib/verify/elements.h"
#include "lib/verify/state.h"

// Where a slot has an address of the blocks.
static const char* place_of(const gcap_verify_state_t* state, size_t slot, const char* address) {
  if (slot == GCAP_VERIFY_NOW) return address;
  const size_t area = gcap_areas_find(state->areas, address);
  return state->slots[slot].memory + state->offsets[area] + (address - state->areas[area].begin);
}

static gcap_status_t read(const gcap_verify_state_t* state, size_t slot, const char* address, size_t bytes,
                          cudaStream_t stream, unsigned char* chunk) {
  return GCAP_CUDA(cudaMemcpyAsync(chunk, place_of(state, slot, address), bytes, cudaMemcpyDefault, stream));
}

bool gcap_verify_state_has(const gcap_verify_state_t* state, const void* address, size_t bytes) {
  for (size_t i = 0; i < state->num_areas; ++i) {
    const size_t at = (uintptr_t)address - (uintptr_t)state->areas[i].begin;
    if (at < state->areas[i].bytes) return bytes <= state->areas[i].bytes - at;
  }
  return false;
}

gcap_status_t gcap_verify_state_read(const gcap_verify_state_t* state, size_t slot, const void* address, size_t bytes,
                                     cudaStream_t stream, void* out_bytes) {
  GCAP_RETURN_IF_ERROR(read(state, slot, address, bytes, stream, out_bytes));
  return gcap_synchronize_stream(stream);
}

static void note_nan(gcap_verify_difference_t* difference, size_t block, size_t element) {
  if (difference->nan_block != SIZE_MAX) return;
  difference->nan_block = block;
  difference->nan_element = element;
}

static void note(gcap_verify_difference_t* difference, size_t block, size_t element, gcap_dtype_t type,
                 gcap_verify_element_t actual, gcap_verify_element_t expected) {
  if (difference->block == SIZE_MAX) {
    difference->block = block;
    difference->element = element;
    difference->actual = actual.number;
    difference->expected = expected.number;
    difference->actual_bits = actual.bits;
    difference->expected_bits = expected.bits;
  }
  ++difference->different;
  const double distance = gcap_verify_distance(type, actual, expected);
  if (distance > difference->largest_difference) difference->largest_difference = distance;
  if (isnan(actual.number) && !isnan(expected.number)) note_nan(difference, block, element);
}

// `first`: the index of the chunk's first element.
static void compare_chunk(const gcap_verify_state_t* state, size_t index, size_t first, size_t bytes,
                          gcap_verify_difference_t* difference) {
  const gcap_verify_block_t* block = &state->blocks[index];
  const unsigned char *expected = state->chunks, *actual = state->chunks + GCAP_VERIFY_CHUNK_BYTES;
  if (memcmp(expected, actual, bytes) == 0) return;
  const size_t step = gcap_dtype_bytes(block->type);
  for (size_t at = 0; at < bytes; at += step) {
    const gcap_verify_element_t a = gcap_verify_read_element(block->type, actual + at);
    const gcap_verify_element_t e = gcap_verify_read_element(block->type, expected + at);
    if (gcap_verify_is_near(block->type, a, e, block->absolute, block->relative)) continue;
    note(difference, index, first + at / step, block->type, a, e);
  }
}

static gcap_status_t compare_block(const gcap_verify_state_t* state, size_t index, size_t expected, size_t actual,
                                   cudaStream_t stream, gcap_verify_difference_t* difference) {
  const gcap_verify_block_t* block = &state->blocks[index];
  for (size_t at = 0; at < block->bytes; at += GCAP_VERIFY_CHUNK_BYTES) {
    const size_t left = block->bytes - at;
    const size_t now = left < GCAP_VERIFY_CHUNK_BYTES ? left : GCAP_VERIFY_CHUNK_BYTES;
    const char* address = (const char*)block->address + at;
    GCAP_RETURN_IF_ERROR(read(state, expected, address, now, stream, state->chunks));
    GCAP_RETURN_IF_ERROR(read(state, actual, address, now, stream, state->chunks + GCAP_VERIFY_CHUNK_BYTES));
    GCAP_RETURN_IF_ERROR(gcap_synchronize_stream(stream));
    compare_chunk(state, index, at / gcap_dtype_bytes(block->type), now, difference);
  }
  difference->compared_bytes += block->bytes;
  return NULL;
}

gcap_status_t gcap_verify_state_compare(gcap_verify_state_t* state, size_t expected, size_t actual, cudaStream_t stream,
                                        gcap_verify_difference_t* out_difference) {
  *out_difference = (gcap_verify_difference_t){.block = SIZE_MAX, .nan_block = SIZE_MAX};
  for (size_t i = 0; i < state->count; ++i) {
    if (!state->blocks[i].is_compared) continue;
    GCAP_RETURN_IF_ERROR(compare_block(state, i, expected, actual, stream, out_difference));
  }
  return NULL;
}

static void write_buffer(const gcap_verify_state_t* state, size_t index, gcap_text_t* text) {
  const char* name = state->blocks[index].name;
  size_t num_taps = 0;
  while (num_taps < state->count && state->blocks[num_taps].is_tap) ++num_taps;
  if (index < num_taps) {
    gcap_text_add(text, "tap '%s'", name);
  } else {
    gcap_text_add(text, "buffer %zu '%s'", index - num_taps, name != NULL ? name : "");
  }
}

void gcap_verify_write_difference(const gcap_verify_state_t* state, const gcap_verify_difference_t* difference,
                                  gcap_text_t* text) {
  const gcap_dtype_t type = state->blocks[difference->block].type;
  write_buffer(state, difference->block, text);
  gcap_text_add(text, " differs first in element %zu (%s): the replay has ", difference->element,
                type == GCAP_DTYPE_BOOL ? "a byte" : gcap_dtype_name(type));
  gcap_verify_write_element(type, difference->actual_bits, difference->actual, text);
  gcap_text_add(text, ", the work ");
  gcap_verify_write_element(type, difference->expected_bits, difference->expected, text);
  gcap_text_add(text, "; %" PRIu64 " of all elements differ, by %.9g at most", difference->different,
                difference->largest_difference);
  if (difference->nan_block == SIZE_MAX) return;
  gcap_text_add(text, "; the first NaN that the work has not is element %zu of ", difference->nan_element);
  write_buffer(state, difference->nan_block, text);
}
