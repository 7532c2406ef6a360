// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Red zones and poison: device memory that is written and read as the block's own work would, in the order of its
// stream, so that no synchronisation is missing. While the stream is captured the writes become nodes, and each replay
// renews them.
//
// What a graph does to its zones is seen by its own nodes: where a block is freed in a capture, copies of its zones to
// the host are captured too, and gcap_scratch_validate looks at what the last replay brought. The copies' memory holds
// what good zones would until there was one, and goes with the reservation, so after the graph.
//
// The upper zone begins at the first byte that was not asked for. Zones are read with the thread in relaxed mode: a
// capture of another thread is none of the block's business. Locking: the arena is locked, also while a stream is
// waited for.

#include "lib/scratch/red_zones.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/internal/capture_check.h"
#include "lib/internal/cuda_guard.h"
#include "lib/stream/inner.h"

enum { kMaxZoneBytes = 2 * GCAP_SCRATCH_GRANULE_BYTES };

typedef struct zone {
  char* base;
  size_t bytes;
} zone_t;

static zone_t lower_zone(const gcap_scratch_live_t* live) {
  return (zone_t){live->ptr - GCAP_SCRATCH_GRANULE_BYTES, GCAP_SCRATCH_GRANULE_BYTES};
}

static zone_t upper_zone(const gcap_scratch_live_t* live) {
  return (zone_t){live->ptr + live->bytes,
                  gcap_scratch_block_bytes(live->bytes) - live->bytes + GCAP_SCRATCH_GRANULE_BYTES};
}

gcap_status_t gcap_scratch_is_capturing(gcap_stream_t* stream, bool* out_capturing) {
  *out_capturing = false;
  return gcap_stream_can_capture(stream) ? gcap_is_stream_capturing(gcap_stream_handle(stream), out_capturing) : NULL;
}

// --- Writing --------------------------------------------------------------------------------------------------------

static gcap_status_t fill(gcap_stream_t* stream, zone_t zone, int byte) {
  return GCAP_CUDA(cudaMemsetAsync(zone.base, byte, zone.bytes, gcap_stream_handle(stream)));
}

gcap_status_t gcap_scratch_zones_write(const gcap_scratch_live_t* live) {
  const int device_id = gcap_stream_device(live->stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = fill(live->stream, lower_zone(live), GCAP_SCRATCH_ZONE_BYTE);
  if (status == NULL) status = fill(live->stream, upper_zone(live), GCAP_SCRATCH_ZONE_BYTE);
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}

gcap_status_t gcap_scratch_poison(const gcap_scratch_live_t* live) {
  const int device_id = gcap_stream_device(live->stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = fill(live->stream, (zone_t){live->ptr, live->bytes}, GCAP_SCRATCH_POISON_BYTE);
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}

// --- Reading --------------------------------------------------------------------------------------------------------

typedef struct zone_images {
  unsigned char lower[kMaxZoneBytes], upper[kMaxZoneBytes];
} zone_images_t;

static gcap_status_t copy_zone(const gcap_scratch_zone_reader_t* reader, gcap_stream_t* stream, zone_t zone,
                               unsigned char* image) {
  return GCAP_CUDA(cudaMemcpyAsync(image, zone.base, zone.bytes, reader->to_host, gcap_stream_handle(stream)));
}

static gcap_status_t copy_zones(const gcap_scratch_zone_reader_t* reader, const gcap_scratch_live_t* live,
                                zone_images_t* images) {
  gcap_status_t status = copy_zone(reader, live->stream, lower_zone(live), images->lower);
  return status != NULL ? status : copy_zone(reader, live->stream, upper_zone(live), images->upper);
}

static gcap_status_t read_zones(const gcap_scratch_zone_reader_t* reader, const gcap_scratch_live_t* live,
                                zone_images_t* images) {
  const int device_id = gcap_stream_device(live->stream);
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(device_id, &previous));
  gcap_status_t status = copy_zones(reader, live, images);
  // Also after a failure: a copy that was issued writes to `images`.
  status = gcap_status_join(status, GCAP_CUDA(cudaStreamSynchronize(gcap_stream_handle(live->stream))));
  return gcap_status_join(status, gcap_thread_leave(device_id, &previous));
}

static size_t count_damaged(const unsigned char* image, size_t bytes) {
  size_t count = 0;
  for (size_t i = 0; i < bytes; ++i) count += image[i] != GCAP_SCRATCH_ZONE_BYTE;
  return count;
}

// What is wrong with one zone, by the byte that is nearest to the block. `graph` names the graph whose block it is;
// NULL: of none.
static gcap_status_t judge_zone(const gcap_scratch_zone_reader_t* reader, const gcap_scratch_live_t* live,
                                const char* graph, const unsigned char* image, bool is_upper) {
  const size_t bytes = is_upper ? upper_zone(live).bytes : lower_zone(live).bytes;
  const size_t num_damaged = count_damaged(image, bytes);
  if (num_damaged == 0) return NULL;
  size_t at = is_upper ? 0 : bytes - 1;
  while (image[at] == GCAP_SCRATCH_ZONE_BYTE) at = is_upper ? at + 1 : at - 1;
  char of_graph[GCAP_SCRATCH_LABEL_BYTES + 4] = "";
  if (graph != NULL) snprintf(of_graph, sizeof(of_graph), " (%s)", graph[0] != '\0' ? graph : "a graph");
  return GCAP_STATUS(GCAP_INTERNAL,
                     "something wrote outside scratch block %p of %zu bytes for stream %p%s: byte %zu %s it is 0x%02X "
                     "instead of 0x%02X, and %zu of the %zu bytes there are wrong%s",
                     (void*)live->ptr, live->bytes, (void*)gcap_stream_handle(live->stream), of_graph,
                     is_upper ? at + 1 : bytes - at, is_upper ? "after" : "before", image[at], GCAP_SCRATCH_ZONE_BYTE,
                     num_damaged, bytes, gcap_scratch_history_of(reader->record, live->ptr).text);
}

static gcap_status_t judge(const gcap_scratch_zone_reader_t* reader, const gcap_scratch_live_t* live, const char* graph,
                           const zone_images_t* images) {
  gcap_status_t damage = judge_zone(reader, live, graph, images->lower, /*is_upper=*/false);
  return gcap_status_join(damage, judge_zone(reader, live, graph, images->upper, /*is_upper=*/true));
}

gcap_status_t gcap_scratch_zones_check(const gcap_scratch_zone_reader_t* reader, const gcap_scratch_live_t* live,
                                       gcap_status_t* out_damage) {
  *out_damage = NULL;
  zone_images_t images;
  GCAP_RETURN_IF_ERROR(read_zones(reader, live, &images));
  *out_damage = judge(reader, live, /*graph=*/NULL, &images);
  return NULL;
}

// --- In graphs ------------------------------------------------------------------------------------------------------

// What replays bring of one block.
typedef struct zone_copy {
  gcap_scratch_attachment_t attachment;
  gcap_scratch_live_t live;
  zone_images_t images;
} zone_copy_t;

gcap_status_t gcap_scratch_zones_capture(const gcap_scratch_zone_reader_t* reader,
                                         gcap_scratch_reservation_t* reservation, const gcap_scratch_live_t* live) {
  zone_copy_t* copy = malloc(sizeof(*copy));
  if (copy == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to watch a scratch block of a graph");
  copy->live = *live;
  memset(&copy->images, GCAP_SCRATCH_ZONE_BYTE, sizeof(copy->images));
  // Also when a call fails: the other may be in the graph.
  copy->attachment = (gcap_scratch_attachment_t){.next = reservation->zone_copies, .bytes = sizeof(*copy)};
  reservation->zone_copies = &copy->attachment;
  const int device_id = gcap_stream_device(live->stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = copy_zones(reader, live, &copy->images);
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}

gcap_status_t gcap_scratch_zones_check_copies(const gcap_scratch_zone_reader_t* reader,
                                              const gcap_scratch_reservation_t* reservation) {
  gcap_status_t damage = NULL;
  if (reservation->zone_copies == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_synchronize(
      gcap_stream_handle(gcap_scratch_stream_of(gcap_scratch_reservation_state(reservation)))));
  const gcap_scratch_attachment_t* attachment = reservation->zone_copies;
  for (; attachment != NULL && damage == NULL; attachment = attachment->next) {
    const zone_copy_t* copy = (const zone_copy_t*)(const void*)attachment;  // it comes first
    damage = judge(reader, &copy->live, reservation->label, &copy->images);
  }
  return damage;
}
