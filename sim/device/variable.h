// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// variable.h: variables of devices, which the host names by an address of its own, the symbol.
#ifndef GCAP_SIM_DEVICE_VARIABLE_H_
#define GCAP_SIM_DEVICE_VARIABLE_H_

#include <stdbool.h>
#include <stddef.h>

#include "cuda_runtime_api.h"

// Finds the bytes [offset, offset + count) of the variable on the thread's device, for a copy of that kind to it, or
// from it where `from` is set. Answers cudaErrorInvalidSymbol, cudaErrorInvalidMemcpyDirection or
// cudaErrorInvalidValue.
cudaError_t gcap_sim_variable_part(const void* symbol, size_t count, size_t offset, enum cudaMemcpyKind kind, bool from,
                                   void** out);
// All variables of the device have their first contents again.
void gcap_sim_variables_reset(int device);

// An object that nvcc compiled brings a variable, and takes it away; the code must stay valid until then.
void gcap_sim_variable_declare(const void* symbol, const char* registered, size_t bytes, const void* code);
void gcap_sim_variable_withdraw(const void* symbol, const void* code);

#endif  // GCAP_SIM_DEVICE_VARIABLE_H_
