// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// kernel.h: the kernel of a node, in ONNX Runtime's hands.
#ifndef GCAP_ORT_KERNEL_H_
#define GCAP_ORT_KERNEL_H_

#include "ort/objects.h"

// `state` is a gcap_ort_registered_op_t.
gcap_ort_status_t* gcap_ort_create_kernel(void* state, const gcap_ort_kernel_info_t* info,
                                          gcap_ort_kernel_impl_t** out_kernel);

#endif  // GCAP_ORT_KERNEL_H_
