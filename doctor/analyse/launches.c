// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What becomes of graphs after their capture: instantiations, updates and launches that failed, and graphs that nobody
// launched.
//
// An update answers one code for all its reasons. The recorder notes the reason that the driver gives beside the code.
// Where a source has none, the recording has both graphs, so the reason is looked for in them: as many nodes, of the
// same types in the same order, mean that parameters differ (R55), anything else that the shape does (R54). Locking:
// none.
#include <stdlib.h>
#include <string.h>

#include "doctor/analyse/analysis.h"

static const gcap_doctor_event_exec_t* exec_of(const gcap_doctor_analysis_t* analysis, uint32_t id) {
  const uint32_t place = gcap_doctor_ids_find(&analysis->execs, id);
  return place != GCAP_DOCTOR_NONE ? &analysis->recording->execs[analysis->exec_at[place]] : NULL;
}

// --- Updates ---------------------------------------------------------------------------------------------------------

// The nodes of a graph, one after the other; NULL when there are no more. `at` begins as 0.
static const gcap_doctor_event_node_t* next_node(const gcap_doctor_analysis_t* analysis, uint32_t graph, size_t* at) {
  const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, graph);
  if (place == GCAP_DOCTOR_NONE) return NULL;
  if (analysis->first_node[place] + *at >= analysis->first_node[place + 1]) return NULL;
  return &analysis->recording->nodes[analysis->nodes_by_graph[analysis->first_node[place] + (*at)++]];
}

static size_t count_nodes(const gcap_doctor_analysis_t* analysis, uint32_t graph) {
  const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, graph);
  return place != GCAP_DOCTOR_NONE ? analysis->first_node[place + 1] - analysis->first_node[place] : 0;
}

static bool same_types(const gcap_doctor_analysis_t* analysis, uint32_t graph, uint32_t other) {
  size_t at = 0, other_at = 0;
  for (;;) {
    const gcap_doctor_event_node_t* a = next_node(analysis, graph, &at);
    const gcap_doctor_event_node_t* b = next_node(analysis, other, &other_at);
    if (a == NULL || b == NULL) return a == b;
    if (strcmp(a->type, b->type) != 0) return false;
  }
}

static bool is_cooperative(const gcap_doctor_analysis_t* analysis, const gcap_doctor_event_node_t* node) {
  return node->call != GCAP_DOCTOR_NONE &&
         strstr(gcap_doctor_call_at(analysis, node->call)->function, "Cooperative") != NULL;
}

// Of two graphs of the same types: whether a kernel became cooperative, or is so no longer.
static bool same_cooperation(const gcap_doctor_analysis_t* analysis, uint32_t graph, uint32_t other) {
  size_t at = 0, other_at = 0;
  for (;;) {
    const gcap_doctor_event_node_t* a = next_node(analysis, graph, &at);
    const gcap_doctor_event_node_t* b = next_node(analysis, other, &other_at);
    if (a == NULL || b == NULL) return true;
    if (is_cooperative(analysis, a) != is_cooperative(analysis, b)) return false;
  }
}

enum { kLookAhead = 256 };  // calls

// The instantiation of the same graph that a program makes instead, on whichever thread; GCAP_DOCTOR_NONE for none.
// Where the graph is not known, the thread's next one counts.
static uint32_t find_instead(const gcap_doctor_analysis_t* analysis, uint32_t update) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, update);
  const size_t left = analysis->recording->num_calls - update - 1;
  for (uint32_t i = 1; i <= left && i <= kLookAhead; ++i) {
    const gcap_doctor_event_call_t* later = gcap_doctor_call_at(analysis, update + i);
    if (gcap_doctor_kind_at(analysis, update + i) != GCAP_DOCTOR_CALL_INSTANTIATE || later->result != 0) continue;
    if (of->graph != GCAP_DOCTOR_NONE ? later->graph == of->graph : later->thread == of->thread) return update + i;
  }
  return GCAP_DOCTOR_NONE;
}

// The driver's own reason; NULL where the source has none.
static const gcap_rule_t* rule_of_update(const char* update) {
  if (update == NULL) return NULL;
  if (strcmp(update, "topology") == 0 || strcmp(update, "node_type") == 0) return gcap_rule_by_id("R54");
  if (strcmp(update, "attributes") == 0) return gcap_rule_by_id("R53");
  return strcmp(update, "parameters") == 0 ? gcap_rule_by_id("R55") : NULL;
}

static void find_update(gcap_doctor_analysis_t* analysis, uint32_t call) {
  enum { kUpdateFailure = 910 };
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const gcap_doctor_event_exec_t* exec = exec_of(analysis, of->exec);
  const uint32_t instead = find_instead(analysis, call);
  // Among the calls that are left out there may be one.
  const bool may_have = gcap_doctor_is_before_gap(analysis, call) && analysis->recording->gap - call <= kLookAhead;
  gcap_doctor_finding_t* finding = gcap_doctor_finding_add(
      analysis, GCAP_DOCTOR_FINDING_UPDATE_REFUSED,
      instead != GCAP_DOCTOR_NONE || may_have ? GCAP_DOCTOR_SEVERITY_WARNING : GCAP_DOCTOR_SEVERITY_ERROR,
      GCAP_DOCTOR_NONE, call);
  finding->other = exec != NULL ? exec->call : GCAP_DOCTOR_NONE;
  if (of->graph != GCAP_DOCTOR_NONE) {
    const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, of->graph);
    if (place != GCAP_DOCTOR_NONE) finding->capture = analysis->capture_of_graph[place];
  }
  finding->rule = rule_of_update(of->update);
  if (finding->rule != NULL) return;
  if (of->result != kUpdateFailure || exec == NULL || count_nodes(analysis, of->graph) == 0) return;
  if (analysis->recording->reached_limit) return;  // nodes may be left out
  const bool has_same_types = same_types(analysis, exec->graph, of->graph);
  finding->is_certain = count_nodes(analysis, exec->graph) != count_nodes(analysis, of->graph);
  finding->rule = gcap_rule_by_id(has_same_types ? "R55" : "R54");
  if (has_same_types && !same_cooperation(analysis, exec->graph, of->graph)) {
    finding->rule = gcap_rule_by_id("R53");
    finding->is_certain = true;
  }
}

// --- Launches --------------------------------------------------------------------------------------------------------

static bool has_memory_nodes(const gcap_doctor_analysis_t* analysis, uint32_t graph) {
  size_t at = 0;
  for (const gcap_doctor_event_node_t* node; (node = next_node(analysis, graph, &at)) != NULL;) {
    if (strcmp(node->type, "alloc") == 0 || strcmp(node->type, "free") == 0) return true;
  }
  return false;
}

static void find_launch(gcap_doctor_analysis_t* analysis, uint32_t call) {
  enum { kInvalidValue = 1, kNotSupported = 801 };
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const bool is_launch = gcap_doctor_kind_at(analysis, call) == GCAP_DOCTOR_CALL_GRAPH_LAUNCH;
  if (analysis->capture_of[call] != GCAP_DOCTOR_NONE) return;  // the capture's findings have it
  const gcap_doctor_event_exec_t* exec = exec_of(analysis, of->exec);
  const uint32_t graph = exec != NULL ? exec->graph : of->graph;
  gcap_doctor_finding_t* finding = gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_LAUNCH_FAILED,
                                                           GCAP_DOCTOR_SEVERITY_ERROR, GCAP_DOCTOR_NONE, call);
  finding->other = exec != NULL ? exec->call : GCAP_DOCTOR_NONE;
  const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, graph);
  if (place != GCAP_DOCTOR_NONE) finding->capture = analysis->capture_of_graph[place];
  if (!has_memory_nodes(analysis, graph)) return;
  if (is_launch && of->result == kInvalidValue) finding->rule = gcap_rule_by_id("R30");
  if (!is_launch && of->result == kNotSupported) finding->rule = gcap_rule_by_id("R33");
}

// Failures that were counted, and of which no call was written.
static void find_counted(gcap_doctor_analysis_t* analysis, const gcap_doctor_event_exec_t* exec, uint64_t seen) {
  if (exec->failed_replays <= seen) return;
  const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, exec->graph);
  gcap_doctor_finding_t* finding = gcap_doctor_finding_add(
      analysis, GCAP_DOCTOR_FINDING_LAUNCH_FAILED, GCAP_DOCTOR_SEVERITY_ERROR,
      place != GCAP_DOCTOR_NONE ? analysis->capture_of_graph[place] : GCAP_DOCTOR_NONE, GCAP_DOCTOR_NONE);
  finding->other = exec->call;
  finding->count = exec->failed_replays - seen;
}

// --- Graphs that nobody launched -------------------------------------------------------------------------------------

static void find_idle(gcap_doctor_analysis_t* analysis) {
  gcap_doctor_diagnosis_t* diagnosis = analysis->diagnosis;
  bool* has_finding = gcap_doctor_heap_alloc(&analysis->heap, diagnosis->num_captures + 1);
  for (size_t i = 0; i < diagnosis->num_findings; ++i) {
    if (diagnosis->findings[i].capture != GCAP_DOCTOR_NONE) has_finding[diagnosis->findings[i].capture] = true;
  }
  for (uint32_t i = 0; i < diagnosis->num_captures; ++i) {
    const gcap_doctor_captured_t* capture = &diagnosis->captures[i];
    if (capture->outcome != GCAP_DOCTOR_OUTCOME_GRAPH || capture->replays != 0 || has_finding[i]) continue;
    if (capture->graph == GCAP_DOCTOR_NONE) continue;  // a ledger, which does not tell of graphs
    if (gcap_doctor_is_before_gap(analysis, capture->begin)) continue;
    gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_NEVER_LAUNCHED, GCAP_DOCTOR_SEVERITY_NOTE, i, capture->begin);
  }
}

void gcap_doctor_launches_find(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  uint64_t* seen = gcap_doctor_heap_alloc(&analysis->heap, (recording->num_execs + 1) * sizeof(*seen));
  for (uint32_t call = 0; call < recording->num_calls; ++call) {
    const gcap_doctor_call_kind_t kind = gcap_doctor_kind_at(analysis, call);
    if (kind != GCAP_DOCTOR_CALL_GRAPH_LAUNCH && kind < GCAP_DOCTOR_CALL_INSTANTIATE) continue;
    const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
    if (of->result == 0 || of->depth != 0) continue;
    if (kind == GCAP_DOCTOR_CALL_UPDATE) {
      find_update(analysis, call);
      continue;
    }
    find_launch(analysis, call);
    const uint32_t place = gcap_doctor_ids_find(&analysis->execs, of->exec);
    if (place != GCAP_DOCTOR_NONE) ++seen[analysis->exec_at[place]];
  }
  for (size_t i = 0; i < recording->num_execs; ++i) find_counted(analysis, &recording->execs[i], seen[i]);
  if (analysis->recording->ended) find_idle(analysis);
}
