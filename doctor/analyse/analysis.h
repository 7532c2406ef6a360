// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// analysis.h: what the passes over a recording share while a diagnosis is made.
#ifndef GCAP_DOCTOR_ANALYSE_ANALYSIS_H_
#define GCAP_DOCTOR_ANALYSE_ANALYSIS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "doctor/analyse/diagnosis.h"
#include "doctor/analyse/functions.h"
#include "doctor/analyse/ids.h"

// What is known of a capture beside what its public record has. All are calls, GCAP_DOCTOR_NONE for none.
typedef struct gcap_doctor_capture_state {
  uint32_t strong;         // the earliest call whose answer says that it broke this capture
  uint32_t silent;         // the last call, with success, of a kind that breaks captures
  uint32_t alive;          // the last call that shows it unbroken: it made a node, or was told that it is active
  uint32_t first_901;      // the first call that found the capture broken
  uint32_t last_good;      // the last call on the capture that succeeded before
  uint32_t last_node;      // the last call that made a node
  uint32_t last_ask;       // the capturing thread's last question of its own whether it captures, after `last_node`
  uint32_t last_pointer;   // and its last question what an address is
  uint32_t raised;         // its last exception, while the capture was open
  uint32_t raised_at_end;  // the exception that it was handling as it ended the capture
  uint64_t works;          // work on the capture's streams, with success
  uint32_t newest_stream;  // index of the stream that joined last; streams link to the one before
  uint32_t older, newer;   // the open captures of the same thread that began before and after
  uint32_t open_at;        // where it stands among the open ones; GCAP_DOCTOR_NONE if it is not
  uint32_t unsettled_at;   // where it stands among the unsettled ones; GCAP_DOCTOR_NONE
  uint32_t num_blocking;   // of its streams; work on the legacy stream breaks it if there is one
  bool refused;            // there is such a finding, or one of an exception
} gcap_doctor_capture_state_t;

typedef struct gcap_doctor_stream_state {
  uint32_t capture;  // the open capture in which it is; GCAP_DOCTOR_NONE
  uint32_t joined;   // the wait by which it came into it; GCAP_DOCTOR_NONE for the origin
  uint32_t next;     // stream of the same capture; GCAP_DOCTOR_NONE
} gcap_doctor_stream_state_t;

typedef struct gcap_doctor_thread_state {
  gcap_doctor_event_mode_t mode;  // its own
  uint32_t exchange;              // the call that set it
  uint32_t newest_open;           // capture; GCAP_DOCTOR_NONE
  uint32_t outermost;             // its last call of depth 0
  uint32_t silent;                // its last successful call of a kind that breaks captures
  bool was_refused;               // its last begin
} gcap_doctor_thread_state_t;

typedef struct gcap_doctor_event_state {
  uint32_t capture;  // in which it was last recorded; GCAP_DOCTOR_NONE
  uint32_t stream;   // on which it was last recorded; GCAP_DOCTOR_NONE
} gcap_doctor_event_state_t;

// A call that concerns a capture in some way, kept for a later pass.
typedef struct gcap_doctor_pair {
  uint32_t capture, call;
} gcap_doctor_pair_t;

typedef struct gcap_doctor_pairs {
  gcap_doctor_pair_t* items;
  size_t count, capacity;
} gcap_doctor_pairs_t;

typedef struct gcap_doctor_analysis {
  gcap_doctor_diagnosis_t* diagnosis;
  const gcap_doctor_recording_t* recording;
  gcap_doctor_heap_t heap;  // what only the passes need
  uint8_t* kinds;           // by call: gcap_doctor_call_kind_t
  uint8_t* modes;           // by call: the own mode of its thread, gcap_doctor_event_mode_t
  uint32_t* outer;          // by call: the program's call inside of which the driver made it; itself for one of depth 0
  uint32_t* made;           // by call of depth 0: nodes, also by calls inside of it
  uint32_t* graph_of;       // by call: the id of the graph in which it made a node; GCAP_DOCTOR_NONE
  uint32_t* capture_of;     // by call
  uint32_t* stream_capture;  // by call: that of its stream when it was made
  gcap_doctor_ids_t events, graphs, execs;
  gcap_doctor_event_state_t* event_states;
  uint32_t* capture_of_graph;   // by place in `graphs`
  uint32_t* exec_at;            // by place in `execs`: index into the recording's
  uint64_t* replays_of_graph;   // by place in `graphs`: good launches of all its executables
  uint64_t* failures_of_graph;  // and those that failed
  size_t* first_node;           // by place in `graphs`, and one beyond the last: where its nodes begin in the next
  uint32_t* nodes_by_graph;     // the recording's nodes, those of a graph together, in the order of the file
  gcap_doctor_stream_state_t* streams;
  gcap_doctor_thread_state_t* threads;
  // The last successful calls of kinds that break every capture, and every one in global mode.
  uint32_t silent_anywhere, silent_global;
  gcap_doctor_capture_state_t* states;  // by capture
  size_t state_capacity;
  uint32_t* open;
  size_t num_open, open_capacity;
  size_t num_open_blocking;  // those with a blocking stream
  // Those of the open ones of which it is not settled which call broke them: calls that fail are compared with these.
  uint32_t* unsettled;
  size_t num_unsettled, unsettled_capacity;
  uint8_t* library_of_stack;  // 0 before it is looked for, then 1 for none and 2 for a library's that breaks captures
  gcap_doctor_pairs_t failures;  // calls that failed in a capture
  gcap_doctor_pairs_t escapes;   // work beside one
  gcap_doctor_pairs_t ties;      // streams, in place of the call, that joined the capture, or for which it was to wait
  gcap_doctor_pairs_t copies;    // in one, from or to memory that may not last
  gcap_doctor_pairs_t refused;   // begins and ends that failed without a capture of their own
} gcap_doctor_analysis_t;

void gcap_doctor_pairs_add(gcap_doctor_pairs_t* pairs, uint32_t capture, uint32_t call);

// The first pass: captures, their streams, and what concerns which.
void gcap_doctor_analysis_read_captures(gcap_doctor_analysis_t* analysis);
// In it: a capture that begins is unsettled, one that ends is no longer.
void gcap_doctor_culprit_enter(gcap_doctor_analysis_t* analysis, uint32_t capture);
void gcap_doctor_culprit_leave(gcap_doctor_analysis_t* analysis, uint32_t capture);
// In it: what a failed call says of the open captures.
void gcap_doctor_culprit_look(gcap_doctor_analysis_t* analysis, uint32_t call);
// In it: the call that found a capture broken.
void gcap_doctor_culprit_find_broken(gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t capture);
// In it: a successful call of a kind that breaks captures.
void gcap_doctor_culprit_look_silent(gcap_doctor_analysis_t* analysis, uint32_t call);
// In it: a call of which the source says that it invalidated a capture.
void gcap_doctor_culprit_look_said(gcap_doctor_analysis_t* analysis, uint32_t call);

// In it: a call that shows that a capture was unbroken, so that nothing before has broken it.
void gcap_doctor_culprit_note_alive(gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t capture);

// Whether the same thread made a failed call again, with success, before a later call: an allocator that finds no
// memory frees some and asks again.
bool gcap_doctor_call_was_tried_again(const gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t before);

// In it: a question of the capturing thread whether it captures.
void gcap_doctor_refused_note(gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t capture);

// In it: an exception of Python's.
void gcap_doctor_raised_note(gcap_doctor_analysis_t* analysis, uint32_t call);

// The rule of what a framework probably refused, by its questions; NULL for none.
const gcap_rule_t* gcap_doctor_refused_rule(const gcap_doctor_analysis_t* analysis, uint32_t capture);

// The passes that find something, each over what the first one kept.
void gcap_doctor_culprit_find(gcap_doctor_analysis_t* analysis);
void gcap_doctor_forks_find(gcap_doctor_analysis_t* analysis);
void gcap_doctor_escaped_find(gcap_doctor_analysis_t* analysis);
void gcap_doctor_lost_find(gcap_doctor_analysis_t* analysis);
void gcap_doctor_raised_find(gcap_doctor_analysis_t* analysis);
void gcap_doctor_refused_find(gcap_doctor_analysis_t* analysis);
void gcap_doctor_memory_find(gcap_doctor_analysis_t* analysis);
void gcap_doctor_repeats_find(gcap_doctor_analysis_t* analysis);
void gcap_doctor_launches_find(gcap_doctor_analysis_t* analysis);
void gcap_doctor_modes_find(gcap_doctor_analysis_t* analysis);
void gcap_doctor_stale_find(gcap_doctor_analysis_t* analysis);

// Adds a finding and returns it, for what is not the rule: it is certain, happened once, and has no other call.
gcap_doctor_finding_t* gcap_doctor_finding_add(gcap_doctor_analysis_t* analysis, gcap_doctor_finding_kind_t kind,
                                               gcap_doctor_severity_t severity, uint32_t capture, uint32_t call);
// Puts equal findings together, writes the sentences, and sorts.
void gcap_doctor_findings_finish(gcap_doctor_analysis_t* analysis);
void gcap_doctor_words_write(gcap_doctor_analysis_t* analysis, gcap_doctor_finding_t* finding);
// "copy" of "_ZN2at4copyIfEEvPf": the last identifier of a C++ name before the arguments.
const char* gcap_doctor_words_kernel(gcap_doctor_analysis_t* analysis, const char* kernel);

// The function of a library of NVIDIA's through which the program made the call, by the call's C stack:
// "cublasLtDestroy"; NULL for none. A simulator's log has such functions as calls.
const char* gcap_doctor_library_function(const gcap_doctor_recording_t* recording, uint32_t call);

// Whether a function is one of those libraries'.
bool gcap_doctor_library_of(const char* function);
// The rule that a library's function breaks in a capture; NULL for none.
const gcap_rule_t* gcap_doctor_library_rule(const char* function);

// Whether what came after the call may be left out of the recording: then nothing tells that it did not happen.
static inline bool gcap_doctor_is_before_gap(const gcap_doctor_analysis_t* analysis, uint32_t call) {
  return call < analysis->recording->gap;
}

static inline const gcap_doctor_event_call_t* gcap_doctor_call_at(const gcap_doctor_analysis_t* analysis,
                                                                  uint32_t call) {
  return &analysis->recording->calls[call];
}

// A stream of which nothing is known counts as blocking, as streams are by default.
static inline bool gcap_doctor_stream_is_nonblocking(const gcap_doctor_analysis_t* analysis, uint32_t stream) {
  return strcmp(analysis->recording->streams[stream].what, "nonblocking") == 0;
}

static inline gcap_doctor_call_kind_t gcap_doctor_kind_at(const gcap_doctor_analysis_t* analysis, uint32_t call) {
  return (gcap_doctor_call_kind_t)analysis->kinds[call];
}

#endif  // GCAP_DOCTOR_ANALYSE_ANALYSIS_H_
