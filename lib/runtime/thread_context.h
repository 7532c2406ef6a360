// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// thread_context.h: a stream and a graph manager for each thread that runs on a runtime. They end with the thread or
// with the runtime, whichever is first.
#ifndef GCAP_LIB_RUNTIME_THREAD_CONTEXT_H_
#define GCAP_LIB_RUNTIME_THREAD_CONTEXT_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gcap/graph.h"
#include "gcap/status.h"
#include "gcap/stream.h"
#include "lib/internal/kept.h"

#ifdef __cplusplus
extern "C" {
#endif

// Thread context: what one thread needs to run on one runtime. From gcap_thread_contexts_get.
// Thread:   the context's thread; with `shared`, one thread at a time for a whole run: its users take turns.
// Capture:  legal.
// Lifetime: until its thread or its set ends, whichever is first. If the thread exits inside a capture, the capture is
//           aborted.
typedef struct gcap_thread_context {
  gcap_stream_t* stream;
  gcap_graph_manager_t* graphs;
  gcap_kept_t kept;  // once something of it may still be in use
} gcap_thread_context_t;

// The context's stream and graph manager, which end with the context.
static inline gcap_stream_t* gcap_thread_context_stream(gcap_thread_context_t* context) { return context->stream; }
static inline gcap_graph_manager_t* gcap_thread_context_graphs(gcap_thread_context_t* context) {
  return context->graphs;
}

typedef struct gcap_thread_contexts_options {
  int device_id;
  // One context for all threads instead of one for each thread. Required with a user stream: one stream, one timeline.
  bool shared;
  bool has_user_stream;      // wrap `user_stream` instead of creating a stream
  cudaStream_t user_stream;  // 0 is the legacy default stream, which cannot be captured
  // Optional. Called once for each context that ends, on the thread that ends the context: after the context's graphs
  // are released and its stream is synchronized, and before the stream is destroyed. A failure means that something
  // still refers to the stream; the stream is then kept until the process ends. Not called for a stream that could not
  // be drained, which is kept in any case.
  gcap_status_t (*on_end)(void* user, gcap_stream_t* stream);
  void* user;
  gcap_graph_manager_options_t graph;
} gcap_thread_contexts_options_t;

static inline void gcap_thread_contexts_options_init(gcap_thread_contexts_options_t* options) {
  memset(options, 0, sizeof(*options));
  gcap_graph_manager_options_init(&options->graph);
}

// Thread contexts: the set of one runtime's contexts. From gcap_thread_contexts_create.
// Thread:   thread-safe. Destroy the set when no thread is inside a run with one of its contexts; threads may exit
//           meanwhile.
// Capture:  get is legal, but while the calling thread is capturing, get refuses to make a context and destroy refuses
//           to end the set.
// Lifetime: ends the contexts of all threads.
typedef struct gcap_thread_contexts gcap_thread_contexts_t;

// Creates an empty set.
//   INVALID_ARGUMENT    NULL, or a user stream without `shared`
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_thread_contexts_create(const gcap_thread_contexts_options_t* options,
                                          gcap_thread_contexts_t** out_contexts) GCAP_NODISCARD;
// Ends all contexts and the set. NULL is fine. Waits for contexts that exiting threads are ending at this moment.
//   FAILED_PRECONDITION  the calling thread is capturing, a context's stream or that of one of its graphs is capturing,
//                        or another thread has a run open on a context; nothing was destroyed
//   LEAKED               the set is gone; a context could not be ended, or its on_end failed. What may still be in use
//                        of such a context is kept until the process ends
gcap_status_t gcap_thread_contexts_destroy(gcap_thread_contexts_t* contexts) GCAP_NODISCARD;

// The refusal that gcap_thread_contexts_destroy would answer now; NULL: it would end the set. Changes nothing. For the
// runtime, which ends more than the contexts and must know before it ends anything.
//   FAILED_PRECONDITION  as gcap_thread_contexts_destroy
gcap_status_t gcap_thread_contexts_check_end(gcap_thread_contexts_t* contexts) GCAP_NODISCARD;

// The calling thread's context, which is made on first use. Takes no lock in the steady state.
//   INVALID_ARGUMENT     NULL, or no such device
//   FAILED_PRECONDITION  there is no context yet, and the thread is capturing, or the thread is exiting and has run its
//                        last round of thread-local destructors
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the runtime refused the stream; the next call tries again
gcap_status_t gcap_thread_contexts_get(gcap_thread_contexts_t* contexts,
                                       gcap_thread_context_t** out_context) GCAP_NODISCARD;

// The serial by which gcap_affine_recall has the calling thread's context, once gcap_thread_contexts_get gave it; 0:
// the context is shared.
uint64_t gcap_thread_contexts_serial(const gcap_thread_contexts_t* contexts);

// The number of contexts that exist now. `contexts` must not be NULL.
size_t gcap_thread_contexts_count(gcap_thread_contexts_t* contexts);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_RUNTIME_THREAD_CONTEXT_H_
