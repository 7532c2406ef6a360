// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// leak.h: what is left.
#ifndef GCAP_SIM_BRIDGE_LEAK_H_
#define GCAP_SIM_BRIDGE_LEAK_H_

#include <stdint.h>

// A handle of a library, which is no entry of the runtime's table, comes and goes.
void gcap_sim_leak_object_made(const char* kind, const void* object);
void gcap_sim_leak_object_gone(const void* object);

// In a forked child: what the parent made, in its first so many calls, is the parent's to end and to be told of.
void gcap_sim_leak_forked(uint64_t num_calls);

#endif  // GCAP_SIM_BRIDGE_LEAK_H_
