// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cublas_v2.h: cuBLAS with its functions under the names that programs use, as NVIDIA's header of this name has it.
#ifndef GCAP_SIM_INCLUDE_CUBLAS_V2_H_
#define GCAP_SIM_INCLUDE_CUBLAS_V2_H_

#include "cublas_api.h"

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
#define cublasSgemm cublasSgemm_v2
#define cublasDgemm cublasDgemm_v2

#endif  // GCAP_SIM_INCLUDE_CUBLAS_V2_H_
