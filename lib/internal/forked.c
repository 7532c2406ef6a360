// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Forks. The handler runs in the child, on the thread that forked, which is the only one there: it sets
// thread-local words, so there is nothing to lock.

#include "lib/internal/forked.h"

#include <pthread.h>

#include "lib/base/stay_loaded.h"

gcap_status_t gcap_refuse_forked(const char* operation) {
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "%s: this process was forked after its parent had used gcap: neither CUDA nor gcap works in it; "
                     "exec another program, or fork first",
                     operation);
}

static void ignore_failure(gcap_status_t cause) { (void)cause; }

static gcap_status_t refuse_retain(void (*release)(void* user), size_t (*bytes)(void* user), gcap_retained_list_t list,
                                   void* user) {
  (void)release, (void)bytes, (void)list, (void)user;
  return gcap_refuse_forked("gcap_capture_retain");
}

static gcap_status_t refuse_on_close(void (*close)(void* user, bool committed), void* user) {
  (void)close, (void)user;
  return gcap_refuse_forked("gcap_capture_on_close");
}

static gcap_status_t refuse_captures(cudaStream_t stream, bool* out_captures) {
  (void)stream;
  *out_captures = false;
  return gcap_refuse_forked("a stream");
}

static uint64_t no_work(bool* out_is_rehearsal) {
  *out_is_rehearsal = false;
  return 0;
}

const gcap_capture_hooks_t gcap_forked_hooks = {.fail = ignore_failure,
                                                .retain = refuse_retain,
                                                .on_close = refuse_on_close,
                                                .captures = refuse_captures,
                                                .work = no_work};

static void in_child(void) {
  gcap_thread_capture_hooks = &gcap_forked_hooks;
  gcap_thread_note = NULL;
}

static void watch(void) {
  gcap_stay_loaded();
  // Without memory for the handler a child is as it would be without it.
  (void)pthread_atfork(NULL, NULL, in_child);
}

void gcap_watch_forks(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch);
}
