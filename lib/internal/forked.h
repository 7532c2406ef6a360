// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// forked.h: what is left of gcap in a child process that was forked after its parent had used gcap: refusals. CUDA does
// not work there, and a lock that another thread of the parent held stays held for ever.
#ifndef GCAP_LIB_INTERNAL_FORKED_H_
#define GCAP_LIB_INTERNAL_FORKED_H_

#include "gcap/status.h"
#include "lib/base/capture_hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

// The hooks of the one thread that such a child has. They are no scope's: with them set, whatever asks first whether
// the thread captures, as every fast path does anyway, takes its slow way, and is refused there.
extern const gcap_capture_hooks_t gcap_forked_hooks;

// From now on a fork sets the hooks in the child. Called where objects are made that have locks.
void gcap_watch_forks(void);

static inline bool gcap_is_forked(void) { return gcap_thread_capture_hooks == &gcap_forked_hooks; }

// The refusal of `operation` in such a child.
gcap_status_t gcap_refuse_forked(const char* operation) __attribute__((cold)) GCAP_NODISCARD;

// FAILED_PRECONDITION in such a child, before `operation` takes a lock.
static inline gcap_status_t gcap_check_not_forked(const char* operation) {
  return gcap_is_forked() ? gcap_refuse_forked(operation) : NULL;
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_INTERNAL_FORKED_H_
