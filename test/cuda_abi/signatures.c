// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The simulator's declarations of functions, after NVIDIA's in one translation unit: a signature that differs does not
// compile. The types are NVIDIA's alone, so the simulator's header of types is switched off by its guard.
#include <cuda_runtime_api.h>

#undef CUDART_VERSION
#define GCAP_SIM_DRIVER_TYPES_H_
#include "sim/include/cuda_runtime_api.h"
