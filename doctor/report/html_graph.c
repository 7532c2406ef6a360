// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The page's graphs: for each its facts, what its nodes are by line, kernel and call site, its drawing, its nodes.
#include <inttypes.h>

#include "doctor/report/html.h"
#include "doctor/report/names.h"

static const char* const kTitles[GCAP_DOCTOR_NUM_GROUPINGS] = {"kernel", "call site in C", "line of Python", "label"};
static const gcap_doctor_grouping_t kOrder[GCAP_DOCTOR_NUM_GROUPINGS] = {
    GCAP_DOCTOR_BY_LABEL, GCAP_DOCTOR_BY_PYTHON_LINE, GCAP_DOCTOR_BY_KERNEL, GCAP_DOCTOR_BY_CALL_SITE};

static void put_group(gcap_doctor_html_t* page, const gcap_doctor_graph_view_t* view, gcap_doctor_grouping_t grouping,
                      uint32_t index) {
  const gcap_doctor_view_group_t* group = &view->groups[grouping][index];
  if (grouping == GCAP_DOCTOR_BY_KERNEL) {
    gcap_doctor_html_print(page, "<tr data-k=\"%" PRIu32 "\"><td class=\"name\">", index);
  } else {
    gcap_doctor_html_print(page, "<tr><td class=\"name\">");
  }
  gcap_doctor_html_text(page, group->name);
  double share = view->ns != 0 ? 100.0 * (double)group->ns / (double)view->ns : 0;
  if (view->ns != 0) gcap_doctor_html_print(page, "<span class=\"bar\" style=\"width:%.1f%%\"></span>", share);
  gcap_doctor_html_print(page, "</td><td class=\"number\">%" PRIu32 "</td>", group->count);
  if (view->ns != 0) {
    gcap_doctor_html_print(page, "<td class=\"number\" data-n=\"%" PRIu64 "\">%s</td>", group->ns,
                           gcap_doctor_name_ns(page->heap, group->ns));
    gcap_doctor_html_print(page, "<td class=\"number\" data-n=\"%.3f\">%.1f %%</td>", share, share);
  }
  gcap_doctor_html_print(page, "</tr>\n");
}

static void put_groups(gcap_doctor_html_t* page, const gcap_doctor_graph_view_t* view, gcap_doctor_grouping_t grouping,
                       bool is_open) {
  uint32_t count = view->num_groups[grouping];
  gcap_doctor_html_print(page, "<details%s><summary>By %s (%" PRIu32 ")</summary>\n", is_open ? " open" : "",
                         kTitles[grouping], count);
  gcap_doctor_html_open_table(
      page, gcap_doctor_heap_print(page->heap, "Graph %" PRIu32 ", nodes by %s", view->graph, kTitles[grouping]),
      view->ns != 0 ? "<th>Name</th><th class=\"number\">Nodes</th><th class=\"number\">Device time of "
                      "a launch</th><th class=\"number\">Share</th>"
                    : "<th>Name</th><th class=\"number\">Nodes</th>");
  uint32_t most = page->groups_left < GCAP_DOCTOR_HTML_GROUPS ? page->groups_left : GCAP_DOCTOR_HTML_GROUPS;
  uint32_t shown = count < most ? count : most;
  page->groups_left -= shown;
  for (uint32_t i = 0; i < shown; ++i) put_group(page, view, grouping, i);
  gcap_doctor_html_close_table(page);
  if (shown < count) {
    gcap_doctor_html_print(page, "<p class=\"faint\">%" PRIu32 " more: <code>--json</code> has them all.</p>\n",
                           count - shown);
  }
  gcap_doctor_html_print(page, "</details>\n");
}

static void put_node(gcap_doctor_html_t* page, const gcap_doctor_graph_view_t* view,
                     const gcap_doctor_view_node_t* node) {
  gcap_doctor_html_print(page, "<tr><td class=\"id mono\">0x%" PRIx64 "</td><td class=\"name\">", node->node->id);
  gcap_doctor_html_cut_text(page, node->names[GCAP_DOCTOR_BY_KERNEL], 100);
  gcap_doctor_html_print(page, "</td><td class=\"name\">");
  gcap_doctor_html_cut_text(page, node->names[GCAP_DOCTOR_BY_PYTHON_LINE], 100);
  gcap_doctor_html_print(page, "</td><td class=\"name\">");
  gcap_doctor_html_cut_text(page, node->names[GCAP_DOCTOR_BY_CALL_SITE], 100);
  gcap_doctor_html_print(page, "</td><td class=\"number\">%" PRIu32 "</td>", node->layer);
  if (view->ns != 0) {
    gcap_doctor_html_print(page, "<td class=\"number\" data-n=\"%" PRIu64 "\">%s</td>", node->ns,
                           gcap_doctor_name_ns(page->heap, node->ns));
  }
  gcap_doctor_html_print(page, "</tr>\n");
}

static void put_nodes(gcap_doctor_html_t* page, const gcap_doctor_graph_view_t* view) {
  uint32_t shown = view->num_nodes < page->nodes_left ? view->num_nodes : page->nodes_left;
  page->nodes_left -= shown;
  gcap_doctor_html_print(page, "<details><summary>Nodes (%" PRIu32 ")</summary>\n", view->num_nodes);
  if (shown < view->num_nodes) {
    gcap_doctor_html_print(page, "<p class=\"faint\">The first %" PRIu32 ": <code>--json</code> has them all.</p>\n",
                           shown);
  }
  gcap_doctor_html_open_table(
      page, gcap_doctor_heap_print(page->heap, "Graph %" PRIu32 ", nodes in the order of their making", view->graph),
      view->ns != 0 ? "<th>Id</th><th>Name</th><th>Python</th><th>C</th><th class=\"number\">Layer</th>"
                      "<th class=\"number\">Device time</th>"
                    : "<th>Id</th><th>Name</th><th>Python</th><th>C</th><th class=\"number\">Layer</th>");
  for (uint32_t i = 0; i < shown; ++i) put_node(page, view, &view->nodes[i]);
  gcap_doctor_html_close_table(page);
  gcap_doctor_html_print(page, "</details>\n");
}

static void put_facts(gcap_doctor_html_t* page, const gcap_doctor_graph_view_t* view) {
  gcap_doctor_html_print(page, "<dl><dt>Nodes</dt><dd class=\"prose\">%" PRIu32 ", with %s, in %s</dd>\n",
                         view->num_nodes, gcap_doctor_name_count(page->heap, view->num_edges, "edge"),
                         gcap_doctor_name_count(page->heap, view->num_layers, "layer"));
  gcap_doctor_html_print(page, "<dt>Replays</dt><dd class=\"prose\">%" PRIu64, view->replays);
  if (view->failed_replays != 0)
    gcap_doctor_html_print(page, ", <span class=\"bad\">%" PRIu64 " failed</span>", view->failed_replays);
  gcap_doctor_html_print(page, "</dd>\n");
  if (view->ns != 0) {
    gcap_doctor_html_print(page, "<dt>Device time</dt><dd class=\"prose\">%s a launch, summed over the nodes",
                           gcap_doctor_name_ns(page->heap, view->ns));
    if (view->whole_ns != 0) {
      gcap_doctor_html_print(page, "; %s from the first start to the last end",
                             gcap_doctor_name_ns(page->heap, view->whole_ns));
    }
    gcap_doctor_html_print(page, "</dd>\n");
  }
  gcap_doctor_html_print(page, "</dl>\n");
}

static void put_graph(gcap_doctor_html_t* page, const gcap_doctor_graph_view_t* view, bool is_open) {
  gcap_doctor_html_print(page, "<details class=\"graph\" id=\"graph-%" PRIu32 "\"%s><summary>Graph %" PRIu32,
                         view->graph, is_open ? " open" : "", view->graph);
  if (view->capture != GCAP_DOCTOR_NONE) gcap_doctor_html_print(page, " of capture %" PRIu32, view->capture + 1);
  gcap_doctor_html_print(page, ": %s, %s</summary>\n", gcap_doctor_name_count(page->heap, view->num_nodes, "node"),
                         gcap_doctor_name_count(page->heap, view->replays, "replay"));
  put_facts(page, view);
  for (int i = 0; view->num_nodes != 0 && i < GCAP_DOCTOR_NUM_GROUPINGS; ++i) {
    if (kOrder[i] == GCAP_DOCTOR_BY_LABEL && !view->has_labels) continue;
    put_groups(page, view, kOrder[i], i == !view->has_labels || view->num_nodes <= 20);
  }
  if (view->num_nodes != 0) {
    gcap_doctor_html_drawing(page, view);
    put_nodes(page, view);
  }
  gcap_doctor_html_print(page, "</details>\n");
}

void gcap_doctor_html_graphs(gcap_doctor_html_t* page) {
  const gcap_doctor_graph_views_t* views = page->views;
  if (views->count == 0) gcap_doctor_html_print(page, "<p>No graph.</p>\n");
  for (size_t i = 0; i < views->count && i < GCAP_DOCTOR_HTML_GRAPHS; ++i) put_graph(page, &views->items[i], i == 0);
  if (views->count > GCAP_DOCTOR_HTML_GRAPHS) {
    gcap_doctor_html_print(page, "<p>%zu graphs more: <code>--json</code> has them all.</p>\n",
                           views->count - GCAP_DOCTOR_HTML_GRAPHS);
  }
}
