// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// update.h: what a launch may do differently from the one before it.
#ifndef GCAP_SIM_GRAPH_UPDATE_H_
#define GCAP_SIM_GRAPH_UPDATE_H_

#include "cuda_runtime_api.h"
#include "sim/api/types.h"

// May a node of an executable whose task is `a` get the task `b`?
enum cudaGraphExecUpdateResult gcap_sim_compare_tasks(const gcap_sim_task_t* a, const gcap_sim_task_t* b);
// Compares the copy that an executable keeps with another graph, recursively, and when they match gives the executable
// the tasks of the other.
enum cudaGraphExecUpdateResult gcap_sim_exec_update(gcap_sim_exec_t* exec, gcap_sim_graph_t* own,
                                                    gcap_sim_graph_t* graph, cudaGraphExecUpdateResultInfo* info);

#endif  // GCAP_SIM_GRAPH_UPDATE_H_
