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
#include "lib/internal/memory_source.h"
#include "lib/internal/text.h"
#include "lib/verify/inner.h"

#define GCAP_BISECT_NONE SIZE_MAX
#define GCAP_BISECT_MAX_DEVICES 64

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
  size_t* block_in_graph;         // [eager.num_blocks]: the graph's block; GCAP_BISECT_NONE: it has none
  size_t* block_in_work;          // [captured.num_blocks]: the work's block
} gcap_bisect_steps_t;

// Where a block of scratch differs.
typedef struct gcap_bisect_scratch_difference {
  size_t block;  // of the work, in the order of its requests; GCAP_BISECT_NONE: none differs
  size_t byte;   // its first that differs
  unsigned char actual, expected;
} gcap_bisect_scratch_difference_t;

// What a place has otherwise in the two. Scratch is looked at where nothing differs that is compared.
typedef struct gcap_bisect_difference {
  gcap_verify_difference_t named;
  gcap_bisect_scratch_difference_t scratch;
} gcap_bisect_difference_t;

// A search.
typedef struct gcap_bisection {
  gcap_bisect_subject_t subject;
  int device_id;           // of the graph
  uint64_t other_devices;  // a bit for each other one that has memory of a buffer
  gcap_bisect_steps_t steps;
  gcap_graph_refused_t* refused;  // steps that are holes of the graph; NULL: none
  gcap_contents_t now, fresh;     // of the graph, and of a fresh capture; `fresh` has no nodes: there is none
  // [eager.count][num_buffers + eager.num_blocks]: the step changes the buffer, or the scratch; NULL: nobody looked yet
  bool* writes;
  bool looks_at_scratch;
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

// Which index of a row of `writes` a block of scratch has.
static inline bool* gcap_bisect_writes(const gcap_bisection_t* b, size_t step, size_t index) {
  return &b->writes[step * (b->subject.num_buffers + b->steps.eager.num_blocks) + index];
}

// --- passes ---

// Scratch that the work was handed in a pass.
typedef struct gcap_bisect_given {
  void* address;
  size_t bytes;
  gcap_memory_claim_t claim;  // of who was handed it
} gcap_bisect_given_t;

// A piece of scratch in which the two differ: a part of it may be what nobody wrote.
typedef struct gcap_bisect_suspect {
  size_t block, offset, bytes;
  unsigned char *graph, *work;  // what the two have there
} gcap_bisect_suspect_t;

// An eager run that is listened to.
typedef struct gcap_bisect_pass {
  gcap_bisection_t* b;
  gcap_step_observer_t observer;
  // What each byte of scratch has when the work is handed it; GCAP_BISECT_NO_FILL: what it happens to have, and nobody
  // hears of it.
  int fill;
  gcap_bisect_given_t* given;  // in the order of the requests
  size_t num_given, room_of_given;
  gcap_bisect_suspect_t* suspects;
  size_t num_suspects;
  // Called behind each step, as long as no call fails. NULL: the steps are listed.
  gcap_status_t (*at_step)(struct gcap_bisect_pass* pass, size_t step);
  size_t num_steps;      // so far
  gcap_status_t status;  // of the first call that failed
  size_t place;          // where it is compared
  bool is_compared;
  gcap_bisect_difference_t difference;
  uint64_t* hashes;  // of each buffer and each block of scratch, behind the last step
  unsigned char* chunk;
} gcap_bisect_pass_t;

// What scratch has before the work writes it: bytes that are read by mistake are likely to show as NaN, or as -1. And
// what it has before the graph writes it, and when the work is issued once more.
#define GCAP_BISECT_FILL 0xff
#define GCAP_BISECT_OTHER_FILL 0
#define GCAP_BISECT_NO_FILL (-1)

// Frees what the pass has heard.
void gcap_bisect_pass_end(gcap_bisect_pass_t* pass);
// Waits for whole devices, that of the graph and those of the buffers: nobody knows all streams of the work.
//   UNAVAILABLE  other threads go on capturing, which the wait would break
gcap_status_t gcap_bisect_wait_for_devices(const gcap_bisection_t* bisection) GCAP_NODISCARD;
// Puts back what there was before the replay. Work outside of a capture ran in that too, on a stream that nobody knows.
gcap_status_t gcap_bisect_put_back(const gcap_bisection_t* bisection) GCAP_NODISCARD;
// Issues the work, from what the memory has. A failure of the work comes before one of who listens.
gcap_status_t gcap_bisect_issue(gcap_bisect_pass_t* pass) GCAP_NODISCARD;
// Issues the work eagerly, and notes which step changes which buffer. Once noted, nothing is issued.
gcap_status_t gcap_bisect_note_writes(gcap_bisection_t* bisection) GCAP_NODISCARD;

// --- scratch ---

// Finds the work's blocks of scratch among those of the graph: the same request between the same steps.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_bisect_pair_blocks(gcap_bisection_t* bisection) GCAP_NODISCARD;
// Fills what the graph has of the pairs with GCAP_BISECT_OTHER_FILL. Waits.
gcap_status_t gcap_bisect_fill_scratch_of_graph(const gcap_bisection_t* bisection) GCAP_NODISCARD;
// The work was handed scratch: fills it, and notes whose it is.
gcap_status_t gcap_bisect_note_given(gcap_bisect_pass_t* pass, void* address, size_t bytes,
                                     cudaStream_t stream) GCAP_NODISCARD;
// Whether the work has block number `index` of the pass still.
//   errors of gcap_memory_find_claim
gcap_status_t gcap_bisect_has_given(const gcap_bisect_pass_t* pass, size_t index, bool* out_has) GCAP_NODISCARD;
// Notes in the pass, which is at its place, where the scratch of the work is another than that of the beginning of the
// graph, which is in the slot `spare`.
gcap_status_t gcap_bisect_suspect_scratch(gcap_bisect_pass_t* pass) GCAP_NODISCARD;
// The same place in another pass with another fill: what both have alike, and the graph has not, differs.
gcap_status_t gcap_bisect_confirm_scratch(gcap_bisect_pass_t* pass) GCAP_NODISCARD;
// The graph's scratch that the node works on at the address.
bool gcap_bisect_find_block(const gcap_bisection_t* bisection, size_t captured_step, uintptr_t address,
                            gcap_named_memory_t* out_memory, size_t* out_work_block);
// "scratch of 4096 bytes, asked for behind step 2 of 17, ..., differs first in byte 3: the replay has 0x1, the work
// 0x2".
void gcap_bisect_write_scratch_difference(const gcap_bisection_t* bisection,
                                          const gcap_bisect_scratch_difference_t* difference, gcap_text_t* text);

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
// Whether the step is the first to use memory without a name; or uses scratch that nobody has written.
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
