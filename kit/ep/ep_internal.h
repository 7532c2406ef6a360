// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep_internal.h: what an EP consists of, for the sources of this module.
#ifndef GCAP_KIT_EP_EP_INTERNAL_H_
#define GCAP_KIT_EP_EP_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "gcap/kit/ep.h"
#include "kit/ep/table.h"

struct gcap_ep {
  gcap_ep_ops_t ops;
  bool supports_concurrent_runs;  // as the runtime, or the table, said when the EP was made
  pthread_mutex_t turns;
  atomic_size_t num_sessions;   // alive
  atomic_bool may_have_graphs;  // a session that ended began a run with a graph id
  char name[];
};

#endif  // GCAP_KIT_EP_EP_INTERNAL_H_
