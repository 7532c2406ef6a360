// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// batch.h: sequences, and the batch of those that are decoded now.
#ifndef GCAP_EXAMPLES_DECODER_BATCH_H_
#define GCAP_EXAMPLES_DECODER_BATCH_H_

#include <stdbool.h>
#include <stdint.h>

#include "examples/decoder/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BATCH_MAX_PROMPT = 6, BATCH_MAX_WANTED = 48 };  // together at most DECODER_MAX_POSITIONS

// A sequence: what was asked, what was answered, and where it stands.
typedef struct sequence {
  int32_t prompt[BATCH_MAX_PROMPT];
  int num_prompt;
  int num_wanted;  // tokens
  int arrival;     // the step before which it comes
  uint32_t seed;
  float temperature;  // 0: greedy
  int32_t tokens[BATCH_MAX_WANTED];
  int num_tokens;
  int position;  // of the token that its next step reads
  int slot;      // its place in the batch's memory
  int32_t pages[DECODER_MAX_PAGES];
  int num_pages;
} sequence_t;

// Draws sequence `number`. The numbers of one seed arrive one after the other.
void sequence_draw(uint32_t seed, int number, sequence_t* out_sequence);
// How many positions it has, and how many pages they take.
int sequence_positions(const sequence_t* sequence);
int sequence_pages(const sequence_t* sequence);

// The sequences of a step, in rows.
typedef struct batch {
  sequence_t* rows[DECODER_MAX_ROWS];
  int num_rows;
  int num_promised;  // pages that the sequences will have at their ends
  int max_pages;     // the most that may be promised
  bool slots[DECODER_MAX_ROWS];
} batch_t;

// False if the batch has no row or no page for the sequence, which then waits.
bool batch_join(batch_t* batch, sequence_t* sequence);
// Takes out the sequence of a row. The last row comes into its place.
sequence_t* batch_leave(batch_t* batch, int row);
// Whether a sequence of the batch draws its tokens.
bool batch_draws(const batch_t* batch);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_DECODER_BATCH_H_
