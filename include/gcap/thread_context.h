// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// thread_context.h: a stream and a graph manager for each thread that runs an EP, gone with the thread or with the EP.
#ifndef GCAP_THREAD_CONTEXT_H_
#define GCAP_THREAD_CONTEXT_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "gcap/graph.h"
#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// Thread context: what one thread needs to run one EP. From gcap_thread_contexts_get.
// Thread:   the thread it belongs to; with `shared`, one thread at a time over a whole run: its users take turns.
// Capture:  legal.
// Lifetime: until its thread or its set ends, whichever is first. A capture that its thread exits in is aborted.
typedef struct gcap_thread_context gcap_thread_context_t;

GCAP_API gcap_stream_t* gcap_thread_context_stream(gcap_thread_context_t* context);
GCAP_API gcap_graph_manager_t* gcap_thread_context_graphs(gcap_thread_context_t* context);

typedef struct gcap_thread_contexts_options {
  size_t struct_size;  // set by gcap_thread_contexts_options_init
  int device_id;
  // One context for all threads instead of one a thread. Required with a user stream: one stream, one timeline.
  bool shared;
  bool has_user_stream;      // wrap `user_stream` instead of creating a stream
  cudaStream_t user_stream;  // 0 is the legacy default stream, which cannot be captured
  // Called once for each context that ends, after its graphs are released and its stream is synchronised, and before
  // the stream is destroyed; on the thread that ends it. A failure means that something still refers to the stream,
  // which is then kept for ever. Not called for a stream that could not be drained: that one is kept anyway. Optional.
  gcap_status_t (*on_end)(void* user, gcap_stream_t* stream);
  void* user;
  gcap_graph_manager_options_t graph;
} gcap_thread_contexts_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_thread_contexts_options_set_defaults(gcap_thread_contexts_options_t* options);
static inline void gcap_thread_contexts_options_init(gcap_thread_contexts_options_t* options) {
  options->struct_size = sizeof(*options);
  options->graph.struct_size = sizeof(options->graph);
  options->graph.capture.struct_size = sizeof(options->graph.capture);
  gcap_thread_contexts_options_set_defaults(options);
}

// Thread contexts: the set of one EP's contexts. From gcap_thread_contexts_create.
// Thread:   thread-safe. Destroy it when no thread is inside a run with one of its contexts; others may exit then.
// Capture:  get is legal, but refuses to make a context while the calling thread captures, as destroy does to end any.
// Lifetime: ends its contexts, wherever their threads are.
typedef struct gcap_thread_contexts gcap_thread_contexts_t;

//   INVALID_ARGUMENT    NULL, or a user stream without `shared`
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_thread_contexts_create(const gcap_thread_contexts_options_t* options,
                                                   gcap_thread_contexts_t** out_contexts) GCAP_NODISCARD;
// NULL is fine. Waits for contexts that exiting threads are ending at this moment.
//   FAILED_PRECONDITION  the calling thread is capturing; nothing was destroyed
//   CUDA_ERROR, or a failure of on_end: the set is gone all the same; of a context that could not be ended, what may
//   still be in use is kept for ever
GCAP_API gcap_status_t gcap_thread_contexts_destroy(gcap_thread_contexts_t* contexts) GCAP_NODISCARD;

// The calling thread's context, made on first use. Takes no lock in the steady state.
//   INVALID_ARGUMENT     NULL, or no device of that number
//   FAILED_PRECONDITION  there is none, and the thread is capturing, or exits and has done its last round of
//   destructors RESOURCE_EXHAUSTED   no host memory CUDA_ERROR           the runtime refused the stream; the next call
//   tries again
GCAP_API gcap_status_t gcap_thread_contexts_get(gcap_thread_contexts_t* contexts,
                                                gcap_thread_context_t** out_context) GCAP_NODISCARD;

// Contexts alive now. Not for NULL.
GCAP_API size_t gcap_thread_contexts_count(gcap_thread_contexts_t* contexts);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_THREAD_CONTEXT_H_
