// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cuda_profiler_api.h: where a profiler is to look. There is none here.
#ifndef GCAP_SIM_CUDA_PROFILER_API_H_
#define GCAP_SIM_CUDA_PROFILER_API_H_

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_SIM_CUDA_PROFILER_API_H_
