// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_view.h: the graphs of a recording as reports show them: each node with its name, its places and its time.
#ifndef GCAP_DOCTOR_REPORT_GRAPH_VIEW_H_
#define GCAP_DOCTOR_REPORT_GRAPH_VIEW_H_

#include "doctor/analyse/diagnosis.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gcap_doctor_grouping {
  GCAP_DOCTOR_BY_KERNEL = 0,
  GCAP_DOCTOR_BY_CALL_SITE,
  GCAP_DOCTOR_BY_PYTHON_LINE,
  GCAP_DOCTOR_BY_LABEL,
  GCAP_DOCTOR_NUM_GROUPINGS,
} gcap_doctor_grouping_t;

typedef struct gcap_doctor_view_node {
  const gcap_doctor_event_node_t* node;
  const char* names[GCAP_DOCTOR_NUM_GROUPINGS];  // the kernel's or "memcpy htod"; the C frame; the Python line;
                                                 // the label
  uint32_t groups[GCAP_DOCTOR_NUM_GROUPINGS];    // indices into the view's groups
  uint32_t c_frame, python_frame;                // indices of frames, or GCAP_DOCTOR_NONE
  uint32_t range;                                // index of the range that labels it, or GCAP_DOCTOR_NONE
  uint32_t layer;                                // the most edges on a way to it from a node without predecessors
  uint64_t total_runs, total_ns, ns;             // `ns` is of one run; 0 without times
} gcap_doctor_view_node_t;

// Nodes that have a name in common.
typedef struct gcap_doctor_view_group {
  const char* name;
  uint32_t count, example;  // how many nodes; the first one
  uint64_t ns;              // of one launch of the graph
} gcap_doctor_view_group_t;

typedef struct gcap_doctor_view_edge {
  uint32_t from, to;  // indices into the view's nodes
} gcap_doctor_view_edge_t;

typedef struct gcap_doctor_graph_view {
  uint32_t graph;                  // id
  uint32_t capture;                // index into the diagnosis' captures; GCAP_DOCTOR_NONE
  gcap_doctor_view_node_t* nodes;  // in the order of their ids, which is that of their making
  gcap_doctor_view_edge_t* edges;
  gcap_doctor_view_group_t* groups[GCAP_DOCTOR_NUM_GROUPINGS];  // the most costly first, then the most frequent
  uint32_t num_nodes, num_edges, num_layers, num_groups[GCAP_DOCTOR_NUM_GROUPINGS];
  uint64_t replays, failed_replays;  // of all its executables
  uint64_t ns, whole_ns;             // of one launch: the sum of its nodes, and from the first start to the last end
  bool has_labels;                   // of a node at least
} gcap_doctor_graph_view_t;

// Graph views: one for each graph that has nodes or came of a capture, in the order of their ids.
// Lifetime: the caller's; it refers to the diagnosis.
typedef struct gcap_doctor_graph_views {
  gcap_doctor_heap_t heap;
  gcap_doctor_graph_view_t* items;
  size_t count;
  uint64_t replays, failed_replays;  // of all executables, of graphs that nobody saw too
  uint64_t num_untied_times;         // device times of nodes that are of no graph
} gcap_doctor_graph_views_t;

gcap_doctor_graph_views_t* gcap_doctor_graph_views_create(const gcap_doctor_diagnosis_t* diagnosis);
void gcap_doctor_graph_views_destroy(gcap_doctor_graph_views_t* views);

// The view of a graph; NULL.
const gcap_doctor_graph_view_t* gcap_doctor_graph_views_find(const gcap_doctor_graph_views_t* views, uint32_t graph);

// For each node the most edges on a way to it from a node without predecessors; returns the number of layers. Nodes on
// a circle, which no driver makes, are in layer 0.
uint32_t gcap_doctor_graph_layers(uint32_t num_nodes, const gcap_doctor_view_edge_t* edges, uint32_t num_edges,
                                  uint32_t* out_layers);

// "kernel", "call site", "Python line", "label".
const char* gcap_doctor_grouping_name(gcap_doctor_grouping_t grouping);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_REPORT_GRAPH_VIEW_H_
