// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// past.h: which frees a stream is known to come after.
#ifndef GCAP_SIM_STREAM_PAST_H_
#define GCAP_SIM_STREAM_PAST_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/api/types.h"

// The free number `order` of a stream; 0 for none.
typedef struct gcap_sim_point {
  unsigned long long stream;
  uint64_t order;
} gcap_sim_point_t;

// Enough for a program's usual forks and joins.
#define GCAP_SIM_MAX_PAST 16

struct gcap_sim_past {
  size_t refs;
  size_t count;
  gcap_sim_point_t points[GCAP_SIM_MAX_PAST];
};

void gcap_sim_past_release(gcap_sim_past_t* past);
gcap_sim_past_t* gcap_sim_past_retain(gcap_sim_past_t* past);
bool gcap_sim_past_holds(const gcap_sim_past_t* past, gcap_sim_point_t point);
// The stream waits for the event's record.
void gcap_sim_past_learn(gcap_sim_stream_t* stream, const gcap_sim_event_t* event);

#endif  // GCAP_SIM_STREAM_PAST_H_
