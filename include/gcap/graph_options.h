// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_options.h: how a graph manager decides which run is captured, and how many graphs it keeps.
#ifndef GCAP_GRAPH_OPTIONS_H_
#define GCAP_GRAPH_OPTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gcap/capture.h"
#include "gcap/graph_contents.h"
#include "gcap/graph_info.h"

#ifdef __cplusplus
extern "C" {
#endif

// When an id is warm.
typedef enum gcap_graph_policy {
  GCAP_GRAPH_POLICY_MIN_RUNS = 0,  // after min_num_runs_before_capture eager runs, as in ONNX Runtime
  // After two eager runs in a row that made the same allocations and initialized nothing; at the latest after
  // max_runs_before_capture eager runs. gcap's own modules report their allocations and initializations; report others
  // with gcap_graph_note_allocation and gcap_graph_note_initialization.
  GCAP_GRAPH_POLICY_STABLE,
} gcap_graph_policy_t;

// When it is looked at whether the memory that graphs work on is still theirs: see gcap/graph_contents.h.
typedef enum gcap_graph_audit_level {
  GCAP_GRAPH_AUDIT_OFF = 0,
  // Each capture makes notes, at about 0.1 us for each pointer; gcap_graph_manager_audit looks. A capture with a
  // finding, such as a copy from pageable memory that the graph does not retain, is told to gcap_log.
  GCAP_GRAPH_AUDIT_ON_DEMAND,
  // For debugging: each replay looks first, and is refused with FAILED_PRECONDITION if there is a finding; of a graph
  // with holes (graph_holes.h) also behind each function, and then the rest is not launched. A capture with a finding
  // fails, and its work is run eagerly.
  GCAP_GRAPH_AUDIT_EACH_REPLAY,
} gcap_graph_audit_level_t;

// What a graph manager is made with.
// Thread:   plain data. One thread at a time writes the struct.
// Capture:  legal: nothing here calls CUDA.
// Lifetime: gcap_graph_manager_create copies the struct. What its callbacks use outlives the manager.
typedef struct gcap_graph_manager_options {
  size_t struct_size;  // set by gcap_graph_manager_options_init
  // Eager runs of an id before its capture; ONNX Runtime's min_num_runs_before_cuda_graph_capture. Default 2. 0: the
  // first run is captured, so libraries must be initialized and memory reserved before it.
  uint32_t min_num_runs_before_capture;
  // Runs that stay eager after a failed capture. Each further failure in a row doubles this number, up to 1,024 times
  // the option. Default 1.
  uint32_t backoff_runs;
  gcap_graph_policy_t policy;        // default MIN_RUNS
  uint32_t max_runs_before_capture;  // STABLE only. Default 6, so that gcap_session_warm_up ends in a graph
  // Uploads a new executable to the device before its first launch. Without this option the first launch uploads the
  // executable. Default false.
  bool upload;
  bool keep_source;  // keeps the captured graph for gcap_graph_manager_dump. Default false
  // For gcap_graph_manager_run and gcap_runtime_run: issues the work again, eagerly, after a failed capture. The device
  // has executed none of the work by then, but the host's part of the work happens twice. Default true.
  bool rerun_failed_capture;
  // Budget: each capture evicts the least recently used graphs until at most this many graphs and bytes are kept. 0,
  // the default: no limit. The graph just captured is never evicted. An evicted graph is freed once its launches have
  // finished; every end_run polls for that and does not wait. The memory of its executable is then there for the next
  // executables, and stays with the driver. An evicted id is warm: its next run is captured. A graph that a run pinned
  // (gcap_run_t.pinned) is counted, and not evicted.
  size_t max_graphs;
  size_t max_bytes;  // sum of gcap_graph_info_t.bytes
  // How many ids without a graph are remembered: ids that warm up or cool down, and evicted ids. One more, and the id
  // that was run or evicted longest ago is forgotten: it is COLD again, with zeros. 0: no limit. Default 16,384, which
  // take a few megabytes: an id of a working set is captured long before as many others came.
  size_t max_ids_without_graph;
  // Optional. Called once for each evicted graph, on the thread that ends the run, with the id's info before the
  // eviction. The callback may call the manager.
  void (*on_evict)(void* user, int id, const gcap_graph_info_t* info);
  void* user;
  gcap_capture_options_t capture;
  gcap_graph_audit_level_t audit;  // default OFF
  // Optional, for audits: the blocks of an allocator of the application's that keeps memory for its next request.
  gcap_graph_find_block_fn find_block;
  void* find_block_user;
  // How many graphs an id has at most that differ by their guards (graph_guards.h), or by how the buffers of their runs
  // lie to one another (graph_buffers.h). 0: no limit. Default 4. Beyond that many:
  // - other decisions take the place of the graph that was used longest ago, whose executable is updated if that can
  //   be. 1: each change of a guard captures anew.
  // - a run on buffers that lie otherwise is eager. 1: each one is.
  size_t max_variants;
} gcap_graph_manager_options_t;

// Sets the size and the defaults.
static inline void gcap_graph_manager_options_init(gcap_graph_manager_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->min_num_runs_before_capture = 2;
  options->backoff_runs = 1;
  options->max_runs_before_capture = 6;
  options->rerun_failed_capture = true;
  options->max_ids_without_graph = 16384;
  options->max_variants = 4;
  gcap_capture_options_init(&options->capture);
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_OPTIONS_H_
