// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// program.h: what an executable runs, and one launch of it.
#ifndef GCAP_SIM_GRAPH_PROGRAM_H_
#define GCAP_SIM_GRAPH_PROGRAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/api/types.h"
#include "sim/check/clock.h"
#include "sim/check/origin.h"
#include "sim/graph/user_object.h"

// What an executable runs: a graph frozen at instantiation or update, with the graphs that its nodes hold laid out flat
// in place of those nodes: an empty entry before a held graph, one after it, and its nodes between, so that they run
// beside all that nothing orders against them. Launches in flight keep their program; a changed one is a copy.
struct gcap_sim_program {
  size_t refs;
  size_t num_nodes;
  gcap_sim_task_t** tasks;
  uint32_t* num_deps;
  uint32_t* first_successor;  // num_nodes + 1 offsets into successors
  uint32_t* successors;
  uint32_t* memory;  // the nodes that allocate and free
  size_t num_memory;
  size_t num_host;  // host functions among the tasks
  bool has_events;
  size_t num_holding;  // copies into pageable memory, for which the host waits at the launch
  gcap_sim_object_refs_t objects;
  struct gcap_sim_chains* chains;  // made at the first launch
};

// One launch of a program on its way through a stream.
struct gcap_sim_kernel_launch {
  gcap_sim_program_t* program;
  uint32_t* deps_left;
  uint32_t* ready;  // nodes whose dependencies are done
  size_t num_ready;
  size_t num_ready_host;  // host functions among them
  size_t num_left;
  gcap_sim_mark_t** marks;  // what an event node waits for; what an event node, or a copy that holds the host, reaches
  gcap_sim_origin_t* origin;
  gcap_sim_stamp_t start;    // of the launch, when it has more than one chain
  gcap_sim_stamp_t* stamps;  // of nodes that others in other chains wait for
};

gcap_sim_kernel_launch_t* gcap_sim_launch_create(gcap_sim_program_t* program, gcap_sim_stream_t* stream);
void gcap_sim_launch_destroy(gcap_sim_kernel_launch_t* launch);
// Takes the node at `pick` from those that are ready.
uint32_t gcap_sim_launch_take(gcap_sim_kernel_launch_t* launch, size_t pick);
// Node `node` is done: its successors may become ready.
void gcap_sim_launch_node_done(gcap_sim_kernel_launch_t* launch, uint32_t node);

// The program of a graph without cycles. Sets `first` and `last` of the graph's nodes.
gcap_sim_program_t* gcap_sim_program_create(gcap_sim_graph_t* graph);
gcap_sim_program_t* gcap_sim_program_copy(const gcap_sim_program_t* program);
void gcap_sim_program_release(gcap_sim_program_t* program);

#endif  // GCAP_SIM_GRAPH_PROGRAM_H_
