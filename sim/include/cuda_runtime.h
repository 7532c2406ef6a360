// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cuda_runtime.h: the umbrella name that most CUDA sources include. Here it is the C API only: no kernel launches with
// <<<>>>, no templates.
#ifndef GCAP_SIM_CUDA_RUNTIME_H_
#define GCAP_SIM_CUDA_RUNTIME_H_

#include "cuda_runtime_api.h"
#include "library_types.h"
#include "vector_types.h"

#endif  // GCAP_SIM_CUDA_RUNTIME_H_
