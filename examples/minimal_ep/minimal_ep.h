// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// minimal_ep.h: an execution provider for real models in one short source: the example to copy from.
#ifndef GCAP_EXAMPLES_MINIMAL_EP_MINIMAL_EP_H_
#define GCAP_EXAMPLES_MINIMAL_EP_MINIMAL_EP_H_

#include "gcap/kit/ep.h"
#include "gcap/kit/ep_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes the provider. It runs the nodes that gcap/kit/ops/nodes.h lists, with shapes fixed or symbolic, and honors the
// options that are said there. Nodes that only compute shapes may be on an EP that runs on the host, as gcap_cpu_ep:
// its policy is GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES.
// Thread, Capture, Lifetime: as gcap_ep_t.
//   INVALID_ARGUMENT  options that contradict each other, or no such device
//   LIBRARY_ERROR     cuBLASLt could not start
//   others            of gcap_runtime_create and gcap_node_kernels_create
gcap_status_t minimal_ep_create(const gcap_options_t* options, gcap_ep_t** out_ep) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MINIMAL_EP_MINIMAL_EP_H_
