// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cost.h: the device memory of executables.
//
// Measured on an H200 by bench/graph:cost_bench: each kernel node takes its part of memory that the device gives in
// steps of 2 to 4 MiB for all executables together, and keeps for later ones when they are destroyed; nodes that copy
// or fill take none. So no executable has bytes of its own. What is counted for one is its kernel nodes, each with the
// same part: a recorded number, until so much was seen to go on this device that the steps do not matter.
#ifndef GCAP_LIB_GRAPH_COST_H_
#define GCAP_LIB_GRAPH_COST_H_

#include <stdbool.h>
#include <stddef.h>

#include "lib/graph/node.h"

// The bytes of one kernel node, of 80,000 in 8 graphs.
#define GCAP_GRAPH_KERNEL_NODE_BYTES 2176

// How many kernel nodes must have made memory go before their mean counts: some 70 MiB of them, of which a step is 6 %.
#define GCAP_GRAPH_MEASURED_NODES 32768

// How many kernel nodes the executable of a graph has: with those of child graphs. Of a child graph that the driver
// does not show none is counted, nor of what a conditional node may run.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_count_kernels(const gcap_graph_node_list_t* nodes, size_t* out_kernels);

// The bytes of an executable with so many kernel nodes, as far as is known now. Any thread.
size_t gcap_graph_exec_bytes(int device_id, size_t kernels);

// Watches the device's memory while an executable is made and launched for the first time. Between begin and end the
// thread makes nothing else that takes memory. Nothing here fails: what cannot be measured is not. A call of the driver
// is made only if the device has never had as many kernel nodes, and is legal while any thread captures.
typedef struct gcap_graph_cost_watch {
  int device_id;
  size_t kernels;
  size_t new_kernels;  // of them, how many find no memory of destroyed ones
  size_t free_bytes;   // at the begin
  unsigned long long turn;
  bool is_measured;
} gcap_graph_cost_watch_t;

gcap_graph_cost_watch_t gcap_graph_cost_begin(int device_id, size_t kernels, bool may_measure);
// `made`: there is an executable more.
void gcap_graph_cost_end(const gcap_graph_cost_watch_t* watch, bool made);
// An executable was destroyed.
void gcap_graph_cost_forget(int device_id, size_t kernels);

#endif  // GCAP_LIB_GRAPH_COST_H_
