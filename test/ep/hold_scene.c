// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The holds of kit/ep/hold.h as functions that C++ can call. Locking: none; a hold counts by itself.

#include "test/ep/hold_scene.h"

#include "kit/ep/hold.h"

gcap_hold_t* gcap_test_hold_create(void) { return gcap_hold_create(); }

size_t gcap_test_hold_parts(gcap_hold_t* hold) { return atomic_load(&hold->parts); }

bool gcap_test_hold_is_kept(gcap_hold_t* hold) { return atomic_load(&hold->is_kept); }

void gcap_test_hold_give_to_stream(gcap_hold_t* hold, gcap_runtime_t* runtime, gcap_stream_t* stream) {
  gcap_hold_give_to_stream(hold, runtime, stream);
}

void gcap_test_hold_let_go(gcap_hold_t* hold) { gcap_hold_let_go(hold); }
