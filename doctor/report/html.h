// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// html.h: what the parts of the page share.
#ifndef GCAP_DOCTOR_REPORT_HTML_H_
#define GCAP_DOCTOR_REPORT_HTML_H_

#include <stdio.h>

#include "doctor/report/graph_view.h"
#include "doctor/report/timeline.h"

// What a page shows of each, so that it stays below three megabytes for any recording, and below one for a program with
// names of usual length.
enum {
  GCAP_DOCTOR_HTML_FINDINGS = 100,
  GCAP_DOCTOR_HTML_CAPTURES = 40,
  GCAP_DOCTOR_HTML_GRAPHS = 20,
  GCAP_DOCTOR_HTML_GROUPS = 60,  // of each table of a graph
  GCAP_DOCTOR_HTML_CALLS = 300,  // rows of the table of calls
  GCAP_DOCTOR_HTML_FRAMES = 40,  // of a stack
  GCAP_DOCTOR_HTML_TRACKS = 10,  // streams, and threads, of a timeline
  GCAP_DOCTOR_HTML_BOXES = 300,  // of a drawing
  GCAP_DOCTOR_HTML_NAME = 160,   // characters of a name
  // Of the whole page.
  GCAP_DOCTOR_HTML_ALL_GROUPS = 600,
  GCAP_DOCTOR_HTML_ALL_NODES = 1200,
  GCAP_DOCTOR_HTML_ALL_FRAMES = 1500,
  GCAP_DOCTOR_HTML_ALL_SLICES = 1500,
  GCAP_DOCTOR_HTML_ALL_BOXES = 900,
};

typedef struct gcap_doctor_html {
  FILE* out;
  const gcap_doctor_diagnosis_t* diagnosis;
  const gcap_doctor_recording_t* recording;
  const gcap_doctor_graph_views_t* views;
  gcap_doctor_timeline_t timeline;
  gcap_doctor_heap_t* heap;
  unsigned groups_left, nodes_left, frames_left, slices_left, boxes_left;
} gcap_doctor_html_t;

// Markup of our own, with numbers.
void gcap_doctor_html_print(gcap_doctor_html_t* page, const char* format, ...) __attribute__((format(printf, 2, 3)));
// A text of the program's: harmless between tags and between quotes, cut at GCAP_DOCTOR_HTML_NAME characters or at
// `most`.
void gcap_doctor_html_text(gcap_doctor_html_t* page, const char* text);
void gcap_doctor_html_cut_text(gcap_doctor_html_t* page, const char* text, unsigned most);
// "open" or "close" of a table that scrolls in a box of its own. `head` has the cells of the heading.
void gcap_doctor_html_open_table(gcap_doctor_html_t* page, const char* label, const char* head);
void gcap_doctor_html_close_table(gcap_doctor_html_t* page);

void gcap_doctor_html_captures(gcap_doctor_html_t* page);
void gcap_doctor_html_graphs(gcap_doctor_html_t* page);
void gcap_doctor_html_drawing(gcap_doctor_html_t* page, const gcap_doctor_graph_view_t* view);

#endif  // GCAP_DOCTOR_REPORT_HTML_H_
