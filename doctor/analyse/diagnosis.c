// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// From a recording to findings: tables by call and by id are made, one pass reads the captures, and others look for one
// kind of mistake each. The work grows with the calls, and with sorting, but for three things. Some failures are
// compared with all open captures that nothing broke yet. Of a capture that broke without a reason some thousand calls
// are looked at, and so are some hundred after an update that was refused. Locking: none.
#include "doctor/analyse/diagnosis.h"

#include <stdlib.h>

#include "doctor/analyse/analysis.h"

#define ALLOC(analysis, count, type) ((type*)gcap_doctor_heap_alloc(&(analysis)->heap, ((count) + 1) * sizeof(type)))

// --- Tables ----------------------------------------------------------------------------------------------------------

static void collect_ids(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  for (size_t i = 0; i < recording->num_calls; ++i) {
    gcap_doctor_ids_add(&analysis->events, recording->calls[i].event);
    gcap_doctor_ids_add(&analysis->graphs, recording->calls[i].graph);
  }
  for (size_t i = 0; i < recording->num_nodes; ++i) gcap_doctor_ids_add(&analysis->graphs, recording->nodes[i].graph);
  for (size_t i = 0; i < recording->num_execs; ++i) {
    gcap_doctor_ids_add(&analysis->graphs, recording->execs[i].graph);
    gcap_doctor_ids_add(&analysis->execs, recording->execs[i].id);
  }
  gcap_doctor_ids_finish(&analysis->events);
  gcap_doctor_ids_finish(&analysis->graphs);
  gcap_doctor_ids_finish(&analysis->execs);
}

static void fill_calls(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  for (uint32_t i = 0; i < recording->num_calls; ++i) {
    const gcap_doctor_event_call_t* call = &recording->calls[i];
    gcap_doctor_thread_state_t* thread = &analysis->threads[call->thread];
    analysis->kinds[i] = (uint8_t)gcap_doctor_call_kind(call->function);
    if (call->depth == 0 && call->raised == NULL) thread->outermost = i;
    analysis->outer[i] = call->depth != 0 && thread->outermost != GCAP_DOCTOR_NONE ? thread->outermost : i;
    analysis->made[analysis->outer[i]] += call->num_nodes;
    analysis->graph_of[i] = analysis->capture_of[i] = analysis->stream_capture[i] = GCAP_DOCTOR_NONE;
  }
  for (size_t i = 0; i < recording->num_nodes; ++i) {
    if (recording->nodes[i].call != GCAP_DOCTOR_NONE)
      analysis->graph_of[recording->nodes[i].call] = recording->nodes[i].graph;
  }
}

static void fill_graphs(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  for (size_t i = 0; i < recording->num_nodes; ++i) {
    ++analysis->first_node[gcap_doctor_ids_find(&analysis->graphs, recording->nodes[i].graph) + 1];
  }
  for (size_t i = 0; i < analysis->graphs.count; ++i) {
    analysis->capture_of_graph[i] = GCAP_DOCTOR_NONE;
    analysis->first_node[i + 1] += analysis->first_node[i];
  }
  size_t* next = ALLOC(analysis, analysis->graphs.count, size_t);
  for (uint32_t i = 0; i < recording->num_nodes; ++i) {
    const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, recording->nodes[i].graph);
    analysis->nodes_by_graph[analysis->first_node[place] + next[place]++] = i;
  }
  for (uint32_t i = 0; i < recording->num_execs; ++i) {
    const gcap_doctor_event_exec_t* exec = &recording->execs[i];
    const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, exec->graph);
    analysis->exec_at[gcap_doctor_ids_find(&analysis->execs, exec->id)] = i;
    if (place == GCAP_DOCTOR_NONE) continue;
    analysis->replays_of_graph[place] += exec->replays;
    analysis->failures_of_graph[place] += exec->failed_replays;
  }
}

static void make_tables(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  collect_ids(analysis);
  analysis->kinds = ALLOC(analysis, recording->num_calls, uint8_t);
  analysis->modes = ALLOC(analysis, recording->num_calls, uint8_t);
  analysis->outer = ALLOC(analysis, recording->num_calls, uint32_t);
  analysis->made = ALLOC(analysis, recording->num_calls, uint32_t);
  analysis->graph_of = ALLOC(analysis, recording->num_calls, uint32_t);
  analysis->stream_capture = ALLOC(analysis, recording->num_calls, uint32_t);
  analysis->capture_of =
      gcap_doctor_heap_alloc(&analysis->diagnosis->heap, (recording->num_calls + 1) * sizeof(*analysis->capture_of));
  analysis->event_states = ALLOC(analysis, analysis->events.count, gcap_doctor_event_state_t);
  analysis->capture_of_graph = ALLOC(analysis, analysis->graphs.count, uint32_t);
  analysis->replays_of_graph = ALLOC(analysis, analysis->graphs.count, uint64_t);
  analysis->failures_of_graph = ALLOC(analysis, analysis->graphs.count, uint64_t);
  analysis->first_node = ALLOC(analysis, analysis->graphs.count, size_t);
  analysis->nodes_by_graph = ALLOC(analysis, recording->num_nodes, uint32_t);
  analysis->exec_at = ALLOC(analysis, analysis->execs.count, uint32_t);
  analysis->streams = ALLOC(analysis, recording->num_streams, gcap_doctor_stream_state_t);
  analysis->library_of_stack = ALLOC(analysis, recording->num_stacks, uint8_t);
  analysis->threads = ALLOC(analysis, recording->num_threads, gcap_doctor_thread_state_t);
  for (size_t i = 0; i < analysis->events.count; ++i) {
    analysis->event_states[i] = (gcap_doctor_event_state_t){.capture = GCAP_DOCTOR_NONE, .stream = GCAP_DOCTOR_NONE};
  }
  for (size_t i = 0; i < recording->num_streams; ++i) analysis->streams[i].capture = GCAP_DOCTOR_NONE;
  for (size_t i = 0; i < recording->num_threads; ++i) {
    analysis->threads[i] = (gcap_doctor_thread_state_t){.mode = GCAP_DOCTOR_MODE_GLOBAL,
                                                        .exchange = GCAP_DOCTOR_NONE,
                                                        .newest_open = GCAP_DOCTOR_NONE,
                                                        .outermost = GCAP_DOCTOR_NONE,
                                                        .silent = GCAP_DOCTOR_NONE};
  }
  fill_calls(analysis);
  fill_graphs(analysis);
}

// What is known of a capture only when all lines are read.
static void complete_captures(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  for (size_t i = 0; i < recording->num_nodes; ++i) {
    const gcap_doctor_event_node_t* node = &recording->nodes[i];
    uint32_t capture = analysis->capture_of_graph[gcap_doctor_ids_find(&analysis->graphs, node->graph)];
    if (capture == GCAP_DOCTOR_NONE && node->call != GCAP_DOCTOR_NONE) capture = analysis->capture_of[node->call];
    if (capture != GCAP_DOCTOR_NONE) ++analysis->diagnosis->captures[capture].num_nodes;
  }
  for (size_t i = 0; i < recording->num_execs; ++i) {
    const gcap_doctor_event_exec_t* exec = &recording->execs[i];
    const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, exec->graph);
    const uint32_t capture = place != GCAP_DOCTOR_NONE ? analysis->capture_of_graph[place] : GCAP_DOCTOR_NONE;
    if (capture == GCAP_DOCTOR_NONE) continue;
    analysis->diagnosis->captures[capture].exec = exec->id;
    analysis->diagnosis->captures[capture].replays += exec->replays;
  }
}

static void free_tables(gcap_doctor_analysis_t* analysis) {
  gcap_doctor_ids_deinit(&analysis->events);
  gcap_doctor_ids_deinit(&analysis->graphs);
  gcap_doctor_ids_deinit(&analysis->execs);
  free(analysis->states);
  free(analysis->open);
  free(analysis->unsettled);
  free(analysis->failures.items);
  free(analysis->escapes.items);
  free(analysis->ties.items);
  free(analysis->copies.items);
  free(analysis->refused.items);
  gcap_doctor_heap_deinit(&analysis->heap);
}

// A replay that differs is a finding as it was written.
static void find_differences(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  for (size_t i = 0; i < recording->num_differences; ++i) {
    gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_DIFFERS, GCAP_DOCTOR_SEVERITY_ERROR, GCAP_DOCTOR_NONE,
                            recording->differences[i].call);
  }
}

// --- The diagnosis ---------------------------------------------------------------------------------------------------

gcap_doctor_diagnosis_t* gcap_doctor_diagnosis_create(const gcap_doctor_recording_t* recording) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  gcap_doctor_diagnosis_t* diagnosis = gcap_doctor_heap_alloc(&heap, sizeof(*diagnosis));
  diagnosis->heap = heap;
  diagnosis->recording = recording;
  gcap_doctor_analysis_t analysis = {.diagnosis = diagnosis,
                                     .recording = recording,
                                     .silent_anywhere = GCAP_DOCTOR_NONE,
                                     .silent_global = GCAP_DOCTOR_NONE};
  gcap_doctor_heap_init(&analysis.heap);
  make_tables(&analysis);
  gcap_doctor_analysis_read_captures(&analysis);
  complete_captures(&analysis);
  gcap_doctor_culprit_find(&analysis);
  gcap_doctor_forks_find(&analysis);
  gcap_doctor_escaped_find(&analysis);
  gcap_doctor_lost_find(&analysis);
  gcap_doctor_raised_find(&analysis);
  gcap_doctor_refused_find(&analysis);
  gcap_doctor_memory_find(&analysis);
  gcap_doctor_modes_find(&analysis);
  gcap_doctor_repeats_find(&analysis);
  find_differences(&analysis);
  gcap_doctor_stale_find(&analysis);
  gcap_doctor_launches_find(&analysis);  // the last one: it asks which captures have a finding
  gcap_doctor_findings_finish(&analysis);
  diagnosis->capture_of = analysis.capture_of;
  free_tables(&analysis);
  return diagnosis;
}

void gcap_doctor_diagnosis_destroy(gcap_doctor_diagnosis_t* diagnosis) {
  if (diagnosis == NULL) return;
  free(diagnosis->captures);
  free(diagnosis->findings);
  gcap_doctor_heap_t heap = diagnosis->heap;  // the diagnosis lies in it
  gcap_doctor_heap_deinit(&heap);
}

uint32_t gcap_doctor_diagnosis_capture_of(const gcap_doctor_diagnosis_t* diagnosis, uint32_t call) {
  return call < diagnosis->recording->num_calls ? diagnosis->capture_of[call] : GCAP_DOCTOR_NONE;
}
