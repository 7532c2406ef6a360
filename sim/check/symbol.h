// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// symbol.h: what an address of code is called.
#ifndef GCAP_SIM_CHECK_SYMBOL_H_
#define GCAP_SIM_CHECK_SYMBOL_H_

#include <stdbool.h>
#include <stdio.h>

#include "sim/check/origin.h"

// Prints the frames, each on a line of its own after `indent`. Those of the simulator above the call are left out.
void gcap_sim_symbol_print(FILE* out, const char* indent, const gcap_sim_origin_t* origin);
// Is a function of the stack called exactly `name`?
bool gcap_sim_symbol_has(const gcap_sim_stack_t* stack, const char* name);

#endif  // GCAP_SIM_CHECK_SYMBOL_H_
