// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// fault.h: faults that a caller asked for, and those of device work. Guarded by the global mutex.
#ifndef GCAP_SIM_API_FAULT_H_
#define GCAP_SIM_API_FAULT_H_

#include <stdbool.h>

#include "cuda_runtime_api.h"

struct gcap_sim_function;

// True while anything is armed, pending or sticky: all that a call without faults has to look at.
extern bool gcap_sim_fault_any;

// What the call answers in place of its own work: a sticky error, or the code of a fault that hits it, or success.
cudaError_t gcap_sim_fault_enter(struct gcap_sim_function* function);
// What the call answers after its work: a sticky error that surfaced meanwhile, else `code`.
cudaError_t gcap_sim_fault_leave(cudaError_t code);

// Device work failed: the next call that waits for the device, or finds its work done, answers `code`; it is sticky.
void gcap_sim_fault_device(cudaError_t code);
// Called where the host learns what the device did: a pending fault becomes sticky.
void gcap_sim_fault_surface(void);
// Has a fault stopped the device? Then work is done in name only.
bool gcap_sim_fault_stops_work(void);

#endif  // GCAP_SIM_API_FAULT_H_
