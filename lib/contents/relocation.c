// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Finds the pointers and the values by comparing captures, and proves the tables.
//
// The search goes byte by byte: where arguments differ, the 8 bytes around that could be a pointer are tried, those at
// a multiple of 8 first, and then the values. So a pointer in a packed struct is found, and one that lies in two halves
// is not, and is named. The proof: the real capture's bytes with the addresses and the values of a set of stand-ins
// must be that capture's, every byte; and no word that stays is an address in a buffer (left_behind.c). Nothing is
// shared, so nothing is locked.

#include "lib/contents/relocation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/contents/compare.h"
#include "lib/contents/contents.h"
#include "lib/contents/left_behind.h"
#include "lib/contents/memory.h"
#include "lib/internal/grow.h"
#include "lib/internal/text.h"

#define WORD sizeof(uintptr_t)

static uintptr_t load_word(const unsigned char* bytes) {
  uintptr_t word;
  memcpy(&word, bytes, WORD);
  return word;
}

// How the captures at stand-ins differ from the real one, in words.
static const char* otherwise(const gcap_relocation_changes_t* changes) {
  if (changes->num_values == 0) return "with the buffers elsewhere";
  return changes->num_buffers == 0 ? "with other values" : "with the buffers elsewhere and other values";
}

// What a search goes through.
typedef struct search {
  gcap_relocation_t* relocation;
  const gcap_contents_t* real;
  const gcap_relocation_rehearsals_t* rehearsals;
  const gcap_relocation_changes_t* changes;
} search_t;

// --- Refusals -------------------------------------------------------------------------------------------------------

#define VALUES_TEXT_BYTES 384

// Writes "('position' is 5, and 9; 'seed' is 1, and 2)", of the values that differ.
static void write_values(const gcap_relocation_changes_t* changes, size_t set, char* text, size_t capacity) {
  gcap_text_t out;
  gcap_text_init(&out, text, capacity);
  bool is_first = true;
  for (size_t i = 0; i < changes->num_values; ++i) {
    const gcap_changing_value_t* value = &changes->values[i];
    if (memcmp(&value->now, &value->stand_ins[set], sizeof(value->now)) == 0) continue;
    char was[80], is[80];
    gcap_value_write(value, &value->now, was, sizeof(was));
    gcap_value_write(value, &value->stand_ins[set], is, sizeof(is));
    gcap_text_add(&out, "%s'%s' is %s, and %s", is_first ? "(" : "; ", value->name, was, is);
    is_first = false;
  }
  if (!is_first) gcap_text_add(&out, ")");
}

// Both numbers at a place that differs and is nothing that moves, or nothing that may.
static gcap_status_t refuse_word(const search_t* search, size_t set, size_t index, size_t part, size_t offset,
                                 const char* why) {
  const gcap_contents_t *real = search->real, *stand_in = &search->rehearsals->elsewhere[set];
  const gcap_contents_node_t* node = &real->nodes[index];
  const gcap_contents_part_t* whole = &gcap_contents_parts_of(real, node)[part];
  size_t at = 0, bytes = gcap_contents_value_bytes(real, node, part, 0);
  for (; at + bytes <= offset; bytes = gcap_contents_value_bytes(real, node, part, at)) at += bytes;
  uint64_t was = 0, is = 0;
  memcpy(&was, gcap_contents_bytes_of(real, node) + whole->offset + at, bytes);
  memcpy(&is, gcap_contents_bytes_of(stand_in, &stand_in->nodes[index]) + whole->offset + at, bytes);
  char where[256], place[64], keeper[128], values[VALUES_TEXT_BYTES] = "";
  gcap_contents_write_node(real, node, where, sizeof(where));
  gcap_contents_write_place(real, node, part, at, place, sizeof(place));
  gcap_memory_write_keeper((uintptr_t)was, keeper, sizeof(keeper));
  const bool has_values = search->changes->num_values != 0;
  if (has_values) write_values(search->changes, set, values, sizeof(values));
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: %s is 0x%" PRIx64 "%s, and 0x%" PRIx64 " %s, which %s%s%s", where,
                     place, was, keeper, is, otherwise(search->changes), why, has_values ? " " : "", values);
}

static gcap_status_t refuse_node(const gcap_contents_t* real, size_t index, const char* what) {
  char where[256];
  gcap_contents_write_node(real, &real->nodes[index], where, sizeof(where));
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: %s", where, what);
}

static gcap_status_t refuse_other(const gcap_contents_t* real, size_t index, const char* what, const char* other) {
  char text[160];
  snprintf(text, sizeof(text), "%s %s", what, other);
  return refuse_node(real, index, text);
}

// Nodes that differ in more than their arguments. `other`: how the second capture differs.
static gcap_status_t check_same(const gcap_contents_t* real, const gcap_contents_t* stand_in, const char* other) {
  if (real->count != stand_in->count) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the graph has %zu nodes, and %zu %s", real->count, stand_in->count,
                       other);
  }
  gcap_contents_change_t change;
  for (size_t i = 0; i < real->count; ++i) {
    const gcap_contents_node_t *a = &real->nodes[i], *b = &stand_in->nodes[i];
    for (gcap_contents_field_t field = 0; field < GCAP_CONTENTS_NUM_FIELDS; ++field) {
      // The other graph is gone, and perhaps its kernels: only those of the one behind are asked for their names.
      if (!gcap_contents_differ(field, stand_in, real, i, &change)) continue;
      char where[256];
      gcap_contents_write_node(real, a, where, sizeof(where));
      return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: %s is %s, and %s %s", where, change.field, change.after,
                         change.before, other);
    }
    if (!a->has_arguments || !b->has_arguments) return refuse_node(real, i, "the driver does not tell its arguments");
    const bool same = a->bytes == b->bytes && a->num_parts == b->num_parts && a->by_extra == b->by_extra;
    if (!same) return refuse_other(real, i, "it has other arguments", other);
    const bool reads_same = a->source_hash == 0 || b->source_hash == 0 || a->source_hash == b->source_hash;
    if (!reads_same) return refuse_other(real, i, "what it copies from the host is other", other);
  }
  return NULL;
}

// A pointer into a buffer that was at the same address both times does not differ, and would not be found.
static gcap_status_t check_elsewhere(const gcap_moving_buffer_t* buffers, size_t count, size_t set) {
  for (size_t i = 0; i < count; ++i) {
    if (buffers[i].stand_ins[set] != buffers[i].address) continue;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "buffer %zu '%s' was captured twice at the same address %p", i,
                       buffers[i].name, (void*)buffers[i].address);
  }
  return NULL;
}

// --- The search -----------------------------------------------------------------------------------------------------

typedef struct span {
  const gcap_moving_buffer_t* buffers;
  size_t num_buffers;
  gcap_argument_span_t in;
  bool is_kernel;
} span_t;

// Whether the word at `offset` is a pointer into the buffer in all captures.
static bool is_pointer_into(const span_t* span, size_t offset, const gcap_moving_buffer_t* buffer) {
  const uintptr_t distance = load_word(span->in.real + offset) - buffer->address;
  if (distance > buffer->bytes) return false;
  for (size_t set = 0; set < span->in.num_sets; ++set) {
    if (load_word(span->in.elsewhere[set] + offset) - buffer->stand_ins[set] != distance) return false;
  }
  return true;
}

static gcap_status_t add_word(gcap_relocation_t* relocation, gcap_relocation_word_t word) {
  const size_t count = relocation->num_words + 1;
  if (!gcap_grow(&relocation->words, &relocation->words_room, count, sizeof(word))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu words of a graph", count);
  }
  relocation->words[relocation->num_words++] = word;
  return NULL;
}

// The word at `offset`, if it is a pointer into a buffer. Buffers that share the byte there move together, so each will
// do. Of two that only touch there, which the captures do not tell apart, none will.
static bool read_word(const span_t* span, size_t offset, gcap_relocation_word_t* out_word) {
  const uintptr_t word = load_word(span->in.real + offset);
  bool begins = false, ends = false, goes_on = false;
  for (size_t i = 0; i < span->num_buffers; ++i) {
    const gcap_moving_buffer_t* buffer = &span->buffers[i];
    if (!is_pointer_into(span, offset, buffer)) continue;
    const uintptr_t distance = word - buffer->address;
    if (!begins && !ends && !goes_on) {
      *out_word = (gcap_relocation_word_t){.buffer = i, .node = out_word->node, .offset = offset, .distance = distance};
    }
    begins |= distance == 0;
    ends |= distance == buffer->bytes;
    goes_on |= distance != 0 && distance != buffer->bytes;
  }
  return goes_on || begins != ends;
}

// The word around the byte `at` that is a pointer into a buffer, at a multiple of `step`.
static bool find_word(const span_t* span, size_t at, size_t step, gcap_relocation_word_t* out_word) {
  const size_t least = at + 1 >= span->in.begin + WORD ? at + 1 - WORD : span->in.begin;
  for (size_t offset = (least + step - 1) / step * step; offset <= at && offset + WORD <= span->in.end;
       offset += step) {
    if (read_word(span, offset, out_word)) return true;
  }
  return false;
}

// The first set in which the byte is another one; num_sets: it is the same in all.
static size_t find_difference(const span_t* span, size_t at) {
  size_t set = 0;
  while (set < span->in.num_sets && span->in.real[at] == span->in.elsewhere[set][at]) ++set;
  return set;
}

// Whether the 8 bytes at `at` are the same in all captures. Most are.
static bool is_same_word(const span_t* span, size_t at) {
  const uintptr_t word = load_word(span->in.real + at);
  size_t set = 0;
  while (set < span->in.num_sets && load_word(span->in.elsewhere[set] + at) == word) ++set;
  return set == span->in.num_sets;
}

// Notes a word of a kernel's argument that has more bytes, if its upper half is the same in all captures.
static void note_half(gcap_relocation_t* relocation, const span_t* span, const gcap_contents_part_t* part,
                      const gcap_relocation_word_t* word) {
  if (!span->is_kernel || part->bytes == WORD) return;
  for (size_t set = 0; set < span->in.num_sets; ++set) {
    const unsigned char *a = span->in.real + word->offset + WORD / 2,
                        *b = span->in.elsewhere[set] + word->offset + WORD / 2;
    if (memcmp(a, b, WORD / 2) != 0) return;
  }
  gcap_relocation_half_t* half = &relocation->halves[word->buffer];
  if (!half->has_any || word->distance < half->least) half->least = word->distance;
  if (!half->has_any || word->distance > half->most) half->most = word->distance;
  half->has_any = true;
}

static bool may_move(enum cudaGraphNodeType type) {
  return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
}

static span_t span_of(const search_t* search, size_t index, size_t part) {
  const gcap_contents_node_t* node = &search->real->nodes[index];
  const gcap_contents_part_t* whole = &gcap_contents_parts_of(search->real, node)[part];
  span_t span = {.buffers = search->relocation->buffers,
                 .num_buffers = search->relocation->num_buffers,
                 .in = {.real = gcap_contents_bytes_of(search->real, node),
                        .num_sets = search->rehearsals->count,
                        .begin = whole->offset,
                        .end = whole->offset + whole->bytes},
                 .is_kernel = node->type == cudaGraphNodeTypeKernel};
  for (size_t set = 0; set < span.in.num_sets; ++set) {
    const gcap_contents_t* contents = &search->rehearsals->elsewhere[set];
    span.in.elsewhere[set] = gcap_contents_bytes_of(contents, &contents->nodes[index]);
  }
  return span;
}

// The driver takes other arguments of a kernel, and another value of a fill.
static bool may_carry(const gcap_contents_node_t* node, const gcap_value_word_t* word) {
  const size_t fill = offsetof(struct cudaMemsetParams, value),
               end = fill + sizeof(((struct cudaMemsetParams*)0)->value);
  if (node->type == cudaGraphNodeTypeKernel) return true;
  return node->type == cudaGraphNodeTypeMemset && word->offset >= fill && word->offset + word->bytes <= end;
}

static const char* what_it_is_not(const gcap_relocation_changes_t* changes) {
  if (changes->num_values == 0) return "is no address in a buffer both times";
  return changes->num_buffers == 0 ? "is no value both times"
                                   : "is no address in a buffer both times, and no value both times";
}

// Adds the value that the place around the byte `at` carries, and moves `*at` behind it.
static gcap_status_t search_value(const search_t* search, span_t* span, size_t index, size_t part, size_t set,
                                  size_t* at) {
  gcap_relocation_t* relocation = search->relocation;
  const gcap_contents_node_t* node = &search->real->nodes[index];
  const size_t offset = *at - gcap_contents_parts_of(search->real, node)[part].offset;
  gcap_value_word_t word = {0};
  const size_t found = gcap_values_find(relocation->values, relocation->num_values, &span->in, *at, &word);
  const char* why = what_it_is_not(search->changes);
  if (found > 1) why = "may carry one value as well as another:";
  if (found == 1 && !may_carry(node, &word)) why = "the driver does not change in an executable";
  if (found != 1 || !may_carry(node, &word)) return refuse_word(search, set, index, part, offset, why);
  word.node = index;
  const size_t count = relocation->num_value_words + 1;
  if (!gcap_grow(&relocation->value_words, &relocation->value_words_room, count, sizeof(word))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu words of a graph", count);
  }
  relocation->value_words[relocation->num_value_words++] = word;
  *at = span->in.begin = word.offset + word.bytes;
  return NULL;
}

static gcap_status_t search_part(const search_t* search, size_t index, size_t part) {
  const gcap_contents_node_t* node = &search->real->nodes[index];
  const gcap_contents_part_t* whole = &gcap_contents_parts_of(search->real, node)[part];
  span_t span = span_of(search, index, part);
  for (size_t at = span.in.begin; at < span.in.end;) {
    if (at + WORD <= span.in.end && is_same_word(&span, at)) {
      at += WORD;
      continue;
    }
    const size_t set = find_difference(&span, at);
    if (set == span.in.num_sets) {
      ++at;
      continue;
    }
    gcap_relocation_word_t word = {.node = index};
    const bool found = may_move(node->type) && (find_word(&span, at, 8, &word) || find_word(&span, at, 4, &word) ||
                                                find_word(&span, at, 1, &word));
    if (!found) {
      GCAP_RETURN_IF_ERROR(search_value(search, &span, index, part, set, &at));
      continue;
    }
    GCAP_RETURN_IF_ERROR(add_word(search->relocation, word));
    note_half(search->relocation, &span, whole, &word);
    at = span.in.begin = word.offset + WORD;
  }
  return NULL;
}

static gcap_status_t search_all(const search_t* search) {
  for (size_t i = 0; i < search->real->count; ++i) {
    for (size_t part = 0; part < search->real->nodes[i].num_parts; ++part) {
      GCAP_RETURN_IF_ERROR(search_part(search, i, part));
    }
  }
  return NULL;
}

// --- The proof ------------------------------------------------------------------------------------------------------

// Whether the node's bytes, with the words at the stand-ins, are those of the other capture.
static gcap_status_t prove(const gcap_relocation_t* relocation, const gcap_contents_t* real,
                           const gcap_contents_t* stand_in, size_t set) {
  unsigned char* moved = malloc(real->num_bytes + 1);
  if (moved == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu bytes", real->num_bytes);
  if (real->num_bytes != 0) memcpy(moved, real->bytes, real->num_bytes);
  for (size_t i = 0; i < relocation->num_words; ++i) {
    const gcap_relocation_word_t* word = &relocation->words[i];
    const uintptr_t address = relocation->buffers[word->buffer].stand_ins[set] + word->distance;
    memcpy(moved + real->nodes[word->node].begin + word->offset, &address, WORD);
  }
  for (size_t i = 0; i < relocation->num_value_words; ++i) {
    const gcap_value_word_t* word = &relocation->value_words[i];
    const unsigned char* bytes = relocation->values[word->value].stand_ins[set].at + word->from;
    memcpy(moved + real->nodes[word->node].begin + word->offset, bytes, word->bytes);
  }
  gcap_status_t status = NULL;
  for (size_t i = 0; status == NULL && i < real->count; ++i) {
    const gcap_contents_node_t* node = &real->nodes[i];
    const unsigned char* wanted = gcap_contents_bytes_of(stand_in, &stand_in->nodes[i]);
    if (node->bytes != 0 && memcmp(moved + node->begin, wanted, node->bytes) != 0) {
      status = refuse_node(real, i, "with its words moved it is not what was captured elsewhere");
    }
  }
  free(moved);
  return status;
}

// Words that may be two numbers keep their upper halves, so all words of a buffer must have the same one.
static gcap_status_t check_halves(const gcap_relocation_t* relocation) {
  for (size_t i = 0; i < relocation->num_buffers; ++i) {
    const gcap_moving_buffer_t* buffer = &relocation->buffers[i];
    const gcap_relocation_half_t* half = &relocation->halves[i];
    if (!half->has_any || (buffer->address + half->least) >> 32 == (buffer->address + half->most) >> 32) continue;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "buffer %zu '%s' has words that may be pointers or two numbers each, and crosses 4 GiB", i,
                       buffer->name);
  }
  return NULL;
}

bool gcap_relocation_needs_mode(const gcap_relocation_t* relocation) { return relocation->needs_mode; }
const gcap_moving_buffer_t* gcap_relocation_buffers(const gcap_relocation_t* relocation) { return relocation->buffers; }
const gcap_changing_value_t* gcap_relocation_values(const gcap_relocation_t* relocation) { return relocation->values; }

bool gcap_relocation_uses(const gcap_relocation_t* relocation, const gcap_layout_t* layout, size_t buffer) {
  const gcap_moving_buffer_t* buffers = relocation->buffers;
  for (size_t i = 0; i < relocation->num_words; ++i) {
    const gcap_relocation_word_t* word = &relocation->words[i];
    if (layout->group_of[word->buffer] != layout->group_of[buffer]) continue;
    const uintptr_t address = buffers[word->buffer].address + word->distance;
    if (address - buffers[buffer].address <= buffers[buffer].bytes) return true;
  }
  return false;
}

bool gcap_relocation_keeps_halves(const gcap_relocation_t* relocation, size_t buffer, uintptr_t address) {
  const gcap_relocation_half_t* half = &relocation->halves[buffer];
  if (!half->has_any) return true;
  const uintptr_t upper = (relocation->buffers[buffer].address + half->least) >> 32;
  return (address + half->least) >> 32 == upper && (address + half->most) >> 32 == upper;
}

bool gcap_relocation_keeps_bytes(const gcap_relocation_t* relocation, size_t index, const gcap_value_bytes_t* bytes) {
  const gcap_changing_value_t* value = &relocation->values[index];
  for (size_t i = 0; i < value->bytes; ++i) {
    const bool has_varied = (relocation->varied[index] >> i & 1) != 0;
    if (!has_varied && bytes->at[i] != value->now.at[i]) return false;
  }
  return true;
}

bool gcap_relocation_is_clear(const gcap_relocation_t* relocation, size_t buffer, uintptr_t address) {
  return !gcap_left_behind_is_at(&relocation->fixed, address, address + relocation->buffers[buffer].bytes - 1);
}

// --- The table ------------------------------------------------------------------------------------------------------

static int compare_words(const void* a, const void* b) {
  const gcap_relocation_word_t *x = a, *y = b;
  if (x->buffer != y->buffer) return x->buffer < y->buffer ? -1 : 1;
  if (x->node != y->node) return x->node < y->node ? -1 : 1;
  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int compare_value_words(const void* a, const void* b) {
  const gcap_value_word_t *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  if (x->node != y->node) return x->node < y->node ? -1 : 1;
  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void sort_values(gcap_relocation_t* relocation) {
  if (relocation->num_value_words != 0) {
    qsort(relocation->value_words, relocation->num_value_words, sizeof(*relocation->value_words), compare_value_words);
  }
  size_t next = 0;
  for (size_t i = 0; i < relocation->num_values; ++i) {
    relocation->first_value_word[i] = next;
    while (next < relocation->num_value_words && relocation->value_words[next].value == i) ++next;
  }
  relocation->first_value_word[relocation->num_values] = next;
}

static void sort(gcap_relocation_t* relocation) {
  if (relocation->num_words != 0) {
    qsort(relocation->words, relocation->num_words, sizeof(*relocation->words), compare_words);
  }
  size_t next = 0;
  for (size_t i = 0; i < relocation->num_buffers; ++i) {
    relocation->first_word[i] = next;
    while (next < relocation->num_words && relocation->words[next].buffer == i) ++next;
  }
  relocation->first_word[relocation->num_buffers] = next;
}

static gcap_status_t check_used(const gcap_relocation_t* relocation) {
  for (size_t i = 0; i < relocation->num_values; ++i) {
    const bool is_used = relocation->first_value_word[i] != relocation->first_value_word[i + 1];
    if (is_used || relocation->values[i].may_be_unused) continue;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "no argument carries value %zu '%s', so the work may have it from elsewhere, unless "
                       "may_be_unused says that it has not",
                       i, relocation->values[i].name);
  }
  return NULL;
}

// Which bytes of a value differ between the captures.
static uint32_t find_varied(const gcap_changing_value_t* value, size_t num_sets) {
  uint32_t varied = 0;
  for (size_t i = 0; i < value->bytes; ++i) {
    for (size_t set = 0; set < num_sets; ++set) {
      if (value->stand_ins[set].at[i] != value->now.at[i]) varied |= (uint32_t)1 << i;
    }
  }
  return varied;
}

static gcap_status_t make_values(gcap_relocation_t* relocation, const gcap_relocation_changes_t* changes,
                                 size_t num_sets) {
  const size_t count = changes->num_values;
  relocation->values = calloc(count + 1, sizeof(*relocation->values));
  relocation->first_value_word = calloc(count + 1, sizeof(*relocation->first_value_word));
  relocation->varied = calloc(count + 1, sizeof(*relocation->varied));
  if (relocation->values == NULL || relocation->first_value_word == NULL || relocation->varied == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the %zu values of a graph", count);
  }
  relocation->num_values = count;
  for (size_t i = 0; i < count; ++i) {
    relocation->values[i] = changes->values[i];
    relocation->varied[i] = find_varied(&changes->values[i], num_sets);
  }
  return NULL;
}

static gcap_status_t make_tables(gcap_relocation_t* relocation, const gcap_contents_t* real,
                                 const gcap_relocation_changes_t* changes) {
  const size_t count = changes->num_buffers;
  size_t most_params = 1;
  for (size_t i = 0; i < real->count; ++i) {
    if (real->nodes[i].num_parts > most_params) most_params = real->nodes[i].num_parts;
  }
  relocation->buffers = calloc(count + 1, sizeof(*relocation->buffers));
  relocation->first_word = calloc(count + 1, sizeof(*relocation->first_word));
  relocation->halves = calloc(count + 1, sizeof(*relocation->halves));
  relocation->is_changed = calloc(real->count + 1, sizeof(*relocation->is_changed));
  relocation->params = calloc(most_params, sizeof(*relocation->params));
  if (relocation->buffers == NULL || relocation->first_word == NULL || relocation->halves == NULL ||
      relocation->is_changed == NULL || relocation->params == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the pointers of a graph of %zu nodes", real->count);
  }
  relocation->num_buffers = count;
  if (count != 0) memcpy(relocation->buffers, changes->buffers, count * sizeof(*relocation->buffers));
  return NULL;
}

static bool has_others_than_kernels(const gcap_relocation_t* relocation, const gcap_contents_t* real) {
  bool has_others = false;
  for (size_t i = 0; i < relocation->num_words; ++i) {
    has_others |= real->nodes[relocation->words[i].node].type != cudaGraphNodeTypeKernel;
  }
  for (size_t i = 0; i < relocation->num_value_words; ++i) {
    has_others |= real->nodes[relocation->value_words[i].node].type != cudaGraphNodeTypeKernel;
  }
  return has_others;
}

static gcap_status_t find_and_prove(const search_t* search) {
  gcap_relocation_t* relocation = search->relocation;
  GCAP_RETURN_IF_ERROR(search_all(search));
  for (size_t set = 0; set < search->rehearsals->count; ++set) {
    GCAP_RETURN_IF_ERROR(prove(relocation, search->real, &search->rehearsals->elsewhere[set], set));
  }
  GCAP_RETURN_IF_ERROR(check_halves(relocation));
  GCAP_RETURN_IF_ERROR(gcap_left_behind_check(search->real, relocation->buffers, relocation->num_buffers,
                                              relocation->words, relocation->num_words));
  return gcap_left_behind_list(search->real, relocation->words, relocation->num_words, &relocation->fixed);
}

gcap_status_t gcap_relocation_create(gcap_contents_t* real, const gcap_relocation_rehearsals_t* rehearsals,
                                     const gcap_relocation_changes_t* changes, gcap_relocation_t** out_relocation) {
  *out_relocation = NULL;
  for (size_t set = 0; set < rehearsals->count; ++set) {
    GCAP_RETURN_IF_ERROR(check_elsewhere(changes->buffers, changes->num_buffers, set));
    GCAP_RETURN_IF_ERROR(check_same(real, &rehearsals->elsewhere[set], otherwise(changes)));
  }
  gcap_relocation_t* relocation = calloc(1, sizeof(*relocation));
  if (relocation == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the pointers of a graph");
  const search_t search = {relocation, real, rehearsals, changes};
  gcap_status_t status = make_tables(relocation, real, changes);
  if (status == NULL) status = make_values(relocation, changes, rehearsals->count);
  if (status == NULL) status = find_and_prove(&search);
  if (status == NULL) {
    sort(relocation);
    sort_values(relocation);
    relocation->needs_mode = has_others_than_kernels(relocation, real);
    status = check_used(relocation);
  }
  if (status != NULL) {
    gcap_relocation_destroy(relocation);
    return status;
  }
  relocation->contents = real;
  *out_relocation = relocation;
  return NULL;
}

void gcap_relocation_destroy(gcap_relocation_t* relocation) {
  if (relocation == NULL) return;
  free(relocation->words);
  free(relocation->buffers);
  free(relocation->first_word);
  free(relocation->halves);
  free(relocation->fixed.items);
  free(relocation->value_words);
  free(relocation->values);
  free(relocation->first_value_word);
  free(relocation->varied);
  free(relocation->is_changed);
  free(relocation->params);
  free(relocation);
}
