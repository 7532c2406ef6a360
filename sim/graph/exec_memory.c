// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The device memory of executables: measured, each takes some, and each of its kernel nodes more; the device sets it
// aside in steps for all executables together, and keeps for later ones what destroyed ones had. Locking: the global
// mutex.
#include "sim/graph/exec_memory.h"

#include <stddef.h>

#include "sim/base/thread.h"
#include "sim/graph/graph.h"
#include "sim/memory/budget.h"

// As measured (bench/graph:cost_bench).
#define EXEC_BYTES ((size_t)112 << 10)
#define NODE_BYTES ((size_t)2352)
#define STEP_BYTES ((size_t)2 << 20)

static struct {
  size_t used;  // by live executables
  size_t reserved;
} execs[GCAP_SIM_MAX_DEVICES];

static void add_nodes(const gcap_sim_graph_t* graph, size_t bytes[]) {
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    const gcap_sim_node_t* node = graph->nodes[i];
    if (bytes[node->device] == 0) bytes[node->device] = EXEC_BYTES;
    if (node->child != NULL) add_nodes(node->child, bytes);
    if (gcap_sim_node_type(node) == cudaGraphNodeTypeKernel) bytes[node->device] += NODE_BYTES;
  }
}

// Makes `reserved` cover what executables use and `more`.
static bool grow(int device, size_t more) {
  size_t need = (execs[device].used + more + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
  if (need <= execs[device].reserved) return true;
  if (!gcap_sim_budget_take(device, need - execs[device].reserved)) return false;
  execs[device].reserved = need;
  return true;
}

bool gcap_sim_exec_memory_take(const gcap_sim_graph_t* graph) {
  size_t bytes[GCAP_SIM_MAX_DEVICES] = {0};
  add_nodes(graph, bytes);
  for (int i = 0; i < GCAP_SIM_MAX_DEVICES; ++i) {
    if (!grow(i, bytes[i])) return false;
  }
  for (int i = 0; i < GCAP_SIM_MAX_DEVICES; ++i) execs[i].used += bytes[i];
  return true;
}

void gcap_sim_exec_memory_let_go(const gcap_sim_graph_t* graph) {
  size_t bytes[GCAP_SIM_MAX_DEVICES] = {0};
  add_nodes(graph, bytes);
  for (int i = 0; i < GCAP_SIM_MAX_DEVICES; ++i) execs[i].used -= bytes[i];
}
