// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Finds the pointers by comparing captures, proves the table, and sets new pointers.
//
// The search goes byte by byte: where arguments differ, the 8 bytes around that could be a pointer are tried, those at
// a multiple of 8 first. So a pointer in a packed struct is found, and one that lies in two halves is not, and is
// named. The proof: the real capture's bytes with the addresses of a set of stand-ins must be that capture's, every
// byte; and no word that stays is an address in a buffer (left_behind.c).

#include "lib/contents/relocation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/contents/compare.h"
#include "lib/contents/left_behind.h"
#include "lib/contents/memory.h"
#include "lib/internal/grow.h"

#define WORD sizeof(uintptr_t)

static uintptr_t load_word(const unsigned char* bytes) {
  uintptr_t word;
  memcpy(&word, bytes, WORD);
  return word;
}

static void store_word(unsigned char* bytes, uintptr_t word) { memcpy(bytes, &word, WORD); }

// --- Refusals -------------------------------------------------------------------------------------------------------

// Both values at a place that differs and is no pointer into a buffer.
static gcap_status_t refuse_word(const gcap_contents_t* real, const gcap_contents_t* stand_in, size_t index,
                                 size_t part, size_t offset) {
  const gcap_contents_node_t* node = &real->nodes[index];
  const gcap_contents_part_t* whole = &gcap_contents_parts_of(real, node)[part];
  size_t at = 0, bytes = gcap_contents_value_bytes(real, node, part, 0);
  for (; at + bytes <= offset; bytes = gcap_contents_value_bytes(real, node, part, at)) at += bytes;
  uint64_t was = 0, is = 0;
  memcpy(&was, gcap_contents_bytes_of(real, node) + whole->offset + at, bytes);
  memcpy(&is, gcap_contents_bytes_of(stand_in, &stand_in->nodes[index]) + whole->offset + at, bytes);
  char where[256], place[64], keeper[128];
  gcap_contents_write_node(real, node, where, sizeof(where));
  gcap_contents_write_place(real, node, part, at, place, sizeof(place));
  gcap_memory_write_keeper((uintptr_t)was, keeper, sizeof(keeper));
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "%s: %s is 0x%" PRIx64 "%s, and 0x%" PRIx64
                     " with the buffers elsewhere, which is no address in a buffer both times",
                     where, place, was, keeper, is);
}

static gcap_status_t refuse_node(const gcap_contents_t* real, size_t index, const char* what) {
  char where[256];
  gcap_contents_write_node(real, &real->nodes[index], where, sizeof(where));
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: %s", where, what);
}

// Nodes that differ in more than their arguments.
static gcap_status_t check_same(const gcap_contents_t* real, const gcap_contents_t* stand_in) {
  if (real->count != stand_in->count) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the graph has %zu nodes, and %zu with the buffers elsewhere",
                       real->count, stand_in->count);
  }
  gcap_contents_change_t change;
  for (size_t i = 0; i < real->count; ++i) {
    const gcap_contents_node_t *a = &real->nodes[i], *b = &stand_in->nodes[i];
    for (gcap_contents_field_t field = 0; field < GCAP_CONTENTS_NUM_FIELDS; ++field) {
      // The other graph is gone, and perhaps its kernels: only those of the one behind are asked for their names.
      if (!gcap_contents_differ(field, stand_in, real, i, &change)) continue;
      char where[256];
      gcap_contents_write_node(real, a, where, sizeof(where));
      return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: %s is %s, and %s with the buffers elsewhere", where,
                         change.field, change.after, change.before);
    }
    if (!a->has_arguments || !b->has_arguments) return refuse_node(real, i, "the driver does not tell its arguments");
    const bool same = a->bytes == b->bytes && a->num_parts == b->num_parts && a->by_extra == b->by_extra;
    if (!same) return refuse_node(real, i, "it has other arguments with the buffers elsewhere");
    const bool reads_same = a->source_hash == 0 || b->source_hash == 0 || a->source_hash == b->source_hash;
    if (!reads_same) return refuse_node(real, i, "what it copies from the host is other with the buffers elsewhere");
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
  const unsigned char* real;                           // from the node's first byte, as the next
  const unsigned char* elsewhere[GCAP_STAND_IN_SETS];  // [num_sets]
  size_t num_sets;
  size_t begin, end;  // in which a word may lie
  bool is_kernel;
} span_t;

// Whether the word at `offset` is a pointer into the buffer in all captures.
static bool is_pointer_into(const span_t* span, size_t offset, const gcap_moving_buffer_t* buffer) {
  const uintptr_t distance = load_word(span->real + offset) - buffer->address;
  if (distance > buffer->bytes) return false;
  for (size_t set = 0; set < span->num_sets; ++set) {
    if (load_word(span->elsewhere[set] + offset) - buffer->stand_ins[set] != distance) return false;
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
  const uintptr_t word = load_word(span->real + offset);
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
  const size_t least = at + 1 >= span->begin + WORD ? at + 1 - WORD : span->begin;
  for (size_t offset = (least + step - 1) / step * step; offset <= at && offset + WORD <= span->end; offset += step) {
    if (read_word(span, offset, out_word)) return true;
  }
  return false;
}

// The first set in which the byte is another one; num_sets: it is the same in all.
static size_t find_difference(const span_t* span, size_t at) {
  size_t set = 0;
  while (set < span->num_sets && span->real[at] == span->elsewhere[set][at]) ++set;
  return set;
}

// Notes a word of a kernel's argument that has more bytes, if its upper half is the same in all captures.
static void note_half(gcap_relocation_t* relocation, const span_t* span, const gcap_contents_part_t* part,
                      const gcap_relocation_word_t* word) {
  if (!span->is_kernel || part->bytes == WORD) return;
  for (size_t set = 0; set < span->num_sets; ++set) {
    const unsigned char *a = span->real + word->offset + WORD / 2, *b = span->elsewhere[set] + word->offset + WORD / 2;
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

// What a search goes through.
typedef struct search {
  gcap_relocation_t* relocation;
  const gcap_contents_t* real;
  const gcap_relocation_rehearsals_t* rehearsals;
} search_t;

static span_t span_of(const search_t* search, size_t index, size_t part) {
  const gcap_contents_node_t* node = &search->real->nodes[index];
  const gcap_contents_part_t* whole = &gcap_contents_parts_of(search->real, node)[part];
  span_t span = {.buffers = search->relocation->buffers,
                 .num_buffers = search->relocation->num_buffers,
                 .real = gcap_contents_bytes_of(search->real, node),
                 .num_sets = search->rehearsals->count,
                 .begin = whole->offset,
                 .end = whole->offset + whole->bytes,
                 .is_kernel = node->type == cudaGraphNodeTypeKernel};
  for (size_t set = 0; set < span.num_sets; ++set) {
    const gcap_contents_t* contents = &search->rehearsals->elsewhere[set];
    span.elsewhere[set] = gcap_contents_bytes_of(contents, &contents->nodes[index]);
  }
  return span;
}

static gcap_status_t search_part(const search_t* search, size_t index, size_t part) {
  const gcap_contents_node_t* node = &search->real->nodes[index];
  const gcap_contents_part_t* whole = &gcap_contents_parts_of(search->real, node)[part];
  span_t span = span_of(search, index, part);
  for (size_t at = span.begin; at < span.end;) {
    const size_t set = find_difference(&span, at);
    if (set == span.num_sets) {
      ++at;
      continue;
    }
    gcap_relocation_word_t word = {.node = index};
    const bool found = may_move(node->type) && (find_word(&span, at, 8, &word) || find_word(&span, at, 4, &word) ||
                                                find_word(&span, at, 1, &word));
    if (!found) {
      return refuse_word(search->real, &search->rehearsals->elsewhere[set], index, part, at - whole->offset);
    }
    GCAP_RETURN_IF_ERROR(add_word(search->relocation, word));
    note_half(search->relocation, &span, whole, &word);
    at = span.begin = word.offset + WORD;
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
    store_word(moved + real->nodes[word->node].begin + word->offset,
               relocation->buffers[word->buffer].stand_ins[set] + word->distance);
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

bool gcap_relocation_keeps_halves(const gcap_relocation_t* relocation, size_t buffer, uintptr_t address) {
  const gcap_relocation_half_t* half = &relocation->halves[buffer];
  if (!half->has_any) return true;
  const uintptr_t upper = (relocation->buffers[buffer].address + half->least) >> 32;
  return (address + half->least) >> 32 == upper && (address + half->most) >> 32 == upper;
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

static gcap_status_t make_tables(gcap_relocation_t* relocation, const gcap_contents_t* real,
                                 const gcap_moving_buffer_t* buffers, size_t count) {
  size_t most_params = 1;
  for (size_t i = 0; i < real->count; ++i) {
    if (real->nodes[i].num_parts > most_params) most_params = real->nodes[i].num_parts;
  }
  relocation->buffers = calloc(count + 1, sizeof(*buffers));
  relocation->first_word = calloc(count + 1, sizeof(*relocation->first_word));
  relocation->halves = calloc(count + 1, sizeof(*relocation->halves));
  relocation->is_changed = calloc(real->count + 1, sizeof(*relocation->is_changed));
  relocation->params = calloc(most_params, sizeof(*relocation->params));
  if (relocation->buffers == NULL || relocation->first_word == NULL || relocation->halves == NULL ||
      relocation->is_changed == NULL || relocation->params == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the pointers of a graph of %zu nodes", real->count);
  }
  relocation->num_buffers = count;
  if (count != 0) memcpy(relocation->buffers, buffers, count * sizeof(*buffers));
  return NULL;
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
                                     const gcap_moving_buffer_t* buffers, size_t count,
                                     gcap_relocation_t** out_relocation) {
  *out_relocation = NULL;
  for (size_t set = 0; set < rehearsals->count; ++set) {
    GCAP_RETURN_IF_ERROR(check_elsewhere(buffers, count, set));
    GCAP_RETURN_IF_ERROR(check_same(real, &rehearsals->elsewhere[set]));
  }
  gcap_relocation_t* relocation = calloc(1, sizeof(*relocation));
  if (relocation == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the pointers of a graph");
  const search_t search = {relocation, real, rehearsals};
  gcap_status_t status = make_tables(relocation, real, buffers, count);
  if (status == NULL) status = find_and_prove(&search);
  if (status != NULL) {
    gcap_relocation_destroy(relocation);
    return status;
  }
  sort(relocation);
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
  free(relocation->is_changed);
  free(relocation->params);
  free(relocation);
}

// --- Moving ---------------------------------------------------------------------------------------------------------

static gcap_status_t set_kernel(gcap_relocation_t* relocation, cudaGraphExec_t exec, const gcap_contents_node_t* node) {
  unsigned char* bytes = gcap_contents_bytes_of(relocation->contents, node);
  const gcap_contents_part_t* parts = gcap_contents_parts_of(relocation->contents, node);
  gcap_driver_kernel_t kernel = {.function = node->function, .kernel = node->kernel, .context = node->context};
  memcpy(kernel.grid, node->grid, sizeof(kernel.grid));
  memcpy(kernel.block, node->block, sizeof(kernel.block));
  kernel.shared_bytes = node->shared_bytes;
  size_t num_bytes = node->bytes;
  void* extra[] = {GCAP_DRIVER_EXTRA_BUFFER, bytes, GCAP_DRIVER_EXTRA_BYTES, &num_bytes, GCAP_DRIVER_EXTRA_END};
  for (size_t i = 0; i < node->num_parts; ++i) relocation->params[i] = bytes + parts[i].offset;
  kernel.params = node->by_extra ? NULL : relocation->params;
  kernel.extra = node->by_extra ? extra : NULL;
  gcap_driver_t driver;
  GCAP_RETURN_IF_ERROR(gcap_driver_get(&driver));
  return GCAP_DRIVER("cuGraphExecKernelNodeSetParams", driver.set_kernel(exec, node->node, &kernel));
}

// The driver sets a copy of several rows to what it is, and to nothing else. So gcap refuses such a copy itself: a copy
// that is set as it is would pass for one that moves. Measured on an H200, driver 580.159.04:
// probe.single.rows_in_an_executable.
static gcap_status_t set_copy(const gcap_relocation_t* relocation, cudaGraphExec_t exec,
                              const gcap_contents_node_t* node) {
  const struct cudaMemcpy3DParms copy = gcap_contents_copy_of(relocation->contents, node);
  if (copy.extent.height > 1 || copy.extent.depth > 1) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "it copies %zu rows of %zu bytes, and only copies of one row change; remedy: a kernel that "
                       "copies the rows, or a copy of each row; see docs/graphs.md",
                       copy.extent.height * copy.extent.depth, copy.extent.width);
  }
  return GCAP_CUDA(cudaGraphExecMemcpyNodeSetParams(exec, node->node, &copy));
}

static gcap_status_t set_node(gcap_relocation_t* relocation, cudaGraphExec_t exec, size_t index) {
  const gcap_contents_node_t* node = &relocation->contents->nodes[index];
  if (node->type == cudaGraphNodeTypeKernel) return set_kernel(relocation, exec, node);
  if (node->type == cudaGraphNodeTypeMemcpy) return set_copy(relocation, exec, node);
  struct cudaMemsetParams fill;
  memcpy(&fill, gcap_contents_bytes_of(relocation->contents, node), sizeof(fill));
  return GCAP_CUDA(cudaGraphExecMemsetNodeSetParams(exec, node->node, &fill));
}

// Puts the buffer's address into the arguments, and marks the nodes.
static void patch(gcap_relocation_t* relocation, size_t buffer, uintptr_t address) {
  relocation->buffers[buffer].address = address;
  for (size_t i = relocation->first_word[buffer]; i < relocation->first_word[buffer + 1]; ++i) {
    const gcap_relocation_word_t* word = &relocation->words[i];
    unsigned char* bytes =
        gcap_contents_bytes_of(relocation->contents, &relocation->contents->nodes[word->node]) + word->offset;
    store_word(bytes, address + word->distance);
    relocation->is_changed[word->node] = true;
  }
}

// Sets the marked nodes of the buffer, and unmarks them.
static gcap_status_t set_changed(gcap_relocation_t* relocation, cudaGraphExec_t exec, size_t buffer) {
  gcap_status_t status = NULL;
  for (size_t i = relocation->first_word[buffer]; i < relocation->first_word[buffer + 1]; ++i) {
    const size_t node = relocation->words[i].node;
    if (!relocation->is_changed[node]) continue;
    relocation->is_changed[node] = false;
    if (status == NULL) status = set_node(relocation, exec, node);
  }
  return status;
}

// Moves the buffers whose address is another one, and leaves the old addresses in `addresses`.
static gcap_status_t swap(gcap_relocation_t* relocation, cudaGraphExec_t exec, uintptr_t* addresses) {
  for (size_t i = 0; i < relocation->num_buffers; ++i) {
    const uintptr_t old = relocation->buffers[i].address;
    if (addresses[i] != 0 && addresses[i] != old) patch(relocation, i, addresses[i]);
    addresses[i] = old;
  }
  gcap_status_t status = NULL;
  for (size_t i = 0; i < relocation->num_buffers; ++i) {
    if (addresses[i] == relocation->buffers[i].address) continue;
    gcap_status_t set = set_changed(relocation, exec, i);
    status = gcap_status_join(status, set);
  }
  return status;
}

// Measured on an H200: the driver crashes when it sets a kernel node for a thread that has no current context. A thread
// gets one with its first call of the runtime that needs one, as the last one here.
static gcap_status_t make_context_current(cudaGraphExec_t exec) {
  gcap_driver_t driver;
  void* context = NULL;
  unsigned long long flags = 0;
  GCAP_RETURN_IF_ERROR(gcap_driver_get(&driver));
  GCAP_RETURN_IF_ERROR(GCAP_DRIVER("cuCtxGetCurrent", driver.current_context(&context)));
  return context != NULL ? NULL : GCAP_CUDA(cudaGraphExecGetFlags(exec, &flags));
}

gcap_status_t gcap_relocation_check_nodes(gcap_relocation_t* relocation, cudaGraphExec_t exec) {
  GCAP_RETURN_IF_ERROR(make_context_current(exec));
  for (size_t i = 0; i < relocation->num_words; ++i) relocation->is_changed[relocation->words[i].node] = true;
  gcap_status_t status = NULL;
  for (size_t i = 0; i < relocation->contents->count; ++i) {
    if (!relocation->is_changed[i]) continue;
    relocation->is_changed[i] = false;
    if (status != NULL) continue;
    status = set_node(relocation, exec, i);
    if (status == NULL) continue;
    char where[256];
    gcap_contents_write_node(relocation->contents, &relocation->contents->nodes[i], where, sizeof(where));
    status = gcap_status_annotate(status, GCAP_FAILED_PRECONDITION,
                                  "%s: the driver does not change this node in an executable", where);
  }
  return status;
}

gcap_status_t gcap_relocation_move(gcap_relocation_t* relocation, cudaGraphExec_t exec, uintptr_t* addresses,
                                   bool* out_torn) {
  *out_torn = false;
  GCAP_RETURN_IF_ERROR(make_context_current(exec));
  gcap_status_t status = swap(relocation, exec, addresses);
  if (status == NULL) return NULL;
  gcap_status_t undone = swap(relocation, exec, addresses);
  *out_torn = undone != NULL;
  return gcap_status_join(status, undone);
}
