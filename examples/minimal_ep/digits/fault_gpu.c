// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Faults on a GPU: there are none to be had.

#include "examples/minimal_ep/digits/fault.h"

bool fault_is_available(void) { return false; }

void fault_arm(uint64_t nth) { (void)nth; }

uint64_t fault_num_calls(void) { return 0; }
