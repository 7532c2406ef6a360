// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// kernel_node.h: the node that a kernel is made for.
#ifndef GCAP_ORT_KERNEL_NODE_H_
#define GCAP_ORT_KERNEL_NODE_H_

#include "ort/node_model.h"

// Reads the node that a kernel is made for, which the EP has claimed. Constants that the runtime has in host memory
// come along.
gcap_status_t gcap_ort_node_read_kernel(gcap_ort_factory_t* factory, const gcap_ort_op_t* op,
                                        const gcap_ort_kernel_info_t* info,
                                        gcap_ort_node_model_t** out_model) GCAP_NODISCARD;

#endif  // GCAP_ORT_KERNEL_NODE_H_
