// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The scratch of an operation is known by what was handed out. What is free again may be filled until it is given back
// upstream; the check does that itself, so a range is forgotten once it was filled. The memory of a graph stays with
// the graph, and is known as long.
//
// Locking: one mutex over the list. No call of gcap or CUDA is made with it, but for the fills, of which none waits.

#include "kit/check/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "gcap/capture.h"
#include "lib/internal/grow.h"

void gcap_check_ranges_init(gcap_check_ranges_t* ranges) {
  memset(ranges, 0, sizeof(*ranges));
  pthread_mutex_init(&ranges->mutex, NULL);
}

void gcap_check_ranges_deinit(gcap_check_ranges_t* ranges) {
  free(ranges->items);
  pthread_mutex_destroy(&ranges->mutex);
}

// --- Events, with the mutex held ------------------------------------------------------------------------------------

static void add(gcap_check_ranges_t* ranges, char* begin, size_t bytes) {
  if (!gcap_grow(&ranges->items, &ranges->room, ranges->count + 1, sizeof(*ranges->items))) {
    ranges->lacks_memory = true;
    return;
  }
  ranges->items[ranges->count++] =
      (gcap_check_range_t){.begin = begin, .bytes = bytes, .is_live = true, .is_of_graph = gcap_thread_is_capturing()};
  ranges->live_bytes += bytes;
  if (bytes > ranges->largest) ranges->largest = bytes;
}

static void end(gcap_check_ranges_t* ranges, const char* begin) {
  for (size_t i = 0; i < ranges->count; ++i) {
    gcap_check_range_t* range = &ranges->items[i];
    if (!range->is_live || range->begin != begin) continue;
    range->is_live = false;
    ranges->live_bytes -= range->bytes;
    return;
  }
}

static void forget_free(gcap_check_ranges_t* ranges) {
  size_t kept = 0;
  for (size_t i = 0; i < ranges->count; ++i) {
    const gcap_check_range_t range = ranges->items[i];
    if (range.is_live || range.is_of_graph) ranges->items[kept++] = range;
  }
  ranges->count = kept;
}

void gcap_check_ranges_hear(void* user, const gcap_allocator_event_t* event) {
  gcap_check_ranges_t* ranges = user;
  pthread_mutex_lock(&ranges->mutex);
  switch (event->kind) {
    case GCAP_ALLOCATOR_EVENT_ALLOC:
    case GCAP_ALLOCATOR_EVENT_RESERVE: add(ranges, event->ptr, event->bytes); break;
    case GCAP_ALLOCATOR_EVENT_FREE: end(ranges, event->ptr); break;
    case GCAP_ALLOCATOR_EVENT_TRIM: forget_free(ranges); break;
  }
  pthread_mutex_unlock(&ranges->mutex);
}

// --- Fills ------------------------------------------------------------------------------------------------------------

static bool meets_live(const gcap_check_ranges_t* ranges, const gcap_check_range_t* range) {
  for (size_t i = 0; i < ranges->count; ++i) {
    const gcap_check_range_t* other = &ranges->items[i];
    if (!other->is_live) continue;
    if (other->begin < range->begin + range->bytes && range->begin < other->begin + other->bytes) return true;
  }
  return false;
}

static gcap_status_t fill(const gcap_check_ranges_t* ranges, unsigned char byte, cudaStream_t stream) {
  if (ranges->lacks_memory) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to note what scratch is used");
  for (size_t i = 0; i < ranges->count; ++i) {
    const gcap_check_range_t* range = &ranges->items[i];
    if (range->is_live || meets_live(ranges, range)) continue;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(range->begin, byte, range->bytes, stream)));
  }
  return NULL;
}

gcap_status_t gcap_check_ranges_fill(gcap_check_ranges_t* ranges, unsigned char byte, cudaStream_t stream) {
  pthread_mutex_lock(&ranges->mutex);
  gcap_status_t status = fill(ranges, byte, stream);
  forget_free(ranges);
  pthread_mutex_unlock(&ranges->mutex);
  return status;
}

// --- Ends ------------------------------------------------------------------------------------------------------------

void gcap_check_ranges_end_graph(gcap_check_ranges_t* ranges) {
  pthread_mutex_lock(&ranges->mutex);
  for (size_t i = 0; i < ranges->count; ++i) ranges->items[i].is_of_graph = false;
  pthread_mutex_unlock(&ranges->mutex);
}

// Frees tell the list, so the first live range is asked for each time.
static char* first_live(gcap_check_ranges_t* ranges) {
  char* begin = NULL;
  pthread_mutex_lock(&ranges->mutex);
  for (size_t i = 0; i < ranges->count && begin == NULL; ++i) {
    if (ranges->items[i].is_live) begin = ranges->items[i].begin;
  }
  pthread_mutex_unlock(&ranges->mutex);
  return begin;
}

gcap_status_t gcap_check_ranges_free(gcap_check_ranges_t* ranges, gcap_scratch_t* scratch) {
  for (char* block = first_live(ranges); block != NULL; block = first_live(ranges)) {
    GCAP_RETURN_IF_ERROR(gcap_scratch_free(scratch, block));
  }
  return NULL;
}

size_t gcap_check_ranges_live_bytes(gcap_check_ranges_t* ranges) {
  pthread_mutex_lock(&ranges->mutex);
  const size_t bytes = ranges->live_bytes;
  pthread_mutex_unlock(&ranges->mutex);
  return bytes;
}
