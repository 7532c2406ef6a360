// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Run options. ONNX Runtime gives the value of a key that it is asked for, and no list of keys: so each key of gcap's
// is asked for, and a key that is misspelt is not seen. It asks for a replay with the graph's id alone: the options of
// a call that replays are not seen either, nor the tensors of that call. An option that needs them is refused by its
// name in the runs before the capture, so that no graph comes of the id.
//
// Locking: none; values only.

#include "ort/run_options.h"

// The keys of gcap_run_options_t, but for two that ONNX Runtime reads itself: whether OnRunEnd waits, and which arenas
// shrink.
static const char* const keys[] = {
    "gpu_graph_id", "user_compute_stream",           "rerun_failed_capture", "check_bindings", "capture_in_run",
    "bindings",     "external_device_graph_capture", "capture_only",         "pinned",         "verify"};

enum { NUM_KEYS = sizeof(keys) / sizeof(keys[0]) };

// The key that cannot be honored in a run of which a graph shall come, since its replays have other tensors. NULL:
// none.
static const char* find_unkept(const gcap_run_options_t* options) {
  if (options->check_bindings) return "check_bindings";
  return options->bindings != GCAP_BINDINGS_FIXED ? "bindings" : NULL;
}

gcap_status_t gcap_ort_run_options_read(const gcap_ort_host_t* host, const gcap_ort_run_options_t* from, bool captures,
                                        gcap_run_options_t* out_options) {
  const char *found[NUM_KEYS], *values[NUM_KEYS];
  size_t count = 0;
  for (size_t i = 0; i < NUM_KEYS; ++i) {
    values[count] = host->api->GetRunConfigEntry(from, keys[i]);
    found[count] = keys[i];
    count += values[count] != NULL;
  }
  gcap_run_options_init(out_options);
  out_options->capture_in_run = true;  // as ONNX Runtime has it
  GCAP_RETURN_IF_ERROR(gcap_run_options_parse(out_options, found, values, count));
  if (out_options->user_stream != NULL) {
    return GCAP_STATUS(
        GCAP_INVALID_ARGUMENT,
        "the run option user_compute_stream is %p, and ONNX Runtime does not say so of a replay: give the "
        "stream to the session, as the provider option user_compute_stream",
        out_options->user_stream);
  }
  if (out_options->capture_only) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "the run option capture_only is '1', and ONNX Runtime does not say so of a replay, which is "
                       "executed: leave the option out");
  }
  if (out_options->verify != NULL) {
    return GCAP_STATUS(
        GCAP_INVALID_ARGUMENT,
        "the run option verify is %p, and ONNX Runtime does not say so of a replay: leave the option out",
        (const void*)out_options->verify);
  }
  const bool gives_graph = captures && out_options->graph_id != GCAP_GRAPH_ID_NONE;
  const char* unkept = gives_graph ? find_unkept(out_options) : NULL;
  if (unkept == NULL) return NULL;
  return GCAP_STATUS(
      GCAP_INVALID_ARGUMENT,
      "the run option %s is '%s', and ONNX Runtime does not say of a replay which tensors are bound: write "
      "inputs to the tensors of the capture, give each set of tensors a gpu_graph_id of its own, or run "
      "with gpu_graph_id -1",
      unkept, host->api->GetRunConfigEntry(from, unkept));
}
