// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// twins.h: whether an id was captured again that had a graph for the run. Fixtures ask before the end of each manager.
#ifndef GCAP_TEST_GRAPH_TWINS_H_
#define GCAP_TEST_GRAPH_TWINS_H_

#include <stddef.h>

#include "gcap/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// How many pairs of an id's graphs are for the same decisions, on buffers that lie alike. NULL has none.
size_t gcap_test_count_twins(gcap_graph_manager_t* manager);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_GRAPH_TWINS_H_
