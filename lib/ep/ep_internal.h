// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep_internal.h: what an EP consists of, for the sources of this module.
#ifndef GCAP_LIB_EP_EP_INTERNAL_H_
#define GCAP_LIB_EP_EP_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "gcap/ep.h"
#include "lib/ep/table.h"

struct gcap_ep {
  gcap_ep_ops_t ops;
  bool supports_concurrent_runs;   // as the implementer answered when the EP was made
  const char* missing_to_capture;  // a member without which a host cannot capture; NULL: all are there
  atomic_bool warned;              // of missing_to_capture
  pthread_mutex_t turns;
  atomic_size_t num_sessions;   // alive
  atomic_bool may_have_graphs;  // a run with a graph id was begun
  char name[];
};

#endif  // GCAP_LIB_EP_EP_INTERNAL_H_
