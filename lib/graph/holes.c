// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Holes: those that a run's work has made (hole_issue.c), and those of a graph, which segment_launch.c launches.
//
// Locking: none. A list is its run's, and so the thread's that issues the work; the holes of a graph do not change.
// That a function of a hole runs is known by thread.

#include "lib/graph/holes.h"

#include <stdlib.h>
#include <string.h>

#include "lib/graph/inner.h"
#include "lib/internal/unwind.h"

static _Thread_local bool is_in_hole;

gcap_status_t gcap_graph_refuse_in_hole(const char* operation) {
  if (!is_in_hole) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: called by the function of a hole, which may not", operation);
}

// --- Lists ----------------------------------------------------------------------------------------------------------

gcap_status_t gcap_graph_hole_list_drop_graphs(gcap_graph_hole_list_t* list) {
  gcap_status_t status = NULL;
  for (size_t i = 0; i < list->count; ++i) {
    cudaGraph_t graph = list->items[i].before;
    list->items[i].before = NULL;
    if (graph != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(graph)));
  }
  return status;
}

gcap_status_t gcap_graph_hole_list_free(gcap_graph_hole_list_t* list) {
  gcap_status_t status = gcap_graph_hole_list_drop_graphs(list);
  free(list->items);
  gcap_graph_refused_release(list->refused);
  *list = (gcap_graph_hole_list_t){0};
  return status;
}

static bool is_same(const gcap_graph_made_hole_t* a, const gcap_graph_made_hole_t* b) {
  return a->hole.work == b->hole.work && a->hole.user == b->hole.user && strcmp(a->name, b->name) == 0;
}

gcap_status_t gcap_graph_hole_list_compare(const gcap_graph_hole_list_t* a, const gcap_graph_hole_list_t* b) {
  const size_t least = a->count < b->count ? a->count : b->count;
  size_t first = 0;
  while (first < least && is_same(&a->items[first], &b->items[first])) ++first;
  if (first == a->count && first == b->count) return NULL;
  const gcap_graph_made_hole_t* made = first < a->count ? &a->items[first] : &b->items[first];
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "hole %zu '%s' is made in one capture of the run, and not, or with another function or other "
                     "data, in the other",
                     first, made->name);
}

gcap_status_t gcap_graph_hole_list_segments(const gcap_graph_hole_list_t* list, cudaGraph_t last,
                                            cudaGraph_t** out_segments) {
  *out_segments = NULL;
  const size_t count = list->count + 1;
  cudaGraph_t* segments = malloc(count * sizeof(*segments));
  if (segments == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a list of %zu segments", count);
  for (size_t i = 0; i < list->count; ++i) segments[i] = list->items[i].before;
  segments[list->count] = last;
  *out_segments = segments;
  return NULL;
}

// --- The holes of a graph -------------------------------------------------------------------------------------------

gcap_status_t gcap_graph_holes_create(gcap_graph_hole_list_t* list, size_t num_addresses,
                                      gcap_graph_holes_t** out_holes) {
  *out_holes = NULL;
  if (list->count == 0) return NULL;
  gcap_graph_holes_t* holes = calloc(1, sizeof(*holes));
  cudaGraphExec_t* execs = calloc(list->count + 1, sizeof(*execs));
  void** addresses = calloc(num_addresses + 1, sizeof(*addresses));
  if (holes == NULL || execs == NULL || addresses == NULL) {
    free(holes);
    free(execs);
    free(addresses);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu holes", list->count);
  }
  *holes = (gcap_graph_holes_t){.list = *list, .execs = execs, .addresses = addresses};
  *list = (gcap_graph_hole_list_t){0};
  *out_holes = holes;
  return NULL;
}

void gcap_graph_holes_count(const gcap_graph_holes_t* holes, gcap_graph_info_t* info) {
  info->holes = holes != NULL ? holes->list.count : 0;
  info->refused_steps = 0;
  for (size_t i = 0; i < info->holes; ++i) info->refused_steps += holes->list.items[i].was_refused;
}

bool gcap_graph_hole_set_inside(bool is_inside) {
  const bool was_inside = is_in_hole;
  is_in_hole = is_inside;
  return was_inside;
}

static void leave_function(const bool* was_in_hole) { is_in_hole = *was_in_hole; }

gcap_status_t gcap_graph_hole_call(const gcap_graph_made_hole_t* made, const gcap_run_resources_t* resources) {
  GCAP_AT_SCOPE_END(leave_function) const bool was_in_hole = is_in_hole;
  (void)was_in_hole;
  is_in_hole = true;
  return made->hole.work(made->hole.user, resources);
}
