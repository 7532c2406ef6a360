// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The graphs in Graphviz's language, a cluster each. In its texts a backslash and an ampersand begin escapes of its
// own.
#include <inttypes.h>

#include "doctor/report/graph_view.h"
#include "doctor/report/json_text.h"
#include "doctor/report/names.h"
#include "doctor/report/report.h"

enum { kMaxLabel = 120 };  // characters; longer names are cut

// A part of a text between quotes.
static void put_text(FILE* out, const char* text) {
  uint32_t character;
  for (unsigned i = 0; (character = gcap_doctor_utf8_next(&text)) != 0; ++i) {
    if (i == kMaxLabel) {
      fputs("...", out);
      return;
    }
    if (character == '&') {
      fputs("&amp;", out);
    } else if (character == '"' || character == '\\') {
      fprintf(out, "\\%c", (char)character);
    } else {
      gcap_doctor_utf8_write(out, gcap_doctor_utf8_is_control(character) ? '?' : character);
    }
  }
}

static void put_node(FILE* out, gcap_doctor_heap_t* heap, const gcap_doctor_graph_view_t* view, uint32_t index) {
  const gcap_doctor_view_node_t* node = &view->nodes[index];
  fprintf(out, "    g%" PRIu32 "_%" PRIu32 " [label=\"", view->graph, index);
  put_text(out, node->names[GCAP_DOCTOR_BY_KERNEL]);
  if (node->python_frame != GCAP_DOCTOR_NONE) {
    fputs("\\n", out);
    put_text(out, node->names[GCAP_DOCTOR_BY_PYTHON_LINE]);
  }
  if (node->c_frame != GCAP_DOCTOR_NONE) {
    fputs("\\n", out);
    put_text(out, node->names[GCAP_DOCTOR_BY_CALL_SITE]);
  }
  if (node->total_runs != 0) fprintf(out, "\\n%s", gcap_doctor_name_ns(heap, node->ns));
  fprintf(out, "\", tooltip=\"0x%" PRIx64 " ", node->node->id);
  put_text(out, node->node->type);
  fputs("\"];\n", out);
}

static void put_graph(FILE* out, gcap_doctor_heap_t* heap, const gcap_doctor_graph_view_t* view) {
  fprintf(out, "  subgraph cluster_%" PRIu32 " {\n    label=\"graph %" PRIu32, view->graph, view->graph);
  if (view->capture != GCAP_DOCTOR_NONE) fprintf(out, " of capture %" PRIu32, view->capture + 1);
  fprintf(out, ", %s\";\n", gcap_doctor_name_count(heap, view->num_nodes, "node"));
  for (uint32_t i = 0; i < view->num_nodes; ++i) put_node(out, heap, view, i);
  for (uint32_t i = 0; i < view->num_edges; ++i) {
    fprintf(out, "    g%" PRIu32 "_%" PRIu32 " -> g%" PRIu32 "_%" PRIu32 ";\n", view->graph, view->edges[i].from,
            view->graph, view->edges[i].to);
  }
  fputs("  }\n", out);
}

void gcap_doctor_report_dot(FILE* out, const gcap_doctor_diagnosis_t* diagnosis) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  gcap_doctor_graph_views_t* views = gcap_doctor_graph_views_create(diagnosis);
  fputs("digraph gcap {\n  label=\"", out);
  put_text(out, diagnosis->recording->program);
  fputs("\";\n  node [shape=box, fontname=\"monospace\", fontsize=10];\n", out);
  for (size_t i = 0; i < views->count; ++i) put_graph(out, &heap, &views->items[i]);
  fputs("}\n", out);
  gcap_doctor_graph_views_destroy(views);
  gcap_doctor_heap_deinit(&heap);
}
