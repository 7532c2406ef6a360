// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Work that is drawn once and issued often: kernels whose arguments hold pointers in many forms beside numbers made of
// addresses, copies and fills of every shape, host functions, forks and child graphs. Some of the work depends on
// addresses in ways that no graph can follow: that is what a graph manager has to notice.
//
// Locking: none.
#include <stdlib.h>
#include <string.h>

#include "test/support/moves/drawn_moves.h"

enum {
  TEMPORARY_BYTES = 512,
  // Of a block, behind the places: temporaries, then a word that a kernel stores an address in.
  STORED_WORD = DRAWN_BLOCK_BYTES - 64,
  COPIED_WORD = DRAWN_BLOCK_BYTES - 128
};

// --- Addresses ------------------------------------------------------------------------------------------------------

// Memory that stays: a temporary of the first block, or of pinned memory.
static char* fixed_of(const drawn_world_t* world, drawn_place_t place) {
  const size_t at = (size_t)(place.buffer % 4) * TEMPORARY_BYTES + place.offset;
  return place.buffer < 4 ? world->blocks[0] + DRAWN_PLACES_BYTES + at : world->pinned + DRAWN_PINNED_PLACES + at;
}

static char* address_of(const drawn_work_t* work, drawn_place_t place, char* const* addresses) {
  switch (place.whose) {
    case DRAWN_OF_RUN: return addresses[place.buffer] + place.offset;
    case DRAWN_OF_CALLER: return work->caller.address[place.buffer] + place.offset;
    case DRAWN_OF_FIRST: return work->first.address[place.buffer] + place.offset;
    default: return fixed_of(work->world, place);
  }
}

static bool overlap(const char* a, const char* b, size_t bytes) {
  return (uintptr_t)a < (uintptr_t)b + bytes && (uintptr_t)b < (uintptr_t)a + bytes;
}

// --- Kernels --------------------------------------------------------------------------------------------------------

// Arguments that are being written, one behind the other.
typedef struct pen {
  gcap_test_args_t args;
  gcap_test_recipe_t recipe;
  unsigned at, pad;
} pen_t;

static uint8_t put(pen_t* pen, uint64_t word, unsigned bytes) {
  pen->at = pen->pad == 3 ? (pen->at + bytes - 1) / bytes * bytes : pen->at + pen->pad;
  if (pen->at + bytes > GCAP_TEST_ARG_BYTES) pen->at = 0;  // overwrites: some other argument, drawn as well
  const unsigned at = pen->at;
  memcpy(&pen->args.bytes[at], &word, bytes);
  pen->at += bytes;
  return (uint8_t)at;
}

static void put_count(pen_t* pen, uint32_t count, bool now) {
  if (now && pen->recipe.count_at == UINT8_MAX) pen->recipe.count_at = put(pen, count, 4);
}

static gcap_test_operand_t put_pointer(pen_t* pen, const drawn_step_t* step, unsigned form, const char* address,
                                       const char* base) {
  const uint64_t word = (uint64_t)(uintptr_t)address, from = (uint64_t)(uintptr_t)base;
  gcap_test_operand_t operand = {.form = (uint8_t)form};
  switch (form) {
    case GCAP_TEST_END: operand.at = put(pen, word + step->count * sizeof(float), 8); break;
    case GCAP_TEST_OFFSET:
      operand.with = put(pen, from, 8);
      operand.at = put(pen, (uint32_t)(word - from), 4);
      break;
    case GCAP_TEST_DIFFERENCE:
      operand.with = put(pen, from, 8);
      operand.at = put(pen, word - from, 8);
      break;
    case GCAP_TEST_HALVES:
      operand.at = put(pen, (uint32_t)word, 4);
      put_count(pen, step->count, step->count_follows);
      operand.with = put(pen, word >> 32, 4);
      break;
    case GCAP_TEST_MASKED:
      operand.at = put(pen, word & ~(uint64_t)0xff, 8);
      operand.with = put(pen, word & 0xff, 1);
      break;
    default: operand.at = put(pen, word, 8);
  }
  put_count(pen, step->count, step->count_follows);
  return operand;
}

static void put_word(pen_t* pen, const drawn_work_t* work, const drawn_step_t* step, size_t index,
                     char* const* addresses) {
  const char* address = address_of(work, step->words[index].place, addresses);
  const uint64_t word = (uint64_t)(uintptr_t)address;
  const uint64_t other = (uint64_t)(uintptr_t)address_of(work, step->x, addresses);
  const size_t bytes = work->buffers[step->words[index].place.buffer % work->num_buffers].bytes;
  switch (step->words[index].word) {
    case DRAWN_ADDRESS: put(pen, word, 8); break;
    case DRAWN_END: put(pen, word - step->words[index].place.offset + bytes, 8); break;
    case DRAWN_LOW_HALF: put(pen, (uint32_t)word, 4); break;
    case DRAWN_HIGH_HALF: put(pen, word >> 32, 4); break;
    case DRAWN_LOW_BITS: put(pen, word % 16, 1 << (step->value % 4)); break;
    case DRAWN_PAGE: put(pen, word & ~(uint64_t)0xfff, 8); break;
    case DRAWN_PAGE_NUMBER: put(pen, word >> 12, 8); break;
    case DRAWN_DISTANCE: put(pen, word - other, 8); break;
    case DRAWN_DISTANCE_32: put(pen, (uint32_t)(word - other), 4); break;
    case DRAWN_BEFORE: put(pen, word - 4096, 8); break;
    case DRAWN_BEHIND: put(pen, word + 4096, 8); break;
    default: put(pen, step->value * 0x0101010101010101u, 8);
  }
}

static gcap_status_t launch(const drawn_work_t* work, cudaStream_t stream, pen_t* pen) {
  gcap_test_trace_t* trace = work->world->trace;
  void* args[] = {&pen->args, &pen->recipe, &trace};
  const dim3 one = {1, 1, 1};
  return GCAP_CUDA(cudaLaunchKernel((const void*)gcap_kernel_decoded, one, one, args, 0, stream));
}

static uint8_t op_of(const drawn_step_t* step, const char* x, const char* y) {
  if (step->op != GCAP_TEST_REVERSE || !step->is_aware) return step->op;
  return x == y ? GCAP_TEST_REVERSE_WITHIN : GCAP_TEST_REVERSE;
}

static gcap_status_t issue_kernel(const drawn_work_t* work, const drawn_step_t* step, size_t index, cudaStream_t stream,
                                  const char* x, char* const* addresses) {
  char* y = address_of(work, step->y, addresses);
  const char* base = work->world->blocks[0] + DRAWN_PLACES_BYTES / 2;
  pen_t pen = {.pad = step->pad, .at = step->pad};
  pen.recipe = (gcap_test_recipe_t){.op = op_of(step, x, y), .count_at = UINT8_MAX, .addend = step->value};
  pen.recipe.slot = step->kind == DRAWN_HIDDEN ? DRAWN_SLOT_OF_NO_MATTER : (uint8_t)index;
  pen.recipe.x = put_pointer(&pen, step, step->x_form, x, step->x_form == GCAP_TEST_DIFFERENCE ? y : base);
  pen.recipe.y = put_pointer(&pen, step, step->y_form, y, base);
  put_count(&pen, step->count, true);
  if (step->op == GCAP_TEST_ADD_ALIGNED) {
    pen.recipe.head_at = put(&pen, (16 - (uintptr_t)x % 16) % 16 / sizeof(float), 1);
  }
  for (size_t i = 0; i < step->num_words; ++i) put_word(&pen, work, step, i, addresses);
  return launch(work, stream, &pen);
}

// A kernel that stores x, then one that reads it.
static gcap_status_t issue_stored(const drawn_work_t* work, const drawn_step_t* step, size_t index, cudaStream_t stream,
                                  char* const* addresses) {
  char* word = work->world->blocks[1] + STORED_WORD;
  pen_t pen = {.pad = step->pad};
  pen.recipe = (gcap_test_recipe_t){.op = GCAP_TEST_STORE, .slot = (uint8_t)(index + DRAWN_MAX_STEPS)};
  pen.recipe.x.at = put(&pen, (uint64_t)(uintptr_t)address_of(work, step->x, addresses), 8);
  pen.recipe.y.at = put(&pen, (uint64_t)(uintptr_t)word, 8);
  GCAP_RETURN_IF_ERROR(launch(work, stream, &pen));
  return issue_kernel(work, step, index, stream, word, addresses);
}

// The word of a step: of those that are kept for this id, and for this layout if the word is an address of a buffer.
static uint64_t* table_of(const drawn_work_t* work, const drawn_step_t* step, size_t index) {
  const size_t layout = step->x.whose == DRAWN_FIXED ? 0 : work->layout;
  return &work->world->tables[((work->id * 8 + layout) * DRAWN_MAX_STEPS + index) % DRAWN_TABLES];
}

// The caller keeps a table for each of its layouts, as who keeps arrays of pointers for a library does.
static gcap_status_t issue_hidden(const drawn_work_t* work, const drawn_step_t* step, size_t index, cudaStream_t stream,
                                  char* const* addresses) {
  uint64_t* table = table_of(work, step, index);
  *table = (uint64_t)(uintptr_t)address_of(work, step->x, addresses);
  if (!step->is_aware) return issue_kernel(work, step, index, stream, (const char*)table, addresses);
  char* word = work->world->blocks[1] + COPIED_WORD;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(word, table, sizeof(*table), cudaMemcpyHostToDevice, stream)));
  return issue_kernel(work, step, index, stream, word, addresses);
}

// --- Copies and fills -----------------------------------------------------------------------------------------------

static enum cudaMemcpyKind kind_of(const drawn_work_t* work, const drawn_step_t* step) {
  const drawn_place_t places[] = {step->x, step->y};
  bool is_host[2];
  for (int i = 0; i < 2; ++i) {
    is_host[i] = places[i].whose == DRAWN_FIXED ? places[i].buffer >= 4 : work->buffers[places[i].buffer].is_pinned;
  }
  if (step->is_default_kind) return cudaMemcpyDefault;
  if (is_host[0]) return is_host[1] ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return is_host[1] ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

// Rows of `count` floats become a plane of half as many columns, with a gap behind each row.
static gcap_status_t issue_copy_3d(const drawn_step_t* step, cudaStream_t stream, char* x, char* y,
                                   enum cudaMemcpyKind kind) {
  const size_t width = step->count / 4 * sizeof(float), pitch = 2 * width;
  const struct cudaMemcpy3DParms copy = {
      .srcPtr = {x, pitch, width, 1}, .dstPtr = {y, pitch, width, 1}, .extent = {width, 1, 2}, .kind = kind};
  return GCAP_CUDA(cudaMemcpy3DAsync(&copy, stream));
}

// Work that copies nothing where source and target overlap, which CUDA does not allow.
static gcap_status_t issue_copy(const drawn_work_t* work, const drawn_step_t* step, cudaStream_t stream,
                                char* const* addresses) {
  char *x = address_of(work, step->x, addresses), *y = address_of(work, step->y, addresses);
  const size_t bytes = step->count * sizeof(float), width = step->count / 4 * sizeof(float);
  const enum cudaMemcpyKind kind = kind_of(work, step);
  if (overlap(x, y, bytes)) return NULL;
  if (step->kind == DRAWN_COPY || width == 0) return GCAP_CUDA(cudaMemcpyAsync(y, x, bytes, kind, stream));
  if (step->kind == DRAWN_COPY_3D) return issue_copy_3d(step, stream, x, y, kind);
  return GCAP_CUDA(cudaMemcpy2DAsync(y, 2 * width, x, width, width, 2, kind, stream));
}

static gcap_status_t issue_fill(const drawn_work_t* work, const drawn_step_t* step, cudaStream_t stream,
                                char* const* addresses) {
  char* y = address_of(work, step->y, addresses);
  const size_t bytes = step->count * sizeof(float), width = step->count / 4 * sizeof(float);
  if (step->kind == DRAWN_FILL || width == 0) return GCAP_CUDA(cudaMemsetAsync(y, 0, bytes, stream));
  return GCAP_CUDA(cudaMemset2DAsync(y, 2 * width, 0, width, 2, stream));
}

// --- Host functions -------------------------------------------------------------------------------------------------

static void on_host(void* entry) {
  float* const value = *(float**)entry;
  if (value != NULL) *value = 1.0f - *value;
}

// The float's address lies in a table of the caller's; that of a stand-in, which is no pinned memory, is left out.
static gcap_status_t issue_host(const drawn_work_t* work, const drawn_step_t* step, size_t index, cudaStream_t stream,
                                char* const* addresses) {
  char* x = address_of(work, step->x, addresses);
  const char* pinned = work->world->pinned;
  uint64_t* entry = table_of(work, step, index);
  const bool is_pinned = x >= pinned && x < pinned + DRAWN_PINNED_BYTES;
  *entry = is_pinned ? (uint64_t)(uintptr_t)x : 0;
  return GCAP_CUDA(cudaLaunchHostFunc(stream, on_host, entry));
}

// --- Steps ----------------------------------------------------------------------------------------------------------

static gcap_status_t issue_step(const drawn_work_t* work, size_t index, cudaStream_t stream, char* const* addresses) {
  const drawn_step_t* step = &work->steps[index];
  switch (step->kind) {
    case DRAWN_KERNEL: return issue_kernel(work, step, index, stream, address_of(work, step->x, addresses), addresses);
    case DRAWN_STORED: return issue_stored(work, step, index, stream, addresses);
    case DRAWN_HIDDEN: return issue_hidden(work, step, index, stream, addresses);
    case DRAWN_FILL:
    case DRAWN_FILL_2D: return issue_fill(work, step, stream, addresses);
    case DRAWN_HOST: return issue_host(work, step, index, stream, addresses);
    default: return issue_copy(work, step, stream, addresses);
  }
}

static gcap_status_t order(drawn_world_t* world, cudaStream_t first, cudaStream_t then) {
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(world->event, first)));
  return GCAP_CUDA(cudaStreamWaitEvent(then, world->event, 0));
}

static gcap_status_t issue_forked(const drawn_work_t* work, size_t index, cudaStream_t stream, char* const* addresses) {
  GCAP_RETURN_IF_ERROR(order(work->world, stream, work->world->side));
  GCAP_RETURN_IF_ERROR(issue_step(work, index, work->world->side, addresses));
  return order(work->world, work->world->side, stream);
}

static gcap_status_t add_child(cudaStream_t stream, cudaGraph_t child) {
  enum cudaStreamCaptureStatus status;
  cudaGraph_t graph = NULL;
  cudaGraphNode_t node = NULL;
  const cudaGraphNode_t* before = NULL;
  size_t count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, &before, NULL, &count)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphAddChildGraphNode(&node, graph, before, count, child)));
  return GCAP_CUDA(cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 1, cudaStreamSetCaptureDependencies));
}

static gcap_status_t issue_as_child(const drawn_work_t* work, size_t index, cudaStream_t stream,
                                    char* const* addresses) {
  enum cudaStreamCaptureStatus status;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamIsCapturing(stream, &status)));
  if (status == cudaStreamCaptureStatusNone) return issue_step(work, index, stream, addresses);
  cudaGraph_t child = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamBeginCapture(work->world->child, cudaStreamCaptureModeRelaxed)));
  gcap_status_t issued = issue_step(work, index, work->world->child, addresses);
  gcap_status_t ended = GCAP_CUDA(cudaStreamEndCapture(work->world->child, &child));
  gcap_status_t result = gcap_status_join(issued, ended);
  if (result == NULL) result = add_child(stream, child);
  if (child != NULL) result = gcap_status_join(result, GCAP_CUDA(cudaGraphDestroy(child)));
  return result;
}

gcap_status_t drawn_work_issue(drawn_work_t* work, cudaStream_t stream, char* const* addresses) {
  for (size_t i = 0; i < work->num_steps; ++i) {
    switch (work->steps[i].how) {
      case 1: GCAP_RETURN_IF_ERROR(issue_forked(work, i, stream, addresses)); break;
      case 2: GCAP_RETURN_IF_ERROR(issue_as_child(work, i, stream, addresses)); break;
      default: GCAP_RETURN_IF_ERROR(issue_step(work, i, stream, addresses));
    }
  }
  return NULL;
}

// --- Draws ----------------------------------------------------------------------------------------------------------

// Most places are what the run gave: work with others is not to be moved, and there should be both.
static drawn_place_t draw_place(drawn_source_t* source, const drawn_work_t* work, unsigned clean) {
  drawn_place_t place = {.whose = DRAWN_OF_RUN};
  const unsigned whose = drawn_below(source, 8 + clean);
  if (whose == 5) place.whose = DRAWN_OF_CALLER;
  if (whose == 6) place.whose = DRAWN_OF_FIRST;
  if (whose == 7 || whose == 4) place.whose = DRAWN_FIXED;
  place.buffer = (uint8_t)drawn_below(source, place.whose == DRAWN_FIXED ? 8 : (unsigned)work->num_buffers);
  const size_t bytes = place.whose == DRAWN_FIXED ? TEMPORARY_BYTES : work->buffers[place.buffer].bytes;
  if (drawn_one_of(source, 3)) place.offset = (uint16_t)(drawn_below(source, (unsigned)(bytes / 8)) * 4);
  return place;
}

static size_t room_of(const drawn_work_t* work, drawn_place_t place) {
  const size_t bytes = place.whose == DRAWN_FIXED ? TEMPORARY_BYTES : work->buffers[place.buffer].bytes;
  return (bytes - place.offset) / sizeof(float);
}

static uint8_t draw_kind(drawn_source_t* source, unsigned clean) {
  static const uint8_t kinds[] = {DRAWN_KERNEL, DRAWN_KERNEL, DRAWN_KERNEL, DRAWN_KERNEL, DRAWN_COPY,
                                  DRAWN_FILL,   DRAWN_STORED, DRAWN_KERNEL, DRAWN_COPY,   DRAWN_FILL_2D};
  static const uint8_t others[] = {DRAWN_COPY_2D, DRAWN_COPY_3D, DRAWN_HOST, DRAWN_HIDDEN};
  if (clean == 0 && drawn_one_of(source, 5)) return others[drawn_below(source, sizeof(others))];
  return kinds[drawn_below(source, sizeof(kinds))];
}

static uint8_t draw_form(drawn_source_t* source, unsigned clean) {
  if (clean != 0 || !drawn_one_of(source, 3)) return drawn_one_of(source, 4) ? GCAP_TEST_END : GCAP_TEST_POINTER;
  return (uint8_t)drawn_below(source, GCAP_TEST_TABLE);
}

// What a caller makes of addresses that it did not get from the run is its own affair, unless it is a pointer: a number
// made of such an address, and a choice by an address that is of no buffer any more, are the same in each capture.
static void keep_visible(drawn_step_t* step) {
  const bool chooses = step->is_aware || (step->kind >= DRAWN_COPY && step->kind <= DRAWN_COPY_3D);
  if (chooses && step->x.whose == DRAWN_OF_FIRST) step->x.whose = DRAWN_OF_CALLER;
  if (chooses && step->y.whose == DRAWN_OF_FIRST) step->y.whose = DRAWN_OF_CALLER;
  const bool is_callers[] = {step->x.whose == DRAWN_OF_CALLER, step->y.whose == DRAWN_OF_CALLER};
  const bool is_difference = step->x_form == GCAP_TEST_DIFFERENCE && (is_callers[0] || is_callers[1]);
  if (is_difference || (is_callers[0] && step->x_form > GCAP_TEST_END && step->x_form != GCAP_TEST_TABLE)) {
    step->x_form = GCAP_TEST_POINTER;
  }
  if (is_callers[1] && step->y_form > GCAP_TEST_END) step->y_form = GCAP_TEST_POINTER;
  if (is_callers[0] && step->op == GCAP_TEST_ADD_ALIGNED) step->op = GCAP_TEST_ADD;
  for (size_t i = 0; i < step->num_words; ++i) {
    const bool is_pointer = step->words[i].word == DRAWN_ADDRESS || step->words[i].word == DRAWN_END;
    const bool is_made = step->words[i].word >= DRAWN_DISTANCE && step->words[i].word <= DRAWN_DISTANCE_32;
    if (!is_pointer && step->words[i].place.whose == DRAWN_OF_CALLER) step->words[i].place.whose = DRAWN_OF_RUN;
    if (is_made && is_callers[0]) step->words[i].word = DRAWN_NUMBER;
  }
}

// Whether a check of moves sees that the pointer stayed: it leaves pinned buffers in place, and compares buffers alone.
// Else only a table that is copied is noticed.
static bool is_checked(const drawn_work_t* work, const drawn_step_t* step) {
  return step->y.whose == DRAWN_OF_RUN && !work->buffers[step->x.buffer].is_pinned &&
         !work->buffers[step->y.buffer].is_pinned;
}

static drawn_step_t draw_step(drawn_source_t* source, const drawn_work_t* work, unsigned clean) {
  drawn_step_t step = {.kind = draw_kind(source, clean)};
  step.how = drawn_one_of(source, 4) ? (uint8_t)drawn_below(source, 3) : 0;
  step.x = draw_place(source, work, clean);
  step.y = draw_place(source, work, clean);
  const size_t room = room_of(work, step.x) < room_of(work, step.y) ? room_of(work, step.x) : room_of(work, step.y);
  step.count = (uint16_t)(1 + drawn_below(source, (unsigned)room));
  static const uint8_t ops[] = {GCAP_TEST_ADD, GCAP_TEST_REVERSE, GCAP_TEST_ADD_ALIGNED};
  step.op = ops[drawn_below(source, clean == 0 ? 3 : 2)];
  step.x_form = draw_form(source, clean);
  step.y_form = draw_form(source, clean);
  step.pad = (uint8_t)drawn_below(source, 4);
  step.value = (uint8_t)drawn_below(source, 256);
  step.is_aware = clean == 0 && drawn_one_of(source, 2);
  step.is_default_kind = drawn_one_of(source, 2);
  step.count_follows = drawn_one_of(source, 2);
  step.num_words = (uint8_t)(drawn_one_of(source, 3) ? drawn_below(source, DRAWN_MAX_WORDS + 1) : 0);
  for (size_t i = 0; i < step.num_words; ++i) {
    step.words[i].word = (uint8_t)drawn_below(source, clean == 0 ? DRAWN_NUM_WORDS : DRAWN_LOW_HALF);
    step.words[i].place = draw_place(source, work, clean);
  }
  if (step.kind == DRAWN_HIDDEN && step.x.whose != DRAWN_FIXED) step.is_aware |= !is_checked(work, &step);
  if (step.kind == DRAWN_STORED || step.kind == DRAWN_HIDDEN) step.x_form = GCAP_TEST_TABLE;
  if (step.x_form == GCAP_TEST_TABLE) step.op = GCAP_TEST_ADD;
  keep_visible(&step);
  return step;
}

static bool is_of_run(drawn_place_t place, size_t buffer) {
  return place.whose == DRAWN_OF_RUN && place.buffer == buffer;
}

// Whether an argument points into the buffer.
static bool has_argument(const drawn_work_t* work, size_t buffer) {
  for (size_t i = 0; i < work->num_steps; ++i) {
    const drawn_step_t* step = &work->steps[i];
    const bool reads = step->kind != DRAWN_FILL && step->kind != DRAWN_FILL_2D && step->kind != DRAWN_HIDDEN;
    if ((reads && is_of_run(step->x, buffer)) || is_of_run(step->y, buffer)) return true;
  }
  return false;
}

// A kernel for each buffer that no argument points into, but for the one that a table points into: what else would
// tell that the buffer is used?
static void use_all(drawn_work_t* work) {
  for (size_t i = 0; i < work->num_buffers && work->num_steps < DRAWN_MAX_STEPS; ++i) {
    if (has_argument(work, i)) continue;
    work->steps[work->num_steps++] =
        (drawn_step_t){.x = {.buffer = (uint8_t)i}, .y = {.whose = DRAWN_FIXED}, .count = 8, .pad = 3};
  }
}

// A table that a kernel reads is not seen, other than one that is copied.
static void note_promises(drawn_source_t* source, drawn_work_t* work) {
  work->host_functions_may_stay = drawn_one_of(source, 2);
  for (size_t i = 0; i < work->num_buffers; ++i) work->may_be_unused[i] = drawn_one_of(source, 2);
  for (size_t i = 0; i < work->num_steps; ++i) {
    const drawn_step_t* step = &work->steps[i];
    const bool has_pointer = step->x.whose != DRAWN_FIXED;
    work->keeps_tables |= has_pointer && (step->kind == DRAWN_HOST || step->kind == DRAWN_HIDDEN);
    if (step->kind == DRAWN_HOST && has_pointer) work->host_functions_may_stay = false;
    if (step->kind != DRAWN_HIDDEN || !has_pointer) continue;
    work->may_be_unused[step->x.buffer] = false;
    work->is_hidden |= !step->is_aware && has_argument(work, step->x.buffer);
  }
}

// Half of the buffers' alignments are those of their addresses.
static drawn_buffer_t draw_buffer(drawn_source_t* source) {
  drawn_buffer_t buffer = {.bytes = 64 + 4 * (size_t)drawn_below(source, 100)};
  buffer.alignment = (size_t)4 << (2 * drawn_below(source, 4));
  buffer.is_pinned = drawn_one_of(source, 8);
  return buffer;
}

void drawn_work_draw(drawn_source_t* source, drawn_world_t* world, drawn_work_t* out_work) {
  drawn_work_t* work = out_work;
  *work = (drawn_work_t){.world = world, .num_buffers = 2 + drawn_below(source, DRAWN_MAX_BUFFERS - 1)};
  for (size_t i = 0; i < work->num_buffers; ++i) work->buffers[i] = draw_buffer(source);
  const unsigned clean = drawn_one_of(source, 3) ? 0 : 56;
  const size_t num_steps = 1 + drawn_below(source, DRAWN_MAX_STEPS - DRAWN_MAX_BUFFERS);
  while (work->num_steps < num_steps) work->steps[work->num_steps++] = draw_step(source, work, clean);
  if (!drawn_one_of(source, 12)) use_all(work);
  note_promises(source, work);
  work->stand_ins = drawn_one_of(source, 2) ? GCAP_GRAPH_STAND_INS_MEMORY : GCAP_GRAPH_STAND_INS_ADDRESSES;
  for (int i = 0; i < DRAWN_LAYOUTS; ++i) drawn_layout_draw(source, work, &work->layouts[i]);
  work->first = work->caller = work->layouts[0];
}

// Anywhere, or on an earlier buffer, in it, or behind it.
static char* draw_address(drawn_source_t* source, const drawn_work_t* work, size_t index,
                          const drawn_layout_t* layout) {
  const drawn_buffer_t* buffer = &work->buffers[index];
  const size_t end = buffer->is_pinned ? DRAWN_PINNED_PLACES : DRAWN_PLACES_BYTES;
  char* const begin = buffer->is_pinned ? work->world->pinned : work->world->blocks[drawn_one_of(source, 4)];
  const size_t places = (end - buffer->bytes) / buffer->alignment;
  char* address = begin + (drawn_below(source, 256) * 256u + drawn_below(source, 256)) % places * buffer->alignment;
  if (index == 0 || !drawn_one_of(source, 6)) return address;
  const size_t other = drawn_below(source, (unsigned)index);
  if (work->buffers[other].is_pinned != buffer->is_pinned) return address;
  const size_t distances[] = {0, work->buffers[other].bytes, buffer->alignment};
  char* near = layout->address[other] + distances[drawn_below(source, 3)];
  near -= (uintptr_t)near % buffer->alignment;
  return near >= begin && near + buffer->bytes <= begin + end ? near : address;
}

static bool has_overlap(const drawn_work_t* work, const drawn_layout_t* layout) {
  for (size_t i = 0; i < work->num_buffers; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const char *a = layout->address[i], *b = layout->address[j];
      if (a < b + work->buffers[j].bytes && b < a + work->buffers[i].bytes) return true;
    }
  }
  return false;
}

// Most layouts have all buffers apart, or few graphs would move.
void drawn_layout_draw(drawn_source_t* source, const drawn_work_t* work, drawn_layout_t* out_layout) {
  const bool may_overlap = drawn_one_of(source, 4);
  for (int tries = 0; tries < 8; ++tries) {
    *out_layout = (drawn_layout_t){0};
    for (size_t i = 0; i < work->num_buffers; ++i) out_layout->address[i] = draw_address(source, work, i, out_layout);
    if (may_overlap || !has_overlap(work, out_layout)) return;
  }
}
