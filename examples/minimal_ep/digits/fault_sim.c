// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Faults on the simulator, which has them. The only file of the program that knows where it runs.

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "examples/minimal_ep/digits/fault.h"
#include "gcap_sim.h"

bool fault_is_available(void) { return true; }

void fault_arm(uint64_t nth) { gcap_sim_fail_nth(NULL, nth, cudaErrorUnknown); }

uint64_t fault_num_calls(void) { return gcap_sim_calls_for_faults(); }
