// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A graph manager's options. Values only, so there is nothing to lock.

#include "lib/graph/inner.h"

#include <stdlib.h>

#include "lib/capture/inner.h"
#include "lib/internal/check_argument.h"

static const gcap_sized_type_t capture_type = GCAP_SIZED_TYPE(gcap_capture_options);
static const gcap_sized_part_t parts[] = {{offsetof(gcap_graph_manager_options_t, capture), &capture_type}};

const gcap_sized_type_t gcap_graph_manager_options_type = {
    .name = "gcap_graph_manager_options",
    .bytes = sizeof(gcap_graph_manager_options_t),
    .parts = parts,
    .num_parts = sizeof(parts) / sizeof(parts[0]),
};

gcap_status_t gcap_graph_manager_options_read(const gcap_graph_manager_options_t* given,
                                              gcap_graph_manager_options_t* out_options) {
  gcap_graph_manager_options_init(out_options);
  return given == NULL ? NULL : gcap_sized_read(&gcap_graph_manager_options_type, given, out_options);
}

gcap_status_t gcap_graph_key_check(const gcap_graph_key_t* key) {
  if (key->bytes != NULL && key->size > 0 && key->size <= GCAP_GRAPH_KEY_MAX_BYTES) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph key '%s' is %zu bytes at %p, allowed are 1 to %d bytes",
                     key->name != NULL ? key->name : "", key->size, key->bytes, GCAP_GRAPH_KEY_MAX_BYTES);
}

gcap_status_t gcap_run_check_key(const gcap_run_t* run) {
  GCAP_RETURN_IF_ERROR(gcap_graph_key_check(run->key));
  if (run->id == GCAP_GRAPH_ID_NONE) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "the run has graph id %d and the key '%s': set one, and leave the id at GCAP_GRAPH_ID_NONE (-1) "
                     "for a key",
                     run->id, run->key->name != NULL ? run->key->name : "");
}

static const gcap_sized_type_t run_type = GCAP_SIZED_TYPE(gcap_run);
static const gcap_sized_type_t result_type = GCAP_SIZED_TYPE(gcap_run_result);

// The struct alone.
static gcap_status_t read_struct(const gcap_run_t* given, gcap_run_t* run) {
  gcap_run_init(run);
  GCAP_RETURN_IF_ERROR(gcap_sized_read(&run_type, given, run));
  run->struct_size = sizeof(*run);
  return run->result != NULL ? gcap_sized_check(&result_type, run->result) : NULL;
}

gcap_status_t gcap_run_read_taps(const gcap_run_t* run) {
  gcap_graph_tap_t* taps = run->taps;
  GCAP_RETURN_IF_NULL(taps);
  for (size_t i = 0; i < run->num_taps; ++i) {
    taps[i].tapped_bytes = 0;
    if (taps[i].label == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "taps[%zu].label is NULL", i);
    if (taps[i].data != NULL || taps[i].bytes == 0) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "taps[%zu] '%s': data is NULL, and bytes is %zu, allowed is 0", i,
                       taps[i].label, taps[i].bytes);
  }
  return NULL;
}

gcap_status_t gcap_run_read_slowly(const gcap_run_t* given, gcap_run_copy_t* copy, const gcap_run_t** out_run) {
  GCAP_RETURN_IF_ERROR(read_struct(given, &copy->run));
  gcap_run_result_t nothing;
  gcap_run_result_init(&nothing);
  gcap_run_give_result(&copy->run, &nothing);
  if (copy->run.buffers != NULL) {
    GCAP_RETURN_IF_ERROR(gcap_graph_buffers_read(copy->run.buffers, &copy->buffers));
    copy->run.buffers = &copy->buffers;
  }
  if (copy->run.verify != NULL) {
    GCAP_RETURN_IF_ERROR(gcap_graph_verify_read(copy->run.verify, &copy->verify));
    copy->run.verify = &copy->verify;
  }
  if (copy->run.num_taps != 0) GCAP_RETURN_IF_ERROR(gcap_run_read_taps(&copy->run));
  *out_run = &copy->run;
  return copy->run.key != NULL ? gcap_run_check_key(&copy->run) : NULL;
}

gcap_status_t gcap_run_read_end(const gcap_run_t* given, gcap_run_t* out_run) {
  gcap_status_t status = given != NULL ? read_struct(given, out_run) : NULL;
  if (given == NULL || status != NULL) gcap_run_init(out_run);
  out_run->buffers = NULL;
  out_run->key = NULL;
  out_run->verify = NULL;
  out_run->num_taps = 0;
  return status;
}

void gcap_run_give_result(const gcap_run_t* run, const gcap_run_result_t* result) {
  if (run->result != NULL) gcap_sized_write(&result_type, result, run->result);
}

static const gcap_sized_type_t report_type = GCAP_SIZED_TYPE(gcap_graph_verify_report);

void gcap_graph_verify_give_report(const gcap_graph_verify_t* verify, const gcap_graph_verify_report_t* report) {
  if (verify->report != NULL) gcap_sized_write(&report_type, report, verify->report);
}

gcap_status_t gcap_graph_verify_read(const gcap_graph_verify_t* given, gcap_graph_verify_t* out_verify) {
  static const gcap_sized_type_t type = GCAP_SIZED_TYPE(gcap_graph_verify);
  gcap_graph_verify_init(out_verify);
  GCAP_RETURN_IF_ERROR(gcap_sized_read(&type, given, out_verify));
  if (out_verify->num_buffers > 0) GCAP_RETURN_IF_NULL(out_verify->buffers);
  if (out_verify->report == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_sized_check(&report_type, out_verify->report));
  gcap_graph_verify_report_t nothing;
  gcap_graph_verify_report_init(&nothing);
  gcap_graph_verify_give_report(out_verify, &nothing);
  return NULL;
}

gcap_status_t gcap_graph_buffers_read(const gcap_graph_buffers_t* given, gcap_graph_buffers_t* out_buffers) {
  static const gcap_sized_type_t type = GCAP_SIZED_TYPE(gcap_graph_buffers);
  gcap_graph_buffers_init(out_buffers);
  GCAP_RETURN_IF_ERROR(gcap_sized_read(&type, given, out_buffers));
  if (out_buffers->count > 0) GCAP_RETURN_IF_NULL(out_buffers->items);
  if (out_buffers->num_values > 0) GCAP_RETURN_IF_NULL(out_buffers->values);
  if (out_buffers->stand_ins <= GCAP_GRAPH_STAND_INS_MEMORY) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "stand-ins are %d, allowed are ADDRESSES (0), MEMORY (1)",
                     (int)out_buffers->stand_ins);
}

void gcap_graph_buffers_list_addresses(const gcap_graph_buffers_t* buffers, void** out_addresses) {
  for (size_t i = 0; i < buffers->count; ++i) out_addresses[i] = buffers->items[i].address;
  for (size_t i = 0; i < buffers->num_values; ++i) out_addresses[buffers->count + i] = (void*)buffers->values[i].data;
}

gcap_status_t gcap_graph_buffers_copy_addresses(const gcap_graph_buffers_t* buffers, void*** out_addresses) {
  size_t count = 1;
  const bool too_many = __builtin_add_overflow(buffers->count, count, &count) ||
                        __builtin_add_overflow(buffers->num_values, count, &count);
  void** addresses = too_many ? NULL : calloc(count, sizeof(*addresses));
  *out_addresses = addresses;
  if (addresses == NULL)
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu addresses", buffers->count);
  gcap_graph_buffers_list_addresses(buffers, addresses);
  return NULL;
}

void gcap_run_give_addresses(const gcap_graph_buffers_t* buffers, void* const* addresses,
                             gcap_run_resources_t* resources) {
  resources->addresses = addresses;
  resources->num_addresses = buffers != NULL ? buffers->count : 0;
  resources->num_values = buffers != NULL ? buffers->num_values : 0;
  resources->values = resources->num_values != 0 ? (const void* const*)addresses + resources->num_addresses : NULL;
}

gcap_status_t gcap_graph_manager_options_check(const gcap_graph_manager_options_t* options) {
  GCAP_RETURN_IF_ERROR(gcap_capture_options_check(&options->capture));
  if ((unsigned)options->audit > GCAP_GRAPH_AUDIT_EACH_REPLAY) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph audit is %d, allowed are OFF (0), ON_DEMAND (1), EACH_REPLAY (2)",
                       (int)options->audit);
  }
  if (options->policy == GCAP_GRAPH_POLICY_MIN_RUNS || options->policy == GCAP_GRAPH_POLICY_STABLE) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph policy is %d, allowed are MIN_RUNS (0), STABLE (1)",
                     (int)options->policy);
}
