// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch at a place. The graph keeps the scratch of its capture, and an eager run is handed other scratch. The two are
// paired by their requests: the same number of bytes, between the same steps. A pair is compared while the work has
// its block.
//
// Scratch has something before anybody writes it, and a part of it may never be written. So scratch is filled with a
// byte before the graph has it, and with another byte when the work is handed it: who reads it then shows. Where the
// two differ, the work is issued once more, with the graph's byte. What then is another one is not what the work wrote,
// and counts for nothing. What is the same in both, and is another one in the graph, differs. Addresses count as equal
// that lead to the same place of a pair.
//
// Locking: none. Of an address the arenas are asked, which lock.

#include <stdlib.h>
#include <string.h>

#include "lib/graph/bisection.h"
#include "lib/internal/grow.h"
#include "lib/internal/synchronize.h"

// How much is compared at a time, a multiple of a word, and how many pieces with a difference are kept of a place: of
// those behind nothing is known there.
#define PIECE_BYTES ((size_t)1 << 20)
#define MOST_SUSPECTS 32
// No call is in such a line.
#define LINE_OF_REQUEST (-1)

// --- Pairs ----------------------------------------------------------------------------------------------------------

// The steps with the requests between them, as steps.
static gcap_status_t merge(const gcap_capture_steps_t* steps, gcap_capture_steps_t* out_merged) {
  *out_merged = (gcap_capture_steps_t){.count = steps->count + steps->num_blocks};
  out_merged->items = calloc(out_merged->count + 1, sizeof(*out_merged->items));
  if (out_merged->items == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu steps", out_merged->count);
  }
  gcap_capture_step_t* at = out_merged->items;
  size_t block = 0;
  for (size_t i = 0; i <= steps->count; ++i) {
    for (; block < steps->num_blocks && steps->blocks[block].step == i; ++block, ++at) {
      gcap_text_t text;
      gcap_text_init(&text, at->operation, sizeof(at->operation));
      gcap_text_add(&text, "a request for %zu bytes", steps->blocks[block].bytes);
      at->line = LINE_OF_REQUEST;
      at->first_node = block;
    }
    if (i < steps->count) *at++ = steps->items[i];
  }
  return NULL;
}

static gcap_status_t make_lists(gcap_bisect_steps_t* steps) {
  steps->block_in_graph = malloc((steps->eager.num_blocks + 1) * sizeof(size_t));
  steps->block_in_work = malloc((steps->captured.num_blocks + 1) * sizeof(size_t));
  if (steps->block_in_graph == NULL || steps->block_in_work == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu blocks of scratch", steps->eager.num_blocks);
  }
  for (size_t i = 0; i < steps->eager.num_blocks; ++i) steps->block_in_graph[i] = GCAP_BISECT_NONE;
  for (size_t i = 0; i < steps->captured.num_blocks; ++i) steps->block_in_work[i] = GCAP_BISECT_NONE;
  return NULL;
}

static gcap_status_t pair(gcap_bisection_t* b, const gcap_capture_steps_t* work, const gcap_capture_steps_t* graph) {
  size_t* in_graph = NULL;
  GCAP_RETURN_IF_ERROR(gcap_bisect_match(work, graph, &in_graph));
  for (size_t i = 0; i < work->count; ++i) {
    if (in_graph[i] == GCAP_BISECT_NONE || work->items[i].line != LINE_OF_REQUEST) continue;
    const size_t in_work = work->items[i].first_node, of_graph = graph->items[in_graph[i]].first_node;
    b->steps.block_in_graph[in_work] = of_graph;
    b->steps.block_in_work[of_graph] = in_work;
    b->looks_at_scratch = true;
  }
  free(in_graph);
  return NULL;
}

gcap_status_t gcap_bisect_pair_blocks(gcap_bisection_t* b) {
  GCAP_RETURN_IF_ERROR(make_lists(&b->steps));
  if (b->steps.eager.num_blocks == 0 || b->steps.captured.num_blocks == 0) return NULL;
  gcap_capture_steps_t work = {0}, graph = {0};
  gcap_status_t status = merge(&b->steps.eager, &work);
  if (status == NULL) status = merge(&b->steps.captured, &graph);
  if (status == NULL) status = pair(b, &work, &graph);
  gcap_capture_steps_free(&work);
  gcap_capture_steps_free(&graph);
  return status;
}

bool gcap_bisect_find_block(const gcap_bisection_t* b, size_t captured_step, uintptr_t address,
                            gcap_named_memory_t* out_memory, size_t* out_work_block) {
  const gcap_capture_steps_t* captured = &b->steps.captured;
  for (size_t i = captured->num_blocks; i > 0; --i) {
    const gcap_capture_block_t* block = &captured->blocks[i - 1];
    if (block->step > captured_step || address - (uintptr_t)block->address >= block->bytes) continue;
    *out_memory = (gcap_named_memory_t){"scratch", (uintptr_t)block->address, block->bytes};
    *out_work_block = b->steps.block_in_work[i - 1];
    return true;
  }
  return false;
}

gcap_status_t gcap_bisect_fill_scratch_of_graph(const gcap_bisection_t* b) {
  const gcap_bisect_subject_t* subject = &b->subject;
  for (size_t i = 0; i < b->steps.captured.num_blocks; ++i) {
    const gcap_capture_block_t* block = &b->steps.captured.blocks[i];
    if (b->steps.block_in_work[i] == GCAP_BISECT_NONE) continue;
    if (!gcap_verify_state_has(subject->state, block->address, block->bytes)) continue;
    GCAP_RETURN_IF_ERROR(
        GCAP_CUDA(cudaMemsetAsync(block->address, GCAP_BISECT_OTHER_FILL, block->bytes, subject->stream)));
  }
  return gcap_synchronize_stream(subject->stream);
}

// --- Scratch of the work --------------------------------------------------------------------------------------------

gcap_status_t gcap_bisect_note_given(gcap_bisect_pass_t* pass, void* address, size_t bytes, cudaStream_t stream) {
  if (!gcap_grow(&pass->given, &pass->room_of_given, pass->num_given + 1, sizeof(*pass->given))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu blocks of scratch", pass->num_given + 1);
  }
  gcap_bisect_given_t* given = &pass->given[pass->num_given++];
  *given = (gcap_bisect_given_t){.address = address, .bytes = bytes};
  bool found = false;
  GCAP_RETURN_IF_ERROR(gcap_memory_find_claim((uintptr_t)address, /*watch=*/true, &given->claim, &found));
  if (!found) given->claim.hand_out = 0;
  return GCAP_CUDA(cudaMemsetAsync(address, pass->fill, bytes, stream));
}

gcap_status_t gcap_bisect_has_given(const gcap_bisect_pass_t* pass, size_t index, bool* out_has) {
  const gcap_bisect_given_t* given = &pass->given[index];
  gcap_memory_claim_t now;
  *out_has = false;
  if (given->claim.hand_out == 0) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_memory_find_claim((uintptr_t)given->address, /*watch=*/false, &now, out_has));
  *out_has = *out_has && gcap_memory_claim_holds(&given->claim, &now);
  return NULL;
}

void gcap_bisect_pass_end(gcap_bisect_pass_t* pass) {
  for (size_t i = 0; i < pass->num_suspects; ++i) {
    free(pass->suspects[i].graph);
    free(pass->suspects[i].work);
  }
  free(pass->suspects);
  free(pass->given);
}

// --- Two pieces -----------------------------------------------------------------------------------------------------

// Whether the words lead to the same place of a pair.
static bool lead_alike(const gcap_bisect_pass_t* pass, uintptr_t graph, uintptr_t work) {
  const gcap_bisect_steps_t* steps = &pass->b->steps;
  for (size_t i = 0; i < pass->num_given && i < steps->eager.num_blocks; ++i) {
    if (steps->block_in_graph[i] == GCAP_BISECT_NONE) continue;
    const gcap_capture_block_t* block = &steps->captured.blocks[steps->block_in_graph[i]];
    const uintptr_t offset = graph - (uintptr_t)block->address;
    if (offset <= block->bytes && work - (uintptr_t)pass->given[i].address == offset) return true;
  }
  return false;
}

// Whether the words at the offset are alike; a piece begins as aligned as scratch is.
static bool are_words_alike(const gcap_bisect_pass_t* pass, const unsigned char* graph, const unsigned char* work,
                            size_t bytes) {
  if (memcmp(graph, work, bytes) == 0) return true;
  uintptr_t a, b;
  if (bytes < sizeof(a)) return false;
  memcpy(&a, graph, sizeof(a));
  memcpy(&b, work, sizeof(b));
  return lead_alike(pass, a, b);
}

static size_t word_bytes(size_t bytes, size_t at) {
  return bytes - at < sizeof(uintptr_t) ? bytes - at : sizeof(uintptr_t);
}

static bool are_alike(const gcap_bisect_pass_t* pass, const unsigned char* graph, const unsigned char* work,
                      size_t bytes) {
  if (memcmp(graph, work, bytes) == 0) return true;
  for (size_t at = 0; at < bytes; at += sizeof(uintptr_t)) {
    if (!are_words_alike(pass, graph + at, work + at, word_bytes(bytes, at))) return false;
  }
  return true;
}

// --- What differs ---------------------------------------------------------------------------------------------------

// Whether the work has the block at this place, and the graph has its pair.
static gcap_status_t is_comparable(const gcap_bisect_pass_t* pass, size_t index, bool* out_is) {
  const gcap_bisection_t* b = pass->b;
  *out_is = false;
  if (index >= b->steps.eager.num_blocks || b->steps.block_in_graph[index] == GCAP_BISECT_NONE) return NULL;
  if (pass->given[index].bytes != b->steps.eager.blocks[index].bytes) return NULL;
  const gcap_capture_block_t* block = &b->steps.captured.blocks[b->steps.block_in_graph[index]];
  if (!gcap_verify_state_has(b->subject.state, block->address, block->bytes)) return NULL;
  return gcap_bisect_has_given(pass, index, out_is);
}

static gcap_status_t read_given(const gcap_bisect_pass_t* pass, size_t index, size_t offset, size_t bytes,
                                unsigned char* to) {
  const gcap_bisect_subject_t* subject = &pass->b->subject;
  return gcap_verify_state_read(subject->state, GCAP_VERIFY_NOW, (char*)pass->given[index].address + offset, bytes,
                                subject->stream, to);
}

static gcap_status_t read_piece(const gcap_bisect_pass_t* pass, gcap_bisect_suspect_t* piece) {
  const gcap_bisect_subject_t* subject = &pass->b->subject;
  const gcap_bisect_steps_t* steps = &pass->b->steps;
  const gcap_capture_block_t* block = &steps->captured.blocks[steps->block_in_graph[piece->block]];
  GCAP_RETURN_IF_ERROR(gcap_verify_state_read(subject->state, subject->spare, (char*)block->address + piece->offset,
                                              piece->bytes, subject->stream, piece->graph));
  return read_given(pass, piece->block, piece->offset, piece->bytes, piece->work);
}

// Room for one more piece at the end of the list.
static gcap_status_t make_room(gcap_bisect_pass_t* pass, gcap_bisect_suspect_t** out_piece) {
  if (pass->suspects == NULL) pass->suspects = calloc(MOST_SUSPECTS, sizeof(*pass->suspects));
  gcap_bisect_suspect_t piece = {.graph = malloc(PIECE_BYTES), .work = malloc(PIECE_BYTES)};
  if (pass->suspects == NULL || piece.graph == NULL || piece.work == NULL) {
    free(piece.graph);
    free(piece.work);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to compare scratch");
  }
  *out_piece = &pass->suspects[pass->num_suspects++];
  **out_piece = piece;
  return NULL;
}

static gcap_status_t suspect_block(gcap_bisect_pass_t* pass, size_t index, gcap_bisect_suspect_t** piece) {
  const size_t bytes = pass->given[index].bytes;
  for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
    if (*piece == NULL && pass->num_suspects == MOST_SUSPECTS) return NULL;
    if (*piece == NULL) GCAP_RETURN_IF_ERROR(make_room(pass, piece));
    (*piece)->block = index;
    (*piece)->offset = at;
    (*piece)->bytes = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
    GCAP_RETURN_IF_ERROR(read_piece(pass, *piece));
    if (!are_alike(pass, (*piece)->graph, (*piece)->work, (*piece)->bytes)) *piece = NULL;  // it is kept
  }
  return NULL;
}

gcap_status_t gcap_bisect_suspect_scratch(gcap_bisect_pass_t* pass) {
  gcap_bisect_suspect_t* piece = NULL;
  for (size_t i = 0; i < pass->num_given; ++i) {
    bool is_there = false;
    GCAP_RETURN_IF_ERROR(is_comparable(pass, i, &is_there));
    if (is_there) GCAP_RETURN_IF_ERROR(suspect_block(pass, i, &piece));
  }
  if (piece == NULL) return NULL;
  free(piece->graph);  // the last one was alike
  free(piece->work);
  --pass->num_suspects;
  return NULL;
}

// Finds the first byte that the work has alike in both passes and the graph has not.
static bool find_byte(const gcap_bisect_pass_t* pass, const gcap_bisect_suspect_t* suspect, const unsigned char* again,
                      gcap_bisect_scratch_difference_t* difference) {
  for (size_t at = 0; at < suspect->bytes; ++at) {
    const size_t word = at / sizeof(uintptr_t) * sizeof(uintptr_t), bytes = word_bytes(suspect->bytes, word);
    if (again[at] != suspect->work[at] || again[at] == suspect->graph[at]) continue;
    if (are_words_alike(pass, suspect->graph + word, again + word, bytes)) continue;
    *difference = (gcap_bisect_scratch_difference_t){
        .block = suspect->block, .byte = suspect->offset + at, .actual = suspect->graph[at], .expected = again[at]};
    return true;
  }
  return false;
}

gcap_status_t gcap_bisect_confirm_scratch(gcap_bisect_pass_t* pass) {
  unsigned char* again = malloc(PIECE_BYTES);
  gcap_status_t status =
      again == NULL ? GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to compare scratch") : NULL;
  bool is_found = false;
  for (size_t i = 0; status == NULL && !is_found && i < pass->num_suspects; ++i) {
    const gcap_bisect_suspect_t* suspect = &pass->suspects[i];
    bool is_there = false;
    if (suspect->block < pass->num_given) status = is_comparable(pass, suspect->block, &is_there);
    if (status != NULL || !is_there) continue;
    status = read_given(pass, suspect->block, suspect->offset, suspect->bytes, again);
    if (status == NULL) is_found = find_byte(pass, suspect, again, &pass->difference.scratch);
  }
  free(again);
  return status;
}

// --- In words -------------------------------------------------------------------------------------------------------

void gcap_bisect_write_scratch_difference(const gcap_bisection_t* b, const gcap_bisect_scratch_difference_t* difference,
                                          gcap_text_t* text) {
  const gcap_capture_block_t* block = &b->steps.eager.blocks[difference->block];
  gcap_text_add(text, "scratch of %zu bytes, asked for ", block->bytes);
  if (block->step == 0) {
    gcap_text_add(text, "before the first step");
  } else {
    gcap_text_add(text, "behind ");
    gcap_bisect_write_step(&b->steps.eager, block->step - 1, text);
  }
  gcap_text_add(text, ", differs first in byte %zu: the replay has 0x%x, the work 0x%x", difference->byte,
                difference->actual, difference->expected);
}
