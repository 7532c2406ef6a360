// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps with memory: allocators and their decorators, scratch over them, blocks, runs and reservations. After each step
// with a scratch all its invariants are checked.
#include "lib/scratch/inner.h"
#include "test/fuzz/api_world.h"

// --- Allocators -----------------------------------------------------------------------------------------------------

static void* external_alloc(size_t bytes) {
  void* memory = NULL;
  fuzz_reenter_and_end_scope();
  return fuzz_cuda(cudaMalloc(&memory, bytes)) ? memory : NULL;
}

static void external_free(void* memory) {
  if (!fuzz_cuda(cudaFree(memory))) fuzz_world.leaked = true;
  fuzz_reenter_and_end_scope();
}

static void external_empty_cache(void) { fuzz_reenter_and_end_scope(); }

static void on_event(void* user, const gcap_allocator_event_t* event) {
  (void)user;
  FUZZ_CHECK(event->sequence > 0, "an event without a number");
  fuzz_reenter_and_end_scope();
}

static gcap_status_t create_allocator(unsigned kind, fuzz_allocator_t* slot) {
  gcap_pool_allocator_options_t pool;
  gcap_pool_allocator_options_init(&pool);
  pool.device_id = slot->device;
  gcap_external_allocator_options_t external;
  gcap_external_allocator_options_init(&external);
  external.alloc = external_alloc;
  external.free = external_free;
  external.empty_cache = external_empty_cache;
  switch (kind) {
    case 0: return gcap_device_allocator_create(slot->device, &slot->allocator);
    case 1: slot->device = -1; return gcap_pinned_allocator_create(&slot->allocator);
    case 2: return gcap_pool_allocator_create(&pool, &slot->allocator);
    default: slot->device = 0; return gcap_external_allocator_create(&external, &slot->allocator);
  }
}

static bool is_used(int allocator) {
  for (int i = 0; i < FUZZ_SCRATCHES; ++i) {
    const fuzz_scratch_t* scratch = &fuzz_world.scratches[i];
    if (scratch->scratch != NULL && scratch->upstream == allocator) return true;
  }
  for (int i = 0; i < FUZZ_BLOCKS; ++i) {
    if (fuzz_world.blocks[i].allocator == fuzz_world.allocators[allocator].allocator) return true;
  }
  return false;
}

void fuzz_allocator_step(void) {
  const int which = (int)fuzz_draw(FUZZ_ALLOCATORS);
  fuzz_allocator_t* slot = &fuzz_world.allocators[which];
  if (slot->allocator == NULL) {
    *slot = (fuzz_allocator_t){.device = (int)fuzz_draw(FUZZ_DEVICES)};
    fuzz_ok(create_allocator(fuzz_draw(6), slot));
    return;
  }
  gcap_allocator_stats_t stats;
  gcap_allocator_t* ended;
  switch (fuzz_draw(4)) {
    case 0: fuzz_ok(gcap_allocator_trim(slot->allocator)); break;
    case 1: gcap_allocator_get_stats(slot->allocator, &stats); break;
    case 2:
      // From a callback an allocator may be on the stack.
      if (fuzz_world.depth > 0 || is_used(which)) break;
      ended = slot->allocator;
      slot->allocator = NULL;  // a callback of its end does not find it
      gcap_allocator_destroy(ended);
      break;
    default: break;
  }
}

// --- Scratch --------------------------------------------------------------------------------------------------------

// Into any place; there is one more than the depth of callbacks needs.
static void hold_again(const fuzz_block_t* block) {
  for (int i = 0; i < FUZZ_BLOCKS; ++i) {
    if (fuzz_world.blocks[i].ptr != NULL) continue;
    fuzz_world.blocks[i] = *block;
    return;
  }
  fuzz_world.leaked = true;  // the target itself lost it
}

static void create_scratch(fuzz_scratch_t* slot) {
  const int from = (int)fuzz_draw(FUZZ_ALLOCATORS);
  gcap_scratch_options_t options;
  gcap_scratch_options_init(&options);
  const unsigned how = fuzz_draw(64);
  options.initial_chunk_bytes = how & 1 ? 4096 : 1 << 16;
  options.initial_growth_chunk_bytes = 1 << 16;
  options.max_extend_bytes = 1 << 20;
  options.extend_as_requested = how & 2;
  options.red_zones = how & 4;
  options.poison_on_free = how & 8;
  options.recorded_operations = how & 16 ? 16 : 0;
  options.memory_limit_bytes = how & 32 ? 1 << 18 : 0;
  options.max_dead_bytes_per_chunk = how & 3 ? 512 : 0;
  if (fuzz_draw(3) == 0) options.on_event = on_event;
  gcap_scratch_t* made = NULL;
  if (!fuzz_ok(gcap_scratch_create(fuzz_world.allocators[from].allocator, &options, &made))) return;
  if (slot->scratch == NULL) {
    *slot = (fuzz_scratch_t){.scratch = made, .upstream = from, .device = fuzz_world.allocators[from].device};
  } else if (!fuzz_gone(gcap_scratch_destroy(made))) {  // a callback has taken the place
    fuzz_world.leaked = true;
  }
}

// No more than the call needs to be legal: what is live or reserved is the scratch's to see.
static void destroy_scratch(fuzz_scratch_t* slot) {
  if (fuzz_world.in_sink > 0 || !fuzz_wait_for_devices()) return;
  gcap_scratch_t* scratch = slot->scratch;
  if (!fuzz_gone(gcap_scratch_destroy(scratch))) return;
  slot->scratch = NULL;
  for (int i = 0; i < FUZZ_BLOCKS; ++i) {
    FUZZ_CHECK(fuzz_world.blocks[i].scratch != scratch || fuzz_world.leaked, "a scratch ended with a live block");
    if (fuzz_world.blocks[i].scratch == scratch) fuzz_world.blocks[i] = (fuzz_block_t){.stream = -1, .run_stream = -1};
  }
}

static bool is_held(const gcap_scratch_t* scratch, const void* ptr) {
  for (int i = 0; i < FUZZ_BLOCKS; ++i) {
    if (fuzz_world.blocks[i].scratch == scratch && fuzz_world.blocks[i].ptr == ptr) return true;
  }
  return false;
}

// Ends a run. Of its blocks some are kept, the others are lost, so that the run frees them.
static void end_run(fuzz_scratch_t* slot, int which, gcap_stream_t* stream) {
  void* lost[FUZZ_BLOCKS];
  size_t num_lost = 0;
  for (int i = 0; i < FUZZ_BLOCKS; ++i) {
    fuzz_block_t* block = &fuzz_world.blocks[i];
    if (block->ptr == NULL || block->scratch != slot->scratch || block->run_stream != which) continue;
    if (fuzz_draw(2) == 0) {
      lost[num_lost++] = block->ptr;
      *block = (fuzz_block_t){.stream = -1, .run_stream = -1};
    } else {
      FUZZ_CHECK(fuzz_ok(gcap_scratch_keep(slot->scratch, block->ptr)), "a live block is not kept");
      block->run_stream = -1;
    }
  }
  slot->runs &= ~(1u << which);
  ++slot->ended[which];
  if (fuzz_ok(gcap_scratch_end_run(slot->scratch, stream))) return;
  // What could not be freed stays live, and by chance the scratch is left to free it later.
  for (size_t i = 0; i < num_lost; ++i) {
    if (fuzz_draw(2) == 0 || is_held(slot->scratch, lost[i])) continue;
    if (!fuzz_ok(gcap_scratch_keep(slot->scratch, lost[i]))) continue;
    const fuzz_block_t block = {.scratch = slot->scratch, .ptr = lost[i], .stream = -1, .run_stream = -1};
    hold_again(&block);
  }
}

static void call_scratch(fuzz_scratch_t* slot, int which) {
  gcap_stream_t* stream = which < 0 ? NULL : fuzz_world.streams[which].stream;
  gcap_allocator_stats_t stats;
  char text[300];
  switch (fuzz_draw(10)) {
    case 0:
      if (stream != NULL && fuzz_ok(gcap_scratch_begin_run(slot->scratch, stream))) slot->runs |= 1u << which;
      break;
    case 8:
      if (stream != NULL) end_run(slot, which, stream);
      break;
    case 1: gcap_scratch_get_stats(slot->scratch, &stats); break;
    case 2: gcap_scratch_set_node(slot->scratch, stream, fuzz_draw(2) ? "a node" : NULL); break;
    case 3:
      if (stream != NULL && fuzz_wait(gcap_stream_handle(stream))) {
        if (fuzz_ok(gcap_scratch_forget_stream(slot->scratch, stream))) slot->runs &= ~(1u << which);
      }
      break;
    case 4: fuzz_ok(gcap_scratch_trim(slot->scratch)); break;
    case 5: gcap_scratch_describe(slot->scratch, text, fuzz_draw(2) ? sizeof(text) : 0); break;
    case 6: fuzz_ok(gcap_scratch_reservation_prepare(slot->scratch, stream)); break;
    case 7: destroy_scratch(slot); break;
    default: break;
  }
}

void fuzz_scratch_step(void) {
  fuzz_scratch_t* slot = &fuzz_world.scratches[fuzz_draw(FUZZ_SCRATCHES)];
  if (slot->scratch == NULL) {
    create_scratch(slot);
    return;
  }
  const int which = fuzz_draw_stream();
  if (which >= 0) ++fuzz_world.streams[which].users;
  call_scratch(slot, which);
  if (which >= 0) --fuzz_world.streams[which].users;
}

// --- Blocks ---------------------------------------------------------------------------------------------------------

static size_t draw_bytes(void) {
  const unsigned how = fuzz_draw(32);
  if (how == 0) return 0;
  if (how == 1) return SIZE_MAX - 5;
  return ((size_t)1 << how % 14) + fuzz_draw(256);
}

static void alloc_from_scratch(fuzz_block_t* block, const fuzz_scratch_t* slot) {
  const bool with_stream = fuzz_draw(8) != 0;
  const int which = fuzz_draw_stream();
  block->scratch = slot->scratch;
  if (!with_stream || which < 0) {
    gcap_allocator_t* view = gcap_scratch_allocator(slot->scratch);
    fuzz_ok(fuzz_draw(2) ? gcap_allocator_reserve(view, block->bytes, &block->ptr)
                         : gcap_allocator_alloc(view, block->bytes, &block->ptr));
    return;
  }
  fuzz_stream_t* stream = &fuzz_world.streams[which];
  ++stream->users;
  const bool in_run = slot->runs & 1u << which;
  const unsigned ended = slot->ended[which];
  const bool given = fuzz_ok(gcap_scratch_alloc(slot->scratch, block->bytes, stream->stream, &block->ptr));
  --stream->users;
  if (!given) return;
  // A callback ended the run: before it had the block, which then is of no run, or with the block, which is freed.
  const bool lost_run = in_run && slot->ended[which] != ended;
  if (lost_run && (is_held(slot->scratch, block->ptr) || !fuzz_ok(gcap_scratch_keep(slot->scratch, block->ptr)))) {
    block->ptr = NULL;
  }
  if (block->ptr == NULL) return;
  if (in_run && !lost_run && slot->runs & 1u << which) block->run_stream = which;
  block->capture = fuzz_capture_of(gcap_stream_handle(stream->stream));
  // In a capture without a reservation the memory is not the graph's.
  const bool of_scope = gcap_thread_is_capturing() && which != FUZZ_USERS_STREAM;
  const bool reserved = which == FUZZ_USERS_STREAM && fuzz_world.reservations[0].shares > 0;
  if (block->capture == 0 || of_scope || reserved) block->stream = which;
}

static void alloc_from_allocator(fuzz_block_t* block, const fuzz_allocator_t* slot) {
  block->allocator = slot->allocator;
  const int which = fuzz_draw_stream();
  if (which >= 0) {
    fuzz_stream_t* stream = &fuzz_world.streams[which];
    ++stream->users;
    fuzz_ok(gcap_allocator_alloc_on_stream(slot->allocator, block->bytes, stream->stream, &block->ptr));
    --stream->users;
  } else {
    fuzz_ok(gcap_allocator_alloc(slot->allocator, block->bytes, &block->ptr));
  }
}

static void alloc_block(fuzz_block_t* block) {
  fuzz_block_t made = {.bytes = draw_bytes(), .stream = -1, .run_stream = -1};
  const unsigned from = fuzz_draw(FUZZ_SCRATCHES + FUZZ_ALLOCATORS);
  if (from < FUZZ_SCRATCHES && fuzz_world.scratches[from].scratch != NULL) {
    alloc_from_scratch(&made, &fuzz_world.scratches[from]);
  } else if (from >= FUZZ_SCRATCHES && fuzz_world.allocators[from - FUZZ_SCRATCHES].allocator != NULL) {
    alloc_from_allocator(&made, &fuzz_world.allocators[from - FUZZ_SCRATCHES]);
  }
  if (made.ptr == NULL) return;
  if (block->ptr == NULL) {
    *block = made;
    fuzz_write(block);
    return;
  }
  hold_again(&made);  // a callback has taken the place
}

static void free_block(fuzz_block_t* block) {
  const fuzz_block_t old = *block;
  *block = (fuzz_block_t){.stream = -1, .run_stream = -1};  // a callback must not see it any more
  // What has no stream's order is not in use when it is freed.
  fuzz_stream_t* stream = old.stream >= 0 ? &fuzz_world.streams[old.stream] : NULL;
  if (stream != NULL) ++stream->users;
  gcap_status_t status =
      old.scratch != NULL ? gcap_scratch_free(old.scratch, old.ptr) : gcap_allocator_free(old.allocator, old.ptr);
  if (!fuzz_ok(status)) hold_again(&old);
  if (stream != NULL) --stream->users;
}

static void validate(const fuzz_scratch_t* slot) {
  if (slot->scratch != NULL && !fuzz_captures()) fuzz_ok(gcap_scratch_validate(slot->scratch));
}

void fuzz_block_step(void) {
  fuzz_block_t* block = &fuzz_world.blocks[fuzz_draw(FUZZ_BLOCKS)];
  if (block->ptr == NULL) {
    alloc_block(block);
  } else {
    switch (fuzz_draw(6)) {
      case 0:
      case 1: free_block(block); break;
      case 2:
        if (block->scratch != NULL && fuzz_ok(gcap_scratch_keep(block->scratch, block->ptr))) block->run_stream = -1;
        break;
      case 3:
        if (block->scratch != NULL) fuzz_ok(gcap_scratch_free(block->scratch, (char*)block->ptr + 1));
        break;
      default: fuzz_write(block);
    }
  }
  for (int i = 0; i < FUZZ_SCRATCHES; ++i) validate(&fuzz_world.scratches[i]);
}

// --- Reservations ---------------------------------------------------------------------------------------------------

// The first one is opened on the stream of the user's captures, the second is the first's share.
void fuzz_reservation_step(void) {
  fuzz_reservation_t* slot = &fuzz_world.reservations[0];
  const fuzz_stream_t* stream = &fuzz_world.streams[FUZZ_USERS_STREAM];
  if (slot->reservation == NULL) {
    slot->scratch = (int)fuzz_draw(FUZZ_SCRATCHES);
    const fuzz_scratch_t* scratch = &fuzz_world.scratches[slot->scratch];
    if (scratch->scratch == NULL || stream->stream == NULL || gcap_thread_is_capturing()) return;
    if (fuzz_ok(gcap_scratch_reservation_open(scratch->scratch, stream->stream, &slot->reservation))) slot->shares = 1;
    return;
  }
  switch (fuzz_draw(5)) {
    case 0: gcap_scratch_reservation_close(slot->reservation); break;
    case 1:
      if (slot->shares < 3 && fuzz_ok(gcap_scratch_reservation_reopen(slot->reservation))) ++slot->shares;
      break;
    case 2: gcap_scratch_reservation_set_label(slot->reservation, "the user's"); break;
    case 3: gcap_scratch_reservation_bytes(slot->reservation); break;
    default:
      if (fuzz_world.in_sink > 0) return;
      // Its graph, which a capture that is open makes, must not come after it.
      if (stream->stream != NULL && !fuzz_wait(gcap_stream_handle(stream->stream))) return;
      gcap_scratch_reservation_release(slot->reservation);
      if (--slot->shares == 0) slot->reservation = NULL;
  }
}

// --- The end --------------------------------------------------------------------------------------------------------

void fuzz_end_scratches(void) {
  fuzz_reservation_t* reservation = &fuzz_world.reservations[0];
  for (; reservation->shares > 0; --reservation->shares) gcap_scratch_reservation_release(reservation->reservation);
  reservation->reservation = NULL;
  for (int i = 0; i < FUZZ_BLOCKS; ++i) {
    if (fuzz_world.blocks[i].ptr != NULL) free_block(&fuzz_world.blocks[i]);
    FUZZ_CHECK(fuzz_world.blocks[i].ptr == NULL || fuzz_world.leaked, "block %d stays: %s", i, fuzz_world.refusal);
  }
  for (int i = 0; i < FUZZ_SCRATCHES; ++i) {
    validate(&fuzz_world.scratches[i]);
    if (fuzz_world.scratches[i].scratch != NULL) destroy_scratch(&fuzz_world.scratches[i]);
    FUZZ_CHECK(fuzz_world.scratches[i].scratch == NULL || fuzz_world.leaked, "scratch %d stays: %s", i,
               fuzz_world.refusal);
  }
}

void fuzz_end_allocators(void) {
  // A decorator ends before what it decorates.
  for (int rounds = 0; rounds < FUZZ_ALLOCATORS; ++rounds) {
    for (int i = 0; i < FUZZ_ALLOCATORS; ++i) {
      if (fuzz_world.allocators[i].allocator == NULL || is_used(i)) continue;
      gcap_allocator_destroy(fuzz_world.allocators[i].allocator);
      fuzz_world.allocators[i].allocator = NULL;
    }
  }
}
