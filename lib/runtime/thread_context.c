// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Thread contexts. The contexts of one set are an affine set (lib/internal/affine.h), one context for each thread:
// found without a lock, and ended once, by the thread or by the set, whichever is first. A shared context is one
// pointer in the set: made once, ended with the set.
//
// A context ends in the order of references: graphs, then whatever on_end forgets, then the stream. If a step fails,
// the rest may still be in use and is kept until the process ends. So the set first asks each context whether a step
// would be refused, before it ends any.
//
// Locking: `making` is held while the shared context is made, so that no second context is made on the same user
// stream. The caller of runs on a shared context provides the lock by which the runs take turns.

#include "lib/runtime/thread_context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "lib/graph/inner.h"
#include "lib/internal/affine.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/kept.h"
#include "lib/stream/inner.h"

struct gcap_thread_contexts {
  gcap_thread_contexts_options_t options;
  gcap_affine_t* own;  // NULL: the context is shared
  pthread_mutex_t making;
  _Atomic(gcap_thread_context_t*) shared;
};

// --- The life of one context ----------------------------------------------------------------------------------------

// The refusal that the context's end would meet now; NULL: there is none. Where the runtime does not say whether the
// stream captures, the end itself tells.
static gcap_status_t context_check_end(void* user, void* object) {
  (void)user;
  const gcap_thread_context_t* context = object;
  if (gcap_stream_can_capture(context->stream)) {
    gcap_status_t status =
        gcap_check_stream_not_capturing(gcap_stream_handle(context->stream), "gcap_thread_contexts_destroy");
    if (gcap_status_code(status) == GCAP_FAILED_PRECONDITION) return status;
    gcap_status_ignore(status);
  }
  return gcap_graph_manager_check_end(context->graphs);
}

// Every failure is LEAKED: the context is gone, what is kept of it is lost.
static gcap_status_t context_end(void* user, void* object, bool by_thread_exit) {
  const gcap_thread_contexts_options_t* options = &((gcap_thread_contexts_t*)user)->options;
  gcap_thread_context_t* context = object;
  gcap_stream_t* stream = context->stream;
  if (by_thread_exit && gcap_thread_captures()) {
    // The capture module would abort it too, but maybe only after this; and inside it no graph can be released.
    gcap_log(GCAP_LOG_WARNING, "a thread with a context exits inside a capture; it is aborted");
    gcap_capture_abort(gcap_capture_current());
  }
  gcap_status_t status = gcap_graph_manager_destroy(context->graphs);
  if (status == NULL) status = gcap_stream_synchronize(stream);
  if (status == NULL && options->on_end != NULL) status = options->on_end(options->user, stream);
  if (status != NULL) {
    gcap_keep_for_ever(&context->kept);
    return gcap_status_annotate(status, GCAP_LEAKED, "stream %p may still be in use and is kept for ever",
                                (void*)gcap_stream_handle(stream));
  }
  free(context);
  return gcap_status_annotate(gcap_stream_destroy(stream), GCAP_LEAKED, "a context's stream");
}

static gcap_status_t create_parts(const gcap_thread_contexts_options_t* options, gcap_thread_context_t* context) {
  if (options->has_user_stream) {
    GCAP_RETURN_IF_ERROR(gcap_stream_wrap(options->user_stream, GCAP_STREAM_USER, GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM,
                                          options->device_id, &context->stream));
  } else {
    GCAP_RETURN_IF_ERROR(gcap_stream_create(options->device_id, &context->stream));
  }
  return gcap_graph_manager_create(&options->graph, &context->graphs);
}

static gcap_status_t context_create(void* user, void** out_object) {
  *out_object = NULL;
  gcap_thread_contexts_t* set = user;
  if (gcap_thread_captures()) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "this thread is capturing and has no context yet: get it before");
  }
  gcap_thread_context_t* context = calloc(1, sizeof(*context));
  if (context == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a thread context");
  gcap_status_t status = create_parts(&set->options, context);
  if (status != NULL) {
    // Nobody has seen the stream: on_end need not hear of it.
    status = gcap_status_join(status, gcap_stream_destroy(context->stream));
    free(context);
    return status;
  }
  *out_object = context;
  return NULL;
}

// --- The set --------------------------------------------------------------------------------------------------------

gcap_status_t gcap_thread_contexts_create(const gcap_thread_contexts_options_t* options,
                                          gcap_thread_contexts_t** out_contexts) {
  GCAP_RETURN_IF_NULL(out_contexts);
  *out_contexts = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_NULL(options);
  if (options->has_user_stream && !options->shared) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "a user stream needs shared contexts: threads cannot issue on it at once");
  }
  gcap_thread_contexts_t* set = calloc(1, sizeof(*set));
  if (set == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for thread contexts");
  set->options = *options;
  if (!options->shared) {
    const gcap_affine_ops_t ops = {.name = "thread context", .create = context_create, .end = context_end, .user = set};
    gcap_status_t status = gcap_affine_create(&ops, &set->own);
    if (status != NULL) {
      free(set);
      return status;
    }
  }
  pthread_mutex_init(&set->making, NULL);
  *out_contexts = set;
  return NULL;
}

gcap_status_t gcap_thread_contexts_check_end(gcap_thread_contexts_t* set) {
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_thread_contexts_destroy"));
  if (set->own != NULL) return gcap_affine_look(set->own, context_check_end);
  gcap_thread_context_t* shared = atomic_load_explicit(&set->shared, memory_order_acquire);
  return shared != NULL ? context_check_end(set, shared) : NULL;
}

gcap_status_t gcap_thread_contexts_destroy(gcap_thread_contexts_t* set) {
  if (set == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_check_end(set));
  gcap_status_t status = gcap_affine_destroy(set->own);
  gcap_thread_context_t* shared = atomic_load_explicit(&set->shared, memory_order_acquire);
  if (shared != NULL) status = gcap_status_join(status, context_end(set, shared, /*by_thread_exit=*/false));
  pthread_mutex_destroy(&set->making);
  free(set);
  return status;
}

static gcap_status_t get_shared(gcap_thread_contexts_t* set, gcap_thread_context_t** out_context) {
  *out_context = atomic_load_explicit(&set->shared, memory_order_acquire);
  if (*out_context != NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked("a thread context"));
  pthread_mutex_lock(&set->making);
  gcap_status_t status = NULL;
  void* context = atomic_load_explicit(&set->shared, memory_order_relaxed);
  if (context == NULL) {
    status = context_create(set, &context);
    atomic_store_explicit(&set->shared, context, memory_order_release);
  }
  pthread_mutex_unlock(&set->making);
  *out_context = context;
  return status;
}

gcap_status_t gcap_thread_contexts_get(gcap_thread_contexts_t* contexts, gcap_thread_context_t** out_context) {
  GCAP_RETURN_IF_NULL(out_context);
  *out_context = NULL;
  GCAP_RETURN_IF_NULL(contexts);
  if (contexts->own == NULL) return get_shared(contexts, out_context);
  void* context = NULL;
  gcap_status_t status = gcap_affine_get(contexts->own, &context);
  *out_context = context;
  return status;
}

uint64_t gcap_thread_contexts_serial(const gcap_thread_contexts_t* contexts) {
  return contexts->own != NULL ? gcap_affine_serial(contexts->own) : 0;
}

size_t gcap_thread_contexts_count(gcap_thread_contexts_t* set) {
  if (set->own != NULL) return gcap_affine_count(set->own);
  return atomic_load_explicit(&set->shared, memory_order_acquire) != NULL ? 1 : 0;
}
