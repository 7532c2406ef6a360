// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The log sink of the process. A sink is called without a lock, so that it may call gcap, and may log by itself. Each
// call is on a list while it runs, by which a change of the sink waits for the calls of the old one.
//
// Locking: `mutex` guards the sink and the list. Nothing is called while it is held.

#include "gcap/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/printable.h"

enum { kTextBytes = 1024 };  // longer messages are cut: a log line is not a report

typedef struct target {
  gcap_log_sink_t sink;
  void* user;
  gcap_log_level_t level;
  uint64_t number;  // of the sinks that there were
} target_t;

// A call of a sink, on the stack of its thread.
typedef struct call {
  uint64_t target_number;
  int cancel_state;  // of the thread, before the call
  struct call *previous, *next;
} call_t;

static void log_to_stderr(void* user, gcap_log_level_t level, const char* message) {
  (void)user;
  static const char* const names[] = {"debug", "info", "warning", "error"};
  fprintf(stderr, "gcap %s: %s\n", names[level], message);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t call_returned = PTHREAD_COND_INITIALIZER;
static target_t current = {.sink = log_to_stderr, .level = GCAP_LOG_WARNING};
static call_t* first_call;
static atomic_int current_level = GCAP_LOG_WARNING;  // current.level, to be asked without the mutex
static _Thread_local bool is_in_sink;

static gcap_log_level_t nearest_level(gcap_log_level_t level) {
  if ((int)level < GCAP_LOG_DEBUG) return GCAP_LOG_DEBUG;
  return (int)level > GCAP_LOG_ERROR ? GCAP_LOG_ERROR : level;
}

static bool is_called(uint64_t before_number) {
  for (const call_t* call = first_call; call != NULL; call = call->next) {
    if (call->target_number < before_number) return true;
  }
  return false;
}

void gcap_log_set_sink(gcap_log_sink_t sink, void* user, gcap_log_level_t level) {
  int cancel_state = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);  // the wait would keep the mutex
  pthread_mutex_lock(&mutex);
  const uint64_t number = current.number + 1;
  current = (target_t){.sink = log_to_stderr, .level = GCAP_LOG_WARNING, .number = number};
  if (sink != NULL) current = (target_t){sink, user, nearest_level(level), number};
  atomic_store(&current_level, (int)current.level);
  while (!is_in_sink && is_called(number)) pthread_cond_wait(&call_returned, &mutex);
  pthread_mutex_unlock(&mutex);
  pthread_setcancelstate(cancel_state, NULL);
}

// Cancellation waits for the end of the call: the stack of a thread that ended in the sink would stay on the list.
static target_t begin_call(call_t* call) {
  int cancel_state = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  pthread_mutex_lock(&mutex);
  *call = (call_t){.target_number = current.number, .cancel_state = cancel_state, .next = first_call};
  if (first_call != NULL) first_call->previous = call;
  first_call = call;
  const target_t target = current;
  pthread_mutex_unlock(&mutex);
  return target;
}

static void end_call(call_t* call) {
  pthread_mutex_lock(&mutex);
  if (call->next != NULL) call->next->previous = call->previous;
  *(call->previous != NULL ? &call->previous->next : &first_call) = call->next;
  pthread_cond_broadcast(&call_returned);
  pthread_mutex_unlock(&mutex);
  pthread_setcancelstate(call->cancel_state, NULL);
}

static void send(gcap_log_level_t level, const char* message) {
  if (is_in_sink) {  // else a sink that causes a message each time would never return
    if (level >= GCAP_LOG_WARNING) log_to_stderr(NULL, level, message);
    return;
  }
  call_t call;
  const target_t target = begin_call(&call);
  is_in_sink = true;
  // The sink may have changed since its level was asked for.
  if (level >= target.level) target.sink(target.user, level, message);
  is_in_sink = false;
  end_call(&call);
}

void gcap_log(gcap_log_level_t level, const char* format, ...) {
  level = nearest_level(level);
  if ((int)level < atomic_load_explicit(&current_level, memory_order_relaxed)) return;
  char text[kTextBytes], message[kTextBytes];
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  const bool is_cut = gcap_printable(text, message, sizeof(message)) >= sizeof(message) || length >= (int)sizeof(text);
  if (is_cut) strcpy(message + gcap_printable_cut(message, sizeof(message) - sizeof("...")), "...");
  send(level, message);
}
