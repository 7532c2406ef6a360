// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cudnn_status.h: cuDNN's status codes as ours.
#ifndef GCAP_OPS_CUDNN_CUDNN_STATUS_H_
#define GCAP_OPS_CUDNN_CUDNN_STATUS_H_

#include <cudnn.h>

#include "gcap/status.h"

// NULL for success; else a LIBRARY_ERROR that names the function of `call`, which is the text of the call. Clears the
// runtime's last error.
gcap_status_t gcap_cudnn_status(cudnnStatus_t code, const char* call, const char* file, int line) GCAP_NODISCARD;
#define GCAP_CUDNN(call) gcap_cudnn_status((call), #call, __FILE__, __LINE__)

#endif  // GCAP_OPS_CUDNN_CUDNN_STATUS_H_
