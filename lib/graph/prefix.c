// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Launches of the beginning of a graph. Nodes are created in the order in which they were captured, so the beginning is
// a range of each segment's nodes, and no node of the range depends on one behind it. A clone of the source is cut
// behind the range, and is instantiated with the arguments that the executable has. The clone's executable is nobody's:
// it is retired as soon as it was launched, as a graph that was replaced, and goes when it is idle.
//
// The nodes behind are not switched off in the executable (cudaGraphNodeSetEnabled). Measured on an H200, driver
// 580.159.04: executables whose nodes were switched off and on again between launches, which were waited for, did not
// run the last node that was on, or read illegal addresses.
//
// Locking: the manager's mutex, but not over functions of guards and of holes, as in a replay. While the beginning of a
// graph with holes is launched the graph is in its holes.

#include "lib/graph/prefix.h"

#include "lib/graph/audit.h"
#include "lib/graph/inner.h"
#include "lib/graph/manager.h"
#include "lib/graph/run.h"
#include "lib/graph/segment_launch.h"
#include "lib/graph/variants.h"
#include "lib/internal/cache_line.h"
#include "lib/internal/cuda_guard.h"

// --- Steps of a graph -----------------------------------------------------------------------------------------------

void gcap_graph_keep_steps(gcap_graph_manager_t* manager, bool keep) {
  pthread_mutex_lock(&manager->mutex);
  manager->keeps_steps = keep;
  pthread_mutex_unlock(&manager->mutex);
}

// The slot whose graph a replay of the run would launch.
static gcap_status_t find_graph(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_slot_t** out_slot) {
  gcap_graph_slot_t* slot = gcap_graph_find_slot_of_run(manager, run);
  if (slot != NULL && slot->is_guarded) {
    gcap_graph_choice_t choice;
    GCAP_RETURN_IF_ERROR(gcap_graph_choose(manager, run, &choice));
    slot = choice.held;
  }
  *out_slot = slot;
  if (slot == NULL || slot->info.state != GCAP_GRAPH_CAPTURED) {
    return GCAP_STATUS(GCAP_NOT_FOUND, "graph id %d has no graph that is for the run", run->id);
  }
  if (slot->graph->has_steps) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d was captured without its steps", slot->id);
}

gcap_status_t gcap_graph_read_steps(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                    gcap_capture_steps_t* out_steps) {
  *out_steps = (gcap_capture_steps_t){0};
  gcap_graph_slot_t* slot = NULL;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = find_graph(manager, run, &slot);
  if (status == NULL) status = gcap_capture_steps_copy(&slot->graph->steps, out_steps);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

// --- Nodes behind a step --------------------------------------------------------------------------------------------

// The beginning of a segment.
typedef struct beginning {
  size_t segment;
  size_t first;  // in the contents: the first node behind it that is in no child graph; `end`: none is
  size_t end;    // in the contents: behind the last node of the segment
} beginning_t;

// The first node of the segment that no clone may have, for a message; NULL: none is known.
static const gcap_contents_node_t* find_obstacle(const gcap_contents_t* contents, size_t segment) {
  for (size_t i = 0; i < contents->count; ++i) {
    const gcap_contents_node_t* node = &contents->nodes[i];
    if (node->graph != segment) continue;
    if (node->type == cudaGraphNodeTypeMemAlloc || node->type == cudaGraphNodeTypeMemFree) return node;
  }
  return NULL;
}

// --- A clone --------------------------------------------------------------------------------------------------------

static cudaGraph_t source_of(const gcap_graph_captured_t* captured, size_t segment) {
  const gcap_graph_holes_t* holes = captured->holes;
  return holes != NULL && segment < holes->list.count ? holes->list.items[segment].before : captured->source;
}

// Removes the nodes behind the beginning, the last one first, so that none has one that depends on it.
static gcap_status_t cut(const gcap_contents_t* contents, const beginning_t* beginning, cudaGraph_t clone) {
  for (size_t i = beginning->end; i > beginning->first; --i) {
    const gcap_contents_node_t* node = &contents->nodes[i - 1];
    cudaGraphNode_t twin = NULL;
    if (node->parent != GCAP_CONTENTS_TOP) continue;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphNodeFindInClone(&twin, node->node, clone)));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphDestroyNode(twin)));
  }
  return NULL;
}

// Makes the executable of the beginning from a clone, with the arguments as they are now.
static gcap_status_t make_exec(const gcap_graph_captured_t* captured, const beginning_t* beginning,
                               cudaGraphExec_t* out_exec) {
  cudaGraph_t clone = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphClone(&clone, source_of(captured, beginning->segment))));
  gcap_status_t status = cut(&captured->contents, beginning, clone);
  if (status == NULL) status = gcap_graph_instantiate(clone, out_exec);
  const gcap_graph_moving_t* moving = captured->moving;
  if (status == NULL && moving != NULL && moving->relocation != NULL) {
    status = gcap_relocation_set_clone(moving->relocation, beginning->segment, beginning->first, clone, *out_exec);
  }
  return gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(clone)));
}

// What keeps a clone's executable until it is idle, with all that the graph retains.
static gcap_status_t make_keeper(const gcap_graph_captured_t* captured, gcap_graph_captured_t** out_keeper) {
  gcap_graph_captured_t* keeper = gcap_calloc_line(sizeof(*keeper));
  *out_keeper = keeper;
  if (keeper == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the beginning of a graph");
  *keeper = (gcap_graph_captured_t){.id = captured->id, .stream = captured->stream, .stream_id = captured->stream_id};
  keeper->device_id = captured->device_id;
  keeper->use.device_id = captured->device_id;
  keeper->stream_life = gcap_life_retain(captured->stream_life);
  keeper->retained = gcap_retained_share(captured->retained);
  return NULL;
}

static gcap_status_t launch_clone(const gcap_graph_captured_t* captured, const beginning_t* beginning,
                                  cudaStream_t stream, gcap_graph_captured_t* keeper) {
  const gcap_graph_cost_watch_t watch = gcap_graph_cost_begin(captured->device_id, 0, /*may_measure=*/false);
  gcap_status_t status = make_exec(captured, beginning, &keeper->exec);
  gcap_graph_cost_end(&watch, keeper->exec != NULL);
  return status != NULL ? status : GCAP_CUDA(cudaGraphLaunch(keeper->exec, stream));
}

// --- The launch -----------------------------------------------------------------------------------------------------

// A launch in progress.
typedef struct prefix {
  gcap_graph_manager_t* manager;
  gcap_graph_slot_t* slot;
  cudaStream_t stream;
  const gcap_capture_step_t* last;
  gcap_graph_captured_t* keeper;  // of a clone's executable; NULL: there is none
} prefix_t;

static gcap_status_t explain(const prefix_t* prefix, const beginning_t* beginning, gcap_status_t refusal) {
  const gcap_contents_t* contents = &prefix->slot->graph->contents;
  const gcap_contents_node_t* obstacle = find_obstacle(contents, beginning->segment);
  char node[256] = "";
  if (obstacle != NULL) gcap_contents_write_node(contents, obstacle, node, sizeof(node));
  gcap_status_info_t info;
  gcap_status_get_info(refusal, &info);
  const bool is_unable = info.cuda_error == cudaErrorNotSupported;
  return gcap_status_annotate(refusal, is_unable ? GCAP_FAILED_PRECONDITION : gcap_status_code(refusal),
                              "graph id %d cannot be launched up to '%s'%s%s", prefix->slot->id,
                              prefix->last->operation, obstacle != NULL ? ", since no clone has its " : "", node);
}

// Launches the beginning of the last step's segment. On the graph's device, in the relaxed mode.
static gcap_status_t launch_beginning(prefix_t* prefix, const beginning_t* beginning) {
  const gcap_graph_captured_t* captured = prefix->slot->graph;
  if (beginning->first == beginning->end) {
    return GCAP_CUDA(cudaGraphLaunch(gcap_graph_execs(captured)[beginning->segment], prefix->stream));
  }
  GCAP_RETURN_IF_ERROR(make_keeper(captured, &prefix->keeper));
  gcap_status_t status = launch_clone(captured, beginning, prefix->stream, prefix->keeper);
  return status == NULL ? NULL : explain(prefix, beginning, status);
}

static gcap_status_t launch_last_segment(prefix_t* prefix) {
  const gcap_capture_step_t* last = prefix->last;
  const gcap_graph_captured_t* captured = prefix->slot->graph;
  const size_t num_nodes = last->first_node + last->num_nodes;
  if (num_nodes == 0) return NULL;
  const gcap_contents_t* contents = &captured->contents;
  const beginning_t beginning = {.segment = last->segment,
                                 .first = gcap_contents_index_of_top(contents, last->segment, num_nodes),
                                 .end = gcap_contents_index_of_top(contents, last->segment, contents->count)};
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(captured->device_id, &previous));
  gcap_status_t status = launch_beginning(prefix, &beginning);
  return gcap_status_join(status, gcap_thread_leave(captured->device_id, &previous));
}

// Launches whole segments and calls functions up to the last step, and then the beginning of its segment.
static gcap_status_t launch_all(prefix_t* prefix) {
  gcap_graph_manager_t* manager = prefix->manager;
  const gcap_graph_captured_t* captured = prefix->slot->graph;
  const gcap_capture_step_t* last = prefix->last;
  if (captured->holes == NULL) return launch_last_segment(prefix);
  const bool is_hole = last->kind == GCAP_CAPTURE_STEP_HOLE;
  const size_t num_whole = last->segment + is_hole;
  gcap_graph_enter_holes(manager, prefix->slot->graph);
  uint64_t launches = 0;
  gcap_status_t status = gcap_graph_launch_first(manager, prefix->slot->graph, num_whole, prefix->stream, &launches);
  if (status == NULL && !is_hole) status = launch_last_segment(prefix);
  gcap_graph_leave_holes(manager);
  return status;
}

// As a replay on the stream: what a launch of the graph waits for, and what waits for it.
static gcap_status_t launch_in_order(prefix_t* prefix) {
  gcap_graph_captured_t* captured = prefix->slot->graph;
  GCAP_RETURN_IF_ERROR(gcap_graph_run_check_abandoned(prefix->manager));
  GCAP_RETURN_IF_ERROR(gcap_graph_check_launch(prefix->manager, captured, prefix->stream));
  if (prefix->manager->audits_replays) GCAP_RETURN_IF_ERROR(gcap_graph_check_memory(captured));
  const bool is_elsewhere = prefix->stream != captured->stream;
  if (is_elsewhere) GCAP_RETURN_IF_ERROR(gcap_graph_order_there(captured, prefix->stream));
  gcap_status_t status = launch_all(prefix);
  if (is_elsewhere) status = gcap_status_join(status, gcap_graph_order_back(captured, prefix->stream));
  if (prefix->keeper == NULL) return status;
  prefix->keeper->stray = captured->stray;
  return gcap_status_join(status, gcap_graph_retire(prefix->manager, prefix->keeper));
}

static gcap_status_t launch_steps(prefix_t* prefix, const gcap_run_t* run, size_t num_steps) {
  GCAP_RETURN_IF_ERROR(find_graph(prefix->manager, run, &prefix->slot));
  const gcap_graph_captured_t* captured = prefix->slot->graph;
  if (num_steps > captured->steps.count) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: num_steps is %zu, and the graph has %zu steps",
                       captured->id, num_steps, captured->steps.count);
  }
  if (num_steps == 0) return NULL;
  prefix->last = &captured->steps.items[num_steps - 1];
  if (prefix->stream == GCAP_RUN_OWN_STREAM) prefix->stream = captured->stream;
  return gcap_graph_name_failure(prefix->slot, launch_in_order(prefix));
}

gcap_status_t gcap_graph_launch_prefix(gcap_graph_manager_t* manager, const gcap_run_t* run, size_t num_steps) {
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  prefix_t prefix = {.manager = manager, .stream = run->stream};
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = launch_steps(&prefix, run, num_steps);
  pthread_mutex_unlock(&manager->mutex);
  return gcap_status_join(status, gcap_graph_clean_up(manager, /*evicted=*/NULL));
}
