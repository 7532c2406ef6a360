// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: an EP's options, from key/value strings to a checked struct.
#ifndef GCAP_OPTIONS_H_
#define GCAP_OPTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCAP_OPTIONS_MAX_PATH_BYTES 256  // with the zero at its end

// Provider options. Keys, defaults and meanings are those of ONNX Runtime's CUDA EP where it has them.
// Thread:   a plain value.
// Capture:  legal.
// Lifetime: holds pointers given as text (a stream, callbacks); they must stay valid as long as the EP.
typedef struct gcap_options {
  int device_id;                            // device_id, default 0
  bool enable_cuda_graph;                   // enable_cuda_graph, default 0
  uint32_t min_num_runs_before_capture;     // min_num_runs_before_cuda_graph_capture, default 2
  bool has_user_stream;                     // has_user_compute_stream, default 0; 1 when user_compute_stream is not 0
  void* user_stream;                        // user_compute_stream, decimal or 0x…, default 0
  void* (*external_alloc)(size_t bytes);    // gpu_external_alloc, decimal or 0x…, default 0: none
  void (*external_free)(void* ptr);         // gpu_external_free
  void (*external_empty_cache)(void);       // gpu_external_empty_cache
  bool arena_extend_as_requested;           // arena.extend_strategy: 0 ahead (default), 1 as requested
  size_t arena_initial_chunk_bytes;         // arena.initial_chunk_size_bytes, default 1 MiB
  size_t arena_initial_growth_chunk_bytes;  // arena.initial_growth_chunk_size_bytes, default 2 MiB
  size_t arena_max_extend_bytes;            // arena.max_power_of_two_extend_bytes, default 1 GiB
  size_t arena_max_dead_bytes_per_chunk;    // arena.max_dead_bytes_per_chunk, default 128 MiB
  size_t arena_memory_limit_bytes;          // arena.max_mem, default 0: no limit
  bool arena_use_cuda_mempool;              // arena.use_cuda_mempool: the arena stands on a CUDA memory pool; default 0
  uint64_t arena_mempool_release_threshold_bytes;  // arena.cuda_mempool_release_threshold, default 2^64 - 1: keep all
  size_t arena_mempool_bytes_kept_on_trim;         // arena.cuda_mempool_bytes_to_keep_on_shrink, default 0
  // Debugging, as in gcap_scratch_options_t.
  bool arena_red_zones;              // arena.red_zones, default 0
  bool arena_poison_on_free;         // arena.poison_on_free, default 0
  size_t arena_recorded_operations;  // arena.recorded_operations, default 0
  // arena.trace_file, default none: a file that is filled with a line for each allocation, free and trim of the arena,
  // as gcap_allocator_event_format writes it. Every call then takes the arena's slow way.
  char arena_trace_file[GCAP_OPTIONS_MAX_PATH_BYTES];
  // arena.share_graph_memory, default 0: all graphs of a thread share one scratch reservation, which is right since
  // they replay on one stream. n graphs then keep about what the largest needs, not the sum; each counts with its part
  // of it, also for graph.max_bytes, and the memory goes back with the last of them.
  bool arena_share_graph_memory;
  bool graph_when_stable;                  // graph.policy: min_runs (default) or stable, see gcap_graph_policy_t
  uint32_t graph_max_runs_before_capture;  // graph.max_runs_before_capture, for stable; default 6, within a warm-up
  size_t graph_max_graphs;                 // graph.max_graphs of a thread, default 0: no limit
  size_t graph_max_bytes;                  // graph.max_bytes of a thread, default 0: no limit
  uint32_t graph_ledger_calls;             // graph.ledger_calls kept of each capture, default 64; 0: no ledger
} gcap_options_t;

GCAP_API void gcap_options_init(gcap_options_t* options);

// Sets each option whose key is among the `count` pairs. `keys` and `values` are zero-terminated strings. On failure
// `*options` is unchanged.
//   INVALID_ARGUMENT  an unknown key (the message lists the known ones), or a value that is not what the key allows
GCAP_API gcap_status_t gcap_options_parse(gcap_options_t* options, const char* const* keys, const char* const* values,
                                          size_t count) GCAP_NODISCARD;

// Checks what depends on more than one option.
//   INVALID_ARGUMENT  one external callback without its partner; external callbacks together with
//                     arena.use_cuda_mempool; a default stream (0, 1 or 2) together with enable_cuda_graph
GCAP_API gcap_status_t gcap_options_check(const gcap_options_t* options) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPTIONS_H_
