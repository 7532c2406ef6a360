// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// exec.h: executables.
#ifndef GCAP_SIM_GRAPH_EXEC_H_
#define GCAP_SIM_GRAPH_EXEC_H_

#include <stdbool.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"
#include "sim/check/origin.h"

struct gcap_sim_exec {
  cudaGraphExec_t handle;
  // Its own copy of what it was made from, which update compares with and callers' nodes lead to.
  gcap_sim_graph_t* graph;
  gcap_sim_program_t* program;
  unsigned long long flags;
  gcap_sim_mark_t* last_launch;
  gcap_sim_origin_t* launched;     // the call of the last launch of an executable with memory nodes
  gcap_sim_graph_t* memory_graph;  // the graph it came from, if that has memory nodes
};

void gcap_sim_exec_forget_graph(gcap_sim_exec_t* exec);
// From here on the executable is the one that the graph with memory nodes may have, and no other graph's.
void gcap_sim_exec_adopt_graph(gcap_sim_exec_t* exec, gcap_sim_graph_t* graph);
// The copy of the node that the executable runs; NULL when it was not made from the node's graph.
gcap_sim_node_t* gcap_sim_exec_find(const gcap_sim_exec_t* exec, const gcap_sim_node_t* node);
// The executable's program, copied first when a launch holds it, to be changed.
gcap_sim_program_t* gcap_sim_exec_own_program(gcap_sim_exec_t* exec);
// Sets what a node does in launches to come; takes over the task's reference.
void gcap_sim_exec_set_task(gcap_sim_exec_t* exec, gcap_sim_node_t* node, gcap_sim_task_t* task);
void gcap_sim_exec_set_enabled(gcap_sim_exec_t* exec, gcap_sim_node_t* node, bool enabled);

#endif  // GCAP_SIM_GRAPH_EXEC_H_
