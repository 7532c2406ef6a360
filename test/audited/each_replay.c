// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Linked into every program of --config=audited, with the linker's --wrap: each graph manager audits each of its
// replays, whatever its options say. So all tests and examples are tests for false alarms.

#include "lib/graph/inner.h"

// The library's own; NULL in a program without graphs.
extern __attribute__((weak)) gcap_status_t __real_gcap_graph_manager_options_read(
    const gcap_graph_manager_options_t* given, gcap_graph_manager_options_t* out_options);
gcap_status_t __wrap_gcap_graph_manager_options_read(const gcap_graph_manager_options_t* given,
                                                     gcap_graph_manager_options_t* out_options);

gcap_status_t __wrap_gcap_graph_manager_options_read(const gcap_graph_manager_options_t* given,
                                                     gcap_graph_manager_options_t* out_options) {
  GCAP_RETURN_IF_ERROR(__real_gcap_graph_manager_options_read(given, out_options));
  if (out_options->audit == GCAP_GRAPH_AUDIT_OFF) out_options->audit = GCAP_GRAPH_AUDIT_EACH_REPLAY;
  return NULL;
}
