// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// leak.h: what is left.
#ifndef GCAP_SIM_BRIDGE_LEAK_H_
#define GCAP_SIM_BRIDGE_LEAK_H_

// A handle of a library, which is no entry of the runtime's table, comes and goes.
void gcap_sim_leak_object_made(const char* kind, const void* object);
void gcap_sim_leak_object_gone(const void* object);

#endif  // GCAP_SIM_BRIDGE_LEAK_H_
