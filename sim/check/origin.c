// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Origins: API calls with their call stacks.
//
// The idea: walking a stack by its unwind tables costs a microsecond a frame, far too much for each call. So a stack is
// walked once for each place of the stack from which the simulator is entered, and remembered together with the slots
// its return addresses were found in. The next call from the same place compares the slots with what is in them now: a
// few loads, and exact, since a chain of equal return addresses in equal slots is the same chain.
// Locking: the global mutex, but for the memory of stacks seen, which belongs to its thread. Stacks are never freed;
// there are as many as the program has ways to call CUDA.
#include "sim/check/origin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"

enum { kDefaultFrames = 8 };
// Stacks a thread remembers: more than a loop has call sites. Those that share a place share a bucket.
enum { kNumBuckets = 64 };
enum { kNumWays = 4 };
enum { kNumChains = 1024 };  // of the table of stacks

typedef struct seen {
  void* return_address;
  void* frame;
  const gcap_sim_stack_t* stack;
} seen_t;

static _Thread_local struct {
  seen_t ways[kNumBuckets][kNumWays];
  unsigned int next_way;
} memory;

static gcap_sim_stack_t* stacks[kNumChains];

static size_t depth(void) {
  static size_t frames = SIZE_MAX;
  if (frames != SIZE_MAX) return frames;
  const char* text = getenv("GCAP_SIM_STACKS");
  if (text == NULL) return frames = kDefaultFrames;
  char* end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (errno || *end || end == text || value > GCAP_SIM_MAX_FRAMES) {
    gcap_sim_die_of_setting("GCAP_SIM_STACKS is '%s', expected 0 to %d", text, GCAP_SIM_MAX_FRAMES);
  }
  return frames = value;
}

// --- Walking a stack ------------------------------------------------------------------------------------------------

typedef struct walk {
  const char* above;  // frames up to the one with this stack pointer are left out
  void** frames;
  char** slots;
  size_t count;
  size_t capacity;
} walk_t;

static _Unwind_Reason_Code visit(struct _Unwind_Context* context, void* argument) {
  walk_t* walk = argument;
  void* address = (void*)_Unwind_GetIP(context);
  if (address == NULL) return _URC_END_OF_STACK;
  // The context is that of the caller when its call returns: stacks grow down.
  if ((char*)_Unwind_GetCFA(context) <= walk->above) return _URC_NO_REASON;
  if (walk->count == walk->capacity) return _URC_END_OF_STACK;
  // The return address lies below what the stack pointer is after the return.
  walk->slots[walk->count] = (char*)_Unwind_GetCFA(context) - sizeof(void*);
  walk->frames[walk->count++] = address;
  return _URC_NO_REASON;
}

size_t gcap_sim_stack_unwind(const void* frame, void** frames, size_t capacity) {
  char* slots[GCAP_SIM_MAX_FRAMES];
  if (capacity > GCAP_SIM_MAX_FRAMES) capacity = GCAP_SIM_MAX_FRAMES;
  walk_t walk = {.above = frame, .frames = frames, .slots = slots, .capacity = capacity};
  _Unwind_Backtrace(visit, &walk);
  return walk.count;
}

// --- The table of stacks --------------------------------------------------------------------------------------------

static bool same(const gcap_sim_stack_t* stack, uint64_t hash, const walk_t* walk, const uint32_t* offsets) {
  return stack->hash == hash && stack->count == walk->count &&
         memcmp(stack->frames, walk->frames, walk->count * sizeof(void*)) == 0 &&
         memcmp(stack->offsets, offsets, walk->count * sizeof(uint32_t)) == 0;
}

// FNV-1a over the words: the table only needs to spread stacks.
static uint64_t hash_of(const walk_t* walk) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < walk->count; ++i) hash = (hash ^ (uintptr_t)walk->frames[i]) * UINT64_C(0x100000001b3);
  return hash ^ hash >> 32;
}

static const gcap_sim_stack_t* intern(const walk_t* walk, const uint32_t* offsets) {
  uint64_t hash = hash_of(walk);
  gcap_sim_stack_t** chain = &stacks[hash % kNumChains];
  for (const gcap_sim_stack_t* stack = *chain; stack != NULL; stack = stack->next) {
    if (same(stack, hash, walk, offsets)) return stack;
  }
  gcap_sim_stack_t* stack = gcap_sim_calloc(1, sizeof(*stack));
  *stack = (gcap_sim_stack_t){.next = *chain, .hash = hash, .count = walk->count};
  stack->frames = gcap_sim_calloc(walk->count, sizeof(void*));
  stack->offsets = gcap_sim_calloc(walk->count, sizeof(uint32_t));
  memcpy(stack->frames, walk->frames, walk->count * sizeof(void*));
  memcpy(stack->offsets, offsets, walk->count * sizeof(uint32_t));
  *chain = stack;
  return stack;
}

const gcap_sim_stack_t* gcap_sim_stack_of(void* const* frames, size_t count) {
  uint32_t offsets[GCAP_SIM_MAX_FRAMES] = {0};
  void* copy[GCAP_SIM_MAX_FRAMES];
  if (count > depth()) count = depth();
  if (count == 0) return NULL;
  memcpy(copy, frames, count * sizeof(void*));
  walk_t walk = {.frames = copy, .count = count};
  return intern(&walk, offsets);
}

// --- What a thread has seen -----------------------------------------------------------------------------------------

// Reads return addresses in place, which no sanitizer may mistake for an access to a variable.
__attribute__((noinline, no_sanitize("address", "thread", "undefined"))) static bool still_there(
    const gcap_sim_stack_t* stack, const char* frame) {
  for (size_t i = 0; i < stack->count; ++i) {
    if (*(void* const*)(frame + stack->offsets[i]) != stack->frames[i]) return false;
  }
  return true;
}

static seen_t* bucket(const void* return_address, const void* frame) {
  uint64_t key = ((uintptr_t)return_address ^ (uintptr_t)frame << 7) * UINT64_C(0x9E3779B97F4A7C15);
  return memory.ways[key >> 58];  // the top 6 bits: 64 buckets
}

// Slots are only where the walk says on machines that push the return address; elsewhere nothing is remembered.
#ifdef __x86_64__
#define CAN_REMEMBER 1
#else
#define CAN_REMEMBER 0
#endif

static const gcap_sim_stack_t* walk_stack(void* return_address, char* frame) {
  void* frames[GCAP_SIM_MAX_FRAMES];
  char* slots[GCAP_SIM_MAX_FRAMES];
  uint32_t offsets[GCAP_SIM_MAX_FRAMES] = {0};
  walk_t walk = {.above = frame, .frames = frames, .slots = slots, .capacity = depth()};
  _Unwind_Backtrace(visit, &walk);
  bool known_slots = CAN_REMEMBER;
  for (size_t i = 0; i < walk.count; ++i) {
    known_slots = known_slots && slots[i] > frame && slots[i] - frame <= UINT32_MAX;
    if (known_slots) offsets[i] = (uint32_t)(slots[i] - frame);
  }
  const gcap_sim_stack_t* stack = intern(&walk, offsets);
  if (known_slots && still_there(stack, frame)) {
    seen_t* way = &bucket(return_address, frame)[memory.next_way++ % kNumWays];
    *way = (seen_t){.return_address = return_address, .frame = frame, .stack = stack};
  }
  return stack;
}

static const gcap_sim_stack_t* stack_of(void* return_address, void* frame) {
  if (depth() == 0) return NULL;
  const seen_t* ways = bucket(return_address, frame);
  for (int i = 0; i < kNumWays; ++i) {
    if (ways[i].return_address != return_address || ways[i].frame != frame) continue;
    if (still_there(ways[i].stack, frame)) return ways[i].stack;
  }
  return walk_stack(return_address, frame);
}

// --- Origins --------------------------------------------------------------------------------------------------------

void gcap_sim_origin_enter(void* return_address, void* frame) {
  gcap_sim_call_site_t* site = &gcap_sim_thread()->site;
  gcap_sim_origin_release(site->origin);
  *site = (gcap_sim_call_site_t){.return_address = return_address, .frame = frame};
}

void gcap_sim_origin_enter_now(void* return_address, void* frame) {
  gcap_sim_origin_enter(return_address, frame);
  gcap_sim_thread()->site.stack = stack_of(return_address, frame);
}

gcap_sim_origin_t* gcap_sim_origin_current(void) {
  const gcap_sim_thread_t* thread = gcap_sim_thread();
  gcap_sim_call_site_t* site = &gcap_sim_thread()->site;
  if (site->origin != NULL) return site->origin;
  if (site->stack == NULL && site->frame != NULL) site->stack = stack_of(site->return_address, site->frame);
  gcap_sim_origin_t* origin = gcap_sim_calloc(1, sizeof(*origin));
  *origin = (gcap_sim_origin_t){
      .refs = 1, .call = thread->call, .number = thread->call_number, .thread = thread->id, .stack = site->stack};
  return site->origin = origin;
}

gcap_sim_origin_t* gcap_sim_origin_retain(gcap_sim_origin_t* origin) {
  if (origin != NULL) ++origin->refs;
  return origin;
}

void gcap_sim_origin_release(gcap_sim_origin_t* origin) {
  if (origin != NULL && --origin->refs == 0) free(origin);
}
