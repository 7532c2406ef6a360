// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// host_free.h: pageable memory that is freed while something still names it.
#ifndef GCAP_SIM_CHECK_HOST_FREE_H_
#define GCAP_SIM_CHECK_HOST_FREE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../cudart/span.h"
#include "origin.h"

// An address that a task of a graph names, or of memory that is registered.
typedef struct sim_watch {
  sim_span_t span;
  struct sim_watch* same;  // others of the same address
  bool in_tree;            // the first of its address
  bool freed;
  size_t num_frames;  // of the call that freed it
  void* frames[SIM_MAX_FRAMES];
} sim_watch_t;

sim_watch_t* sim_watch_begin(const void* address);
void sim_watch_end(sim_watch_t* watch);  // NULL is fine
bool sim_watch_any(void);
// Has the memory been freed since?
bool sim_watch_freed(const sim_watch_t* watch);

#endif  // GCAP_SIM_CHECK_HOST_FREE_H_
