// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Spans: an array in the order of addresses, so that only two neighbours can overlap a new span. Adding and removing a
// span moves all spans above it. That is cheap enough: a session's weights and scratch's regions are thousands at most
// and change rarely.

#include "lib/allocator/spans.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/internal/grow.h"

// How many spans begin at or below the address.
static size_t rank_of(const gcap_external_spans_t* spans, uintptr_t address) {
  size_t low = 0, high = spans->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (spans->spans[middle].begin <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

gcap_status_t gcap_external_spans_add(gcap_external_spans_t* spans, const void* ptr, size_t bytes,
                                      gcap_external_span_t* out_rival) {
  const uintptr_t begin = (uintptr_t)ptr;
  if (bytes > UINTPTR_MAX - begin) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%zu bytes at %p reach beyond the last address", bytes, ptr);
  }
  const gcap_external_span_t span = {begin, begin + bytes};
  size_t at = rank_of(spans, begin);
  const gcap_external_span_t* rival = NULL;
  if (at > 0 && spans->spans[at - 1].end > span.begin) rival = &spans->spans[at - 1];
  if (rival == NULL && at < spans->count && spans->spans[at].begin < span.end) rival = &spans->spans[at];
  if (rival != NULL) {
    *out_rival = *rival;
    return GCAP_STATUS(GCAP_ALREADY_EXISTS,
                       "%zu bytes at %p overlap the %zu bytes at 0x%" PRIxPTR ", which are handed out", bytes, ptr,
                       (size_t)(rival->end - rival->begin), rival->begin);
  }
  if (!gcap_grow(&spans->spans, &spans->capacity, spans->count + 1, sizeof(span))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to note an external allocation");
  }
  memmove(&spans->spans[at + 1], &spans->spans[at], (spans->count - at) * sizeof(span));
  spans->spans[at] = span;
  ++spans->count;
  return NULL;
}

void gcap_external_spans_remove(gcap_external_spans_t* spans, const void* ptr) {
  size_t at = rank_of(spans, (uintptr_t)ptr) - 1;
  --spans->count;
  memmove(&spans->spans[at], &spans->spans[at + 1], (spans->count - at) * sizeof(spans->spans[0]));
}

void gcap_external_spans_deinit(gcap_external_spans_t* spans) { free(spans->spans); }
