// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// steps.h: the steps of a work, one after the other: each call that was noted, and each hole. Of a captured run the
// table says which nodes a step made; of an eager run an observer hears of each step when it was issued. What compares
// a replay with the work goes by them.
#ifndef GCAP_LIB_CAPTURE_STEPS_H_
#define GCAP_LIB_CAPTURE_STEPS_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "gcap/capture.h"
#include "gcap/status.h"
#include "lib/capture/label.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- The steps of a capture -----------------------------------------------------------------------------------------

// How many steps of a capture are kept at most: 20 MiB of texts. A step of most works is a call, and a graph of more
// nodes than these takes minutes to search.
#define GCAP_CAPTURE_MAX_STEPS 65536u
// A longer text ends in "...".
#define GCAP_CAPTURE_STEP_TEXT_BYTES 104
// Of a longer path the end counts, behind "...".
#define GCAP_CAPTURE_STEP_FILE_BYTES 104

typedef enum gcap_capture_step_kind {
  GCAP_CAPTURE_STEP_CALL = 0,  // went through GCAP_CUDA, or was noted by gcap_capture_note or by gcap itself
  GCAP_CAPTURE_STEP_HOLE,      // the last step of its segment; the function of hole number `segment` is a part of it
  GCAP_CAPTURE_STEP_END,       // nodes behind the last call; only the last step, and only if there are such nodes
} gcap_capture_step_kind_t;

// A step. Nodes are those of the segment's graph that are in no child graph, in the order in which they were captured,
// as gcap_contents_node_t of that `graph` and the parent GCAP_CONTENTS_TOP. Each node belongs to one step: those that
// came without a noted call belong to the next step. A call that makes no node has a step all the same.
typedef struct gcap_capture_step {
  // "hole 'name'", also of a CALL that is a step with break_where_refused; of an END "work behind the last noted call"
  char operation[GCAP_CAPTURE_STEP_TEXT_BYTES];
  char file[GCAP_CAPTURE_STEP_FILE_BYTES];  // "" of these
  char label[GCAP_LABELS_BYTES];            // the labels that were open
  int line;
  cudaStream_t stream;  // NULL: the call did not say
  gcap_capture_step_kind_t kind;
  size_t segment;
  size_t first_node, num_nodes;
} gcap_capture_step_t;

// Writes the texts of a step, as each step has them; the labels are those that the thread has open.
void gcap_capture_step_write(gcap_capture_step_t* step, const char* operation, const char* file);

// Scratch that the work was handed (scratch.h), by the thread of the scope.
typedef struct gcap_capture_block {
  void* address;
  size_t bytes;  // that were asked for
  size_t step;   // how many steps came before
} gcap_capture_block_t;

// All zeros: no steps. Thread: one at a time.
typedef struct gcap_capture_steps {
  gcap_capture_step_t* items;
  size_t count, room;
  gcap_capture_block_t* blocks;  // in the order of the requests
  size_t num_blocks, room_of_blocks;
  bool is_cut;     // steps or blocks are missing behind these: GCAP_CAPTURE_MAX_STEPS were kept, or there was no host
                   // memory
  size_t segment;  // that is being captured
  size_t nodes;    // of it, that have a step
} gcap_capture_steps_t;

void gcap_capture_steps_free(gcap_capture_steps_t* steps);
// Adds a block behind the steps so far. False, and the steps are cut: no host memory, or too many.
bool gcap_capture_steps_add_block(gcap_capture_steps_t* steps, void* address, size_t bytes);
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_capture_steps_copy(const gcap_capture_steps_t* steps, gcap_capture_steps_t* out_copy) GCAP_NODISCARD;

// Has the scope write its steps into `steps`, which is empty and outlives the scope, from now on, with or without a
// ledger. Each note then costs two more questions to the driver. One that fails sets the latch. Steps beyond the
// maximum, or without host memory, are left out, and the capture goes on.
void gcap_capture_keep_steps(gcap_capture_t* capture, gcap_capture_steps_t* steps);

// --- The steps of an eager run --------------------------------------------------------------------------------------

// Hears of the calls of a thread that a capture would note. All zeros but for `hear`; the caller's, until it observes
// no more.
typedef struct gcap_step_observer {
  // The step was issued: called behind the call, on its thread, with no lock held by the note itself. `step`: how many
  // came before. The texts live until the return. `file` is "" and `line` 0 of a hole, whose function has returned.
  // Calls made in here are not heard of, and neither are those of the function of a hole.
  void (*hear)(void* user, size_t step, const char* operation, const char* file, int line, cudaStream_t stream);
  void* user;
  size_t num_steps;  // heard so far
  // The work was handed scratch of the stream. Otherwise as `hear`. NULL: nobody hears of that.
  void (*hear_block)(void* user, void* address, size_t bytes, cudaStream_t stream);
} gcap_step_observer_t;

// Has `observer` hear of this thread's steps from now on; NULL: nobody. Returns who heard before. A scope that the
// thread opens meanwhile has its calls to itself. The observer changes nothing else: no latch, no refusal, no retained
// entry. A capture and an eager run of one work make the same steps, but for what gcap does of its own in the one and
// not in the other (a question, an allocation): match steps by operation, file and line.
gcap_step_observer_t* gcap_observe_steps(gcap_step_observer_t* observer);

// What the step of a hole is called.
#define GCAP_CAPTURE_HOLE_STEP "hole '%s'"
// Tells the observer, if there is one, of a hole whose function has returned in an eager run.
void gcap_observe_hole(const char* name, cudaStream_t stream);

// --- For the scope --------------------------------------------------------------------------------------------------

// Adds the step of a noted call. A question that fails sets the latch.
void gcap_capture_steps_add(gcap_capture_steps_t* steps, cudaStream_t origin, const char* operation,
                            cudaStream_t stream, const char* file, int line);
// A segment has ended in this graph: by the hole of that name, or, NULL, by the end of the capture.
//   CUDA_ERROR  the runtime does not say how many nodes it has
gcap_status_t gcap_capture_steps_end_segment(gcap_capture_steps_t* steps, cudaGraph_t graph, cudaStream_t origin,
                                             const char* hole) GCAP_NODISCARD;
// The thread's scope has ended: its observer hears again, if it has one.
void gcap_observe_again(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_CAPTURE_STEPS_H_
