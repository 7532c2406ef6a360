// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// hold_scene.h: the holds of kit/ep/hold.h for C++, which has no C atomics.
#ifndef GCAP_TEST_EP_HOLD_SCENE_H_
#define GCAP_TEST_EP_HOLD_SCENE_H_

#include <stdbool.h>
#include <stddef.h>

#include "gcap/runtime.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_hold gcap_hold_t;

gcap_hold_t* gcap_test_hold_create(void);
size_t gcap_test_hold_parts(gcap_hold_t* hold);
bool gcap_test_hold_is_kept(gcap_hold_t* hold);
void gcap_test_hold_give_to_stream(gcap_hold_t* hold, gcap_runtime_t* runtime, gcap_stream_t* stream);
void gcap_test_hold_let_go(gcap_hold_t* hold);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_TEST_EP_HOLD_SCENE_H_
