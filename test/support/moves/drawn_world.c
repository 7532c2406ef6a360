// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Draws, and the memory that drawn work is about: two blocks of device memory, some pinned memory, and the trace of
// what kernels were given. All of it is small, so all of it is compared after each run.
//
// Locking: none.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "test/support/moves/drawn_moves.h"

unsigned drawn_below(drawn_source_t* source, unsigned bound) {
  if (source->at != NULL) {
    if (source->left == 0) return 0;
    --source->left;
    return *source->at++ % bound;
  }
  // SplitMix64 of Steele, Lea and Flood.
  source->state += 0x9e3779b97f4a7c15u;
  uint64_t z = source->state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (unsigned)((z ^ (z >> 31)) % bound);
}

// Notes the first call that failed.
static bool ok(drawn_world_t* world, cudaError_t error, const char* call) {
  if (error != cudaSuccess && world->failure == NULL) world->failure = call;
  return error == cudaSuccess;
}
#define OK(world, call) ok(world, call, #call)

static bool copy(drawn_world_t* world, void* to, const void* from, size_t bytes) {
  return OK(world, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, world->stream));
}

static bool synchronize(drawn_world_t* world) { return OK(world, cudaStreamSynchronize(world->stream)); }

static void make_sections(drawn_world_t* world) {
  for (int i = 0; i < DRAWN_BLOCKS; ++i) {
    world->sections[i] = (drawn_section_t){.address = world->blocks[i], .bytes = DRAWN_BLOCK_BYTES};
  }
  world->sections[DRAWN_BLOCKS] = (drawn_section_t){.address = world->pinned, .bytes = DRAWN_PINNED_BYTES};
  world->sections[DRAWN_BLOCKS + 1] = (drawn_section_t){
      .address = (char*)world->trace, .bytes = offsetof(gcap_test_trace_t, slots[DRAWN_SLOT_OF_NO_MATTER])};
}

// Pinned: most of the time of a checked run goes into copies to what is kept, and from it.
static bool make_room(drawn_world_t* world) {
  size_t bytes = 0, at = 0;
  for (int i = 0; i < DRAWN_SECTIONS; ++i) bytes += 2 * world->sections[i].bytes;
  if (!OK(world, cudaMallocHost((void**)&world->kept, bytes))) return false;
  memset(world->kept, 0, bytes);
  for (int i = 0; i < DRAWN_SECTIONS; ++i) {
    drawn_section_t* section = &world->sections[i];
    section->before = world->kept + at;
    section->after = section->before + section->bytes;
    at += 2 * section->bytes;
  }
  return true;
}

// Every float is another one, and none is large: sums are exact.
static bool fill_sections(drawn_world_t* world) {
  bool is_good = true;
  for (int i = 0; is_good && i < DRAWN_SECTIONS; ++i) {
    drawn_section_t* section = &world->sections[i];
    float* floats = (float*)section->before;
    for (size_t k = 0; i <= DRAWN_BLOCKS && k < section->bytes / sizeof(float); ++k) floats[k] = (float)(k + 5000 * i);
    if (i > DRAWN_BLOCKS) {
      gcap_test_trace_t* trace = (gcap_test_trace_t*)section->before;
      for (int k = 0; k <= DRAWN_BLOCKS; ++k) {
        trace->begin[k] = (uint64_t)(uintptr_t)world->sections[k].address;
        trace->end[k] = trace->begin[k] + world->sections[k].bytes;
      }
      trace->end[DRAWN_BLOCKS] += DRAWN_TABLES * sizeof(uint64_t);
    }
    is_good = copy(world, section->address, section->before, section->bytes);
  }
  return is_good && synchronize(world);
}

bool drawn_world_create(drawn_world_t* world) {
  *world = (drawn_world_t){0};
  bool is_good = OK(world, cudaStreamCreateWithFlags(&world->stream, cudaStreamNonBlocking)) &&
                 OK(world, cudaStreamCreateWithFlags(&world->side, cudaStreamNonBlocking)) &&
                 OK(world, cudaStreamCreateWithFlags(&world->child, cudaStreamNonBlocking)) &&
                 OK(world, cudaEventCreateWithFlags(&world->event, cudaEventDisableTiming));
  for (int i = 0; is_good && i < DRAWN_BLOCKS; ++i) {
    is_good = OK(world, cudaMalloc((void**)&world->blocks[i], DRAWN_BLOCK_BYTES));
  }
  is_good = is_good && OK(world, cudaMalloc((void**)&world->trace, sizeof(*world->trace))) &&
            OK(world, cudaMallocHost((void**)&world->pinned, DRAWN_PINNED_BYTES + DRAWN_TABLES * sizeof(uint64_t)));
  if (!is_good) return false;
  world->tables = (uint64_t*)(world->pinned + DRAWN_PINNED_BYTES);
  memset(world->tables, 0, DRAWN_TABLES * sizeof(uint64_t));
  make_sections(world);
  return make_room(world) && fill_sections(world);
}

void drawn_world_destroy(drawn_world_t* world) {
  (void)cudaFreeHost(world->kept);
  for (int i = 0; i < DRAWN_BLOCKS; ++i) (void)cudaFree(world->blocks[i]);
  (void)cudaFree(world->trace);
  (void)cudaFreeHost(world->pinned);
  if (world->event != NULL) (void)cudaEventDestroy(world->event);
  if (world->child != NULL) (void)cudaStreamDestroy(world->child);
  if (world->side != NULL) (void)cudaStreamDestroy(world->side);
  if (world->stream != NULL) (void)cudaStreamDestroy(world->stream);
}

// The last range is empty otherwise.
bool drawn_world_open(drawn_world_t* world, bool is_open) {
  const uint64_t end = is_open ? UINT64_MAX / 2 : 0;
  return copy(world, &world->trace->end[DRAWN_BLOCKS + 1], &end, sizeof(end)) && synchronize(world);
}

bool drawn_world_save(drawn_world_t* world) {
  bool is_good = true;
  for (int i = 0; is_good && i < DRAWN_SECTIONS; ++i) {
    is_good = copy(world, world->sections[i].before, world->sections[i].address, world->sections[i].bytes);
  }
  return is_good && synchronize(world);
}

bool drawn_world_rewind(drawn_world_t* world) {
  bool is_good = true;
  for (int i = 0; is_good && i < DRAWN_SECTIONS; ++i) {
    drawn_section_t* section = &world->sections[i];
    is_good = copy(world, section->after, section->address, section->bytes) &&
              copy(world, section->address, section->before, section->bytes);
  }
  return is_good && synchronize(world);
}

// --- What differs ---------------------------------------------------------------------------------------------------

static void write_trace(const drawn_section_t* section, size_t at, char* text, size_t capacity) {
  const size_t slot = (at - offsetof(gcap_test_trace_t, slots)) / sizeof(gcap_test_trace_slot_t);
  const gcap_test_trace_slot_t* was = &((const gcap_test_trace_t*)section->after)->slots[slot];
  const gcap_test_trace_slot_t* is = &((const gcap_test_trace_t*)section->before)->slots[slot];
  size_t byte = 0;
  while (byte < GCAP_TEST_ARG_BYTES && was->args.bytes[byte] == is->args.bytes[byte]) ++byte;
  if (byte == GCAP_TEST_ARG_BYTES) {
    snprintf(text, capacity, "step %zu: %u launches and %u misses, wanted %u and %u", slot, was->launches, was->misses,
             is->launches, is->misses);
    return;
  }
  uint64_t had = 0, wanted = 0;
  const size_t begin = byte > GCAP_TEST_ARG_BYTES - 8 ? GCAP_TEST_ARG_BYTES - 8 : byte;
  memcpy(&had, &was->args.bytes[begin], sizeof(had));
  memcpy(&wanted, &is->args.bytes[begin], sizeof(wanted));
  snprintf(text, capacity, "step %zu: the bytes from %zu on of its arguments are 0x%" PRIx64 ", wanted 0x%" PRIx64,
           slot, begin, had, wanted);
}

static void write_difference(const drawn_world_t* world, int index, size_t at, char* text, size_t capacity) {
  const drawn_section_t* section = &world->sections[index];
  if (index == DRAWN_SECTIONS - 1) {
    write_trace(section, at, text, capacity);
    return;
  }
  float was = 0, is = 0;
  memcpy(&was, section->after + at / sizeof(float) * sizeof(float), sizeof(was));
  memcpy(&is, section->before + at / sizeof(float) * sizeof(float), sizeof(is));
  snprintf(text, capacity, "memory %d: float %zu is %g, wanted %g", index, at / sizeof(float), (double)was, (double)is);
}

// The trace first: it says which step, and which bytes.
bool drawn_world_is_as_kept(drawn_world_t* world, char* text, size_t capacity) {
  if (!drawn_world_save(world)) return false;
  for (int i = DRAWN_SECTIONS; i-- > 0;) {
    const drawn_section_t* section = &world->sections[i];
    if (memcmp(section->before, section->after, section->bytes) == 0) continue;
    size_t at = 0;
    while (section->before[at] == section->after[at]) ++at;
    write_difference(world, i, at, text, capacity);
    return false;
  }
  return true;
}
