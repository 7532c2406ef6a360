// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_attribute.h: attributes of kernel nodes.
#ifndef GCAP_SIM_GRAPH_GRAPH_ATTRIBUTE_H_
#define GCAP_SIM_GRAPH_GRAPH_ATTRIBUTE_H_

#include "cuda_runtime_api.h"
#include "sim/api/types.h"

// The value of an attribute; all zero when it was never set.
cudaLaunchAttributeValue gcap_sim_node_attribute(const gcap_sim_node_t* node, cudaLaunchAttributeID id);
void gcap_sim_node_set_attribute(gcap_sim_node_t* node, cudaLaunchAttributeID id,
                                 const cudaLaunchAttributeValue* value);
// The task with the cluster that the node's attributes ask for, if it is that of a kernel. Takes over the reference.
gcap_sim_task_t* gcap_sim_node_give_cluster(const gcap_sim_node_t* node, gcap_sim_task_t* task);
// May the node get the task, as far as its attributes go?
cudaError_t gcap_sim_node_judge_task(const gcap_sim_node_t* node, const gcap_sim_task_t* task);
void gcap_sim_node_copy_attributes(gcap_sim_node_t* to, const gcap_sim_node_t* from);

#endif  // GCAP_SIM_GRAPH_GRAPH_ATTRIBUTE_H_
