// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// policy.h: whether one EP can capture the whole of a model.
#ifndef GCAP_KIT_SESSION_POLICY_H_
#define GCAP_KIT_SESSION_POLICY_H_

#include "kit/session/program.h"

// NULL if a graph that the EP number `capturing` captures would be all of the program. Else the refusal, which names
// the first node that is in the way, its EP, and the reason.
//   FAILED_PRECONDITION  the graph would lack a part of the work, or keep what a later run may change
gcap_status_t gcap_policy_check(const gcap_session_model_t* model, gcap_ep_t* const* eps, const int* ep_of,
                                const gcap_program_t* program, int capturing,
                                gcap_graph_node_policy_t policy) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_POLICY_H_
