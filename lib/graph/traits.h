// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// traits.h: what an update of an executable may leave as it was although the driver answers success.
//
// Measured on an H200 (driver 580.159.04, CUDA 13.0): after cudaGraphExecUpdate to a kernel node with other clusters
// the old clusters are in force, and with another function the old or the new ones, as the program was built.
// Priorities and memory synchronization domains are answered with success too, and nothing tells whether they are in
// force. So what the new graph wants is compared with what the executable was made of, and where that differs there is
// no update.
#ifndef GCAP_LIB_GRAPH_TRAITS_H_
#define GCAP_LIB_GRAPH_TRAITS_H_

#include "lib/graph/node.h"

// Of one kernel node.
typedef struct gcap_graph_trait {
  const void* function;
  unsigned cluster[3];  // 0: none. The preferred cluster cannot be read; it changes the speed alone
  int cooperative, priority, sync_domain;
  bool is_known;  // false: the driver does not say
} gcap_graph_trait_t;

// Of the kernel nodes of a graph, in the order of its nodes; those of a child graph stand where the child does.
typedef struct gcap_graph_traits {
  gcap_graph_trait_t* items;
  size_t count, room;
} gcap_graph_traits_t;

// Reads them. What the driver does not say is unknown, and no failure.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_traits_read(const gcap_graph_node_list_t* nodes, gcap_graph_traits_t* out_traits);
void gcap_graph_traits_free(gcap_graph_traits_t* traits);

// NULL if an update from `before` to `after` does what it says, or the driver will refuse it. Else CUDA_ERROR with the
// kernel and what an update would leave, in words that follow "could not be updated in place".
gcap_status_t gcap_graph_traits_check_update(const gcap_graph_traits_t* before, const gcap_graph_traits_t* after);

#endif  // GCAP_LIB_GRAPH_TRAITS_H_
