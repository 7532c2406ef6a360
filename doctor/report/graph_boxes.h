// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_boxes.h: a graph as boxes in layers and lanes: what a drawing of it shows.
#ifndef GCAP_DOCTOR_REPORT_GRAPH_BOXES_H_
#define GCAP_DOCTOR_REPORT_GRAPH_BOXES_H_

#include "doctor/report/graph_view.h"

#ifdef __cplusplus
extern "C" {
#endif

// A node, or nodes that follow one another with nothing beside them.
typedef struct gcap_doctor_box {
  uint32_t first, count;  // the node of the view that comes first; how many nodes
  uint32_t layer, lane;   // from the top, from the left
  uint64_t ns;            // of one launch
} gcap_doctor_box_t;

typedef enum gcap_doctor_folding {
  GCAP_DOCTOR_FOLDED_NOT = 0,  // a box is a node
  GCAP_DOCTOR_FOLDED_BY_LINE,  // nodes in a row of the same Python line are one box
  GCAP_DOCTOR_FOLDED_ROWS,     // nodes in a row are one box
} gcap_doctor_folding_t;

typedef struct gcap_doctor_boxes {
  gcap_doctor_folding_t folding;
  gcap_doctor_box_t* boxes;
  gcap_doctor_view_edge_t* edges;  // between boxes, each once
  uint32_t num_boxes, num_edges, num_layers, num_lanes;
} gcap_doctor_boxes_t;

// Folds the graph no further than it takes to have `most` boxes; false if that is not enough. Memory is the heap's.
bool gcap_doctor_graph_boxes(gcap_doctor_heap_t* heap, const gcap_doctor_graph_view_t* view, uint32_t most,
                             gcap_doctor_boxes_t* out_boxes);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_REPORT_GRAPH_BOXES_H_
