// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// partition.h: which EP runs which node.
#ifndef GCAP_KIT_SESSION_PARTITION_H_
#define GCAP_KIT_SESSION_PARTITION_H_

#include "kit/session/model.h"

// Sets `out_eps[n]` to the index in `eps` of the EP that runs node n.
//   UNIMPLEMENTED       no EP supports a node; the message names the node and the EPs
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_partition(const gcap_session_model_t* model, gcap_ep_t* const* eps, size_t num_eps,
                             int* out_eps) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_PARTITION_H_
