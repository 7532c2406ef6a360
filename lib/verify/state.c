// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A state: the blocks as areas that share no byte, and slots of one piece of memory each, in which the areas lie one
// behind the other. All memory is there from the creation on, so a lack of it is known before anything is issued.
// Copies go in the order of the caller's stream.
//
// Nothing is locked: a state has one user at a time.

#include "lib/verify/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "lib/contents/inner.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/synchronize.h"

// Between two areas of a slot, so that each begins as aligned as an allocation.
#define ALIGNMENT ((size_t)256)

// --- The blocks -----------------------------------------------------------------------------------------------------

static gcap_status_t refuse(const gcap_verify_block_t* block, size_t index, const char* why) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "buffer %zu '%s' (%zu bytes at %p) cannot be verified: %s", index,
                     block->name != NULL ? block->name : "", block->bytes, block->address, why);
}

static gcap_status_t check_memory(const gcap_verify_block_t* block, size_t index) {
  const uintptr_t address = (uintptr_t)block->address;
  gcap_driver_allocation_t memory;
  GCAP_RETURN_IF_ERROR(gcap_driver_find_allocation(address, &memory));
  if (memory.type == GCAP_DRIVER_NO_MEMORY) return refuse(block, index, "the address is in no memory that CUDA knows");
  if (block->bytes > memory.start + memory.bytes - address) {
    return refuse(block, index, "it goes beyond the end of its allocation");
  }
  return NULL;
}

static gcap_status_t check_block(const gcap_verify_block_t* block, size_t index) {
  const size_t element_bytes = gcap_dtype_bytes(block->type);
  if (block->address == NULL || block->bytes == 0) return refuse(block, index, "it has no address, or no bytes");
  if (element_bytes == 0) return refuse(block, index, "its type is none of gcap_dtype_t");
  if (block->bytes % element_bytes != 0) return refuse(block, index, "its bytes are no multiple of an element's");
  if (!(block->absolute >= 0.0) || !(block->relative >= 0.0)) {
    return refuse(block, index, "a tolerance is a number of at least 0");
  }
  return check_memory(block, index);
}

static void lay_out(gcap_verify_state_t* state) {
  for (size_t i = 0; i < state->count; ++i) {
    state->areas[i] = (gcap_area_t){.begin = state->blocks[i].address, .bytes = state->blocks[i].bytes, .owner = i};
  }
  state->num_areas = gcap_areas_merge(state->areas, state->count);
  for (size_t i = 0; i < state->num_areas; ++i) {
    state->offsets[i] = state->bytes;
    state->bytes += (state->areas[i].bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
  }
}

static gcap_status_t no_host_memory(void) {
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to verify a run");
}

static gcap_status_t make_lists(gcap_verify_state_t* state, const gcap_verify_block_t* blocks) {
  state->blocks = calloc(state->count + 1, sizeof(*state->blocks));
  state->areas = calloc(state->count + 1, sizeof(*state->areas));
  state->offsets = calloc(state->count + 1, sizeof(*state->offsets));
  state->slots = calloc(state->num_slots + 1, sizeof(*state->slots));
  state->chunks = malloc(2 * GCAP_VERIFY_CHUNK_BYTES);
  if (state->blocks == NULL || state->areas == NULL || state->offsets == NULL || state->slots == NULL ||
      state->chunks == NULL) {
    return no_host_memory();
  }
  if (state->count > 0) memcpy(state->blocks, blocks, state->count * sizeof(*blocks));
  return NULL;
}

// --- The slots ------------------------------------------------------------------------------------------------------

static bool lacks_memory(gcap_status_t status) {
  gcap_status_info_t info;
  gcap_status_get_info(status, &info);
  return info.cuda_error == cudaErrorMemoryAllocation;
}

static gcap_status_t allocate_slot(const gcap_verify_state_t* state, gcap_verify_slot_t* slot) {
  if (state->bytes == 0) return NULL;
  void* memory = NULL;
  gcap_status_t status = gcap_relaxed_malloc(state->device_id, state->bytes, &memory);
  slot->memory = memory;
  if (!lacks_memory(status)) return status;
  slot->memory = malloc(state->bytes);
  if (slot->memory == NULL) {
    return gcap_status_annotate(status, GCAP_RESOURCE_EXHAUSTED,
                                "no host memory either for a copy of %zu bytes, to verify a run", state->bytes);
  }
  slot->is_on_host = true;
  gcap_log(GCAP_LOG_INFO, "a copy of %zu bytes, to verify a run, is in host memory: %s", state->bytes,
           gcap_status_message(status));
  gcap_status_free(status);
  return NULL;
}

static gcap_status_t free_slot(const gcap_verify_slot_t* slot) {
  if (!slot->is_on_host) return GCAP_CUDA(cudaFree(slot->memory));
  free(slot->memory);
  return NULL;
}

// --- The whole ------------------------------------------------------------------------------------------------------

static gcap_status_t fill_in(gcap_verify_state_t* state, const gcap_verify_block_t* blocks, cudaStream_t stream) {
  for (size_t i = 0; i < state->count; ++i) GCAP_RETURN_IF_ERROR(check_block(&blocks[i], i));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(stream, &state->device_id)));
  GCAP_RETURN_IF_ERROR(make_lists(state, blocks));
  lay_out(state);
  for (size_t i = 0; i < state->num_slots; ++i) GCAP_RETURN_IF_ERROR(allocate_slot(state, &state->slots[i]));
  return NULL;
}

gcap_status_t gcap_verify_state_create(const gcap_verify_block_t* blocks, size_t count, size_t num_slots,
                                       cudaStream_t stream, gcap_verify_state_t** out_state) {
  *out_state = NULL;
  gcap_verify_state_t* state = calloc(1, sizeof(*state));
  if (state == NULL) return no_host_memory();
  state->count = count;
  state->num_slots = num_slots;
  gcap_status_t status = fill_in(state, blocks, stream);
  if (status != NULL) return gcap_status_join(status, gcap_verify_state_destroy(state));
  *out_state = state;
  return NULL;
}

static gcap_status_t free_slots(gcap_verify_state_t* state) {
  if (state->slots == NULL) return NULL;
  gcap_thread_setting_t previous;
  gcap_status_t entered = gcap_thread_enter(-1, &previous);
  gcap_status_t status = NULL;
  for (size_t i = 0; i < state->num_slots; ++i) status = gcap_status_join(status, free_slot(&state->slots[i]));
  return entered != NULL ? gcap_status_join(entered, status)
                         : gcap_status_join(status, gcap_thread_leave(-1, &previous));
}

gcap_status_t gcap_verify_state_destroy(gcap_verify_state_t* state) {
  if (state == NULL) return NULL;
  gcap_status_t status = state->is_copying ? gcap_synchronize_stream(state->stream) : NULL;
  status = gcap_status_join(status, free_slots(state));
  free(state->blocks);
  free(state->areas);
  free(state->offsets);
  free(state->slots);
  free(state->chunks);
  free(state);
  return status;
}

// Copies all areas into a slot, or back.
static gcap_status_t copy(gcap_verify_state_t* state, size_t slot, bool is_back, cudaStream_t stream) {
  state->is_copying = true;
  state->stream = stream;
  for (size_t i = 0; i < state->num_areas; ++i) {
    char *here = state->areas[i].begin, *kept = state->slots[slot].memory + state->offsets[i];
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(is_back ? here : kept, is_back ? kept : here, state->areas[i].bytes,
                                                   cudaMemcpyDefault, stream)));
  }
  return NULL;
}

gcap_status_t gcap_verify_state_save(gcap_verify_state_t* state, size_t slot, cudaStream_t stream) {
  return copy(state, slot, /*is_back=*/false, stream);
}

gcap_status_t gcap_verify_state_restore(gcap_verify_state_t* state, size_t slot, cudaStream_t stream) {
  return copy(state, slot, /*is_back=*/true, stream);
}
