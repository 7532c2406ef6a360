// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Thread contexts. A context hangs on two lists: its thread's and its set's. Whoever ends first, thread or set, takes
// it off both under one mutex, and with that has the right and the duty to destroy it; so nothing is destroyed twice
// and nothing remains. A set that ends waits until exiting threads have finished with the contexts they took.
//
// The look-up in the steady state is a small thread-local cache keyed by the set's serial number. A serial is never
// used twice, so an entry of a set that is gone matches nothing and is simply overwritten some day.
//
// Locking: contexts_mutex guards all lists and counts. It is never held across a CUDA call.

#include "gcap/thread_context.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "lib/base/thread_state.h"

#define CACHE_SIZE 4u  // EPs that one thread uses in turn without taking the lock

struct gcap_thread_context {
  gcap_thread_contexts_t* set;
  gcap_stream_t* stream;
  gcap_graph_manager_t* graphs;
  struct thread_record* record;  // of its thread; NULL when shared
  gcap_thread_context_t* next_of_thread;
  gcap_thread_context_t* next_of_set;
};

struct gcap_thread_contexts {
  gcap_thread_contexts_options_t options;
  uint64_t serial;
  gcap_thread_context_t* contexts;
  size_t count;
  size_t num_ending;  // taken by exiting threads, not destroyed yet
};

typedef struct thread_record {
  gcap_thread_context_t* contexts;
} thread_record_t;

static pthread_mutex_t contexts_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t context_ended = PTHREAD_COND_INITIALIZER;
static uint64_t next_serial = 1;
static pthread_key_t record_key;  // its destructor runs when a thread exits
static pthread_once_t record_key_once = PTHREAD_ONCE_INIT;

static _Thread_local struct {
  uint64_t serial;
  gcap_thread_context_t* context;
} cache[CACHE_SIZE];
static _Thread_local size_t next_victim;  // in turn: EPs used alternately do not evict each other

gcap_stream_t* gcap_thread_context_stream(gcap_thread_context_t* context) { return context->stream; }

gcap_graph_manager_t* gcap_thread_context_graphs(gcap_thread_context_t* context) { return context->graphs; }

void gcap_thread_contexts_options_init(gcap_thread_contexts_options_t* options) {
  *options = (gcap_thread_contexts_options_t){0};
  gcap_graph_manager_options_init(&options->graph);
}

// --- The life of one context ----------------------------------------------------------------------------------------

// Ends a context that is on no list. The graphs go first: they are launched on the stream and hold its scratch. A
// stream that may still be busy, by itself or by its graphs, or that somebody still refers to, is kept for ever.
static gcap_status_t context_destroy(gcap_thread_context_t* context) {
  const gcap_thread_contexts_options_t* options = &context->set->options;
  gcap_stream_t* stream = context->stream;
  gcap_status_t status = gcap_graph_manager_destroy(context->graphs);
  free(context);
  if (stream == NULL) return status;
  if (status == NULL) status = gcap_stream_synchronize(stream);
  if (status == NULL && options->on_end != NULL) status = options->on_end(options->user, stream);
  if (status == NULL) return gcap_stream_destroy(stream);
  return gcap_status_annotate(status, gcap_status_code(status), "stream %p may still be in use and is kept for ever",
                              (void*)gcap_stream_handle(stream));
}

static gcap_status_t context_create(gcap_thread_contexts_t* set, gcap_thread_context_t** out_context) {
  *out_context = NULL;
  gcap_thread_context_t* context = calloc(1, sizeof(*context));
  if (context == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a thread context");
  context->set = set;
  const gcap_thread_contexts_options_t* options = &set->options;
  gcap_status_t status = options->has_user_stream ? gcap_stream_wrap(options->user_stream, GCAP_STREAM_USER,
                                                                     GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM,
                                                                     options->device_id, &context->stream)
                                                  : gcap_stream_create(options->device_id, &context->stream);
  if (status == NULL) status = gcap_graph_manager_create(&options->graph, &context->graphs);
  if (status != NULL) return gcap_status_join(status, context_destroy(context));
  *out_context = context;
  return NULL;
}

// Takes `context` off the list that starts at `*head` and is linked through the named member.
#define UNLINK(head, context, next)                      \
  do {                                                   \
    gcap_thread_context_t** link_ = (head);              \
    while (*link_ != (context)) link_ = &(*link_)->next; \
    *link_ = (context)->next;                            \
  } while (0)

// --- Threads --------------------------------------------------------------------------------------------------------

static void thread_exits(void* value) {
  thread_record_t* record = value;
  pthread_mutex_lock(&contexts_mutex);
  while (record->contexts != NULL) {
    gcap_thread_context_t* context = record->contexts;
    gcap_thread_contexts_t* set = context->set;
    record->contexts = context->next_of_thread;
    UNLINK(&set->contexts, context, next_of_set);
    --set->count;
    ++set->num_ending;
    pthread_mutex_unlock(&contexts_mutex);
    gcap_status_t status = context_destroy(context);
    if (status != NULL) gcap_log(GCAP_LOG_ERROR, "at the end of a thread: %s", gcap_status_message(status));
    gcap_status_free(status);
    pthread_mutex_lock(&contexts_mutex);
    --set->num_ending;
    pthread_cond_broadcast(&context_ended);
  }
  pthread_mutex_unlock(&contexts_mutex);
  free(record);
  memset(cache, 0, sizeof(cache));  // another destructor of this thread may still come and ask
}

static int record_key_error;

static void make_record_key(void) { record_key_error = pthread_key_create(&record_key, thread_exits); }

// The calling thread's record, made on first use.
static gcap_status_t get_record(thread_record_t** out_record) {
  *out_record = NULL;
  pthread_once(&record_key_once, make_record_key);
  if (record_key_error != 0) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "pthread_key_create failed: error %d", record_key_error);
  }
  thread_record_t* record = pthread_getspecific(record_key);
  if (record == NULL) {
    record = calloc(1, sizeof(*record));
    if (record == NULL || pthread_setspecific(record_key, record) != 0) {
      free(record);
      return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a thread's record");
    }
  }
  *out_record = record;
  return NULL;
}

// --- The set --------------------------------------------------------------------------------------------------------

gcap_status_t gcap_thread_contexts_create(const gcap_thread_contexts_options_t* options,
                                          gcap_thread_contexts_t** out_contexts) {
  *out_contexts = NULL;
  if (options->has_user_stream && !options->shared) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "a user stream needs shared contexts: threads cannot issue on it at once");
  }
  gcap_thread_contexts_t* set = calloc(1, sizeof(*set));
  if (set == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for thread contexts");
  set->options = *options;
  pthread_mutex_lock(&contexts_mutex);
  set->serial = next_serial++;
  pthread_mutex_unlock(&contexts_mutex);
  *out_contexts = set;
  return NULL;
}

// Takes one context off both lists; NULL when none is left. Called with the mutex held.
static gcap_thread_context_t* take_context_of_set(gcap_thread_contexts_t* set) {
  gcap_thread_context_t* context = set->contexts;
  if (context == NULL) return NULL;
  set->contexts = context->next_of_set;
  --set->count;
  if (context->record != NULL) UNLINK(&context->record->contexts, context, next_of_thread);
  return context;
}

gcap_status_t gcap_thread_contexts_destroy(gcap_thread_contexts_t* set) {
  if (set == NULL) return NULL;
  gcap_status_t status = NULL;
  pthread_mutex_lock(&contexts_mutex);
  for (;;) {
    gcap_thread_context_t* context = take_context_of_set(set);
    if (context != NULL) {
      pthread_mutex_unlock(&contexts_mutex);
      status = gcap_status_join(status, context_destroy(context));
      pthread_mutex_lock(&contexts_mutex);
    } else if (set->num_ending > 0) {
      pthread_cond_wait(&context_ended, &contexts_mutex);
    } else {
      break;
    }
  }
  pthread_mutex_unlock(&contexts_mutex);
  free(set);
  return status;
}

static gcap_thread_context_t* find_context(gcap_thread_contexts_t* set, const thread_record_t* record) {
  gcap_thread_context_t* context = set->contexts;
  while (context != NULL && context->record != record) context = context->next_of_set;
  return context;
}

// The thread's context, or the shared one; made if there is none.
static gcap_status_t find_or_create(gcap_thread_contexts_t* set, gcap_thread_context_t** out_context) {
  thread_record_t* record = NULL;
  if (!set->options.shared) GCAP_RETURN_IF_ERROR(get_record(&record));
  pthread_mutex_lock(&contexts_mutex);
  *out_context = find_context(set, record);
  pthread_mutex_unlock(&contexts_mutex);
  if (*out_context != NULL) return NULL;
  if (gcap_thread_captures()) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "this thread is capturing and has no context yet: get it before");
  }
  gcap_thread_context_t* created = NULL;
  GCAP_RETURN_IF_ERROR(context_create(set, &created));
  created->record = record;
  pthread_mutex_lock(&contexts_mutex);
  // Only a shared context can have appeared meanwhile: another thread was faster.
  gcap_thread_context_t* other = find_context(set, record);
  if (other == NULL) {
    created->next_of_set = set->contexts;
    set->contexts = created;
    ++set->count;
    if (record != NULL) {
      created->next_of_thread = record->contexts;
      record->contexts = created;
    }
  }
  pthread_mutex_unlock(&contexts_mutex);
  if (other != NULL) GCAP_RETURN_IF_ERROR(context_destroy(created));
  *out_context = other != NULL ? other : created;
  return NULL;
}

gcap_status_t gcap_thread_contexts_get(gcap_thread_contexts_t* set, gcap_thread_context_t** out_context) {
  *out_context = NULL;
  for (size_t i = 0; i < CACHE_SIZE; ++i) {
    if (cache[i].serial == set->serial) {
      *out_context = cache[i].context;
      return NULL;
    }
  }
  GCAP_RETURN_IF_ERROR(find_or_create(set, out_context));
  size_t victim = next_victim++ % CACHE_SIZE;
  cache[victim].serial = set->serial;
  cache[victim].context = *out_context;
  return NULL;
}

size_t gcap_thread_contexts_count(gcap_thread_contexts_t* set) {
  pthread_mutex_lock(&contexts_mutex);
  size_t count = set->count;
  pthread_mutex_unlock(&contexts_mutex);
  return count;
}
