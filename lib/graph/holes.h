// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// holes.h: the holes of a run while its work makes them, and those of a graph.
#ifndef GCAP_LIB_GRAPH_HOLES_H_
#define GCAP_LIB_GRAPH_HOLES_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "gcap/graph_holes.h"
#include "gcap/graph_info.h"
#include "gcap/run.h"
#include "lib/capture/inner.h"
#include "lib/graph/refused.h"

// A hole as it was made.
typedef struct gcap_graph_made_hole {
  gcap_graph_hole_t hole;  // `name` is not used
  char name[GCAP_GRAPH_NAME_BYTES];
  gcap_run_resources_t resources;  // of the capture: its gcap_stream_t, scratch and allocator count
  cudaGraph_t before;              // the segment that the hole ended, until somebody takes it
  bool was_refused;                // by an earlier capture: it is no hole otherwise
} gcap_graph_made_hole_t;

// The holes of one work. All zeros: none. Belongs to the thread that issues the work.
typedef struct gcap_graph_hole_list {
  gcap_graph_made_hole_t* items;
  size_t count, room;
  gcap_graph_refused_t* refused;  // the steps that are holes; NULL: none
  gcap_graph_step_name_t tried;   // the last step that was no hole
  bool is_refused;                // that one failed the capture, or has not returned
} gcap_graph_hole_list_t;

// Destroys the segments that are left.
gcap_status_t gcap_graph_hole_list_free(gcap_graph_hole_list_t* list);
// Destroys the segments, and keeps the rest.
gcap_status_t gcap_graph_hole_list_drop_graphs(gcap_graph_hole_list_t* list);

// NULL: both have the same holes. Else says which one makes them differ.
gcap_status_t gcap_graph_hole_list_compare(const gcap_graph_hole_list_t* a, const gcap_graph_hole_list_t* b);

// The segments of a capture, whose last one is `last`: an array of list->count + 1, which the caller frees.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_hole_list_segments(const gcap_graph_hole_list_t* list, cudaGraph_t last,
                                            cudaGraph_t** out_segments) GCAP_NODISCARD;

// The holes of a graph.
typedef struct gcap_graph_holes {
  gcap_graph_hole_list_t list;  // whose segments live as long as executables are moved
  // [list.count + 1]. The last one is that of the graph, which destroys it; NULL: not made, since nothing is launched.
  cudaGraphExec_t* execs;
  bool is_last_empty;
  void** addresses;  // [count + num_values] of the graph's buffers: what the functions of a replay get
} gcap_graph_holes_t;

// Takes the list. NULL if there are none. `num_addresses`: of buffers and values.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_holes_create(gcap_graph_hole_list_t* list, size_t num_addresses,
                                      gcap_graph_holes_t** out_holes);

// How many holes a graph has, and how many of them are refused steps. NULL: none.
void gcap_graph_holes_count(const gcap_graph_holes_t* holes, gcap_graph_info_t* info);

// Calls the function of a step in the capture, as part of the segment, and notes in the list whether the capture was
// refused that. `hole` has a name. `*out_is_over`: the function closed the capture, which is gone.
//   others  what the function returned, or what it did to the capture
gcap_status_t gcap_graph_hole_try(gcap_capture_t* capture, const gcap_graph_hole_t* hole,
                                  const gcap_run_resources_t* resources, gcap_graph_hole_list_t* list,
                                  bool* out_is_over) GCAP_NODISCARD;
// FAILED_PRECONDITION while this thread is in such a call; else NULL.
gcap_status_t gcap_graph_refuse_in_attempt(const char* operation) GCAP_NODISCARD;

// Names the hole in a failure of its function. NULL is fine.
static inline gcap_status_t gcap_graph_hole_name(gcap_status_t status, const char* name) {
  return gcap_status_annotate(status, gcap_status_code(status), "hole '%s'", name);
}
// Says whether the thread is in functions of holes, and gives what was said before.
bool gcap_graph_hole_set_inside(bool is_inside);
// Calls the function of a hole with these resources, and says meanwhile that the thread is inside.
gcap_status_t gcap_graph_hole_call(const gcap_graph_made_hole_t* made, const gcap_run_resources_t* resources);

#endif  // GCAP_LIB_GRAPH_HOLES_H_
