// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// bisection.h: the search for the first step behind which a replay and the work differ, and for its cause.
#ifndef GCAP_LIB_GRAPH_BISECTION_H_
#define GCAP_LIB_GRAPH_BISECTION_H_

#include "gcap/graph_verify.h"
#include "lib/capture/steps.h"
#include "lib/contents/inner.h"
#include "lib/graph/inner.h"
#include "lib/graph/recording.h"
#include "lib/internal/text.h"
#include "lib/verify/inner.h"

#define GCAP_BISECT_NONE SIZE_MAX

// What the search is given, by a verification that found a difference.
typedef struct gcap_bisect_subject {
  const gcap_run_steps_t* run;
  int id;
  uint64_t ticket;      // of the graph
  cudaStream_t stream;  // of the run
  gcap_verify_state_t* state;
  size_t before, spare, work;  // slots: what there was, one to use, and what the work left
  const gcap_verify_block_t* blocks;
  const gcap_graph_tap_list_t* taps;  // of the graph; the blocks begin with these
  size_t num_buffers;  // of the blocks, that have a name, taps among them: what is behind them is the graph's own
} gcap_bisect_subject_t;

// Where the steps of a capture and those of the work now are alike.
typedef struct gcap_bisect_steps {
  gcap_capture_steps_t captured;  // of the graph
  gcap_capture_steps_t eager;     // of the work now
  gcap_capture_steps_t fresh;     // of a fresh capture
  size_t* in_graph;               // [eager.count]: the graph's step; GCAP_BISECT_NONE: it has none
  size_t* in_fresh;               // [captured.count]: the fresh capture's step
} gcap_bisect_steps_t;

// A search.
typedef struct gcap_bisection {
  gcap_bisect_subject_t subject;
  int device_id;
  gcap_bisect_steps_t steps;
  gcap_graph_refused_t* refused;  // steps that are holes of the graph; NULL: none
  gcap_contents_t now, fresh;     // of the graph, and of a fresh capture; `fresh` has no nodes: there is none
  bool* writes;                   // [eager.count][num_buffers]: the step changes the buffer; NULL: nobody looked yet
  gcap_graph_verify_report_t* report;
} gcap_bisection_t;

// What is found at a step.
typedef struct gcap_bisect_cause {
  gcap_graph_fault_t fault;
  size_t step;           // of the work
  size_t node, earlier;  // as in the report
  char text[1400];
} gcap_bisect_cause_t;

// Searches. Writes what was found to the report, and in words to the text. The buffers then have what is in the slot
// `work`, which the call fills first.
//   errors of a copy back: the buffers have something else
gcap_status_t gcap_bisect(const gcap_bisect_subject_t* subject, gcap_graph_verify_report_t* report,
                          gcap_capture_step_t* out_step, gcap_text_t* text) GCAP_NODISCARD;

// --- passes ---

// An eager run that is listened to.
typedef struct gcap_bisect_pass {
  gcap_bisection_t* b;
  gcap_step_observer_t observer;
  // Called behind each step, as long as no call fails. NULL: the steps are listed.
  gcap_status_t (*at_step)(struct gcap_bisect_pass* pass, size_t step);
  size_t num_steps;      // so far
  gcap_status_t status;  // of the first call that failed
  size_t place;          // where it is compared
  bool is_compared;
  gcap_verify_difference_t difference;
  uint64_t* hashes;  // of each buffer, behind the last step
  unsigned char* chunk;
} gcap_bisect_pass_t;

// Puts back what there was before the replay. Work outside of a capture ran in that too, on a stream that nobody knows.
gcap_status_t gcap_bisect_put_back(const gcap_bisection_t* bisection) GCAP_NODISCARD;
// Issues the work, from what the memory has. A failure of the work comes before one of who listens.
gcap_status_t gcap_bisect_issue(gcap_bisect_pass_t* pass) GCAP_NODISCARD;
// Issues the work eagerly, and notes which step changes which buffer. Once noted, nothing is issued.
gcap_status_t gcap_bisect_note_writes(gcap_bisection_t* bisection) GCAP_NODISCARD;

// --- steps ---

// Whether the same was called at the same place.
bool gcap_bisect_are_alike(const gcap_capture_step_t* a, const gcap_capture_step_t* b);
// Finds each step of `a` in `b`: GCAP_BISECT_NONE for one that is only in `a`.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_bisect_match(const gcap_capture_steps_t* a, const gcap_capture_steps_t* b,
                                size_t** out_in_b) GCAP_NODISCARD;
// Adds a step of the work to the list.
//   RESOURCE_EXHAUSTED  no host memory, or too many steps
gcap_status_t gcap_bisect_add_step(gcap_capture_steps_t* steps, const char* operation, const char* file, int line,
                                   cudaStream_t stream) GCAP_NODISCARD;
void gcap_bisect_steps_free(gcap_bisect_steps_t* steps);

// --- cause ---

// What is wrong at the step of the work, which has index `step`; the last of these is behind the last call. The fault
// UNKNOWN: nothing is seen there.
gcap_status_t gcap_bisect_find_cause(gcap_bisection_t* bisection, size_t step,
                                     gcap_bisect_cause_t* out_cause) GCAP_NODISCARD;
// The first two nodes without an order, of steps up to `step`.
gcap_status_t gcap_bisect_find_missing_join(gcap_bisection_t* bisection, size_t step,
                                            gcap_bisect_cause_t* out_cause) GCAP_NODISCARD;
// The first node before the step that has something else than a fresh capture.
gcap_status_t gcap_bisect_find_change(gcap_bisection_t* bisection, size_t step,
                                      gcap_bisect_cause_t* out_cause) GCAP_NODISCARD;
// Whether the step is the first to use memory without a name.
gcap_status_t gcap_bisect_find_first_use(gcap_bisection_t* bisection, size_t step,
                                         gcap_bisect_cause_t* out_cause) GCAP_NODISCARD;

// Writes the number of a step and its call: "step 3 of 17, cudaLaunchKernel(...) at decode.c:40".
void gcap_bisect_write_step(const gcap_capture_steps_t* steps, size_t step, gcap_text_t* text);

// --- events ---

// The word for a fault in a file of events: "stale_pointer".
const char* gcap_bisect_fault_name(gcap_graph_fault_t fault);
// Writes the difference to a file of events. `step` NULL: none was found.
gcap_status_t gcap_bisect_write_events(const char* path, const gcap_capture_step_t* step, gcap_graph_fault_t fault,
                                       const char* text) GCAP_NODISCARD;

#endif  // GCAP_LIB_GRAPH_BISECTION_H_
