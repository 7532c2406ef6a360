// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: a graph manager's options, those of a replay, and their defaults.
#ifndef GCAP_LIB_GRAPH_OPTIONS_H_
#define GCAP_LIB_GRAPH_OPTIONS_H_

#include "gcap/graph.h"
#include "lib/internal/sized.h"

extern const gcap_sized_type_t gcap_graph_manager_options_type;

// The caller's options in the library's layout; of NULL the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_graph_manager_options_read(const gcap_graph_manager_options_t* given,
                                              gcap_graph_manager_options_t* out_options) GCAP_NODISCARD;

// Of options in the library's layout.
//   INVALID_ARGUMENT  a capture mode, policy or audit level that does not exist, or too large a ledger
gcap_status_t gcap_graph_manager_options_check(const gcap_graph_manager_options_t* options) GCAP_NODISCARD;

gcap_status_t gcap_graph_replay_options_read(const gcap_graph_replay_options_t* given,
                                             gcap_graph_replay_options_t* out_options) GCAP_NODISCARD;

//   INVALID_ARGUMENT  as gcap_sized_read; no items although there is a count; or stand-ins that do not exist
gcap_status_t gcap_graph_buffers_read(const gcap_graph_buffers_t* given,
                                      gcap_graph_buffers_t* out_buffers) GCAP_NODISCARD;

// The buffers' own addresses, as an array that the caller frees.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_buffers_copy_addresses(const gcap_graph_buffers_t* buffers,
                                                void*** out_addresses) GCAP_NODISCARD;

#endif  // GCAP_LIB_GRAPH_OPTIONS_H_
