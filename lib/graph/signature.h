// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// signature.h: a copy of the tensors that a graph was captured with, and the comparison with others.
#ifndef GCAP_LIB_GRAPH_SIGNATURE_H_
#define GCAP_LIB_GRAPH_SIGNATURE_H_

#include "gcap/graph.h"

// One allocation: the bindings, then their shapes, then their names.
typedef struct gcap_graph_signature {
  size_t count;
  gcap_graph_binding_t bindings[];
} gcap_graph_signature_t;

//   INVALID_ARGUMENT    a rank below 0, no shape, no bindings
gcap_status_t gcap_graph_bindings_check(const gcap_graph_binding_t* bindings, size_t n);

// Copies bindings that were checked; free() ends it.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_signature_create(const gcap_graph_binding_t* bindings, size_t n,
                                          gcap_graph_signature_t** out_signature);

// `signature` may be NULL: the run had no bindings. The status does not name the graph.
//   FAILED_PRECONDITION  as gcap_graph_manager_replay
gcap_status_t gcap_graph_signature_check(const gcap_graph_signature_t* signature, const gcap_graph_binding_t* bindings,
                                         size_t n);

#endif  // GCAP_LIB_GRAPH_SIGNATURE_H_
