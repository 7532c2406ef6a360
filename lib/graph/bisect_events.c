// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A difference as a file of events, docs/doctor_events.md: the call of the step with its place, and the sentence.
// Locking: none. A thread is not cancelled while the file is open.

#include <pthread.h>
#include <stdio.h>

#include "lib/capture/events_file.h"
#include "lib/graph/bisection.h"

const char* gcap_bisect_fault_name(gcap_graph_fault_t fault) {
  switch (fault) {
    case GCAP_GRAPH_FAULT_UNKNOWN: break;
    case GCAP_GRAPH_FAULT_STALE_POINTER: return "stale_pointer";
    case GCAP_GRAPH_FAULT_FROZEN_VALUE: return "frozen_value";
    case GCAP_GRAPH_FAULT_DROPPED_CALL: return "dropped_call";
    case GCAP_GRAPH_FAULT_HOST_DECISION: return "host_decision";
    case GCAP_GRAPH_FAULT_MISSING_JOIN: return "missing_join";
    case GCAP_GRAPH_FAULT_OUTSIDE_OF_CAPTURE: return "outside_of_capture";
    case GCAP_GRAPH_FAULT_HOLE: return "hole";
    case GCAP_GRAPH_FAULT_UNINITIALIZED: return "uninitialized";
  }
  return "unknown";
}

static void write_step(FILE* file, const gcap_capture_step_t* step) {
  const bool has_place = gcap_events_file_write_place(file, 1, step->file, step->line);
  const bool has_label = gcap_events_file_write_labels(file, 1, step->label);
  fputs("call\tn=1\tthread=1", file);
  gcap_events_file_write_operation(file, step->operation);
  fprintf(file, "\tresult=0%s%s\n", has_place ? "\tstack=1" : "", has_label ? "\trange=1" : "");
}

static gcap_status_t write_file(const char* path, const gcap_capture_step_t* step, gcap_graph_fault_t fault,
                                const char* text) {
  FILE* file = NULL;
  GCAP_RETURN_IF_ERROR(gcap_events_file_open(path, &file));
  if (step != NULL) write_step(file, step);
  fprintf(file, "difference%s\tfault=%s", step != NULL ? "\tcall=1" : "", gcap_bisect_fault_name(fault));
  gcap_events_file_write_string(file, "text", text);
  fputs("\nend\tt=0\n", file);
  return gcap_events_file_close(file, path);
}

gcap_status_t gcap_bisect_write_events(const char* path, const gcap_capture_step_t* step, gcap_graph_fault_t fault,
                                       const char* text) {
  int cancel_state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  gcap_status_t status = write_file(path, step, fault, text);
  pthread_setcancelstate(cancel_state, NULL);
  return status;
}
