// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Finds the pointers by comparing two captures, proves the table, and sets new pointers.
//
// The search goes byte by byte: where two arguments differ, the 8 bytes around that could be a pointer are tried, those
// at a multiple of 8 first. So a pointer in a packed struct is found, and one that lies in two halves is not, and is
// named. The proof: the real capture's bytes with the stand-ins' addresses must be the other capture's, every byte.

#include "lib/contents/relocation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/contents/compare.h"
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
                     " with the buffers elsewhere, which is the distance of no buffer",
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
  }
  return NULL;
}

// A pointer into a buffer that was at the same address both times does not differ, and would not be found.
static gcap_status_t check_elsewhere(const gcap_moving_buffer_t* buffers, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (buffers[i].stand_in != buffers[i].address) continue;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "buffer %zu '%s' was captured twice at the same address %p", i,
                       buffers[i].name, (void*)buffers[i].address);
  }
  return NULL;
}

// --- The search -----------------------------------------------------------------------------------------------------

// The buffer that a word points into, which is `real` and `stand_in` in the two captures; `count` if there is none, or
// if two would do.
static size_t find_buffer(const gcap_moving_buffer_t* buffers, size_t count, uintptr_t real, uintptr_t stand_in) {
  size_t found = count, inside = count, num_found = 0, num_inside = 0;
  for (size_t i = 0; i < count; ++i) {
    const gcap_moving_buffer_t* buffer = &buffers[i];
    if (stand_in - real != buffer->stand_in - buffer->address) continue;
    found = i;
    ++num_found;
    if (real - buffer->address > buffer->bytes) continue;
    inside = i;
    ++num_inside;
  }
  if (num_found == 1) return found;
  return num_inside == 1 ? inside : count;
}

static gcap_status_t add_word(gcap_relocation_t* relocation, gcap_relocation_word_t word) {
  const size_t count = relocation->num_words + 1;
  if (!gcap_grow(&relocation->words, &relocation->words_room, count, sizeof(word))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu words of a graph", count);
  }
  relocation->words[relocation->num_words++] = word;
  return NULL;
}

typedef struct span {
  const unsigned char *real, *stand_in;  // from the node's first byte
  size_t begin, end;                     // in which a word may lie
} span_t;

// The word around the byte `at` that is a pointer into a buffer, at a multiple of `step`.
static bool find_word(const gcap_relocation_t* relocation, const span_t* span, size_t at, size_t step,
                      gcap_relocation_word_t* out_word) {
  const size_t least = at + 1 >= span->begin + WORD ? at + 1 - WORD : span->begin;
  for (size_t offset = (least + step - 1) / step * step; offset <= at && offset + WORD <= span->end; offset += step) {
    const uintptr_t real = load_word(span->real + offset);
    const size_t buffer =
        find_buffer(relocation->buffers, relocation->num_buffers, real, load_word(span->stand_in + offset));
    if (buffer == relocation->num_buffers) continue;
    out_word->buffer = buffer;
    out_word->offset = offset;
    out_word->distance = real - relocation->buffers[buffer].address;
    return true;
  }
  return false;
}

static bool may_move(enum cudaGraphNodeType type) {
  return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
}

static gcap_status_t search_part(gcap_relocation_t* relocation, const gcap_contents_t* real,
                                 const gcap_contents_t* stand_in, size_t index, size_t part) {
  const gcap_contents_node_t* node = &real->nodes[index];
  const gcap_contents_part_t* whole = &gcap_contents_parts_of(real, node)[part];
  span_t span = {.real = gcap_contents_bytes_of(real, node),
                 .stand_in = gcap_contents_bytes_of(stand_in, &stand_in->nodes[index]),
                 .begin = whole->offset,
                 .end = whole->offset + whole->bytes};
  for (size_t at = span.begin; at < span.end;) {
    if (span.real[at] == span.stand_in[at]) {
      ++at;
      continue;
    }
    gcap_relocation_word_t word = {.node = index};
    const bool found = may_move(node->type) &&
                       (find_word(relocation, &span, at, 8, &word) || find_word(relocation, &span, at, 4, &word) ||
                        find_word(relocation, &span, at, 1, &word));
    if (!found) return refuse_word(real, stand_in, index, part, at - whole->offset);
    GCAP_RETURN_IF_ERROR(add_word(relocation, word));
    at = span.begin = word.offset + WORD;
  }
  return NULL;
}

static gcap_status_t search(gcap_relocation_t* relocation, const gcap_contents_t* real,
                            const gcap_contents_t* stand_in) {
  for (size_t i = 0; i < real->count; ++i) {
    for (size_t part = 0; part < real->nodes[i].num_parts; ++part) {
      GCAP_RETURN_IF_ERROR(search_part(relocation, real, stand_in, i, part));
    }
  }
  return NULL;
}

// --- The proof ------------------------------------------------------------------------------------------------------

// Whether the node's bytes, with the words at the stand-ins, are those of the other capture.
static gcap_status_t prove(const gcap_relocation_t* relocation, const gcap_contents_t* real,
                           const gcap_contents_t* stand_in) {
  unsigned char* moved = malloc(real->num_bytes + 1);
  if (moved == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu bytes", real->num_bytes);
  if (real->num_bytes != 0) memcpy(moved, real->bytes, real->num_bytes);
  for (size_t i = 0; i < relocation->num_words; ++i) {
    const gcap_relocation_word_t* word = &relocation->words[i];
    store_word(moved + real->nodes[word->node].begin + word->offset,
               relocation->buffers[word->buffer].stand_in + word->distance);
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
  relocation->is_changed = calloc(real->count + 1, sizeof(*relocation->is_changed));
  relocation->params = calloc(most_params, sizeof(*relocation->params));
  if (relocation->buffers == NULL || relocation->first_word == NULL || relocation->is_changed == NULL ||
      relocation->params == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the pointers of a graph of %zu nodes", real->count);
  }
  relocation->num_buffers = count;
  if (count != 0) memcpy(relocation->buffers, buffers, count * sizeof(*buffers));
  return NULL;
}

gcap_status_t gcap_relocation_create(gcap_contents_t* real, const gcap_contents_t* stand_in,
                                     const gcap_moving_buffer_t* buffers, size_t count,
                                     gcap_relocation_t** out_relocation) {
  *out_relocation = NULL;
  GCAP_RETURN_IF_ERROR(check_elsewhere(buffers, count));
  GCAP_RETURN_IF_ERROR(check_same(real, stand_in));
  gcap_relocation_t* relocation = calloc(1, sizeof(*relocation));
  if (relocation == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the pointers of a graph");
  gcap_status_t status = make_tables(relocation, real, buffers, count);
  if (status == NULL) status = search(relocation, real, stand_in);
  if (status == NULL) status = prove(relocation, real, stand_in);
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

static gcap_status_t set_node(gcap_relocation_t* relocation, cudaGraphExec_t exec, size_t index) {
  const gcap_contents_node_t* node = &relocation->contents->nodes[index];
  const unsigned char* bytes = gcap_contents_bytes_of(relocation->contents, node);
  if (node->type == cudaGraphNodeTypeKernel) return set_kernel(relocation, exec, node);
  if (node->type == cudaGraphNodeTypeMemcpy) {
    struct cudaMemcpy3DParms copy;
    memset(&copy, 0, sizeof(copy));
    memcpy(&copy, bytes, node->bytes);
    return GCAP_CUDA(cudaGraphExecMemcpyNodeSetParams(exec, node->node, &copy));
  }
  struct cudaMemsetParams fill;
  memcpy(&fill, bytes, sizeof(fill));
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
