// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The device memory of executables: measured, their kernel nodes take it and no other nodes do; the device sets it
// aside in steps for all executables together, and keeps for later ones what destroyed ones had. Locking: the global
// mutex.
#include "sim/graph/exec_memory.h"

#include <stddef.h>

#include "sim/base/thread.h"
#include "sim/graph/graph.h"
#include "sim/memory/budget.h"

// As measured.
#define NODE_BYTES ((size_t)2176)
#define STEP_BYTES ((size_t)2 << 20)

static struct {
  size_t nodes;  // of live executables
  size_t reserved;
} execs[GCAP_SIM_MAX_DEVICES];

static void count(const gcap_sim_graph_t* graph, size_t* nodes) {
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    const gcap_sim_node_t* node = graph->nodes[i];
    if (node->child != NULL) count(node->child, nodes);
    if (gcap_sim_node_type(node) == cudaGraphNodeTypeKernel) ++nodes[node->device];
  }
}

// Makes `reserved` cover the nodes of the executables and `more`.
static bool grow(int device, size_t more) {
  size_t need = (execs[device].nodes + more) * NODE_BYTES;
  need = (need + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
  if (need <= execs[device].reserved) return true;
  if (!gcap_sim_budget_take(device, need - execs[device].reserved)) return false;
  execs[device].reserved = need;
  return true;
}

bool gcap_sim_exec_memory_take(const gcap_sim_graph_t* graph) {
  size_t nodes[GCAP_SIM_MAX_DEVICES] = {0};
  count(graph, nodes);
  for (int i = 0; i < GCAP_SIM_MAX_DEVICES; ++i) {
    if (nodes[i] > 0 && !grow(i, nodes[i])) return false;
  }
  for (int i = 0; i < GCAP_SIM_MAX_DEVICES; ++i) execs[i].nodes += nodes[i];
  return true;
}

void gcap_sim_exec_memory_let_go(const gcap_sim_graph_t* graph) {
  size_t nodes[GCAP_SIM_MAX_DEVICES] = {0};
  count(graph, nodes);
  for (int i = 0; i < GCAP_SIM_MAX_DEVICES; ++i) execs[i].nodes -= nodes[i];
}
