// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// capture_gate.h: keeps the capture scopes of all threads and what breaks every capture of a device apart.
//
// cudaDeviceSynchronize breaks a capture of any thread in any mode (rule R12 of the capture rules). Whoever wants to
// call it closes the gate, which he cannot while a scope is open, and a scope waits to begin while it is closed.
#ifndef GCAP_LIB_INTERNAL_CAPTURE_GATE_H_
#define GCAP_LIB_INTERNAL_CAPTURE_GATE_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Counts a scope, as soon as nobody keeps the gate closed; and no longer.
void gcap_capture_gate_enter(void);
void gcap_capture_gate_leave(void);
// Scopes open now. A relaxed read.
uint32_t gcap_capture_gate_num_inside(void);

// Closes the gate to scopes, until it is opened as often as it was closed. False, and nothing happened, when a scope is
// open or waits to be.
bool gcap_capture_gate_try_close(void);
void gcap_capture_gate_open(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_CAPTURE_GATE_H_
