// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// drawn_moves.h: drawn work on buffers that are drawn to be anywhere, run by a graph manager and compared, run by run,
// with the same work issued on the same addresses: what it left in memory, and the arguments that its kernels were
// given (decoded_kernels.h). A difference after a replay is a graph that was moved and should not have been.
//
// Draws come from a seed, or from the bytes of a fuzz target. One world at a time, by one thread at a time.
#ifndef GCAP_TEST_SUPPORT_MOVES_DRAWN_MOVES_H_
#define GCAP_TEST_SUPPORT_MOVES_DRAWN_MOVES_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/graph.h"
#include "gcap/graph_buffers.h"
#include "test/support/kernels/decoded_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- Draws ----------------------------------------------------------------------------------------------------------

typedef struct drawn_source {
  const uint8_t* at;  // NULL: of a seed
  size_t left;
  uint64_t state;
} drawn_source_t;

// 0 to bound - 1. Past the end of bytes: 0.
unsigned drawn_below(drawn_source_t* source, unsigned bound);
// Whether one of `of` came, which bytes of zero never say.
static inline bool drawn_one_of(drawn_source_t* source, unsigned of) { return drawn_below(source, of) == of - 1; }

// --- The world ------------------------------------------------------------------------------------------------------

enum {
  DRAWN_BLOCKS = 2,  // of device memory
  DRAWN_BLOCK_BYTES = 16 << 10,
  DRAWN_PLACES_BYTES = 12 << 10,  // of a block: where buffers lie; behind it is memory that stays
  DRAWN_PINNED_BYTES = 4 << 10,   // of pinned memory, in which buffers and memory that stays lie likewise
  DRAWN_PINNED_PLACES = 2 << 10,
  DRAWN_TABLES = 256,  // words behind the pinned memory, in which work keeps pointers
  DRAWN_SECTIONS = DRAWN_BLOCKS + 2,
  DRAWN_MAX_BUFFERS = 4,
  DRAWN_MAX_STEPS = 8,
  DRAWN_LAYOUTS = 4,
  // Of the trace: the last slot, which is not compared. It has the address of the caller's own table for a layout.
  DRAWN_SLOT_OF_NO_MATTER = GCAP_TEST_TRACE_SLOTS - 1
};

typedef struct drawn_section {
  char* address;
  size_t bytes;
  char *before, *after;  // in the world's memory for what is kept
} drawn_section_t;

typedef struct drawn_world {
  cudaStream_t stream, side, child;
  cudaEvent_t event;
  char* blocks[DRAWN_BLOCKS];
  char* pinned;
  uint64_t* tables;
  gcap_test_trace_t* trace;
  char* kept;
  drawn_section_t sections[DRAWN_SECTIONS];  // all memory that work writes
  const char* failure;                       // the CUDA call that failed and may not; NULL
} drawn_world_t;

bool drawn_world_create(drawn_world_t* world);
void drawn_world_destroy(drawn_world_t* world);
// Keeps what all memory holds; gives that back, and keeps what it held then; compares with what it held then.
bool drawn_world_save(drawn_world_t* world);
bool drawn_world_rewind(drawn_world_t* world);
bool drawn_world_is_as_kept(drawn_world_t* world, char* text, size_t capacity);
// Kernels may touch any memory, or that of the world alone, as at first. A check of moves has memory of its own.
bool drawn_world_open(drawn_world_t* world, bool is_open);

// --- Work -----------------------------------------------------------------------------------------------------------

// Whose an address is that the work uses.
typedef enum drawn_whose {
  DRAWN_OF_RUN = 0,  // what the run gave it
  DRAWN_OF_CALLER,   // what the caller declared, past the run: the same in a rehearsal
  DRAWN_OF_FIRST,    // what the caller declared first
  DRAWN_FIXED,       // memory that stays
} drawn_whose_t;

typedef struct drawn_place {
  uint8_t whose, buffer;
  uint16_t offset;  // in bytes, a multiple of 4
} drawn_place_t;

typedef enum drawn_kind {
  DRAWN_KERNEL = 0,
  DRAWN_COPY,
  DRAWN_COPY_2D,
  DRAWN_COPY_3D,
  DRAWN_FILL,
  DRAWN_FILL_2D,
  DRAWN_HOST,    // a host function, whose data the work keeps
  DRAWN_STORED,  // a kernel stores the address x, and a second one reads it
  DRAWN_HIDDEN,  // the address x lies in pinned memory, which a kernel reads, or a copy of it
} drawn_kind_t;

// Words beside the pointers of a kernel, each computed from an address.
typedef enum drawn_word {
  DRAWN_NUMBER = 0,
  DRAWN_ADDRESS,
  DRAWN_END,
  DRAWN_LOW_HALF,
  DRAWN_HIGH_HALF,
  DRAWN_LOW_BITS,
  DRAWN_PAGE,
  DRAWN_PAGE_NUMBER,
  DRAWN_DISTANCE,
  DRAWN_DISTANCE_32,
  DRAWN_BEFORE,
  DRAWN_BEHIND,
  DRAWN_NUM_WORDS
} drawn_word_t;

enum { DRAWN_MAX_WORDS = 3 };

typedef struct drawn_step {
  uint8_t kind, how;  // how: 0 on the stream, 1 in a fork, 2 in a child graph
  drawn_place_t x, y;
  uint16_t count;  // floats
  uint8_t op, x_form, y_form, pad, value;
  bool is_aware;         // chooses by what overlaps
  bool is_default_kind;  // of a copy
  bool count_follows;    // the count is behind the first pointer, whatever that is
  uint8_t num_words;
  struct {
    uint8_t word;
    drawn_place_t place;
  } words[DRAWN_MAX_WORDS];
} drawn_step_t;

typedef struct drawn_buffer {
  size_t bytes, alignment;
  bool is_pinned;
} drawn_buffer_t;

typedef struct drawn_layout {
  char* address[DRAWN_MAX_BUFFERS];
} drawn_layout_t;

typedef struct drawn_work {
  drawn_world_t* world;
  size_t num_buffers, num_steps;
  drawn_buffer_t buffers[DRAWN_MAX_BUFFERS];
  drawn_step_t steps[DRAWN_MAX_STEPS];
  drawn_layout_t layouts[DRAWN_LAYOUTS];
  gcap_graph_stand_ins_t stand_ins;
  bool may_be_unused[DRAWN_MAX_BUFFERS], host_functions_may_stay;  // as the caller truly says
  bool keeps_tables;                                               // of pointers into buffers, one for each layout
  bool is_hidden;  // a pointer of it lies in memory, into a buffer that arguments point into as well
  drawn_layout_t first, caller;
  size_t id, layout;  // by which tables are kept; a layout that is none of `layouts` has a number of its own
} drawn_work_t;

void drawn_work_draw(drawn_source_t* source, drawn_world_t* world, drawn_work_t* out_work);
void drawn_layout_draw(drawn_source_t* source, const drawn_work_t* work, drawn_layout_t* out_layout);
// Issues the work on buffers at these addresses.
gcap_status_t drawn_work_issue(drawn_work_t* work, cudaStream_t stream, char* const* addresses);

// --- Runs -----------------------------------------------------------------------------------------------------------

typedef struct drawn_counts {
  unsigned runs, replays, moved, eager, refused_binds, hidden;
} drawn_counts_t;

// A work is drawn, captured, and run where it was captured, elsewhere, and back, with binds between; if its graph
// moved, so many `more` times elsewhere. Returns false if a run was not right, with a text that says how.
bool drawn_moves_try(drawn_source_t* source, unsigned more, drawn_counts_t* counts, char* text, size_t capacity);
// Several works under several ids of one manager that evicts: runs, binds, replays, releases, recaptures, checks of
// moves, from several threads by turns, until the source ends.
bool drawn_moves_play(drawn_source_t* source, drawn_counts_t* counts, char* text, size_t capacity);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_SUPPORT_MOVES_DRAWN_MOVES_H_
