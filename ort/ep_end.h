// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep_end.h: who needs an EP: its session, and the allocators whose tensors may outlive the session.
#ifndef GCAP_ORT_EP_END_H_
#define GCAP_ORT_EP_END_H_

#include "ort/objects.h"

void gcap_ort_ep_retain(gcap_ort_session_ep_t* ep);
// The last one ends the EP. Failures are logged: the runtime does not ask.
void gcap_ort_ep_release(gcap_ort_session_ep_t* ep);

// Frees what there is of an EP that has no parts of gcap's.
void gcap_ort_ep_free(gcap_ort_session_ep_t* ep);

#endif  // GCAP_ORT_EP_END_H_
