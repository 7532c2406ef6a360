// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A graph as a drawing: boxes in layers from the top, edges between them, a colour for each of the first eight kernels.
// A graph that is too large even when folded is drawn as its profile: how many nodes each layer has.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/base/path.h"
#include "doctor/report/graph_boxes.h"
#include "doctor/report/html.h"
#include "doctor/report/names.h"

enum {
  kBoxWidth = 196,
  kBoxHeight = 36,
  kLane = 220,  // from a box to the one beside it
  kLayer = 60,  // and to the one below
  kMargin = 16,
  kLetters = 25,  // of a name in a box
  kMaxEdges = 1500,
  kNumColours = 8,
  kMaxBars = 200,
};

static int left_of(const gcap_doctor_box_t* box) { return kMargin + (int)box->lane * kLane; }
static int top_of(const gcap_doctor_box_t* box) { return kMargin + (int)box->layer * kLayer; }

// What tells a kernel from others in few letters: its name without namespaces, or, of PyTorch's kernels for everything,
// their template argument.
static const char* essence_of(gcap_doctor_heap_t* heap, const char* name) {
  const char* arguments = strchr(name, '<');
  size_t length = arguments != NULL ? (size_t)(arguments - name) : strlen(name);
  const char* bare = gcap_doctor_heap_copy(heap, name, length);
  bool is_general = strstr(bare, "elementwise_kernel") != NULL || strstr(bare, "reduce_kernel") != NULL;
  bool has_arguments = arguments != NULL && strlen(arguments) > 2;
  if (is_general && has_arguments) return gcap_doctor_heap_copy(heap, arguments + 1, strlen(arguments) - 2);
  for (const char* part; (part = strstr(bare, "::")) != NULL && part[2] != '\0';) bare = part + 2;
  return bare;
}

static const char* title_of(gcap_doctor_html_t* page, const gcap_doctor_boxes_t* boxes, const gcap_doctor_box_t* box,
                            const gcap_doctor_view_node_t* node) {
  const char* name = essence_of(page->heap, node->names[GCAP_DOCTOR_BY_KERNEL]);
  if (box->count == 1) return name;
  if (boxes->folding == GCAP_DOCTOR_FOLDED_BY_LINE && node->python_frame != GCAP_DOCTOR_NONE) {
    return gcap_doctor_base_name(node->names[GCAP_DOCTOR_BY_PYTHON_LINE]);
  }
  return gcap_doctor_heap_print(page->heap, "%s, ...", name);
}

static const char* subtitle_of(gcap_doctor_html_t* page, const gcap_doctor_box_t* box,
                               const gcap_doctor_view_node_t* node) {
  const char* time = box->ns != 0 ? gcap_doctor_name_ns(page->heap, box->ns) : "";
  if (box->count > 1) {
    return gcap_doctor_heap_print(page->heap, "%" PRIu32 " nodes%s%s", box->count, time[0] != '\0' ? ", " : "", time);
  }
  if (node->python_frame == GCAP_DOCTOR_NONE) return time;
  return gcap_doctor_heap_print(page->heap, "%s%s%s", time, time[0] != '\0' ? ", " : "",
                                gcap_doctor_base_name(node->names[GCAP_DOCTOR_BY_PYTHON_LINE]));
}

static void put_box(gcap_doctor_html_t* page, const gcap_doctor_graph_view_t* view, const gcap_doctor_boxes_t* boxes,
                    const gcap_doctor_box_t* box) {
  const gcap_doctor_view_node_t* node = &view->nodes[box->first];
  uint32_t kernel = node->groups[GCAP_DOCTOR_BY_KERNEL];
  int x = left_of(box), y = top_of(box);
  gcap_doctor_html_print(page, "<g data-k=\"%" PRIu32 "\"><title>", kernel);
  gcap_doctor_html_text(page, node->names[GCAP_DOCTOR_BY_KERNEL]);
  gcap_doctor_html_print(page, "; ");
  gcap_doctor_html_cut_text(page, node->names[GCAP_DOCTOR_BY_PYTHON_LINE], 100);
  gcap_doctor_html_print(page,
                         "</title><rect class=\"k%" PRIu32 "\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>",
                         kernel < kNumColours ? kernel : kNumColours - 1, x, y, kBoxWidth, kBoxHeight);
  gcap_doctor_html_print(page, "<text x=\"%d\" y=\"%d\">", x + 8, y + 15);
  gcap_doctor_html_cut_text(page, title_of(page, boxes, box, node), kLetters - 1);
  gcap_doctor_html_print(page, "</text><text class=\"where\" x=\"%d\" y=\"%d\">", x + 8, y + 29);
  gcap_doctor_html_cut_text(page, subtitle_of(page, box, node), kLetters + 4);
  gcap_doctor_html_print(page, "</text></g>\n");
}

// From the bottom of a box to the top of another. An edge that passes layers in its own lane goes around the boxes
// there.
static void put_edge(gcap_doctor_html_t* page, const gcap_doctor_box_t* from, const gcap_doctor_box_t* to) {
  int x0 = left_of(from) + kBoxWidth / 2, y0 = top_of(from) + kBoxHeight;
  int x1 = left_of(to) + kBoxWidth / 2, y1 = top_of(to);
  if (x0 == x1 && to->layer == from->layer + 1) {
    gcap_doctor_html_print(page, "M%d %dV%d", x0, y0, y1);
  } else if (x0 == x1) {
    int side = x0 + kBoxWidth / 2 + 10;
    gcap_doctor_html_print(page, "M%d %dC%d %d %d %d %d %dV%dC%d %d %d %d %d %d", x0, y0, x0, y0 + 14, side, y0 + 4,
                           side, y0 + 24, y1 - 24, side, y1 - 4, x1, y1 - 14, x1, y1);
  } else {
    gcap_doctor_html_print(page, "M%d %dC%d %d %d %d %d %d", x0, y0, x0, y0 + 20, x1, y1 - 20, x1, y1);
  }
}

static void put_boxes(gcap_doctor_html_t* page, const gcap_doctor_graph_view_t* view,
                      const gcap_doctor_boxes_t* boxes) {
  int width = 2 * kMargin + (int)(boxes->num_lanes - 1) * kLane + kBoxWidth;
  int height = 2 * kMargin + (int)(boxes->num_layers - 1) * kLayer + kBoxHeight;
  gcap_doctor_html_print(
      page,
      "<div class=\"scroll drawing\" tabindex=\"0\" role=\"region\" aria-label=\"Drawing of graph %" PRIu32
      "\"><svg class=\"nodes\" width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"%" PRIu32 " boxes in %" PRIu32
      " layers; the tables have the same\">\n<path d=\"",
      view->graph, width, height, boxes->num_boxes, boxes->num_layers);
  for (uint32_t i = 0; i < boxes->num_edges && i < kMaxEdges; ++i) {
    put_edge(page, &boxes->boxes[boxes->edges[i].from], &boxes->boxes[boxes->edges[i].to]);
  }
  gcap_doctor_html_print(page, "\"/>\n");
  for (uint32_t i = 0; i < boxes->num_boxes; ++i) put_box(page, view, boxes, &boxes->boxes[i]);
  gcap_doctor_html_print(page, "</svg></div>\n");
}

static const char* describe(const gcap_doctor_boxes_t* boxes) {
  switch (boxes->folding) {
    case GCAP_DOCTOR_FOLDED_BY_LINE: return "Nodes that follow one another and come of one line are one box.";
    case GCAP_DOCTOR_FOLDED_ROWS: return "Nodes that follow one another, with nothing beside them, are one box.";
    case GCAP_DOCTOR_FOLDED_NOT: break;
  }
  return "A box is a node.";
}

// A bar for each layer, or for some layers together.
static void put_profile(gcap_doctor_html_t* page, const gcap_doctor_graph_view_t* view) {
  uint32_t counts[kMaxBars] = {0}, most = 1;
  uint32_t per_bar = (view->num_layers + kMaxBars - 1) / kMaxBars;
  uint32_t bars = (view->num_layers + per_bar - 1) / per_bar;
  for (uint32_t i = 0; i < view->num_nodes; ++i) {
    uint32_t bar = view->nodes[i].layer / per_bar;
    if (++counts[bar] > most) most = counts[bar];
  }
  gcap_doctor_html_print(page,
                         "<p class=\"faint\">Too large for boxes: a bar for each %s, as high as it has nodes, %" PRIu32
                         " at most. <code>--dot</code> writes the whole graph.</p>\n",
                         gcap_doctor_name_count(page->heap, per_bar, "layer"), most);
  gcap_doctor_html_print(
      page,
      "<div class=\"rows\"><div class=\"label\">nodes by layer</div><svg class=\"profile\" viewBox=\"0 0 %" PRIu32
      " 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Nodes of each layer\">\n",
      bars * 10);
  for (uint32_t i = 0; i < bars; ++i) {
    uint32_t height = counts[i] * 100 / most;
    gcap_doctor_html_print(
        page, "<rect class=\"s-node\" x=\"%" PRIu32 "\" y=\"%" PRIu32 "\" width=\"8\" height=\"%" PRIu32 "\"/>\n",
        i * 10, 100 - height, height);
  }
  gcap_doctor_html_print(page, "</svg></div>\n");
}

void gcap_doctor_html_drawing(gcap_doctor_html_t* page, const gcap_doctor_graph_view_t* view) {
  gcap_doctor_boxes_t boxes;
  uint32_t most = page->boxes_left < GCAP_DOCTOR_HTML_BOXES ? page->boxes_left : GCAP_DOCTOR_HTML_BOXES;
  bool is_drawn = gcap_doctor_graph_boxes(page->heap, view, most, &boxes);
  gcap_doctor_html_print(page, "<details%s><summary>Drawing</summary>\n",
                         is_drawn && boxes.num_boxes <= 60 ? " open" : "");
  if (is_drawn) {
    page->boxes_left -= boxes.num_boxes;
    gcap_doctor_html_print(page, "<p class=\"faint\">%s Colours are of the first kernels in the table.</p>\n",
                           describe(&boxes));
    put_boxes(page, view, &boxes);
  } else {
    put_profile(page, view);
  }
  gcap_doctor_html_print(page, "</details>\n");
}
