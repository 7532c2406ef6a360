// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Memory by address. Three may know it: the driver the whole allocation, an arena of gcap a piece of that, and the
// application's allocator a piece. Each is believed: the memory is the same only if it is to all who knew it.
//
// Measured on an H200 (driver 580.159.04; probe.pointer in test/conformance): two allocations have two buffer ids, of
// cudaMalloc, of pinned memory and of a pool, also where the second has the address of the first; of memory that was
// freed, to a pool too, the driver knows nothing; the question is legal in every capture.
//
// Nothing here is shared, so nothing is locked.

#include "lib/contents/memory.h"

#include <inttypes.h>

#include "lib/contents/driver.h"
#include "lib/internal/text.h"

gcap_status_t gcap_memory_look(const gcap_block_finder_t* finder, uintptr_t address, bool watch,
                               gcap_memory_t* out_memory) {
  gcap_driver_allocation_t allocation;
  GCAP_RETURN_IF_ERROR(gcap_driver_find_allocation(address, &allocation));
  *out_memory = (gcap_memory_t){
      .type = allocation.type, .buffer_id = allocation.buffer_id, .start = allocation.start, .bytes = allocation.bytes};
  out_memory->has_block = finder->find != NULL && finder->find(finder->user, (const void*)address, &out_memory->block);
  return gcap_memory_find_claim(address, watch, &out_memory->claim, &out_memory->has_claim);
}

bool gcap_memory_is_nobodys(const gcap_memory_t* memory) {
  if (memory->has_claim) return memory->claim.hand_out == 0 && memory->claim.keeper == 0;
  if (memory->has_block) return memory->block.number == 0;
  return memory->type == 0;
}

static const char* name_change_to_driver(const gcap_memory_t* earlier, const gcap_memory_t* now) {
  if (earlier->type != 0 && now->type == 0) return "freed since";
  const bool is_same =
      earlier->type == now->type && earlier->buffer_id == now->buffer_id && earlier->start == now->start;
  return is_same ? "" : "another allocation, made since";
}

// Memory that an allocator has now and had not then came to that allocator in between.
static const char* name_change_of_piece(const gcap_memory_t* earlier, const gcap_memory_t* now) {
  if (earlier->has_claim != now->has_claim) return now->has_claim ? "scratch since" : "no scratch any more";
  if (earlier->has_claim && !gcap_memory_claim_holds(&earlier->claim, &now->claim)) {
    return now->claim.hand_out == 0 && now->claim.keeper == 0 ? "freed since" : "freed and handed out again since";
  }
  if (earlier->has_block != now->has_block) return now->has_block ? "the allocator's since" : "not the allocator's";
  const bool is_same = !earlier->has_block ||
                       (earlier->block.number == now->block.number && earlier->block.address == now->block.address);
  if (is_same) return "";
  return now->block.number == 0 ? "freed since" : "freed and handed out again since";
}

const char* gcap_memory_name_change(const gcap_memory_t* earlier, const gcap_memory_t* now) {
  const char* change = name_change_to_driver(earlier, now);
  return change[0] != '\0' ? change : name_change_of_piece(earlier, now);
}

bool gcap_memory_is_same(const gcap_memory_t* earlier, const gcap_memory_t* now) {
  return gcap_memory_name_change(earlier, now)[0] == '\0';
}

static void write_claim(const gcap_memory_claim_t* claim, gcap_text_t* out) {
  gcap_text_add(out, ", %zu bytes of scratch at %p", claim->bytes, (void*)claim->start);
  if (claim->keeper != 0) {
    gcap_text_add(out, " that %s keeps", claim->name[0] != '\0' ? claim->name : "a graph");
  } else if (claim->hand_out == 0) {
    gcap_text_add(out, ", free");
  }
}

static void write_block(const gcap_graph_block_t* block, gcap_text_t* out) {
  gcap_text_add(out, ", %zu bytes of the application's allocator at %p", block->bytes, block->address);
  if (block->number == 0) {
    gcap_text_add(out, ", free");
  } else {
    gcap_text_add(out, ", hand-out %" PRIu64, block->number);
  }
}

void gcap_memory_write(const gcap_memory_t* memory, char* text, size_t capacity) {
  gcap_text_t out;
  gcap_text_init(&out, text, capacity);
  if (memory->type == 0) {
    gcap_text_add(&out, "no memory that the driver knows");
  } else {
    gcap_text_add(&out, "buffer id %" PRIu64 ", %zu bytes at %p", memory->buffer_id, memory->bytes,
                  (void*)memory->start);
  }
  if (memory->has_claim) write_claim(&memory->claim, &out);
  if (memory->has_block) write_block(&memory->block, &out);
}

void gcap_memory_write_keeper(uintptr_t address, char* text, size_t capacity) {
  gcap_text_t out;
  gcap_text_init(&out, text, capacity);
  gcap_memory_claim_t claim = {0};
  bool found = false;
  gcap_status_ignore(gcap_memory_find_claim(address, /*watch=*/false, &claim, &found));  // only an explanation is lost
  if (!found || claim.keeper == 0) return;
  gcap_text_add(&out, ", the address of scratch that %s keeps", claim.name[0] != '\0' ? claim.name : "the graph");
}
