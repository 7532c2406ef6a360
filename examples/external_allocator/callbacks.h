// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// callbacks.h: a framework's pool as gcap's external allocator. This is the part to copy.
#ifndef GCAP_EXAMPLES_EXTERNAL_ALLOCATOR_CALLBACKS_H_
#define GCAP_EXAMPLES_EXTERNAL_ALLOCATOR_CALLBACKS_H_

#include "examples/external_allocator/framework.h"
#include "gcap/options.h"

struct CallbackCounts {
  int allocs, frees, empty_caches;
  int in_captures;  // of these, while the thread was capturing: always 0
};

// Makes the callbacks of `options` serve from `framework`. The callbacks have no user pointer, so there is one set for
// the process; a program with two pools writes two.
bool SetCallbacks(Framework* framework, gcap_options_t* options);

CallbackCounts GetCallbackCounts();

// When no EP uses them any more.
void EndCallbacks();

#endif  // GCAP_EXAMPLES_EXTERNAL_ALLOCATOR_CALLBACKS_H_
