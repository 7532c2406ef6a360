// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// kernel.h: one node made ready to run on the CPU.
#ifndef GCAP_KIT_CPU_EP_KERNEL_H_
#define GCAP_KIT_CPU_EP_KERNEL_H_

#include "kit/cpu_ep/op.h"

// Makes the kernel of a node that the row accepts. The kernel keeps nothing of the model.
//   INVALID_ARGUMENT    the shapes of the model, or the content of a constant, do not fit
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_cpu_kernel_create(const gcap_cpu_op_t* op, const gcap_model_t* model, const gcap_node_t* node,
                                     gcap_kernel_t* out_kernel);

#endif  // GCAP_KIT_CPU_EP_KERNEL_H_
