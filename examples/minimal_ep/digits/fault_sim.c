// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Faults on the simulator, which has them. The only file of the program that knows where it runs.

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "examples/minimal_ep/digits/fault.h"
#include "gcap_sim.h"

bool fault_is_available(void) { return true; }

void fault_arm(uint64_t nth) { gcap_sim_fail_nth(NULL, nth, cudaErrorUnknown); }

uint64_t fault_num_calls(void) {
  uint64_t calls = gcap_sim_calls(NULL);
  // A fault for any function passes these by.
  static const char* const passed_by[] = {"cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorName",
                                          "cudaGetErrorString", "cudaLogsRegisterCallback"};
  for (size_t i = 0; i < sizeof(passed_by) / sizeof(passed_by[0]); ++i) calls -= gcap_sim_calls(passed_by[i]);
  return calls;
}
