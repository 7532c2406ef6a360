// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// capability.h: which nodes of a graph the EP runs.
#ifndef GCAP_ORT_CAPABILITY_H_
#define GCAP_ORT_CAPABILITY_H_

#include "ort/objects.h"

// OrtEp.GetCapability.
gcap_ort_status_t* gcap_ort_get_capability(gcap_ort_ep_t* self, const gcap_ort_graph_t* graph,
                                           gcap_ort_graph_support_t* info);

#endif  // GCAP_ORT_CAPABILITY_H_
