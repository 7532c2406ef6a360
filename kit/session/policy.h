// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// policy.h: whether one EP can capture the whole of a model, and which steps of it are in holes.
#ifndef GCAP_KIT_SESSION_POLICY_H_
#define GCAP_KIT_SESSION_POLICY_H_

#include "kit/session/program.h"

// NULL if a graph that the EP number `capturing` captures would be all of the program. Else the refusal, which names
// the first node that is in the way, its EP, and the reason.
//   FAILED_PRECONDITION  the graph would lack a part of the work, or keep what a later run may change
gcap_status_t gcap_policy_check(const gcap_session_model_t* model, gcap_ep_t* const* eps, const int* ep_of,
                                const gcap_program_t* program, int capturing,
                                gcap_graph_node_policy_t policy) GCAP_NODISCARD;

// Whether the step is in a hole of a captured run. `kernels`: of each node.
bool gcap_policy_needs_hole(const gcap_step_t* step, int capturing, const gcap_kernel_t* kernels);

// The same question of a program that gcap_policy_check allows, once its kernels are made.
//   FAILED_PRECONDITION  a kernel is not capturable, and the policy allows no holes; a captured node would keep what a
//                        later run may change; or no node would be captured
gcap_status_t gcap_policy_check_kernels(const gcap_session_model_t* model, gcap_ep_t* const* eps, const int* ep_of,
                                        const gcap_program_t* program, int capturing, gcap_graph_node_policy_t policy,
                                        const gcap_kernel_t* kernels) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_POLICY_H_
