// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// mark.h: points in a stream that others wait for.
#ifndef GCAP_SIM_STREAM_MARK_H_
#define GCAP_SIM_STREAM_MARK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/api/types.h"
#include "sim/check/clock.h"

struct gcap_sim_mark {
  size_t refs;
  bool done;
  gcap_sim_stream_t* stream;  // the queue it is in; valid until done
  uint64_t when;              // the simulated time at which it was reached
  gcap_sim_stamp_t stamp;     // what comes before it, once it is reached
};

gcap_sim_mark_t* gcap_sim_mark_create(gcap_sim_stream_t* stream);
// Called by gcap_sim_mark_release alone, which is inline because every step of a queue releases marks.
void gcap_sim_mark_destroy(gcap_sim_mark_t* mark);

// NULL is fine for both.
static inline gcap_sim_mark_t* gcap_sim_mark_retain(gcap_sim_mark_t* mark) {
  if (mark != NULL) ++mark->refs;
  return mark;
}

static inline void gcap_sim_mark_release(gcap_sim_mark_t* mark) {
  if (mark != NULL && --mark->refs == 0) gcap_sim_mark_destroy(mark);
}

#endif  // GCAP_SIM_STREAM_MARK_H_
