// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// swish_ep.h: an execution provider (EP) with one operator, Swish of one f32 tensor.
#ifndef GCAP_CONSUMER_SWISH_EP_H_
#define GCAP_CONSUMER_SWISH_EP_H_

#include "gcap/kit/ep.h"

#define SWISH_EP_BETA 1.5f

// Makes the EP on a runtime with these options. gcap_ep_destroy ends both.
gcap_status_t swish_ep_create(const gcap_options_t* options, gcap_ep_t** out_ep);

#endif  // GCAP_CONSUMER_SWISH_EP_H_
