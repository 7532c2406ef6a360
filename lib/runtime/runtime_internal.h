// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// runtime_internal.h: what a runtime consists of, for the sources of this module.
#ifndef GCAP_LIB_RUNTIME_RUNTIME_INTERNAL_H_
#define GCAP_LIB_RUNTIME_RUNTIME_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "gcap/runtime.h"
#include "gcap/thread_context.h"
#include "lib/allocator/trace_file.h"
#include "lib/internal/affine.h"
#include "lib/internal/kept.h"
#include "lib/runtime/graph_memory.h"

struct gcap_runtime {
  gcap_options_t options;
  gcap_allocator_t* allocator;
  gcap_trace_file_t* trace_file;  // NULL: none
  gcap_scratch_t* scratch;
  gcap_graph_memory_t graph_memory;
  gcap_thread_contexts_t* contexts;
  gcap_stream_pool_t* streams;        // of forks, and of copies that are not ordered with the runs
  gcap_affine_t* forks;               // each thread's gcap_forks_t
  _Atomic(gcap_allocator_t*) pinned;  // NULL until first used
  pthread_mutex_t turns;              // of gcap_runtime_run on a stream that all threads share
  gcap_kept_t kept;                   // once somebody may still use its memory
};

// One run of the work, without a replay and without another try. In the caller's turn.
gcap_status_t gcap_runtime_run_once(gcap_runtime_t* runtime, const gcap_run_resources_t* resources, int graph_id,
                                    gcap_runtime_work_t work, void* user, bool synchronize) GCAP_NODISCARD;

// The turn on a stream that all threads share, for a scope; NULL: none is needed.
//   GCAP_AT_SCOPE_END(gcap_runtime_end_turn) gcap_runtime_t* turn = gcap_runtime_begin_turn(runtime);
gcap_runtime_t* gcap_runtime_begin_turn(gcap_runtime_t* runtime);
void gcap_runtime_end_turn(gcap_runtime_t** turn);

#endif  // GCAP_LIB_RUNTIME_RUNTIME_INTERNAL_H_
