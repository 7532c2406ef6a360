// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_contents.h: what is inside a captured graph, for any cudaGraph_t, with or without the graph manager.
#ifndef GCAP_GRAPH_CONTENTS_H_
#define GCAP_GRAPH_CONTENTS_H_

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// One difference between two graphs. The texts are valid during the call.
typedef struct gcap_graph_difference {
  size_t struct_size;
  size_t node;            // index in the order of creation, counting the nodes of child graphs behind their child
  const char* node_text;  // "node 3 of 7, kernel scale"
  const char* field;      // "grid", "cluster dimension", "argument 2, byte 8", "nodes"
  const char* before;     // "4x1x1", "0x7f3c00000000"
  const char* after;
} gcap_graph_difference_t;

typedef void (*gcap_graph_difference_fn)(void* user, const gcap_graph_difference_t* difference);

// Compares two graphs, node by node in the order of their creation: types, dependencies, kernels, launch dimensions,
// launch attributes, and every word of the arguments of kernels, copies and fills, those of cuBLAS and cuDNN too. Calls
// `on_difference` for each difference; NULL: only counts. `*out_count`: how many there are; 0 says that the graphs do
// the same work on the same addresses. `out_count` may be NULL. If the graphs have different numbers of nodes, that is
// the first difference, and nodes are compared up to the first one of another type or kernel.
// Thread:   any; nobody changes the graphs meanwhile.
// Capture:  legal. Neither graph is one that is being captured.
//   INVALID_ARGUMENT    a graph is NULL
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the nodes of a graph cannot be read
GCAP_API gcap_status_t gcap_graph_diff(cudaGraph_t before, cudaGraph_t after, gcap_graph_difference_fn on_difference,
                                       void* user, size_t* out_count) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_CONTENTS_H_
