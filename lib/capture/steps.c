// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps. A capture learns which nodes a call made by the number of nodes behind it: nodes are only ever added while a
// stream captures, so those of a step are a range. The questions bypass GCAP_CUDA, which would note them.
//
// An observer is one word a thread, beside the word that says who hears of calls: a scope takes that word while it is
// open and gives it back. Nothing is shared, so nothing is locked.

#include "lib/capture/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/status.h"
#include "lib/base/capture_hooks.h"
#include "lib/internal/grow.h"
#include "lib/internal/run_trace.h"
#include "lib/internal/text.h"

void gcap_capture_steps_free(gcap_capture_steps_t* steps) {
  free(steps->items);
  free(steps->blocks);
  *steps = (gcap_capture_steps_t){0};
}

gcap_status_t gcap_capture_steps_copy(const gcap_capture_steps_t* steps, gcap_capture_steps_t* out_copy) {
  *out_copy = (gcap_capture_steps_t){0};
  gcap_capture_step_t* items = calloc(steps->count + 1, sizeof(*items));
  gcap_capture_block_t* blocks = calloc(steps->num_blocks + 1, sizeof(*blocks));
  if (items == NULL || blocks == NULL) {
    free(items);
    free(blocks);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu steps", steps->count);
  }
  if (steps->count != 0) memcpy(items, steps->items, steps->count * sizeof(*items));
  if (steps->num_blocks != 0) memcpy(blocks, steps->blocks, steps->num_blocks * sizeof(*blocks));
  *out_copy = *steps;
  out_copy->items = items;
  out_copy->room = steps->count + 1;
  out_copy->blocks = blocks;
  out_copy->room_of_blocks = steps->num_blocks + 1;
  return NULL;
}

bool gcap_capture_steps_add_block(gcap_capture_steps_t* steps, void* address, size_t bytes) {
  if (steps->is_cut) return false;
  steps->is_cut = steps->num_blocks == GCAP_CAPTURE_MAX_STEPS ||
                  !gcap_grow(&steps->blocks, &steps->room_of_blocks, steps->num_blocks + 1, sizeof(*steps->blocks));
  if (steps->is_cut) return false;
  steps->blocks[steps->num_blocks++] = (gcap_capture_block_t){address, bytes, steps->count};
  return true;
}

// --- The steps of a capture -----------------------------------------------------------------------------------------

static void copy_file(char* to, const char* file) {
  const size_t length = strlen(file);
  const bool fits = length < GCAP_CAPTURE_STEP_FILE_BYTES;
  const char* end = fits ? file : file + length - (GCAP_CAPTURE_STEP_FILE_BYTES - sizeof("..."));
  snprintf(to, GCAP_CAPTURE_STEP_FILE_BYTES, "%s%s", fits ? "" : "...", end);
}

void gcap_capture_step_write(gcap_capture_step_t* step, const char* operation, const char* file) {
  gcap_text_t text;
  gcap_text_init(&text, step->operation, sizeof(step->operation));
  gcap_text_add(&text, "%s", operation);
  copy_file(step->file, file);
  strcpy(step->label, gcap_labels_open());
}

// Adds a step, behind which its segment has so many nodes.
static void add(gcap_capture_steps_t* steps, const char* operation, const char* file, gcap_capture_step_t step,
                size_t nodes) {
  if (steps->is_cut) return;
  steps->is_cut = steps->count == GCAP_CAPTURE_MAX_STEPS ||
                  !gcap_grow(&steps->items, &steps->room, steps->count + 1, sizeof(*steps->items));
  if (steps->is_cut) return;
  gcap_capture_step_write(&step, operation, file);
  step.segment = steps->segment;
  step.first_node = steps->nodes;
  step.num_nodes = nodes - steps->nodes;
  steps->nodes = nodes;
  steps->items[steps->count++] = step;
}

void gcap_capture_steps_add(gcap_capture_steps_t* steps, cudaStream_t origin, const char* operation,
                            cudaStream_t stream, const char* file, int line) {
  if (steps->is_cut) return;
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = NULL;
  size_t nodes = 0;
  const char* call = "cudaStreamGetCaptureInfo(origin, &state, NULL, &graph, NULL, NULL, NULL)";
  cudaError_t error = cudaStreamGetCaptureInfo(origin, &state, NULL, &graph, NULL, NULL, NULL);
  if (error == cudaSuccess && state != cudaStreamCaptureStatusActive) return;  // there will be no graph
  if (error == cudaSuccess) {
    call = "cudaGraphGetNodes(graph, NULL, &nodes)";
    error = cudaGraphGetNodes(graph, NULL, &nodes);
  }
  if (error == cudaSuccess) {
    add(steps, operation, file, (gcap_capture_step_t){.line = line, .stream = stream}, nodes);
    return;
  }
  steps->is_cut = true;  // the failure is noted, too
  // Making the status sets the latch: of a capture whose state is not known nothing is promised.
  gcap_status_ignore(gcap_status_from_cuda(error, call, __FILE__, __LINE__));
}

gcap_status_t gcap_capture_steps_end_segment(gcap_capture_steps_t* steps, cudaGraph_t graph, cudaStream_t origin,
                                             const char* hole) {
  size_t nodes = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphGetNodes(graph, NULL, &nodes)));
  char name[GCAP_CAPTURE_STEP_TEXT_BYTES] = "work behind the last noted call";
  gcap_capture_step_t step = {.kind = GCAP_CAPTURE_STEP_END, .stream = origin};
  if (hole != NULL) step.kind = GCAP_CAPTURE_STEP_HOLE;
  if (hole != NULL) snprintf(name, sizeof(name), GCAP_CAPTURE_HOLE_STEP, hole);
  if (hole != NULL || nodes != steps->nodes) add(steps, name, "", step, nodes);
  ++steps->segment;
  steps->nodes = 0;
  return NULL;
}

// --- The steps of an eager run --------------------------------------------------------------------------------------

static GCAP_THREAD_LOCAL gcap_step_observer_t* thread_observer;

static void hear(const char* operation, cudaError_t answer, cudaStream_t stream, const char* file, int line) {
  (void)answer;
  gcap_step_observer_t* observer = gcap_observe_steps(NULL);
  observer->hear(observer->user, observer->num_steps++, operation, file, line, stream);
  gcap_observe_steps(observer);
}

static void hear_block(void* address, size_t bytes, cudaStream_t stream) {
  gcap_step_observer_t* observer = gcap_observe_steps(NULL);
  observer->hear_block(observer->user, address, bytes, stream);
  gcap_observe_steps(observer);
}

gcap_step_observer_t* gcap_observe_steps(gcap_step_observer_t* observer) {
  gcap_step_observer_t* before = thread_observer;
  thread_observer = observer;
  if (!gcap_thread_captures()) gcap_observe_again();
  return before;
}

void gcap_observe_again(void) {
  const gcap_step_observer_t* observer = thread_observer;
  gcap_thread_note = observer != NULL ? hear : NULL;
  gcap_thread_run_trace.hand_out = observer != NULL && observer->hear_block != NULL ? hear_block : NULL;
}

void gcap_observe_hole(const char* name, cudaStream_t stream) {
  if (gcap_thread_note != hear) return;
  char operation[GCAP_CAPTURE_STEP_TEXT_BYTES];
  snprintf(operation, sizeof(operation), GCAP_CAPTURE_HOLE_STEP, name);
  hear(operation, cudaSuccess, stream, "", 0);
}
