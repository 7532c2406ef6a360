// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which sequences are decoded together. A sequence joins if the pages of its whole length can be promised to it, so no
// sequence runs out of pages half-way, and who joins when depends on the sequences alone: an eager run and one with
// graphs decode the same batches. Plain data, without CUDA; a batch belongs to one thread.
#include "examples/decoder/batch.h"

#include <string.h>

enum { MIN_WANTED = 8, STEPS_BETWEEN_ARRIVALS = 5, ONE_IN_DRAWS = 4 };

// The next of the numbers below `bound`.
static int next(uint32_t* state, int bound) {
  *state = *state * 1664525u + 1013904223u;
  return (int)((*state >> 8) % (uint32_t)bound);
}

void sequence_draw(uint32_t seed, int number, sequence_t* out_sequence) {
  uint32_t state = seed * 2654435761u + (uint32_t)number * 40503u;
  memset(out_sequence, 0, sizeof(*out_sequence));
  out_sequence->seed = (uint32_t)next(&state, 1 << 24);
  out_sequence->num_prompt = 1 + next(&state, BATCH_MAX_PROMPT);
  for (int i = 0; i < out_sequence->num_prompt; ++i) out_sequence->prompt[i] = next(&state, DECODER_WORDS);
  out_sequence->num_wanted = MIN_WANTED + next(&state, BATCH_MAX_WANTED - MIN_WANTED + 1);
  out_sequence->arrival = number * STEPS_BETWEEN_ARRIVALS + next(&state, STEPS_BETWEEN_ARRIVALS);
  out_sequence->temperature = next(&state, ONE_IN_DRAWS) == 0 ? 1.0f : 0.0f;
}

// The last token that is chosen is not read.
int sequence_positions(const sequence_t* sequence) { return sequence->num_prompt + sequence->num_wanted - 1; }

int sequence_pages(const sequence_t* sequence) {
  return (sequence_positions(sequence) + DECODER_PAGE_TOKENS - 1) / DECODER_PAGE_TOKENS;
}

bool batch_join(batch_t* batch, sequence_t* sequence) {
  const int pages = sequence_pages(sequence);
  if (batch->num_rows == DECODER_MAX_ROWS || batch->num_promised + pages > batch->max_pages) return false;
  sequence->slot = 0;
  while (batch->slots[sequence->slot]) ++sequence->slot;
  batch->slots[sequence->slot] = true;
  batch->num_promised += pages;
  batch->rows[batch->num_rows++] = sequence;
  return true;
}

sequence_t* batch_leave(batch_t* batch, int row) {
  sequence_t* sequence = batch->rows[row];
  batch->rows[row] = batch->rows[--batch->num_rows];
  batch->slots[sequence->slot] = false;
  batch->num_promised -= sequence_pages(sequence);
  return sequence;
}

bool batch_draws(const batch_t* batch) {
  for (int i = 0; i < batch->num_rows; ++i) {
    if (batch->rows[i]->temperature > 0) return true;
  }
  return false;
}
