// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cublaslt_status.h: cuBLASLt's status codes as ours.
#ifndef GCAP_OPS_CUBLASLT_CUBLASLT_STATUS_H_
#define GCAP_OPS_CUBLASLT_CUBLASLT_STATUS_H_

#include <cublasLt.h>

#include "gcap/status.h"

// NULL for success; else a LIBRARY_ERROR that names the function of `call`, which is the text of the call. Clears the
// runtime's last error.
gcap_status_t gcap_cublaslt_status(cublasStatus_t code, const char* call, const char* file, int line) GCAP_NODISCARD;
#define GCAP_CUBLASLT(call) gcap_cublaslt_status((call), #call, __FILE__, __LINE__)

#endif  // GCAP_OPS_CUBLASLT_CUBLASLT_STATUS_H_
