// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Where the operation runs: a runtime of the check's own, so its stream, its graph and its scratch are nobody else's.
// Runs by id are eager until a run with capture_only, which records and launches nothing, so the check decides what
// happens. All runs have a verification that is not due: the manager notes the calls of a capture, for the cause of a
// difference.
//
// Each function leaves the device idle: the operation may have used streams that nobody knows. No lock is held.

#include <string.h>

#include "kit/check/checking.h"
#include "lib/graph/inner.h"

// Graphs are found by this key.
static const char kKey[] = "gcap_check_capturable";

gcap_status_t gcap_check_place_open(gcap_checking_t* checking, gcap_check_place_t* place) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.device_id = checking->device_id;
  options.enable_cuda_graph = true;
  options.graph.min_num_runs_before_capture = UINT32_MAX;
  options.graph.audit = GCAP_GRAPH_AUDIT_ON_DEMAND;
  options.arena.on_event = gcap_check_ranges_hear;
  options.arena.user = &place->ranges;
  gcap_check_ranges_init(&place->ranges);
  place->id = GCAP_GRAPH_ID_NONE;
  gcap_status_t status = gcap_runtime_create(&options, &place->runtime);
  if (status != NULL) {
    gcap_check_ranges_deinit(&place->ranges);
    return status;
  }
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(place->runtime, &resources));
  place->stream = resources.cuda_stream;
  return NULL;
}

gcap_status_t gcap_check_place_close(gcap_check_place_t* place) {
  if (place->runtime == NULL) return NULL;
  gcap_status_t status = gcap_check_ranges_free(&place->ranges, gcap_runtime_scratch(place->runtime));
  gcap_status_t ended = gcap_runtime_destroy(place->runtime);
  const gcap_code_t code = gcap_status_code(ended);
  status = gcap_status_join(status, ended);
  if (code != GCAP_OK && code != GCAP_LEAKED) {  // it is whole: its stream may still capture
    return gcap_status_join(
        status, GCAP_STATUS(GCAP_LEAKED,
                            "a runtime of the check could not be ended: one more attempt follows, and if that "
                            "fails too, the runtime is kept for ever"));
  }
  gcap_check_ranges_deinit(&place->ranges);
  place->runtime = NULL;
  return status;
}

// --- Before a run -----------------------------------------------------------------------------------------------------

static void give_host_inputs(const gcap_checking_t* checking, int fill) {
  const unsigned char* values = checking->host_fills + (size_t)fill * checking->host_fill_bytes;
  for (size_t i = 0; i < checking->check.num_inputs; ++i) {
    const gcap_check_buffer_t* input = &checking->check.inputs[i];
    if (!input->on_host) continue;
    memcpy(input->address, values, input->bytes);
    values += input->bytes;
  }
}

static gcap_status_t fill_outputs(const gcap_checking_t* checking, unsigned char byte, cudaStream_t stream) {
  for (size_t i = 0; i < checking->check.num_outputs; ++i) {
    const gcap_check_buffer_t* output = &checking->check.outputs[i];
    if (output->in_place) continue;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(output->address, byte, output->bytes, stream)));
  }
  return NULL;
}

gcap_status_t gcap_checking_prepare(gcap_checking_t* checking, gcap_check_place_t* place, int fill,
                                    unsigned char in_outputs, unsigned char in_scratch) {
  const size_t slot = GCAP_CHECK_BEFORE + (size_t)fill;
  GCAP_RETURN_IF_ERROR(gcap_verify_state_restore(checking->inputs, slot, place->stream));
  GCAP_RETURN_IF_ERROR(gcap_verify_state_restore(checking->outputs, slot, place->stream));
  GCAP_RETURN_IF_ERROR(fill_outputs(checking, in_outputs, place->stream));
  GCAP_RETURN_IF_ERROR(gcap_check_ranges_fill(&place->ranges, in_scratch, place->stream));
  give_host_inputs(checking, fill);
  return gcap_graph_wait_for_device(checking->device_id);
}

// --- Runs --------------------------------------------------------------------------------------------------------------

static gcap_status_t call_work(void* user, const gcap_run_resources_t* resources) {
  gcap_checking_t* checking = user;
  gcap_status_t status = checking->check.work(checking->check.user, resources);
  if (status != NULL) {
    checking->has_work_failed = true;
    checking->work_code = gcap_status_code(status);
  }
  return status;
}

static void verify_nothing(gcap_checking_t* checking, gcap_graph_verify_t* verify) {
  gcap_graph_verify_init(verify);
  verify->buffers = checking->named;
  verify->num_buffers = checking->num_named;
  verify->bisect = true;
}

static gcap_status_t issue(gcap_checking_t* checking, gcap_check_place_t* place, const gcap_graph_verify_t* verify,
                           bool capture_only) {
  const gcap_graph_key_t key = {.bytes = kKey, .size = sizeof(kKey), .name = checking->check.name};
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run;
  gcap_run_init(&run);
  run.key = &key;
  run.work = call_work;
  run.user = checking;
  run.synchronize = true;
  run.result = &result;
  run.capture_only = capture_only;
  run.verify = verify;
  checking->has_work_failed = false;
  gcap_status_t status = gcap_runtime_run(place->runtime, &run);
  if (result.id != GCAP_GRAPH_ID_NONE) place->id = result.id;
  return gcap_status_join(status, gcap_graph_wait_for_device(checking->device_id));
}

gcap_status_t gcap_checking_run(gcap_checking_t* checking, gcap_check_place_t* place, bool* out_failed) {
  *out_failed = false;
  gcap_graph_verify_t verify;
  verify_nothing(checking, &verify);
  gcap_status_t status = issue(checking, place, &verify, /*capture_only=*/false);
  ++checking->report.eager_runs;
  if (status == NULL || !checking->has_work_failed || gcap_status_code(status) == GCAP_DEVICE_LOST) return status;
  *out_failed = true;
  gcap_checking_add_failure(checking, GCAP_CHECK_FAILS, "an eager run fails", status);
  return NULL;
}

// --- The capture --------------------------------------------------------------------------------------------------------

static gcap_status_t capture_once(gcap_checking_t* checking, gcap_check_place_t* place) {
  gcap_graph_verify_t verify;
  verify_nothing(checking, &verify);
  return issue(checking, place, &verify, /*capture_only=*/true);
}

static void read_graph(gcap_checking_t* checking, gcap_check_place_t* place, gcap_graph_manager_t* graphs) {
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(graphs, place->id, &info);
  gcap_check_report_t* report = &checking->report;
  report->nodes = info.nodes;
  report->kernel_nodes = info.kernel_nodes;
  report->exec_bytes = info.exec_bytes;
  report->held_bytes = info.bytes - info.exec_bytes;
}

gcap_status_t gcap_checking_capture(gcap_checking_t* checking, gcap_check_place_t* place, bool* out_failed) {
  *out_failed = false;
  gcap_graph_manager_t* graphs = NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_graphs(place->runtime, &graphs));
  gcap_status_t status = capture_once(checking, place);
  if (status != NULL && checking->has_work_failed && checking->work_code == GCAP_RESOURCE_EXHAUSTED) {
    gcap_status_free(status);  // the arena has grown by what was lacking
    gcap_check_ranges_end_graph(&place->ranges);
    status = capture_once(checking, place);
  }
  const gcap_code_t code = gcap_status_code(status);
  if (status == NULL) {
    read_graph(checking, place, graphs);
    return NULL;
  }
  if (code != GCAP_CAPTURE_INVALIDATED && code != GCAP_CANCELLED) return status;
  gcap_check_ranges_end_graph(&place->ranges);
  gcap_checking_add_failure(checking, GCAP_CHECK_NOT_CAPTURED, "the capture fails", status);
  *out_failed = true;
  return NULL;
}

// --- Replays -----------------------------------------------------------------------------------------------------------

gcap_status_t gcap_checking_replay(gcap_checking_t* checking, gcap_check_place_t* place, cudaStream_t stream,
                                   bool* out_replayed) {
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = place->id;
  run.stream = stream;
  run.synchronize = true;
  gcap_status_t status = gcap_runtime_replay(place->runtime, &run, out_replayed);
  if (*out_replayed) {
    ++checking->report.replays;
  } else if (status == NULL) {
    ++checking->report.guarded_replays;
  }
  return gcap_status_join(status, gcap_graph_wait_for_device(checking->device_id));
}

gcap_status_t gcap_checking_explain(gcap_checking_t* checking, gcap_check_place_t* place, int fill,
                                    gcap_status_t* out_difference) {
  *out_difference = NULL;
  GCAP_RETURN_IF_ERROR(gcap_checking_prepare(checking, place, fill, GCAP_CHECK_POISON, GCAP_CHECK_POISON));
  gcap_graph_verify_t verify;
  verify_nothing(checking, &verify);
  verify.each = 1;
  gcap_status_t status = issue(checking, place, &verify, /*capture_only=*/false);
  ++checking->report.replays;
  if (gcap_status_code(status) != GCAP_REPLAY_DIFFERS) return status;
  *out_difference = status;
  return NULL;
}
