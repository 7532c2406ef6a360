// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// host_kernels.h: kernels of ONNX Runtime's own operators: copies and shapes.
#ifndef GCAP_ORT_HOST_KERNELS_H_
#define GCAP_ORT_HOST_KERNELS_H_

#include "ort/objects.h"

// Adds the operators that every EP on a device has.
gcap_status_t gcap_ort_register_host_kernels(gcap_ort_factory_t* factory) GCAP_NODISCARD;

#endif  // GCAP_ORT_HOST_KERNELS_H_
