// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Chains: the nodes of a program cut into sequences in which each depends on the one before.
//
// The idea: a node continues the chain of one of those it depends on, if nobody else has, or begins a new one. So
// there are about as many timelines as branches, and a dependency inside a chain costs nothing. Dependencies between
// chains are learnt from a stamp that the earlier node leaves; only nodes that such a dependency starts from leave one.
// The chains are made at a program's first launch and keep their timelines until it goes. Invariant: chain 0 is the
// launching stream. Locking: the global mutex.
#include "sim/bridge/chains.h"

#include <stdlib.h>

#include "sim/base/heap.h"
#include "sim/check/clock.h"
#include "sim/graph/program.h"
#include "sim/stream/mark.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

struct gcap_sim_chains {
  size_t count;
  uint32_t* of_node;
  uint32_t* first_dep;  // num_nodes + 1 offsets into deps
  uint32_t* deps;       // of other chains
  bool* leaves_stamp;   // by node
  uint32_t* ends;       // chains whose last node has nobody after it; the first chain is left out
  size_t num_ends;
  gcap_sim_clock_t* clocks;  // by chain; the first is not used
  bool* begun;               // by chain, in the launch under way
};

// --- Cutting --------------------------------------------------------------------------------------------------------

// Nodes so that each comes after those it depends on.
static uint32_t* sort(const gcap_sim_program_t* program) {
  uint32_t* order = gcap_sim_calloc(program->num_nodes, sizeof(uint32_t));
  uint32_t* left = gcap_sim_calloc(program->num_nodes, sizeof(uint32_t));
  size_t count = 0;
  for (size_t i = 0; i < program->num_nodes; ++i) {
    left[i] = program->num_deps[i];
    if (left[i] == 0) order[count++] = (uint32_t)i;
  }
  for (size_t done = 0; done < count; ++done) {
    uint32_t node = order[done];
    for (uint32_t i = program->first_successor[node]; i < program->first_successor[node + 1]; ++i) {
      if (--left[program->successors[i]] == 0) order[count++] = program->successors[i];
    }
  }
  free(left);
  return order;
}

#define NO_CHAIN UINT32_MAX

// Each node, in order, hands its chain to the first successor that has none.
static void cut(gcap_sim_chains_t* chains, const gcap_sim_program_t* program) {
  uint32_t* order = sort(program);
  for (size_t i = 0; i < program->num_nodes; ++i) chains->of_node[i] = NO_CHAIN;
  for (size_t i = 0; i < program->num_nodes; ++i) {
    uint32_t node = order[i];
    if (chains->of_node[node] == NO_CHAIN) chains->of_node[node] = (uint32_t)chains->count++;
    bool is_end = program->first_successor[node] == program->first_successor[node + 1];
    if (is_end && chains->of_node[node] != 0) chains->ends[chains->num_ends++] = chains->of_node[node];
    for (uint32_t k = program->first_successor[node]; k < program->first_successor[node + 1]; ++k) {
      uint32_t* chain = &chains->of_node[program->successors[k]];
      if (*chain != NO_CHAIN) continue;
      *chain = chains->of_node[node];
      break;
    }
  }
  free(order);
}

// Lists, for each node, those of other chains that it depends on.
static void link_chains(gcap_sim_chains_t* chains, const gcap_sim_program_t* program) {
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t node = 0; node < program->num_nodes; ++node) {
      for (uint32_t k = program->first_successor[node]; k < program->first_successor[node + 1]; ++k) {
        uint32_t successor = program->successors[k];
        if (chains->of_node[node] == chains->of_node[successor]) continue;
        chains->leaves_stamp[node] = true;
        if (pass == 0) ++chains->first_dep[successor];
        if (pass == 1) chains->deps[--chains->first_dep[successor]] = (uint32_t)node;
      }
    }
    if (pass == 1) return;
    for (size_t i = 0; i < program->num_nodes; ++i) chains->first_dep[i + 1] += chains->first_dep[i];
    chains->deps = gcap_sim_calloc(chains->first_dep[program->num_nodes], sizeof(uint32_t));
  }
}

static gcap_sim_chains_t* create(const gcap_sim_program_t* program) {
  gcap_sim_chains_t* chains = gcap_sim_calloc(1, sizeof(*chains));
  size_t nodes = program->num_nodes;
  chains->of_node = gcap_sim_calloc(nodes, sizeof(uint32_t));
  chains->first_dep = gcap_sim_calloc(nodes + 1, sizeof(uint32_t));
  chains->leaves_stamp = gcap_sim_calloc(nodes, sizeof(bool));
  chains->ends = gcap_sim_calloc(nodes, sizeof(uint32_t));
  cut(chains, program);
  link_chains(chains, program);
  chains->clocks = gcap_sim_calloc(chains->count, sizeof(gcap_sim_clock_t));
  chains->begun = gcap_sim_calloc(chains->count, sizeof(bool));
  return chains;
}

void gcap_sim_order_program_destroyed(gcap_sim_program_t* program) {
  gcap_sim_chains_t* chains = program->chains;
  if (chains == NULL) return;
  for (size_t i = 0; i < chains->count; ++i) gcap_sim_clock_close(&chains->clocks[i]);
  free(chains->of_node);
  free(chains->first_dep);
  free(chains->deps);
  free(chains->leaves_stamp);
  free(chains->ends);
  free(chains->clocks);
  free(chains->begun);
  free(chains);
  program->chains = NULL;
}

// --- Launches -------------------------------------------------------------------------------------------------------

void gcap_sim_chains_begin(gcap_sim_stream_t* stream, gcap_sim_kernel_launch_t* launch) {
  gcap_sim_program_t* program = launch->program;
  if (program->chains == NULL) program->chains = create(program);
  const gcap_sim_chains_t* chains = program->chains;
  for (size_t i = 0; i < chains->count; ++i) chains->begun[i] = false;
  if (chains->count <= 1) return;
  launch->start = gcap_sim_clock_stamp(&stream->clock);
  launch->stamps = gcap_sim_calloc(program->num_nodes, sizeof(gcap_sim_stamp_t));
}

gcap_sim_clock_t* gcap_sim_chains_clock(gcap_sim_stream_t* stream, const gcap_sim_kernel_launch_t* launch,
                                        uint32_t node) {
  uint32_t chain = launch->program->chains->of_node[node];
  return chain == 0 ? &stream->clock : &launch->program->chains->clocks[chain];
}

void gcap_sim_order_begin_node(gcap_sim_stream_t* stream, gcap_sim_kernel_launch_t* launch, uint32_t node) {
  gcap_sim_chains_t* chains = launch->program->chains;
  uint32_t chain = chains->of_node[node];
  gcap_sim_clock_t* clock = gcap_sim_chains_clock(stream, launch, node);
  if (chain != 0 && !chains->begun[chain]) {
    chains->begun[chain] = true;
    // The stream's clock may be ahead of the start by now, if the first chain is: only the start counts.
    if (!clock->timeline) gcap_sim_clock_open(clock, &launch->start);
    gcap_sim_clock_learn(clock, &launch->start);
  }
  for (uint32_t i = chains->first_dep[node]; i < chains->first_dep[node + 1]; ++i) {
    gcap_sim_clock_learn(clock, &launch->stamps[chains->deps[i]]);
  }
  bool waits = launch->program->tasks[node]->kind == GCAP_SIM_TASK_EVENT_WAIT;
  if (waits && launch->marks[node] != NULL) gcap_sim_clock_learn(clock, &launch->marks[node]->stamp);
  gcap_sim_clock_tick(clock);
}

void gcap_sim_order_mark_node(gcap_sim_stream_t* stream, gcap_sim_kernel_launch_t* launch, uint32_t node) {
  launch->marks[node]->stamp = gcap_sim_clock_stamp(gcap_sim_chains_clock(stream, launch, node));
}

void gcap_sim_order_finish_node(gcap_sim_stream_t* stream, gcap_sim_kernel_launch_t* launch, uint32_t node) {
  if (!launch->program->chains->leaves_stamp[node]) return;
  launch->stamps[node] = gcap_sim_clock_stamp(gcap_sim_chains_clock(stream, launch, node));
}

void gcap_sim_chains_finish(gcap_sim_stream_t* stream, gcap_sim_kernel_launch_t* launch) {
  const gcap_sim_chains_t* chains = launch->program->chains;
  for (size_t i = 0; i < chains->num_ends; ++i) {
    gcap_sim_stamp_t stamp = gcap_sim_clock_stamp(&chains->clocks[chains->ends[i]]);
    gcap_sim_clock_learn(&stream->clock, &stamp);
    gcap_sim_stamp_release(&stamp);
  }
}

void gcap_sim_order_launch_destroyed(gcap_sim_kernel_launch_t* launch) {
  gcap_sim_stamp_release(&launch->start);
  for (size_t i = 0; launch->stamps != NULL && i < launch->program->num_nodes; ++i) {
    gcap_sim_stamp_release(&launch->stamps[i]);
  }
  free(launch->stamps);
}
