// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a graph keeps of memory: copies whose host side may be gone when it is launched, and allocations that it makes
// itself. Graphs that no capture made are looked at too. Locking: none.
#include <string.h>

#include "doctor/analyse/analysis.h"

static void find_copies(gcap_doctor_analysis_t* analysis) {
  for (size_t i = 0; i < analysis->copies.count; ++i) {
    const gcap_doctor_pair_t* copy = &analysis->copies.items[i];
    if (analysis->diagnosis->captures[copy->capture].outcome == GCAP_DOCTOR_OUTCOME_BROKEN) continue;
    gcap_doctor_finding_t* finding = gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_PAGEABLE,
                                                             GCAP_DOCTOR_SEVERITY_WARNING, copy->capture, copy->call);
    finding->rule = gcap_rule_by_id("R38");
  }
}

typedef struct nodes_of_graph {
  uint64_t allocations, frees;
  uint32_t first;  // the call that made the first allocation
} nodes_of_graph_t;

// By the place of the graph's id.
static nodes_of_graph_t* count_nodes(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  nodes_of_graph_t* graphs = gcap_doctor_heap_alloc(&analysis->heap, (analysis->graphs.count + 1) * sizeof(*graphs));
  for (size_t i = 0; i < recording->num_nodes; ++i) {
    const gcap_doctor_event_node_t* node = &recording->nodes[i];
    nodes_of_graph_t* of = &graphs[gcap_doctor_ids_find(&analysis->graphs, node->graph)];
    if (strcmp(node->type, "free") == 0) ++of->frees;
    if (strcmp(node->type, "alloc") == 0 && of->allocations++ == 0) of->first = node->call;
  }
  return graphs;
}

// More than one good launch: then each launch frees what the one before left.
static bool is_freed_on_launch(const gcap_doctor_analysis_t* analysis, uint32_t graph) {
  const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, graph);
  return analysis->replays_of_graph[place] > 1 && analysis->failures_of_graph[place] == 0;
}

static void find_allocations(gcap_doctor_analysis_t* analysis) {
  const nodes_of_graph_t* graphs = count_nodes(analysis);
  for (size_t i = 0; i < analysis->graphs.count; ++i) {
    const nodes_of_graph_t* of = &graphs[i];
    if (of->allocations <= of->frees) continue;
    const uint32_t capture = analysis->capture_of_graph[i];
    // Nodes of a graph that no whole capture made may be left out.
    if (capture == GCAP_DOCTOR_NONE && analysis->recording->reached_limit) continue;
    if (capture != GCAP_DOCTOR_NONE && analysis->diagnosis->captures[capture].outcome == GCAP_DOCTOR_OUTCOME_BROKEN)
      continue;
    const bool is_harmless = is_freed_on_launch(analysis, analysis->graphs.items[i]);
    gcap_doctor_finding_t* finding = gcap_doctor_finding_add(
        analysis, GCAP_DOCTOR_FINDING_ALLOCATION_NODE,
        is_harmless ? GCAP_DOCTOR_SEVERITY_NOTE : GCAP_DOCTOR_SEVERITY_WARNING, capture, of->first);
    const char* library =
        of->first != GCAP_DOCTOR_NONE ? gcap_doctor_library_function(analysis->recording, of->first) : NULL;
    const bool is_workspace = library != NULL && strncmp(library, "cublas", strlen("cublas")) == 0;
    finding->rule = gcap_rule_by_id(is_workspace ? "R44" : "R29");
    finding->count = of->allocations - of->frees;
  }
}

void gcap_doctor_memory_find(gcap_doctor_analysis_t* analysis) {
  find_copies(analysis);
  find_allocations(analysis);
}
