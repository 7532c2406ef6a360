// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: the options of a runtime or EP, from key/value strings to a checked struct.
#ifndef GCAP_OPTIONS_H_
#define GCAP_OPTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/allocator.h"
#include "gcap/graph.h"
#include "gcap/scratch.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCAP_OPTIONS_MAX_PATH_BYTES 256  // with the zero at its end

// Provider options. From gcap_options_init. Where ONNX Runtime's CUDA EP has the same option, key, default and meaning
// are the same. Each field's comment begins with the field's key; an embedded struct's comment lists the keys of its
// fields.
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
  // arena (gcap_allocator_event_format). Every call then takes the arena's slow path, and a slow disk slows all
  // threads. Each runtime needs a file of its own: a regular file that another runtime writes is refused.
  char trace_file[GCAP_OPTIONS_MAX_PATH_BYTES];
  // arena.initial_chunk_size_bytes, arena.initial_growth_chunk_size_bytes, arena.max_power_of_two_extend_bytes,
  // arena.max_dead_bytes_per_chunk, arena.max_mem (memory_limit_bytes), arena.extend_strategy (0: ahead, 1: as
  // requested), arena.red_zones, arena.poison_on_free, arena.recorded_operations. With arena.trace_file, the runtime
  // sets `on_event`.
  gcap_scratch_options_t arena;
  // arena.cuda_mempool_release_threshold, arena.cuda_mempool_bytes_to_keep_on_shrink. The runtime sets `device_id`.
  gcap_pool_allocator_options_t mempool;
  // min_num_runs_before_cuda_graph_capture, graph.policy (min_runs or stable), graph.max_runs_before_capture,
  // graph.max_graphs and graph.max_bytes (the budget of each thread), graph.ledger_calls.
  gcap_graph_manager_options_t graph;
} gcap_options_t;

// Fills in the defaults, also of the embedded structs. Programs call the init function, which says how large their
// structs are.
GCAP_API void gcap_options_set_defaults(gcap_options_t* options);
static inline void gcap_options_init(gcap_options_t* options) {
  options->struct_size = sizeof(*options);
  options->arena.struct_size = sizeof(options->arena);
  options->mempool.struct_size = sizeof(options->mempool);
  options->graph.struct_size = sizeof(options->graph);
  options->graph.capture.struct_size = sizeof(options->graph.capture);
  gcap_options_set_defaults(options);
}

// Sets the options of `count` keys to their values. `keys` and `values` are zero-terminated strings. On failure
// `*options` is unchanged.
//   INVALID_ARGUMENT  an unknown key (the message lists all keys, and names the nearest); a value that the key does not
//                     allow; a key or value that is NULL; or `options` was not initialized
GCAP_API gcap_status_t gcap_options_parse(gcap_options_t* options, const char* const* keys, const char* const* values,
                                          size_t count) GCAP_NODISCARD;

// Checks that the options fit together. gcap_runtime_create does this, too.
//   INVALID_ARGUMENT  one external callback without its partner; external callbacks together with
//                     arena.use_cuda_mempool; a default stream (0, 1 or 2) as user stream together with
//                     enable_cuda_graph; `graph` as in gcap_graph_manager_create; or `options` was not initialized
GCAP_API gcap_status_t gcap_options_check(const gcap_options_t* options) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPTIONS_H_
