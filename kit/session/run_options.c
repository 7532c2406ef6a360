// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Run options. Parsing works on a copy, so that a bad pair leaves the caller's options alone. Keys have no prefix: a
// host's run options are for all EPs. Keys, defaults and meanings of ONNX Runtime are those of
// onnxruntime_run_options_config_keys.h. No locking: values only.

#include "kit/session/run_options.h"

#include "lib/internal/check_argument.h"
#include "lib/internal/sized.h"
#include "lib/options/rows.h"

// lib/options/value.c reads the words, and knows nothing of the kit.
_Static_assert(sizeof(gcap_bindings_t) == sizeof(int) && GCAP_BINDINGS_FIXED == 0 && GCAP_BINDINGS_COPY == 1 &&
                   GCAP_BINDINGS_RELOCATE == 2,
               "GCAP_OPTION_BINDINGS are read as these numbers");

#define OPTIONS gcap_run_options_t

#define OF_QNN "an option of ONNX Runtime's QNN EP; a host gives all EPs the same run options"

static const gcap_option_t run_rows[] = {
    ROW("gpu_graph_id", ORT, GCAP, GRAPH_ID, graph_id,
        "the id of the graph, which stands for the addresses and shapes of this run; -1: never capture"),
    ROW("disable_synchronize_execution_providers", ORT, GCAP, NOT, synchronize,
        "1: the run returns as soon as its work is issued"),
    ROW("memory.enable_memory_arena_shrinkage", ORT, GCAP, ARENAS, trimmed_devices,
        "devices whose arenas the end of the run trims; gcap has no arena of host memory (cpu:0)"),
    ROW("user_compute_stream", OWN, GCAP, ADDRESS, user_stream,
        "the run comes after the work of this stream so far, and before its later work; 0: none"),
    ROW("rerun_failed_capture", OWN, GCAP, BOOL, rerun_failed_capture, "after a failed capture run again, eagerly"),
    ROW("check_bindings", OWN, GCAP, BOOL, check_bindings, "refuse a replay with other addresses than the capture's"),
    ROW("capture_in_run", OWN, GCAP, BOOL, capture_in_run,
        "warm up and capture within one run, which executes the model several times"),
    ROW("bindings", OWN, GCAP, BINDINGS, bindings,
        "where the tensors of a replay are: those of the capture; or the run's own, copied, or without a copy"),
    ROW("capture_only", OWN, GCAP, BOOL, capture_only,
        "capture a graph of the id, and execute nothing; done if there is one"),
    ROW("pinned", OWN, GCAP, BOOL, pinned, "the budget never evicts the graph that the run captures"),
    ROW("verify", OWN, GCAP, ADDRESS, verify, "when replays are compared with the work, and how; 0: never"),
    NO_FIELD("external_device_graph_capture", REFUSED, FLAG, "gcap cannot require that the caller is capturing"),
    NO_FIELD("qnn.htp_perf_mode", IGNORED, TEXT, OF_QNN),
    NO_FIELD("qnn.htp_perf_mode_post_run", IGNORED, TEXT, OF_QNN),
    NO_FIELD("qnn.rpc_control_latency", IGNORED, TEXT, OF_QNN),
    NO_FIELD("qnn.lora_config", IGNORED, TEXT, OF_QNN),
};

_Static_assert(GCAP_NUM_OPTION_ROWS(run_rows) <= GCAP_OPTION_MAX_ROWS, "parsing has a place for each row");

const gcap_option_table_t gcap_run_option_table = {
    .noun = "run option",
    .function = "gcap_run_options_parse",
    .rows = run_rows,
    .num_rows = GCAP_NUM_OPTION_ROWS(run_rows),
};

GCAP_SIZED_OPTIONS(, gcap_run_options);

gcap_status_t gcap_run_options_parse(gcap_run_options_t* options, const char* const* keys, const char* const* values,
                                     size_t count) {
  GCAP_RETURN_IF_NULL(options);
  if (count > 0) {
    GCAP_RETURN_IF_NULL(keys);
    GCAP_RETURN_IF_NULL(values);
  }
  gcap_run_options_t parsed;
  GCAP_RETURN_IF_ERROR(gcap_run_options_read(options, &parsed));
  const gcap_option_prefixes_t none = {.allowed = false};
  uint8_t given[GCAP_OPTION_MAX_ROWS];
  GCAP_RETURN_IF_ERROR(gcap_option_table_parse(&gcap_run_option_table, &none, &parsed, keys, values, count, given));
  gcap_sized_write(&gcap_run_options_type, &parsed, options);
  return NULL;
}
