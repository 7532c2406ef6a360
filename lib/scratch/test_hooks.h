// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// test_hooks.h: ways to take away what makes scratch safe, so that a test can show that it would see the damage, and
// what would hide from a test what it looks for. For tests alone; nothing in the library sets them.
#ifndef GCAP_LIB_SCRATCH_TEST_HOOKS_H_
#define GCAP_LIB_SCRATCH_TEST_HOOKS_H_

#include <stdbool.h>

#include "gcap/scratch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_scratch_test_hooks {
  bool ignore_tags;          // every stream gets what any other freed, whether it waited or not
  bool ignore_reservations;  // what a capture used is free for all afterwards
  bool fail_at_once;         // a request that lacks memory gives nothing back and waits for nobody before it fails
  bool wait_for_ever;        // a request that lacks memory waits for another thread's without an end
} gcap_scratch_test_hooks_t;

// Set before the first allocation.
void gcap_scratch_set_test_hooks(gcap_scratch_t* scratch, const gcap_scratch_test_hooks_t* hooks);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_TEST_HOOKS_H_
