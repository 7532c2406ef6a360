// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// runtime_internal.h: what a runtime consists of, for the sources of this module.
#ifndef GCAP_LIB_RUNTIME_RUNTIME_INTERNAL_H_
#define GCAP_LIB_RUNTIME_RUNTIME_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "gcap/runtime_ops.h"
#include "lib/allocator/trace_file.h"
#include "lib/internal/affine.h"
#include "lib/internal/kept.h"
#include "lib/runtime/graph_memory.h"
#include "lib/runtime/thread_context.h"
#include "lib/stream/inner.h"

struct gcap_runtime {
  gcap_runtime_ops_t ops;          // checked, in the library's layout
  bool supports_concurrent_runs;   // as the table answered when the runtime was made
  const char* missing_to_capture;  // a member without which a host cannot capture; NULL: all are there
  atomic_bool warned;              // of missing_to_capture
  struct gcap_own_runtime* own;    // NULL: the table is not gcap's own
  pthread_mutex_t turns;           // of all that runs or waits on a stream that all threads share; recursive
  atomic_size_t num_inside;        // calls of gcap_runtime_run that call their work
};

// gcap's own runtime: the `self` of its table.
typedef struct gcap_own_runtime {
  gcap_runtime_t base;
  gcap_options_t options;
  gcap_allocator_t* allocator;
  gcap_trace_file_t* trace_file;  // NULL: none
  gcap_scratch_t* scratch;
  gcap_graph_memory_t graph_memory;
  gcap_thread_contexts_t* contexts;
  uint64_t contexts_serial;           // gcap_thread_contexts_serial
  gcap_stream_pool_t* streams;        // of forks, and of copies that are not ordered with the runs
  gcap_affine_t* forks;               // each thread's forks_t (forks.c)
  _Atomic(gcap_allocator_t*) pinned;  // NULL until first used
  gcap_kept_t kept;                   // once somebody may still use its memory
} gcap_own_runtime_t;

// Makes the turns, before anything can fail.
void gcap_runtime_init_turns(gcap_runtime_t* runtime);
// Fills in `runtime` from a table that gcap_runtime_ops_read gave.
void gcap_runtime_init(gcap_runtime_t* runtime, const gcap_runtime_ops_t* ops);

// Members of gcap's own table, of which own.c has the others.
bool gcap_own_runtime_can_copy(const void* self, gcap_memory_t src, gcap_memory_t dst);
gcap_status_t gcap_own_runtime_copy_tensors(void* self, const gcap_copy_t* copies, size_t count) GCAP_NODISCARD;
gcap_status_t gcap_own_runtime_create_stream(void* self, gcap_stream_t** out_stream) GCAP_NODISCARD;
gcap_status_t gcap_own_runtime_get_allocator(void* self, gcap_memory_kind_t kind,
                                             gcap_allocator_t** out_allocator) GCAP_NODISCARD;
gcap_status_t gcap_own_runtime_fork(void* self, size_t count, gcap_stream_t** out_streams) GCAP_NODISCARD;
gcap_status_t gcap_own_runtime_join(void* self) GCAP_NODISCARD;

// The calling thread's graph manager; NULL: a runtime of a table, or a thread without a context, which has no graph.
gcap_graph_manager_t* gcap_runtime_own_graphs(gcap_runtime_t* runtime);

// The id of a run, or of its key among the calling thread's graphs: GCAP_GRAPH_ID_NONE for a key that is not known.
int gcap_runtime_id_of(gcap_runtime_t* runtime, const gcap_run_t* run);

// One run of the work, without a replay and without another try. In the caller's turn. `resources` is what the work
// gets; its addresses, if the run has buffers, are written.
gcap_status_t gcap_runtime_run_once(gcap_runtime_t* runtime, const gcap_run_t* run,
                                    const gcap_run_resources_t* resources,
                                    gcap_graph_run_kind_t* out_kind) GCAP_NODISCARD;

// The turn on a stream that all threads share, for a scope; NULL: none is needed. The work of a run has the turn of its
// run, and takes it again.
//   GCAP_AT_SCOPE_END(gcap_runtime_end_turn) gcap_runtime_t* turn = gcap_runtime_begin_turn(runtime);
gcap_runtime_t* gcap_runtime_begin_turn(gcap_runtime_t* runtime);
void gcap_runtime_end_turn(gcap_runtime_t** turn);

#endif  // GCAP_LIB_RUNTIME_RUNTIME_INTERNAL_H_
