// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Taps: those that a run's work has made, and those of a graph, whose copies a run reads.
//
// Locking: none. A list is one thread's, and that of a graph does not change.

#include "lib/graph/taps.h"

#include <stdlib.h>
#include <string.h>

#include "lib/internal/synchronize.h"

// --- Lists ----------------------------------------------------------------------------------------------------------

void gcap_graph_tap_list_free(gcap_graph_tap_list_t* list) {
  for (size_t i = 0; i < list->count; ++i) gcap_graph_tap_block_release(list->items[i].block);
  free(list->items);
  *list = (gcap_graph_tap_list_t){0};
}

gcap_status_t gcap_graph_tap_list_copy(const gcap_graph_tap_list_t* list, gcap_graph_tap_list_t* out_copy) {
  *out_copy = (gcap_graph_tap_list_t){0};
  if (list->count == 0) return NULL;
  gcap_graph_made_tap_t* items = malloc(list->count * sizeof(*items));
  if (items == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu taps", list->count);
  memcpy(items, list->items, list->count * sizeof(*items));
  for (size_t i = 0; i < list->count; ++i) gcap_graph_tap_block_retain(items[i].block);
  *out_copy = (gcap_graph_tap_list_t){.items = items, .count = list->count, .room = list->count};
  return NULL;
}

static bool is_same(const gcap_graph_made_tap_t* a, const gcap_graph_made_tap_t* b) {
  return a->bytes == b->bytes && strcmp(a->label, b->label) == 0;
}

gcap_status_t gcap_graph_tap_list_compare(const gcap_graph_tap_list_t* a, const gcap_graph_tap_list_t* b) {
  const size_t least = a->count < b->count ? a->count : b->count;
  size_t first = 0;
  while (first < least && is_same(&a->items[first], &b->items[first])) ++first;
  if (first == a->count && first == b->count) return NULL;
  const gcap_graph_made_tap_t* made = first < a->count ? &a->items[first] : &b->items[first];
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "tap %zu '%s' is made in one capture of the run, and not, or of other bytes, in the other", first,
                     made->label);
}

// --- Reading --------------------------------------------------------------------------------------------------------

// The last one of a label; NULL: there is none.
static const gcap_graph_made_tap_t* find_last(const gcap_graph_tap_list_t* list, const char* label) {
  for (size_t i = list->count; i > 0; --i) {
    if (strcmp(list->items[i - 1].label, label) == 0) return &list->items[i - 1];
  }
  return NULL;
}

gcap_status_t gcap_graph_taps_read(const gcap_graph_tap_list_t* list, gcap_graph_tap_t* taps, size_t num_taps,
                                   cudaStream_t stream) {
  gcap_status_t status = NULL;
  for (size_t i = 0; status == NULL && i < num_taps; ++i) {
    gcap_graph_tap_t* tap = &taps[i];
    const gcap_graph_made_tap_t* made = find_last(list, tap->label);
    tap->tapped_bytes = made != NULL ? made->bytes : 0;
    const size_t bytes = tap->tapped_bytes < tap->bytes ? tap->tapped_bytes : tap->bytes;
    if (bytes == 0) continue;
    status = GCAP_CUDA(cudaMemcpyAsync(tap->data, made->memory, bytes, cudaMemcpyDeviceToHost, stream));
  }
  return gcap_status_join(status, gcap_synchronize_stream(stream));
}
