// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A graph as boxes in layers and lanes.
//
// The idea: nobody reads a thousand boxes, and most graphs are a few long rows, one for each stream that was captured.
// So nodes of a row become one box, first those that one Python line made, then all. A box stands under its first
// predecessor where there is room, which keeps a row in one lane. Locking: none.
#include "doctor/report/graph_boxes.h"

#include <stdlib.h>

typedef struct folder {
  const gcap_doctor_graph_view_t* view;
  uint32_t* before;  // of each node: its one predecessor, whose one successor it is; GCAP_DOCTOR_NONE
  uint32_t* box_of;  // of each node
} folder_t;

static void find_rows(gcap_doctor_heap_t* heap, folder_t* folder) {
  const gcap_doctor_graph_view_t* view = folder->view;
  size_t count = (size_t)view->num_nodes + 1;
  uint32_t* in = gcap_doctor_heap_alloc(heap, count * sizeof(*in));
  uint32_t* out = gcap_doctor_heap_alloc(heap, count * sizeof(*out));
  folder->before = gcap_doctor_heap_alloc(heap, count * sizeof(*folder->before));
  folder->box_of = gcap_doctor_heap_alloc(heap, count * sizeof(*folder->box_of));
  for (uint32_t i = 0; i < view->num_nodes; ++i) folder->before[i] = GCAP_DOCTOR_NONE;
  for (uint32_t i = 0; i < view->num_edges; ++i) {
    ++out[view->edges[i].from];
    ++in[view->edges[i].to];
  }
  for (uint32_t i = 0; i < view->num_edges; ++i) {
    uint32_t from = view->edges[i].from, to = view->edges[i].to;
    // On a circle no layer is below another.
    bool is_row = out[from] == 1 && in[to] == 1 && view->nodes[to].layer > view->nodes[from].layer;
    if (is_row) folder->before[to] = from;
  }
}

static bool is_folded(const folder_t* folder, uint32_t node, gcap_doctor_folding_t folding) {
  if (folding == GCAP_DOCTOR_FOLDED_NOT || folder->before[node] == GCAP_DOCTOR_NONE) return false;
  const gcap_doctor_view_node_t* nodes = folder->view->nodes;
  return folding == GCAP_DOCTOR_FOLDED_ROWS || nodes[node].groups[GCAP_DOCTOR_BY_PYTHON_LINE] ==
                                                   nodes[folder->before[node]].groups[GCAP_DOCTOR_BY_PYTHON_LINE];
}

static uint32_t count_boxes(const folder_t* folder, gcap_doctor_folding_t folding) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < folder->view->num_nodes; ++i) count += !is_folded(folder, i, folding);
  return count;
}

static int by_layer(const void* left, const void* right) {
  const gcap_doctor_view_node_t *a = *(const gcap_doctor_view_node_t*const*)left,
                                *b = *(const gcap_doctor_view_node_t*const*)right;
  if (a->layer != b->layer) return a->layer < b->layer ? -1 : 1;
  return a < b ? -1 : a > b;
}

// In the order of layers, so that a node's box is known before that of the node after it.
static void fill_boxes(gcap_doctor_heap_t* heap, folder_t* folder, gcap_doctor_boxes_t* boxes) {
  const gcap_doctor_graph_view_t* view = folder->view;
  const gcap_doctor_view_node_t** order = gcap_doctor_heap_alloc(heap, ((size_t)view->num_nodes + 1) * sizeof(*order));
  for (uint32_t i = 0; i < view->num_nodes; ++i) order[i] = &view->nodes[i];
  if (view->num_nodes != 0) qsort(order, view->num_nodes, sizeof(*order), by_layer);
  uint32_t count = 0;
  for (uint32_t i = 0; i < view->num_nodes; ++i) {
    uint32_t node = (uint32_t)(order[i] - view->nodes);
    bool is_part = is_folded(folder, node, boxes->folding);
    uint32_t box = is_part ? folder->box_of[folder->before[node]] : count++;
    if (!is_part) boxes->boxes[box].first = node;
    folder->box_of[node] = box;
    ++boxes->boxes[box].count;
    boxes->boxes[box].ns += view->nodes[node].ns;
  }
}

static int by_ends(const void* left, const void* right) {
  const gcap_doctor_view_edge_t *a = left, *b = right;
  if (a->to != b->to) return a->to < b->to ? -1 : 1;
  return a->from < b->from ? -1 : a->from > b->from;
}

static void fill_edges(gcap_doctor_heap_t* heap, const folder_t* folder, gcap_doctor_boxes_t* boxes) {
  const gcap_doctor_graph_view_t* view = folder->view;
  gcap_doctor_view_edge_t* edges = gcap_doctor_heap_alloc(heap, ((size_t)view->num_edges + 1) * sizeof(*edges));
  uint32_t count = 0, unique = 0;
  for (uint32_t i = 0; i < view->num_edges; ++i) {
    gcap_doctor_view_edge_t edge = {folder->box_of[view->edges[i].from], folder->box_of[view->edges[i].to]};
    if (edge.from != edge.to) edges[count++] = edge;
  }
  if (count != 0) qsort(edges, count, sizeof(*edges), by_ends);
  for (uint32_t i = 0; i < count; ++i) {
    if (unique == 0 || by_ends(&edges[unique - 1], &edges[i]) != 0) edges[unique++] = edges[i];
  }
  boxes->edges = edges;
  boxes->num_edges = unique;
}

// The free place of a layer that is nearest to the wanted one.
static uint32_t nearest_free(const bool* is_taken, uint32_t lanes, uint32_t wanted) {
  for (uint32_t away = 0;; ++away) {
    if (wanted + away < lanes && !is_taken[wanted + away]) return wanted + away;
    if (away <= wanted && !is_taken[wanted - away]) return wanted - away;
  }
}

// Layer by layer. Edges are sorted by where they lead to, so a box's first edge is from its first predecessor.
static void place(gcap_doctor_heap_t* heap, gcap_doctor_boxes_t* boxes) {
  uint32_t lanes = boxes->num_boxes + 1;
  bool* is_taken = gcap_doctor_heap_alloc(heap, lanes);
  uint32_t* wanted = gcap_doctor_heap_alloc(heap, (size_t)lanes * sizeof(*wanted));
  for (uint32_t i = boxes->num_edges; i-- > 0;) wanted[boxes->edges[i].to] = boxes->edges[i].from;
  bool* has_wish = gcap_doctor_heap_alloc(heap, lanes);
  for (uint32_t i = 0; i < boxes->num_edges; ++i) has_wish[boxes->edges[i].to] = true;
  for (uint32_t layer = 0; layer < boxes->num_layers; ++layer) {
    for (uint32_t i = 0; i < lanes; ++i) is_taken[i] = false;
    for (uint32_t i = 0; i < boxes->num_boxes; ++i) {
      gcap_doctor_box_t* box = &boxes->boxes[i];
      if (box->layer != layer) continue;
      box->lane = nearest_free(is_taken, lanes, has_wish[i] ? boxes->boxes[wanted[i]].lane : 0);
      is_taken[box->lane] = true;
      if (box->lane >= boxes->num_lanes) boxes->num_lanes = box->lane + 1;
    }
  }
}

bool gcap_doctor_graph_boxes(gcap_doctor_heap_t* heap, const gcap_doctor_graph_view_t* view, uint32_t most,
                             gcap_doctor_boxes_t* out_boxes) {
  *out_boxes = (gcap_doctor_boxes_t){.folding = GCAP_DOCTOR_FOLDED_NOT};
  folder_t folder = {.view = view};
  find_rows(heap, &folder);
  out_boxes->num_boxes = view->num_nodes;
  while (out_boxes->num_boxes > most && out_boxes->folding != GCAP_DOCTOR_FOLDED_ROWS) {
    ++out_boxes->folding;
    out_boxes->num_boxes = count_boxes(&folder, out_boxes->folding);
  }
  if (out_boxes->num_boxes > most) return false;
  out_boxes->boxes = gcap_doctor_heap_alloc(heap, ((size_t)out_boxes->num_boxes + 1) * sizeof(gcap_doctor_box_t));
  fill_boxes(heap, &folder, out_boxes);
  fill_edges(heap, &folder, out_boxes);
  uint32_t* layers = gcap_doctor_heap_alloc(heap, ((size_t)out_boxes->num_boxes + 1) * sizeof(*layers));
  out_boxes->num_layers =
      gcap_doctor_graph_layers(out_boxes->num_boxes, out_boxes->edges, out_boxes->num_edges, layers);
  for (uint32_t i = 0; i < out_boxes->num_boxes; ++i) out_boxes->boxes[i].layer = layers[i];
  place(heap, out_boxes);
  return true;
}
