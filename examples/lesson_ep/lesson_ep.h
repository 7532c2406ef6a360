// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// lesson_ep.h: the execution provider of the lessons that are about its host.
#ifndef GCAP_EXAMPLES_LESSON_EP_LESSON_EP_H_
#define GCAP_EXAMPLES_LESSON_EP_LESSON_EP_H_

#include "gcap/kit/ep.h"

// Makes an EP of the name "lesson", on a runtime with these options (docs/options.md). Its nodes, of f32:
//   Add      the sum of two inputs, with broadcasting
//   Reshape  a copy of the first input; the second one, an i64 in host memory, is its shape
// Thread, Capture, Lifetime: as gcap_ep_t.
//   errors of gcap_options_parse_for_ep, gcap_runtime_create and gcap_ep_create
gcap_status_t lesson_ep_create(const char* const* keys, const char* const* values, size_t num_options,
                               gcap_graph_node_policy_t policy, gcap_ep_t** out_ep) GCAP_NODISCARD;

#endif  // GCAP_EXAMPLES_LESSON_EP_LESSON_EP_H_
