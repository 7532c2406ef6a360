// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: the options of a runtime or EP, from key/value strings to a checked struct.
#ifndef GCAP_OPTIONS_H_
#define GCAP_OPTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gcap/allocator.h"
#include "gcap/graph.h"
#include "gcap/scratch.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCAP_OPTIONS_MAX_PATH_BYTES 256   // with the zero at its end
#define GCAP_OPTIONS_MAX_TEXT_BYTES 4096  // of all options as a text, likewise

// Which threads share streams and graphs.
typedef enum gcap_graph_scope {
  GCAP_GRAPH_SCOPE_THREAD = 0,  // each thread has a stream and graphs of its own, and runs at any time
  GCAP_GRAPH_SCOPE_SESSION,     // all threads share one stream and one set of graphs, and take turns
} gcap_graph_scope_t;

// How a convolution's algorithm is chosen; the names are ONNX Runtime's.
typedef enum gcap_conv_search {
  GCAP_CONV_SEARCH_EXHAUSTIVE = 0,  // by measuring all of them
  GCAP_CONV_SEARCH_HEURISTIC,       // by the library's advice
  GCAP_CONV_SEARCH_DEFAULT,         // the library's default algorithm
} gcap_conv_search_t;

// What a host asks of an EP's kernels, which read it, as those of the kit do. From gcap_kernel_options_init.
// Keys, defaults and meanings are those of ONNX Runtime's CUDA EP.
// Thread:   a plain value.
// Capture:  legal.
// Lifetime: none.
typedef struct gcap_kernel_options {
  size_t struct_size;              // set by gcap_kernel_options_init
  gcap_conv_search_t conv_search;  // cudnn_conv_algo_search, default EXHAUSTIVE
  bool conv_use_max_workspace;     // cudnn_conv_use_max_workspace, default 1; 0: an algorithm gets 32 MiB at most
  bool conv1d_pad_to_nc1d;         // cudnn_conv1d_pad_to_nc1d, default 0; 1: [N,C,D] becomes [N,C,1,D], not [N,C,D,1]
  bool fuse_conv_bias;             // fuse_conv_bias, default 0; 1: bias and activation may be fused into a convolution
  bool use_tf32;                   // use_tf32, default 1; 0: products of floats keep all bits of a float
  bool prefer_nhwc;                // prefer_nhwc, default 0; 1: convolutions and pools want the channels last
  bool use_cudnn;                  // enable_cudnn, default 1; 0: no kernel may use cuDNN
} gcap_kernel_options_t;

// Sets the size and the defaults.
static inline void gcap_kernel_options_init(gcap_kernel_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->conv_use_max_workspace = true;
  options->use_tf32 = true;
  options->use_cudnn = true;
}

// Provider options. From gcap_options_init. Where ONNX Runtime's CUDA EP has the same option, key, default and meaning
// are the same. Each field's comment begins with the field's key; an embedded struct's comment lists the keys of its
// fields. docs/options.md has all keys, also those that are accepted at their default alone.
// Thread:   a plain value.
// Capture:  legal.
// Lifetime: the stream and the callbacks must stay valid as long as the runtime or EP.
typedef struct gcap_options {
  size_t struct_size;                     // set by gcap_options_init
  int device_id;                          // device_id, default 0; for all that the runtime makes
  bool enable_cuda_graph;                 // enable_cuda_graph, default 0
  bool has_user_stream;                   // has_user_compute_stream, default 0; 1 when user_compute_stream is not 0
  void* user_stream;                      // user_compute_stream, decimal or 0x…, default 0
  void* (*external_alloc)(size_t bytes);  // gpu_external_alloc, decimal or 0x…, default 0: none
  void (*external_free)(void* ptr);       // gpu_external_free
  void (*external_empty_cache)(void);     // gpu_external_empty_cache
  // do_copy_in_default_stream, default 1: a copy without a stream (gcap_runtime_copy_tensors) is issued on the calling
  // thread's stream, after its runs. 0: on a stream of its own, and the host orders it with the runs.
  bool do_copy_in_default_stream;
  bool use_mempool;  // arena.use_cuda_mempool, default 0; a CUDA memory pool below the arena
  // arena.share_graph_memory, default 0: all graphs of a thread share one scratch reservation. This is correct because
  // they replay on one stream. n graphs then keep about what the largest one needs, not the sum. For graph.max_bytes
  // each graph counts with an equal part of the reservation. The memory returns to the arena with the last graph.
  bool share_graph_memory;
  // arena.trace_file, default none: a file to which the runtime writes a line for each allocation, free and trim of the
  // arena (gcap_allocator_event_t). Every call then takes the arena's slow path, and a slow disk slows all threads.
  // Each runtime needs a file of its own: a regular file that another runtime writes is refused.
  char trace_file[GCAP_OPTIONS_MAX_PATH_BYTES];
  // arena.initial_chunk_size_bytes, arena.initial_growth_chunk_size_bytes, arena.max_power_of_two_extend_bytes,
  // arena.max_dead_bytes_per_chunk, arena.max_mem (memory_limit_bytes), arena.extend_strategy (0: ahead, 1: as
  // requested), arena.red_zones, arena.poison_on_free, arena.recorded_operations, arena.bypass. With arena.trace_file,
  // the runtime sets `on_event`. gpu_mem_limit and arena_extend_strategy are other names for arena.max_mem and
  // arena.extend_strategy.
  gcap_scratch_options_t arena;
  // arena.cuda_mempool_release_threshold, arena.cuda_mempool_bytes_to_keep_on_shrink. The runtime sets `device_id`.
  gcap_pool_allocator_options_t mempool;
  // min_num_runs_before_cuda_graph_capture, graph.policy (min_runs or stable), graph.max_runs_before_capture,
  // graph.backoff_runs, graph.upload, graph.keep_source, graph.rerun_failed_capture, graph.max_graphs and
  // graph.max_bytes (the budget of each thread), graph.max_ids_without_graph, graph.max_variants, graph.ledger_calls.
  gcap_graph_manager_options_t graph;
  // use_ep_level_unified_stream, default 0. 1: all threads share one stream, and take turns. In force whatever its
  // value with a user stream, since one stream has one order, and with external memory, since the callbacks may be
  // written for one run at a time. A user stream may be combined with external memory, which ONNX Runtime refuses: an
  // application whose memory pool is in the order of a stream, such as PyTorch, lends both.
  bool use_unified_stream;
  // Set by the key user_compute_stream with the value 0: a user stream of 0 is meant, the legacy default stream.
  // Without it, has_user_stream with a user_stream of 0 is refused as a pointer that was forgotten.
  bool allow_default_stream;
  // graph.scope (thread or session), default thread. In force as session wherever there is a unified stream.
  gcap_graph_scope_t graph_scope;
  // cudnn_conv_algo_search, cudnn_conv_use_max_workspace, cudnn_conv1d_pad_to_nc1d, fuse_conv_bias, use_tf32,
  // prefer_nhwc, enable_cudnn.
  gcap_kernel_options_t kernels;
} gcap_options_t;

// Sets the size and the defaults.
static inline void gcap_options_init(gcap_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->do_copy_in_default_stream = true;
  gcap_scratch_options_init(&options->arena);
  gcap_pool_allocator_options_init(&options->mempool);
  gcap_graph_manager_options_init(&options->graph);
  gcap_kernel_options_init(&options->kernels);
}

// Sets the options of `count` keys to their values. `keys` and `values` are zero-terminated strings. On failure
// `*options` is unchanged. A key may have the prefix "ep.cuda.". If one option is given by several names, a key with a
// prefix goes before one without, and then a key before its aliases, in whatever order they come; of the same name
// given twice the last value counts. Every value is checked.
//   INVALID_ARGUMENT  an unknown key (the message names the nearest one); a value that the key does not allow, or that
//                     would switch on what gcap does not have (the message says what); a key or value that is NULL; or
//                     `options` was not initialized
GCAP_API gcap_status_t gcap_options_parse(gcap_options_t* options, const char* const* keys, const char* const* values,
                                          size_t count) GCAP_NODISCARD;

// The same for an EP of this name, out of a configuration that may be for several EPs, as ONNX Runtime's session
// options are. A key may also have the prefix "ep.<ep_name>.", which goes before "ep.cuda."; the case of the name does
// not matter. A key with the prefix of another EP is ignored, and logged at GCAP_LOG_INFO.
//   INVALID_ARGUMENT  as gcap_options_parse; or `ep_name` is empty
GCAP_API gcap_status_t gcap_options_parse_for_ep(gcap_options_t* options, const char* ep_name, const char* const* keys,
                                                 const char* const* values, size_t count) GCAP_NODISCARD;

// Writes the value of a key that is in force: what follows from other options is so. `key` is as in gcap_options_parse.
// NULL: all options, a line "key=value" each, which gcap_options_parse reads again as the same. There, a key that was
// accepted at its default alone is left out, and so is user_compute_stream if there is none.
//   INVALID_ARGUMENT    an unknown key, or `options` was not initialized
//   RESOURCE_EXHAUSTED  the text and its zero need more than `text_bytes`; `out_text` is empty. A value needs
//                       GCAP_OPTIONS_MAX_PATH_BYTES at most, all options GCAP_OPTIONS_MAX_TEXT_BYTES
GCAP_API gcap_status_t gcap_options_get(const gcap_options_t* options, const char* key, char* out_text,
                                        size_t text_bytes) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPTIONS_H_
