// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// red_zones.h: what is written around live blocks, and into freed ones.
#ifndef GCAP_LIB_SCRATCH_RED_ZONES_H_
#define GCAP_LIB_SCRATCH_RED_ZONES_H_

#include <cuda_runtime_api.h>

#include "lib/scratch/record.h"
#include "lib/scratch/reservation.h"

// A byte that no program has a reason to write again and again: as a number of any type they are odd, but not extreme.
#define GCAP_SCRATCH_ZONE_BYTE 0xA5
// NaN in every floating-point format that GPUs know, and -1 as an integer.
#define GCAP_SCRATCH_POISON_BYTE 0xFF

// What reading a zone needs to know.
typedef struct gcap_scratch_zone_reader {
  enum cudaMemcpyKind to_host;          // from the memory of upstream
  const gcap_scratch_record_t* record;  // for what is said of damage
} gcap_scratch_zone_reader_t;

// Whether work given to the stream now becomes part of a graph.
gcap_status_t gcap_scratch_is_capturing(gcap_stream_t* stream, bool* out_capturing) GCAP_NODISCARD;
// Writes both zones of a block in the order of its stream.
gcap_status_t gcap_scratch_zones_write(const gcap_scratch_live_t* live) GCAP_NODISCARD;
// Reads them, behind all that the stream was given, and tells what is wrong. NULL in `out_damage`: nothing.
gcap_status_t gcap_scratch_zones_check(const gcap_scratch_zone_reader_t* reader, const gcap_scratch_live_t* live,
                                       gcap_status_t* out_damage) GCAP_NODISCARD;
// Makes the graph that the block's stream is captured for bring its zones to the host, and looks at what replays
// brought. What they bring goes with the reservation.
gcap_status_t gcap_scratch_zones_capture(const gcap_scratch_zone_reader_t* reader,
                                         gcap_scratch_reservation_t* reservation,
                                         const gcap_scratch_live_t* live) GCAP_NODISCARD;
gcap_status_t gcap_scratch_zones_check_copies(const gcap_scratch_zone_reader_t* reader,
                                              const gcap_scratch_reservation_t* reservation) GCAP_NODISCARD;
// Fills a block in the order of its stream.
gcap_status_t gcap_scratch_poison(const gcap_scratch_live_t* live) GCAP_NODISCARD;

#endif  // GCAP_LIB_SCRATCH_RED_ZONES_H_
