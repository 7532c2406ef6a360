// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// affine.h: objects of which each thread has its own: made on first use, ended with the thread or with their set,
// whichever is first. What thread contexts and the stream pool have in common.
#ifndef GCAP_LIB_INTERNAL_AFFINE_H_
#define GCAP_LIB_INTERNAL_AFFINE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"
#include "lib/base/capture_hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

// How the objects of a set begin and end. Both are called without a lock and may use other sets.
typedef struct gcap_affine_ops {
  const char* name;  // of one object, for messages: "thread context". Not copied
  // Makes the calling thread's object, which is not NULL. It must not ask for the one that it is making.
  gcap_status_t (*create)(void* user, void** out_object);
  // Ends an object, called once for each. With `by_thread_exit` the caller is the thread that had it, on its way out,
  // and a failure is logged; else it is the one that destroys the set, and gets the failure. It must not destroy its
  // set.
  gcap_status_t (*end)(void* user, void* object, bool by_thread_exit);
  void* user;
} gcap_affine_ops_t;

// Affine set: one object a thread. From gcap_affine_create.
// Thread:   thread-safe. Destroy it when no thread is inside a call of it or uses its object; others may exit then.
// Capture:  makes no CUDA call; `create` and `end` do what they do.
// Lifetime: ends its objects, wherever their threads are. A thread ends its objects newest first.
typedef struct gcap_affine gcap_affine_t;

//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_affine_create(const gcap_affine_ops_t* ops, gcap_affine_t** out_set) GCAP_NODISCARD;
// Calls `look(user, object)` for each object until one gives a status, which is the answer. No object ends meanwhile:
// threads that exit wait. `look` is called without a lock, must not destroy the set, and must not wait for a thread
// that exits. One look at a set at a time.
gcap_status_t gcap_affine_look(gcap_affine_t* set, gcap_status_t (*look)(void* user, void* object)) GCAP_NODISCARD;
// Ends all objects, and waits for those that exiting threads are ending at this moment. Gives the failures of `end`,
// joined; the set is gone in every case. NULL is fine.
gcap_status_t gcap_affine_destroy(gcap_affine_t* set) GCAP_NODISCARD;

// The calling thread's object, made if there is none. Takes no lock in the steady state. Legal in a destructor of the
// exiting thread; what is made there ends with the thread as well.
//   RESOURCE_EXHAUSTED   no host memory; nothing was made
//   FAILED_PRECONDITION  there is none, and the exiting thread has done its last round of destructors
//   errors of `create`
gcap_status_t gcap_affine_get(gcap_affine_t* set, void** out_object) GCAP_NODISCARD;
// The same, or NULL when there is none.
void* gcap_affine_find(gcap_affine_t* set);

// What the thread used lately, by its sets' serials. A serial is above 0 and never used twice, so an entry of a set
// that is gone matches nothing.
enum { GCAP_AFFINE_NUM_RECENT = 4 };  // sets that one thread uses in turn without taking the lock
typedef struct gcap_affine_recent {
  uint64_t serial;
  void* object;
} gcap_affine_recent_t;
extern GCAP_THREAD_LOCAL gcap_affine_recent_t gcap_affine_recent[GCAP_AFFINE_NUM_RECENT];

uint64_t gcap_affine_serial(const gcap_affine_t* set);

// The object of the calling thread, if the thread used the set lately, else NULL: then gcap_affine_get tells. Reads
// nothing of the set. Inline: every replay of a runtime asks.
static inline void* gcap_affine_recall(uint64_t serial) {
  for (size_t i = 0; i < GCAP_AFFINE_NUM_RECENT; ++i) {
    if (gcap_affine_recent[i].serial == serial) return gcap_affine_recent[i].object;
  }
  return NULL;
}

// Objects alive now.
size_t gcap_affine_count(gcap_affine_t* set);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_AFFINE_H_
