// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// watch.h: pageable memory that is freed while something still names it.
#ifndef GCAP_SIM_CHECK_WATCH_H_
#define GCAP_SIM_CHECK_WATCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/span.h"
#include "sim/check/origin.h"

// An address that a task of a graph names, or of memory that is registered.
typedef struct gcap_sim_watch {
  gcap_sim_span_t span;
  struct gcap_sim_watch* same;  // others of the same address; the first of them is in the tree
  bool freed;
  size_t num_frames;  // of the call that freed it
  void* frames[GCAP_SIM_MAX_FRAMES];
} gcap_sim_watch_t;

gcap_sim_watch_t* gcap_sim_watch_begin(const void* address);
void gcap_sim_watch_end(gcap_sim_watch_t* watch);  // NULL is fine
bool gcap_sim_watch_any(void);
// A block of the C library goes, by a function whose stack pointer is `frame`: what lies in the block is watched no
// more, and counts as freed by that function's caller. Takes no lock but the watches' own, and allocates nothing.
void gcap_sim_watch_note_free(const void* memory, size_t bytes, const void* frame);
// Has the memory been freed since?
bool gcap_sim_watch_freed(const gcap_sim_watch_t* watch);

#endif  // GCAP_SIM_CHECK_WATCH_H_
