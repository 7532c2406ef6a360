// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Marks: points in a stream that others wait for. The scheduler reaches them. Locking: the global mutex.
#include "sim/stream/mark.h"

#include <stdlib.h>

#include "sim/base/heap.h"
#include "sim/check/clock.h"

gcap_sim_mark_t* gcap_sim_mark_create(gcap_sim_stream_t* stream) {
  gcap_sim_mark_t* mark = gcap_sim_calloc(1, sizeof(*mark));
  mark->refs = 1;
  mark->stream = stream;
  return mark;
}

void gcap_sim_mark_destroy(gcap_sim_mark_t* mark) {
  gcap_sim_stamp_release(&mark->stamp);
  free(mark);
}
