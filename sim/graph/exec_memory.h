// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// exec_memory.h: device memory of executables.
#ifndef GCAP_SIM_GRAPH_EXEC_MEMORY_H_
#define GCAP_SIM_GRAPH_EXEC_MEMORY_H_

#include <stdbool.h>

#include "sim/api/types.h"

// Takes the memory of an executable of the graph; false when a device has no more.
bool gcap_sim_exec_memory_take(const gcap_sim_graph_t* graph);
// Lets later executables have it.
void gcap_sim_exec_memory_let_go(const gcap_sim_graph_t* graph);

#endif  // GCAP_SIM_GRAPH_EXEC_MEMORY_H_
