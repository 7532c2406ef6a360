// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A check from its begin to its end. All that it makes is in one struct, which its scope ends, also if the operation
// throws. The verdict is the report's; a status is a failure of the check.
//
// Locking: none; the check is its thread's.

#include <stdlib.h>

#include "kit/check/checking.h"
#include "lib/graph/inner.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/sized.h"
#include "lib/internal/unwind.h"

// --- Lists ------------------------------------------------------------------------------------------------------------

static gcap_verify_block_t block_of(const gcap_check_buffer_t* buffer) {
  return (gcap_verify_block_t){.name = buffer->name != NULL ? buffer->name : "",
                               .address = buffer->address,
                               .bytes = buffer->bytes,
                               .type = buffer->type,
                               .absolute = buffer->absolute,
                               .relative = buffer->relative,
                               .is_compared = true};
}

static void name_buffer(gcap_checking_t* checking, const gcap_check_buffer_t* buffer) {
  checking->named[checking->num_named++] = (gcap_graph_verify_buffer_t){.name = buffer->name,
                                                                        .address = buffer->address,
                                                                        .bytes = buffer->bytes,
                                                                        .type = buffer->type,
                                                                        .absolute = buffer->absolute,
                                                                        .relative = buffer->relative};
}

static gcap_status_t allocate_lists(gcap_checking_t* checking) {
  const gcap_check_t* check = &checking->check;
  for (size_t i = 0; i < check->num_inputs; ++i) {
    if (check->inputs[i].on_host) checking->host_fill_bytes += check->inputs[i].bytes;
  }
  checking->input_blocks = calloc(check->num_inputs + 1, sizeof(*checking->input_blocks));
  checking->output_blocks = calloc(check->num_outputs, sizeof(*checking->output_blocks));
  checking->named = calloc(check->num_inputs + check->num_outputs, sizeof(*checking->named));
  checking->host_fills = malloc(GCAP_CHECK_NUM_FILLS * checking->host_fill_bytes + 1);
  if (checking->input_blocks != NULL && checking->output_blocks != NULL && checking->named != NULL &&
      checking->host_fills != NULL) {
    return NULL;
  }
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to check %zu inputs and %zu outputs", check->num_inputs,
                     check->num_outputs);
}

static gcap_status_t list_buffers(gcap_checking_t* checking) {
  const gcap_check_t* check = &checking->check;
  GCAP_RETURN_IF_ERROR(allocate_lists(checking));
  for (size_t i = 0; i < check->num_inputs; ++i) {
    if (check->inputs[i].on_host) continue;
    checking->input_blocks[checking->num_input_blocks] = block_of(&check->inputs[i]);
    checking->input_blocks[checking->num_input_blocks].absolute = 0;
    checking->input_blocks[checking->num_input_blocks++].relative = 0;
    name_buffer(checking, &check->inputs[i]);
  }
  for (size_t i = 0; i < check->num_outputs; ++i) {
    checking->output_blocks[i] = block_of(&check->outputs[i]);
    name_buffer(checking, &check->outputs[i]);
  }
  return NULL;
}

// --- Begin and end ------------------------------------------------------------------------------------------------------

gcap_status_t gcap_checking_begin(gcap_checking_t* checking) {
  gcap_check_place_t* home = &checking->places[GCAP_CHECK_HOME];
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGetDevice(&checking->device_id)));
  GCAP_RETURN_IF_ERROR(list_buffers(checking));
  GCAP_RETURN_IF_ERROR(gcap_check_place_open(checking, home));
  GCAP_RETURN_IF_ERROR(gcap_verify_state_create(checking->input_blocks, checking->num_input_blocks,
                                                GCAP_CHECK_NUM_FILLS, home->stream, &checking->inputs));
  GCAP_RETURN_IF_ERROR(gcap_verify_state_create(checking->output_blocks, checking->check.num_outputs,
                                                GCAP_CHECK_NUM_SLOTS, home->stream, &checking->outputs));
  GCAP_RETURN_IF_ERROR(gcap_graph_wait_for_device(checking->device_id));  // what the caller did with the memory
  return gcap_checking_fill(checking);
}

gcap_status_t gcap_checking_end(gcap_checking_t* checking) {
  gcap_status_t status = gcap_verify_state_destroy(checking->outputs);
  status = gcap_status_join(status, gcap_verify_state_destroy(checking->inputs));
  checking->outputs = checking->inputs = NULL;
  for (int i = 0; i < GCAP_CHECK_NUM_PLACES; ++i) {
    status = gcap_status_join(status, gcap_check_place_close(&checking->places[i]));
  }
  status = gcap_status_join(status, gcap_checking_free_churn(checking));
  if (checking->side != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(checking->side)));
  checking->side = NULL;
  free(checking->input_blocks);
  free(checking->output_blocks);
  free(checking->named);
  free(checking->host_fills);
  checking->input_blocks = checking->output_blocks = NULL;
  checking->named = NULL;
  checking->host_fills = NULL;
  return status;
}

// Ends what is still there beside a failure or an exception, which tells.
static void end_and_free(gcap_checking_t** slot) {
  gcap_checking_t* checking = *slot;
  if (checking == NULL) return;
  gcap_status_ignore(gcap_checking_end(checking));
  bool is_kept = false;
  for (int i = 0; i < GCAP_CHECK_NUM_PLACES; ++i) is_kept |= checking->places[i].runtime != NULL;
  if (is_kept) {
    gcap_keep_for_ever(&checking->kept);
  } else {
    free(checking);
  }
}

// --- The check ------------------------------------------------------------------------------------------------------------

static gcap_status_t check_all(gcap_checking_t* checking) {
  bool captured = false;
  GCAP_RETURN_IF_ERROR(gcap_checking_begin(checking));
  GCAP_RETURN_IF_ERROR(gcap_checking_run_eagerly(checking));
  for (size_t i = 0; i < checking->report.num_findings; ++i) {
    if (checking->report.findings[i].kind == GCAP_CHECK_EAGER_FAILED) return NULL;
  }
  GCAP_RETURN_IF_ERROR(gcap_checking_record(checking, &checking->places[GCAP_CHECK_HOME], &captured));
  return captured ? gcap_checking_replay_all(checking) : NULL;
}

static const gcap_sized_type_t check_type = GCAP_SIZED_TYPE(gcap_check);
static const gcap_sized_type_t report_type = GCAP_SIZED_TYPE(gcap_check_report);

static gcap_status_t check_to_report(gcap_checking_t* checking) {
  gcap_check_report_init(&checking->report);
  checking->report.seed = checking->check.seed;
  gcap_status_t status = check_all(checking);
  status = gcap_status_join(status, gcap_checking_end(checking));
  status = gcap_status_join(status, gcap_checking_write_events(checking));
  checking->report.is_done = status == NULL;
  return status;
}

gcap_status_t gcap_check_capturable(const gcap_check_t* check, gcap_check_report_t* out_report) {
  GCAP_RETURN_IF_NULL(check);
  GCAP_RETURN_IF_NULL(out_report);
  GCAP_RETURN_IF_ERROR(gcap_sized_check(&report_type, out_report));
  static const gcap_check_report_t nothing = {.struct_size = sizeof(nothing)};
  gcap_sized_write(&report_type, &nothing, out_report);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  GCAP_AT_SCOPE_END(end_and_free) gcap_checking_t* checking = calloc(1, sizeof(*checking));
  if (checking == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a check");
  gcap_check_report_init(&checking->report);
  gcap_check_init(&checking->check);
  gcap_status_t status = gcap_sized_read(&check_type, check, &checking->check);
  if (status == NULL) status = gcap_checking_refuse(&checking->check);
  if (status == NULL) status = check_to_report(checking);
  gcap_sized_write(&report_type, &checking->report, out_report);
  return status;
}
