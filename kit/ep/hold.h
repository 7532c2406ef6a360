// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// hold.h: a count of who still needs an object, which those who count down may outlive.
#ifndef GCAP_KIT_EP_HOLD_H_
#define GCAP_KIT_EP_HOLD_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/runtime.h"
#include "gcap/stream.h"
#include "lib/internal/kept.h"

// Hold: the object's owner has one part of it, each graph or stream that needs the object another. The owner asks
// whether it is alone before it ends the object. A graph may end after the session, and finds its part still there.
// Thread: thread-safe. Capture: legal. Lifetime: until the last part is let go.
typedef struct gcap_hold {
  atomic_size_t parts;
  atomic_bool is_kept;  // for ever, for a part that is never let go
  gcap_kept_t kept;
} gcap_hold_t;

// NULL if there is no host memory.
static inline gcap_hold_t* gcap_hold_create(void) {
  gcap_hold_t* hold = calloc(1, sizeof(*hold));
  if (hold != NULL) atomic_init(&hold->parts, 1);
  return hold;
}

static inline void gcap_hold_take(gcap_hold_t* hold) { atomic_fetch_add(&hold->parts, 1); }

// A release as streams and captures call it.
static inline void gcap_hold_let_go(void* user) {
  gcap_hold_t* hold = user;
  if (atomic_fetch_sub(&hold->parts, 1) == 1) free(hold);
}

// Whether only the owner has a part.
static inline bool gcap_hold_is_alone(gcap_hold_t* hold) { return atomic_load(&hold->parts) == 1; }

// Whether more than the owner and the caller have a part.
static inline bool gcap_hold_is_shared(gcap_hold_t* hold) { return atomic_load(&hold->parts) > 2; }

// The graph of the open capture gets a part.
//   errors of gcap_capture_retain
gcap_status_t gcap_hold_give_to_capture(gcap_hold_t* hold, gcap_capture_t* capture) GCAP_NODISCARD;

// A stream of the runtime gets a part until it has passed what it was given so far. Where the part cannot be deferred,
// or `stream` is NULL, the runtime is waited for. Where that fails too, the part is never let go. The calling thread is
// the stream's, in a turn.
void gcap_hold_give_to_stream(gcap_hold_t* hold, gcap_runtime_t* runtime, gcap_stream_t* stream);

// The caller's part is never let go: nobody will tell when it could be.
void gcap_hold_keep(gcap_hold_t* hold);

#endif  // GCAP_KIT_EP_HOLD_H_
