// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run_options.h: what one run of a session is told, also as key/value strings.
#ifndef GCAP_KIT_RUN_OPTIONS_H_
#define GCAP_KIT_RUN_OPTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gcap/graph.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where a run's tensors are when the graph of its id replays.
typedef enum gcap_bindings {
  GCAP_BINDINGS_FIXED = 0,  // at the addresses of the capture
  // Anywhere: the graph copies inputs from the run's tensors into memory of its own, and outputs back to them.
  GCAP_BINDINGS_COPY,
  // Anywhere: the graph works on the run's tensors, without a copy. A graph that cannot be moved is replayed on the
  // tensors of its capture alone, and a run on others is eager; a warning names the node in the way. A run on tensors
  // that overlap or touch otherwise than in the capture is eager too (gcap/graph_buffers.h).
  GCAP_BINDINGS_RELOCATE,
} gcap_bindings_t;

// Run options. From gcap_run_options_init. Where ONNX Runtime has the same option, key, default and meaning are the
// same. Each field's comment begins with the field's key.
// Thread:   a plain value.
// Capture:  legal.
// Lifetime: the user stream must stay valid until the run's work is done.
typedef struct gcap_run_options {
  size_t struct_size;  // set by gcap_run_options_init
  // gpu_graph_id. Identifies the addresses bound in this run. GCAP_GRAPH_ID_NONE (-1): never capture. Default 0.
  int graph_id;
  // disable_synchronize_execution_providers, whose 1 is false here: return as soon as the work is issued. Default true.
  bool synchronize;
  // rerun_failed_capture. True: if the capture failed, run again eagerly. The device has executed nothing by then, but
  // each kernel's compute is called twice. False: return CAPTURE_INVALIDATED; compute was called once, and the next run
  // of the id is eager. Default true.
  bool rerun_failed_capture;
  // check_bindings. True: refuse a replay with other addresses than the capture's; the message names the tensor. False:
  // such a replay uses the capture's addresses. Set the same value in every run of the id. Costs a comparison per
  // tensor. Default false.
  bool check_bindings;
  // capture_in_run. True: a run whose id has no graph yet warms up and captures within the run, which executes the
  // model several times. Default false.
  bool capture_in_run;
  // memory.enable_memory_arena_shrinkage, as "gpu:0;gpu:1". Bit i: the end of the run trims the arena of device i.
  // Default 0.
  uint64_t trimmed_devices;
  // user_compute_stream, decimal or 0x…: a cudaStream_t. The run comes after its work so far, and before its later
  // work. Default NULL: none.
  void* user_stream;
  // bindings: fixed, copy or relocate. Not fixed: each replay of the id works on the tensors of its own run, which are
  // in the memory of the EP that captures. Set the same value in every run of the id. Not together with check_bindings.
  // Default FIXED.
  gcap_bindings_t bindings;
  // capture_only. True: the id gets a graph, and the device does nothing of the run, as gcap_run_t says (gcap/run.h):
  // for a model that writes to a cache. Nothing is copied to or from bound tensors, and a failed capture fails the run.
  // Default false.
  bool capture_only;
  // pinned. True: the graph that the run captures is not evicted for the budget (gcap/run.h). Default false.
  bool pinned;
  // verify, decimal or 0x…: a gcap_graph_verify_t. Replays are compared with the work (gcap/graph_verify.h). The inputs
  // and outputs in the memory of the EP that captures are buffers of the run: by their names, with their types, inputs
  // first; tensors in other memory are not compared. Must live as long as the run. Default NULL: no replay is compared.
  const gcap_graph_verify_t* verify;
  // The taps that the run reads, of those that kernels make (gcap/graph_taps.h); no key has them. The run then waits.
  // They live as long as the run. Default NULL and 0: none.
  gcap_graph_tap_t* taps;
  size_t num_taps;
} gcap_run_options_t;

// Sets the size and the defaults.
static inline void gcap_run_options_init(gcap_run_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->synchronize = true;
  options->rerun_failed_capture = true;
}

// Sets the options of `count` keys to their values. `keys` and `values` are zero-terminated strings. On failure
// `*options` is unchanged. docs/options.md has all keys, also those that are ignored. Of a key given twice the last
// value counts.
//   INVALID_ARGUMENT  an unknown key (the message names the nearest one); a value that the key does not allow; a key or
//                     value that is NULL; or `options` was not initialized
GCAP_API gcap_status_t gcap_run_options_parse(gcap_run_options_t* options, const char* const* keys,
                                              const char* const* values, size_t count) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_RUN_OPTIONS_H_
