// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// fault.h: makes one CUDA call of the program fail. The simulator can, a GPU cannot: one source file for each.
#ifndef GCAP_EXAMPLES_MINIMAL_EP_DIGITS_FAULT_H_
#define GCAP_EXAMPLES_MINIMAL_EP_DIGITS_FAULT_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// True on the simulator. Elsewhere the functions below do nothing.
bool fault_is_available(void);

// The nth CUDA, cuBLASLt or cuDNN call from now on, of any thread, does nothing but answer an error, once; 1 is the
// next one. Calls that only read the last error, or an error's name, do not count. With 0 none fails any more.
void fault_arm(uint64_t nth);

// Calls made so far that count.
uint64_t fault_num_calls(void);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MINIMAL_EP_DIGITS_FAULT_H_
