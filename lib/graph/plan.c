// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Plans: what graphs will hold, before they are captured. A run is rehearsed: its work is captured as a capture would
// do it, so that its nodes and its memory are those of the graph to come; they are counted, and the graph is destroyed
// instead of instantiated. The device does nothing of the work, and the id's state stays as it is.
//
// Locking: the manager's mutex only to read what graphs hold.

#include <stdlib.h>

#include "gcap/capture.h"
#include "lib/capture/inner.h"
#include "lib/graph/begin.h"
#include "lib/graph/inner.h"
#include "lib/graph/manager.h"
#include "lib/graph/recording.h"
#include "lib/internal/forked.h"
#include "lib/internal/sized.h"
#include "lib/internal/unwind.h"

static const gcap_sized_type_t plan_type = GCAP_SIZED_TYPE(gcap_graph_plan);

void gcap_graph_plan_give(const gcap_graph_plan_t* plan, gcap_graph_plan_t* out_plan) {
  gcap_sized_write(&plan_type, plan, out_plan);
}

gcap_status_t gcap_graph_plan_begin(gcap_graph_plan_t* out_plan, gcap_graph_plan_t* plan) {
  GCAP_RETURN_IF_NULL(out_plan);
  gcap_graph_plan_init(plan);
  GCAP_RETURN_IF_ERROR(gcap_sized_read(&plan_type, out_plan, plan));
  gcap_graph_plan_init(plan);
  gcap_graph_plan_give(plan, out_plan);
  return NULL;
}

// --- What is counted ------------------------------------------------------------------------------------------------

void gcap_graph_plan_add_retained(gcap_graph_plan_t* plan, const gcap_retained_t* retained) {
  const size_t bytes = gcap_retained_bytes(retained);
  plan->retained_bytes += bytes;
  plan->bytes += bytes;
}

// Of a stream that captures no more: the device of one that does cannot be asked (rule R24 of the capture rules).
static gcap_status_t add_graph(cudaStream_t stream, const cudaGraph_t* segments, size_t count,
                               gcap_graph_plan_t* plan) {
  int device_id = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(stream, &device_id)));
  gcap_contents_t contents;
  GCAP_RETURN_IF_ERROR(gcap_contents_read_all(segments, count, /*with_arguments=*/false, &contents));
  size_t more_execs = 0;
  for (size_t i = 0; i + 1 < count; ++i) more_execs += gcap_graph_has_nodes(&contents, i);
  const size_t exec_bytes = gcap_graph_segments_bytes(device_id, contents.num_kernels, more_execs);
  ++plan->graphs;
  plan->nodes += contents.num_top;
  plan->kernel_nodes += contents.num_kernels;
  plan->exec_bytes += exec_bytes;
  plan->retained_bytes += contents.allocated_bytes;
  plan->bytes += exec_bytes + contents.allocated_bytes;
  gcap_contents_free(&contents);
  return NULL;
}

static gcap_status_t add_segments(cudaStream_t stream, cudaGraph_t last, const gcap_graph_hole_list_t* holes,
                                  gcap_graph_plan_t* plan) {
  cudaGraph_t* segments = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_hole_list_segments(holes, last, &segments));
  gcap_status_t status = add_graph(stream, segments, holes->count + 1, plan);
  free(segments);
  return status;
}

bool gcap_graph_plan_add_captured(gcap_graph_plan_t* plan, gcap_graph_manager_t* manager, int id) {
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(manager, id, &info);
  if (info.state != GCAP_GRAPH_CAPTURED) return false;
  plan->graphs += info.graphs;
  plan->nodes += info.nodes;
  plan->kernel_nodes += info.kernel_nodes;
  plan->exec_bytes += info.exec_bytes;
  plan->retained_bytes += info.bytes - info.exec_bytes;
  plan->bytes += info.bytes;
  return true;
}

// --- Rehearsals -----------------------------------------------------------------------------------------------------

static void abort_on_unwind(gcap_capture_t** unfinished) { gcap_capture_abort(*unfinished); }

gcap_status_t gcap_graph_record(const gcap_run_t* run, const gcap_run_resources_t* resources,
                                const gcap_capture_options_t* options, struct gcap_graph_recording* recording) {
  gcap_capture_t* scope = NULL;
  GCAP_RETURN_IF_ERROR(gcap_capture_begin(resources->cuda_stream, options, &scope));
  gcap_capture_set_owner(scope, &recording->stated);
  if (recording->keeps_steps) gcap_capture_keep_steps(scope, &recording->steps);
  GCAP_AT_SCOPE_END(abort_on_unwind) gcap_capture_t* unfinished = scope;
  gcap_status_t status = run->work(run->user, resources);
  unfinished = NULL;
  gcap_capture_fail_once(scope, status);
  gcap_status_free(status);
  return gcap_capture_end(scope, &recording->last, &recording->retained);
}

gcap_status_t gcap_graph_recording_free(struct gcap_graph_recording* recording) {
  gcap_status_t status = NULL;
  if (recording->last != NULL) status = GCAP_CUDA(cudaGraphDestroy(recording->last));
  status = gcap_status_join(status, gcap_graph_hole_list_free(&recording->stated.holes));
  gcap_graph_stated_free(&recording->stated);
  gcap_capture_steps_free(&recording->steps);
  gcap_retained_release(recording->retained);
  *recording = (struct gcap_graph_recording){0};
  return status;
}

// Beside an exception, which tells.
static void drop_recording(struct gcap_graph_recording* recording) {
  gcap_status_ignore(gcap_graph_recording_free(recording));
}

static void release_refused(gcap_graph_refused_t** refused) { gcap_graph_refused_release(*refused); }

// Adds the step that a capture refused, if one was, to those that are holes. Whether there is one more.
static bool learn(const gcap_graph_hole_list_t* holes, gcap_graph_refused_t** refused) {
  if (!holes->is_refused) return false;
  gcap_graph_refused_t* more = gcap_graph_refused_with(holes->refused, &holes->tried);
  if (more == NULL) return false;
  gcap_graph_refused_release(*refused);
  *refused = more;
  return true;
}

// `*refused`: the steps that are holes. `*out_has_more`: the capture refused another one, which it has now.
static gcap_status_t rehearse(const gcap_run_t* run, const gcap_run_resources_t* resources,
                              const gcap_capture_options_t* options, gcap_graph_refused_t** refused,
                              gcap_retained_t** out_retained, gcap_graph_plan_t* plan, bool* out_has_more) {
  GCAP_AT_SCOPE_END(drop_recording) struct gcap_graph_recording recording = {0};
  gcap_graph_hole_list_t* holes = &recording.stated.holes;
  holes->refused = gcap_graph_refused_retain(*refused);
  gcap_status_t status = gcap_graph_record(run, resources, options, &recording);
  *out_has_more = status != NULL && learn(holes, refused);
  if (status != NULL) return status;
  gcap_graph_plan_t more = *plan;
  status = add_segments(resources->cuda_stream, recording.last, holes, &more);
  gcap_retained_t* retained = recording.retained;
  recording.retained = NULL;
  status = gcap_status_join(status, gcap_graph_recording_free(&recording));
  if (status == NULL) {
    *plan = more;
    *out_retained = retained;
    return NULL;
  }
  gcap_retained_release(retained);
  return status;
}

gcap_status_t gcap_graph_rehearse(const gcap_run_t* run, const gcap_run_resources_t* resources,
                                  const gcap_capture_options_t* options, gcap_retained_t** out_retained,
                                  gcap_graph_plan_t* plan) {
  const gcap_graph_plan_t before = *plan;
  GCAP_AT_SCOPE_END(release_refused) gcap_graph_refused_t* refused = NULL;  // the work may not return
  gcap_status_t status = NULL;
  bool has_more = false;
  do {
    gcap_status_free(status);
    *plan = before;  // the work of a runtime adds to the plan
    status = rehearse(run, resources, options, &refused, out_retained, plan, &has_more);
  } while (has_more);
  return gcap_status_annotate(status, gcap_status_code(status), "the rehearsal of graph id %d", run->id);
}

gcap_status_t gcap_planned_run_read(const gcap_run_t* runs, size_t index, gcap_run_copy_t* copy,
                                    const gcap_run_t** out_run) {
  const gcap_run_t* given = (const gcap_run_t*)(const void*)((const char*)runs + index * runs->struct_size);
  GCAP_RETURN_IF_ERROR(gcap_run_read(given, copy, out_run));
  if ((*out_run)->id < 0 && (*out_run)->key == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "runs[%zu].id is %d, allowed are ids >= 0, or a key", index,
                       (*out_run)->id);
  }
  if ((*out_run)->work == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "runs[%zu].work is NULL", index);
  return NULL;
}

gcap_status_t gcap_planned_runs_check(const gcap_run_t* runs, size_t num_runs) {
  gcap_run_copy_t copy;
  const gcap_run_t* run = NULL;
  for (size_t i = 0; i < num_runs; ++i) GCAP_RETURN_IF_ERROR(gcap_planned_run_read(runs, i, &copy, &run));
  return NULL;
}

gcap_status_t gcap_planned_values_measure(const gcap_run_t* run, size_t* out_bytes) {
  *out_bytes = 0;
  return run->buffers != NULL ? gcap_graph_values_measure(run->buffers, out_bytes) : NULL;
}

void gcap_planned_values_place(const gcap_run_t* run, const gcap_graph_value_block_t* block, void** addresses,
                               gcap_graph_plan_t* plan) {
  size_t offset = 0;
  for (size_t i = 0; run->buffers != NULL && i < run->buffers->num_values; ++i) {
    const size_t bytes = gcap_graph_value_bytes_in_block(&run->buffers->values[i]);
    if (bytes != 0) addresses[run->buffers->count + i] = block->device + offset;
    offset += bytes;
  }
  plan->retained_bytes += offset;
  plan->bytes += offset;
}

static void free_addresses(void*** addresses) { free(*addresses); }

// The device memory of a run's values; NULL: none is in memory.
static gcap_status_t take_block(const gcap_run_t* run, gcap_graph_value_block_t** out_block) {
  size_t bytes = 0;
  GCAP_RETURN_IF_ERROR(gcap_planned_values_measure(run, &bytes));
  if (bytes == 0) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(run->stream, "a plan of values in memory"));
  return gcap_graph_value_block_create(bytes, run->stream, out_block);
}

static gcap_status_t plan_one(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_plan_t* plan) {
  GCAP_RETURN_IF_ERROR(gcap_graph_check_id(run));
  // The work may not return.
  GCAP_AT_SCOPE_END(free_addresses) void** addresses = NULL;
  GCAP_AT_SCOPE_END(gcap_planned_values_drop) gcap_graph_value_block_t* block = NULL;
  gcap_graph_plan_t more = *plan;
  gcap_run_resources_t resources = {.struct_size = sizeof(resources), .cuda_stream = run->stream};
  if (run->buffers != NULL) {
    GCAP_RETURN_IF_ERROR(gcap_graph_buffers_copy_addresses(run->buffers, &addresses));
    GCAP_RETURN_IF_ERROR(take_block(run, &block));
    gcap_planned_values_place(run, block, addresses, &more);
    gcap_run_give_addresses(run->buffers, addresses, &resources);
  }
  gcap_retained_t* retained = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_rehearse(run, &resources, &manager->options.capture, &retained, &more));
  gcap_graph_plan_add_retained(&more, retained);
  gcap_retained_release(retained);
  *plan = more;
  gcap_graph_value_block_t* unused = block;
  block = NULL;
  return gcap_graph_value_block_destroy(unused);
}

static gcap_status_t plan_all(gcap_graph_manager_t* manager, const gcap_run_t* runs, size_t num_runs,
                              gcap_graph_plan_t* plan) {
  for (size_t i = 0; i < num_runs; ++i) {
    gcap_run_copy_t copy;
    const gcap_run_t* run = NULL;
    GCAP_RETURN_IF_ERROR(gcap_planned_run_read(runs, i, &copy, &run));
    if (gcap_graph_plan_add_captured(plan, manager, gcap_graph_manager_id_of(manager, run))) continue;
    GCAP_RETURN_IF_ERROR(plan_one(manager, run, plan));
  }
  return NULL;
}

static void let_go(gcap_graph_manager_t** held) { gcap_graph_manager_let_go(*held); }

gcap_status_t gcap_graph_manager_plan(gcap_graph_manager_t* manager, const gcap_run_t* runs, size_t num_runs,
                                      gcap_graph_plan_t* out_plan) {
  gcap_graph_plan_t plan;
  GCAP_RETURN_IF_ERROR(gcap_graph_plan_begin(out_plan, &plan));
  GCAP_RETURN_IF_NULL(manager);
  if (num_runs > 0) GCAP_RETURN_IF_NULL(runs);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  GCAP_RETURN_IF_ERROR(gcap_planned_runs_check(runs, num_runs));
  GCAP_AT_SCOPE_END(let_go) gcap_graph_manager_t* held = manager;
  gcap_graph_manager_hold(held);
  GCAP_RETURN_IF_ERROR(plan_all(manager, runs, num_runs, &plan));
  gcap_graph_plan_give(&plan, out_plan);
  return NULL;
}
