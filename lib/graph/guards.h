// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// guards.h: the guards of a run while its work states them, and those of a graph, which replays ask.
#ifndef GCAP_LIB_GRAPH_GUARDS_H_
#define GCAP_LIB_GRAPH_GUARDS_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gcap/graph_guards.h"
#include "gcap/run.h"
#include "lib/graph/holes.h"
#include "lib/graph/taps.h"

// How a word is read, and what it must be: `low` at least, and `range` more at most, in the arithmetic of uint64_t.
typedef enum gcap_graph_word_form {
  GCAP_GRAPH_WORD_U8 = 0,
  GCAP_GRAPH_WORD_U16,
  GCAP_GRAPH_WORD_U32,
  GCAP_GRAPH_WORD_U64,
  GCAP_GRAPH_WORD_S8,
  GCAP_GRAPH_WORD_S16,
  GCAP_GRAPH_WORD_S32,
} gcap_graph_word_form_t;

// What a replay looks at, without a call.
typedef struct gcap_graph_word {
  const void* address;
  uint64_t low, range;
  gcap_graph_word_form_t form;
} gcap_graph_word_t;

// A guard as it was stated.
typedef struct gcap_graph_stated {
  gcap_graph_guard_t guard;  // `name` is not used
  char name[GCAP_GRAPH_NAME_BYTES];
  char* file;
  int line;
  int64_t seen;          // the value of an INTEGER, a pointer, or an answer
  unsigned char* bytes;  // seen, of BYTES; else NULL
  int device_id;         // of an ANSWER: was current, and is whenever the function is asked
} gcap_graph_stated_t;

// The guards of one work, its holes and its taps. All zeros: none. Belongs to the thread that issues the work.
typedef struct gcap_graph_stated_list {
  gcap_graph_stated_t* items;
  size_t count, room;
  gcap_graph_hole_list_t holes;
  gcap_graph_tap_list_t taps;
} gcap_graph_stated_list_t;

void gcap_graph_stated_free(gcap_graph_stated_list_t* list);

// Whether the address is that of a variable of the work that this thread is in.
bool gcap_graph_is_on_stack_of_work(const void* address);

// NULL: both hold the same guards with the same values, and the same holes and taps. Else says which makes them differ.
gcap_status_t gcap_graph_stated_compare(const gcap_graph_stated_list_t* a,
                                        const gcap_graph_stated_list_t* b) GCAP_NODISCARD;

// The guards of a graph. Shared by the graph and by who asks its functions without the manager's mutex.
typedef struct gcap_graph_guards {
  atomic_uint refs;
  size_t num_words, num_asks;
  gcap_graph_stated_list_t stated;  // the words' first, then those of bytes, then the functions'
  // Why the graph was not launched when it was last looked at. With the manager's mutex.
  size_t flipped;         // 1 + the index of a guard; 0: all held
  int64_t now;            // its value then; of BYTES the offset of the first other byte
  unsigned char byte;     // the value of that byte then: questions do not look at the memory
  gcap_status_t failure;  // of its function
  gcap_graph_word_t words[];
} gcap_graph_guards_t;

// Makes those of a graph of what its work stated, and takes the list but for its holes and taps. NULL if there are
// none. Asks all once more. Without the mutex.
//   FAILED_PRECONDITION  one does not hold any more
//   RESOURCE_EXHAUSTED   no host memory
//   others               a function's
gcap_status_t gcap_graph_guards_create(gcap_graph_stated_list_t* list, gcap_graph_guards_t** out_guards) GCAP_NODISCARD;
void gcap_graph_guards_retain(gcap_graph_guards_t* guards);
void gcap_graph_guards_release(gcap_graph_guards_t* guards);  // NULL is fine

static inline uint64_t gcap_graph_word_read(const gcap_graph_word_t* word) {
#define GCAP_GRAPH_WORD_AS(type)                  \
  do {                                            \
    type value_;                                  \
    memcpy(&value_, word->address, sizeof(type)); \
    return (uint64_t)(int64_t)value_;             \
  } while (0)
  switch (word->form) {
    case GCAP_GRAPH_WORD_U8: GCAP_GRAPH_WORD_AS(uint8_t);
    case GCAP_GRAPH_WORD_U16: GCAP_GRAPH_WORD_AS(uint16_t);
    case GCAP_GRAPH_WORD_U32: GCAP_GRAPH_WORD_AS(uint32_t);
    case GCAP_GRAPH_WORD_U64: GCAP_GRAPH_WORD_AS(uint64_t);
    case GCAP_GRAPH_WORD_S8: GCAP_GRAPH_WORD_AS(int8_t);
    case GCAP_GRAPH_WORD_S16: GCAP_GRAPH_WORD_AS(int16_t);
    case GCAP_GRAPH_WORD_S32: GCAP_GRAPH_WORD_AS(int32_t);
  }
#undef GCAP_GRAPH_WORD_AS
  return 0;
}

// Whether all but the functions hold. Notes the first that does not.
bool gcap_graph_guards_look_slowly(gcap_graph_guards_t* guards);
static inline bool gcap_graph_guards_look(gcap_graph_guards_t* guards) {
  for (size_t i = 0; i < guards->num_words; ++i) {
    const gcap_graph_word_t* word = &guards->words[i];
    if (gcap_graph_word_read(word) - word->low > word->range) return gcap_graph_guards_look_slowly(guards);
  }
  // Only bytes are left.
  return guards->num_words + guards->num_asks == guards->stated.count || gcap_graph_guards_look_slowly(guards);
}

// What a look at a graph's guards found.
typedef struct gcap_graph_asked {
  size_t flipped;  // as in gcap_graph_guards_t
  int64_t now;
  unsigned char byte;
  gcap_status_t failure;  // of the function that flipped: it gave no answer
} gcap_graph_asked_t;

// Asks the functions. Without the mutex.
void gcap_graph_guards_ask(const gcap_graph_guards_t* guards, gcap_graph_asked_t* out_asked);
// Notes what they said, and takes the failure. With the mutex.
void gcap_graph_guards_note(gcap_graph_guards_t* guards, const gcap_graph_asked_t* asked);

// Why the graph was not launched when it was last looked at, by the guard's name; NULL: all held. GCAP_GRAPH_ID_NONE:
// the graph is being captured.
gcap_status_t gcap_graph_guards_explain(const gcap_graph_guards_t* guards, int id);

// The refusal of what a function of a guard must not do; NULL: this thread asks none.
gcap_status_t gcap_graph_refuse_in_guard(const char* operation) GCAP_NODISCARD;

// The eager runs that this thread has open.
void gcap_graph_eager_run_begins(void);
void gcap_graph_eager_run_ends(void);
// Whether this thread has such a run open.
bool gcap_graph_is_in_eager_run(void);

#endif  // GCAP_LIB_GRAPH_GUARDS_H_
