// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// error.h: what an error is called.
#ifndef GCAP_SIM_API_ERROR_H_
#define GCAP_SIM_API_ERROR_H_

#include "cuda_runtime_api.h"

const char* gcap_sim_error_name(cudaError_t code);

#endif  // GCAP_SIM_API_ERROR_H_
