// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The graphs of a recording as reports show them.
//
// The idea: a recording lists nodes, edges, clones and times one by one, and a program that captures for ever has
// millions. So everything is sorted once by graph and id, a view is a range of the sorted nodes, and what refers to a
// node finds it by bisection. Locking: none.
#include "doctor/report/graph_view.h"

#include <stdlib.h>
#include <string.h>

#include "doctor/report/names.h"

typedef struct builder {
  const gcap_doctor_diagnosis_t* diagnosis;
  const gcap_doctor_recording_t* recording;
  gcap_doctor_graph_views_t* views;
  gcap_doctor_view_node_t* nodes;            // of all graphs, sorted by graph and id
  const gcap_doctor_event_edge_t** edges;    // sorted by graph
  const gcap_doctor_event_clone_t** clones;  // sorted by executable and copy
  const gcap_doctor_event_exec_t** execs;    // sorted by id
  const char** names_of_frames;              // made when first asked for, and so are these
  const char** names_of_ranges;
} builder_t;

#define COMPARE(a, b)         \
  do {                        \
    if ((a) < (b)) return -1; \
    if ((a) > (b)) return 1;  \
  } while (0)

static int by_graph_and_id(const void* left, const void* right) {
  const gcap_doctor_event_node_t *a = ((const gcap_doctor_view_node_t*)left)->node,
                                 *b = ((const gcap_doctor_view_node_t*)right)->node;
  COMPARE(a->graph, b->graph);
  COMPARE(a->id, b->id);
  COMPARE(a, b);
  return 0;
}

static int by_graph(const void* left, const void* right) {
  const gcap_doctor_event_edge_t *a = *(const gcap_doctor_event_edge_t*const*)left,
                                 *b = *(const gcap_doctor_event_edge_t*const*)right;
  COMPARE(a->graph, b->graph);
  COMPARE(a, b);
  return 0;
}

static int by_exec_and_copy(const void* left, const void* right) {
  const gcap_doctor_event_clone_t *a = *(const gcap_doctor_event_clone_t*const*)left,
                                  *b = *(const gcap_doctor_event_clone_t*const*)right;
  COMPARE(a->exec, b->exec);
  COMPARE(a->to, b->to);
  return 0;
}

static int by_exec(const void* left, const void* right) {
  const gcap_doctor_event_exec_t *a = *(const gcap_doctor_event_exec_t*const*)left,
                                 *b = *(const gcap_doctor_event_exec_t*const*)right;
  COMPARE(a->id, b->id);
  return 0;
}

static int by_id(const void* left, const void* right) {
  COMPARE(*(const uint32_t*)left, *(const uint32_t*)right);
  return 0;
}

// qsort of a NULL array is undefined.
static void sort(void* items, size_t count, size_t item_bytes, int (*compare)(const void*, const void*)) {
  if (count > 1) qsort(items, count, item_bytes, compare);
}

// --- Looking up ------------------------------------------------------------------------------------------------------

static gcap_doctor_view_node_t* find_node(const builder_t* builder, uint32_t graph, uint64_t id) {
  size_t low = 0, high = builder->recording->num_nodes;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const gcap_doctor_event_node_t* node = builder->nodes[middle].node;
    if (node->graph < graph || (node->graph == graph && node->id < id)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == builder->recording->num_nodes) return NULL;
  const gcap_doctor_event_node_t* node = builder->nodes[low].node;
  return node->graph == graph && node->id == id ? &builder->nodes[low] : NULL;
}

static const gcap_doctor_event_exec_t* find_exec(const builder_t* builder, uint32_t id) {
  gcap_doctor_event_exec_t key = {.id = id};
  const gcap_doctor_event_exec_t *wanted = &key, **found = NULL;
  if (builder->recording->num_execs != 0) {
    found = bsearch(&wanted, builder->execs, builder->recording->num_execs, sizeof(*builder->execs), by_exec);
  }
  return found != NULL ? *found : NULL;
}

static const gcap_doctor_event_clone_t* find_clone(const builder_t* builder, uint32_t exec, uint64_t copy) {
  gcap_doctor_event_clone_t key = {.exec = exec, .to = copy};
  const gcap_doctor_event_clone_t *wanted = &key, **found = NULL;
  if (builder->recording->num_clones != 0) {
    found =
        bsearch(&wanted, builder->clones, builder->recording->num_clones, sizeof(*builder->clones), by_exec_and_copy);
  }
  return found != NULL ? *found : NULL;
}

static gcap_doctor_graph_view_t* find_view(const gcap_doctor_graph_views_t* views, uint32_t graph) {
  size_t low = 0, high = views->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (views->items[middle].graph < graph) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < views->count && views->items[low].graph == graph ? &views->items[low] : NULL;
}

const gcap_doctor_graph_view_t* gcap_doctor_graph_views_find(const gcap_doctor_graph_views_t* views, uint32_t graph) {
  return find_view(views, graph);
}

// --- Names -----------------------------------------------------------------------------------------------------------

static const char* name_frame(builder_t* builder, uint32_t frame) {
  if (builder->names_of_frames[frame] == NULL) {
    builder->names_of_frames[frame] = gcap_doctor_name_frame(&builder->views->heap, builder->recording, frame);
  }
  return builder->names_of_frames[frame];
}

static const char* name_range(builder_t* builder, uint32_t range) {
  if (range == GCAP_DOCTOR_NONE) return "(no label)";
  if (builder->names_of_ranges[range] == NULL) {
    builder->names_of_ranges[range] = gcap_doctor_name_label(&builder->views->heap, builder->recording, range);
  }
  return builder->names_of_ranges[range];
}

static const char* name_node(builder_t* builder, const gcap_doctor_event_node_t* node,
                             const gcap_doctor_event_call_t* call) {
  gcap_doctor_heap_t* heap = &builder->views->heap;
  if (call == NULL) return node->type;
  if (call->kernel != NULL && strcmp(node->type, "kernel") == 0) return gcap_doctor_name_kernel(heap, call->kernel);
  if (call->copy != NULL && strcmp(node->type, "memcpy") == 0) {
    return gcap_doctor_heap_print(heap, "%s %s", node->type, call->copy);
  }
  return node->type;
}

static const char* name_missing_python(builder_t* builder, const gcap_doctor_event_call_t* call) {
  const char* why =
      call != NULL && call->stack != GCAP_DOCTOR_NONE ? builder->recording->stacks[call->stack].why : NULL;
  return why != NULL ? gcap_doctor_heap_print(&builder->views->heap, "(no Python stack: %s)", why)
                     : "(no Python stack)";
}

static void name(builder_t* builder, gcap_doctor_view_node_t* node) {
  const gcap_doctor_recording_t* recording = builder->recording;
  const gcap_doctor_event_call_t* call =
      node->node->call < recording->num_calls ? &recording->calls[node->node->call] : NULL;
  uint32_t stack = call != NULL ? call->stack : GCAP_DOCTOR_NONE;
  node->c_frame = gcap_doctor_recording_c_frame(recording, stack);
  node->python_frame = gcap_doctor_recording_user_frame(recording, stack);
  node->names[GCAP_DOCTOR_BY_KERNEL] = name_node(builder, node->node, call);
  node->names[GCAP_DOCTOR_BY_CALL_SITE] =
      node->c_frame != GCAP_DOCTOR_NONE ? name_frame(builder, node->c_frame) : "(no C stack)";
  node->names[GCAP_DOCTOR_BY_PYTHON_LINE] = node->python_frame != GCAP_DOCTOR_NONE
                                                ? name_frame(builder, node->python_frame)
                                                : name_missing_python(builder, call);
  node->range = call != NULL ? call->range : GCAP_DOCTOR_NONE;
  node->names[GCAP_DOCTOR_BY_LABEL] = name_range(builder, node->range);
}

// --- Times -----------------------------------------------------------------------------------------------------------

// A time is of a node of an executable: of the copy, as CUPTI's records have it, or of a node that is its own copy.
static void add_times(builder_t* builder) {
  const gcap_doctor_recording_t* recording = builder->recording;
  for (size_t i = 0; i < recording->num_times; ++i) {
    const gcap_doctor_event_time_t* time = &recording->times[i];
    const gcap_doctor_event_exec_t* exec = find_exec(builder, time->exec);
    const gcap_doctor_event_clone_t* clone = find_clone(builder, time->exec, time->node);
    gcap_doctor_view_node_t* node =
        exec != NULL ? find_node(builder, exec->graph, clone != NULL ? clone->from : time->node) : NULL;
    if (node == NULL) {
      ++builder->views->num_untied_times;
      continue;
    }
    node->total_runs += time->count;
    node->total_ns += time->ns;
    node->ns = node->total_runs != 0 ? node->total_ns / node->total_runs : 0;
  }
}

static void add_execs(builder_t* builder) {
  gcap_doctor_graph_views_t* views = builder->views;
  const gcap_doctor_recording_t* recording = builder->recording;
  uint64_t* counts = gcap_doctor_heap_alloc(&views->heap, (views->count + 1) * sizeof(*counts));
  uint64_t* sums = gcap_doctor_heap_alloc(&views->heap, (views->count + 1) * sizeof(*sums));
  for (size_t i = 0; i < recording->num_execs; ++i) {
    const gcap_doctor_event_exec_t* exec = &recording->execs[i];
    views->replays += exec->replays;
    views->failed_replays += exec->failed_replays;
    gcap_doctor_graph_view_t* view = find_view(views, exec->graph);
    if (view == NULL) continue;
    view->replays += exec->replays;
    view->failed_replays += exec->failed_replays;
    counts[view - views->items] += exec->whole_count;
    sums[view - views->items] += exec->whole_ns;
  }
  for (size_t i = 0; i < views->count; ++i) {
    views->items[i].whole_ns = counts[i] != 0 ? sums[i] / counts[i] : 0;
  }
}

// --- Groups ----------------------------------------------------------------------------------------------------------

typedef struct named {
  const char* name;
  uint32_t node;
} named_t;

static int by_name(const void* left, const void* right) {
  const named_t *a = left, *b = right;
  int order = strcmp(a->name, b->name);
  if (order != 0) return order;
  COMPARE(a->node, b->node);
  return 0;
}

static int by_cost(const void* left, const void* right) {
  const gcap_doctor_view_group_t *a = left, *b = right;
  COMPARE(b->ns, a->ns);
  COMPARE(b->count, a->count);
  return strcmp(a->name, b->name);
}

static int by_example(const void* left, const void* right) {
  COMPARE((*(const gcap_doctor_view_group_t* const*)left)->example,
          (*(const gcap_doctor_view_group_t* const*)right)->example);
  return 0;
}

// The nodes of one name, in a row, as one group.
static void merge(gcap_doctor_graph_view_t* view, gcap_doctor_grouping_t grouping, const named_t* named) {
  gcap_doctor_view_group_t* groups = view->groups[grouping];
  uint32_t count = 0;
  for (uint32_t i = 0; i < view->num_nodes; ++i) {
    if (i == 0 || strcmp(named[i].name, named[i - 1].name) != 0) {
      groups[count++] = (gcap_doctor_view_group_t){.name = named[i].name, .example = named[i].node};
    }
    ++groups[count - 1].count;
    groups[count - 1].ns += view->nodes[named[i].node].ns;
  }
  view->num_groups[grouping] = count;
}

// Tells the nodes where their names went: a group is found by its example, the first node of its name in `named`.
static void tie_groups(gcap_doctor_heap_t* local, gcap_doctor_graph_view_t* view, gcap_doctor_grouping_t grouping,
                       const named_t* named) {
  uint32_t count = view->num_groups[grouping], current = 0;
  const gcap_doctor_view_group_t** order = gcap_doctor_heap_alloc(local, count * sizeof(*order));
  for (uint32_t i = 0; i < count; ++i) order[i] = &view->groups[grouping][i];
  sort(order, count, sizeof(*order), by_example);
  for (uint32_t i = 0; i < view->num_nodes; ++i) {
    if (i == 0 || strcmp(named[i].name, named[i - 1].name) != 0) {
      gcap_doctor_view_group_t key = {.example = named[i].node};
      const gcap_doctor_view_group_t* wanted = &key;
      const gcap_doctor_view_group_t** found = bsearch(&wanted, order, count, sizeof(*order), by_example);
      current = (uint32_t)(*found - view->groups[grouping]);
    }
    view->nodes[named[i].node].groups[grouping] = current;
  }
}

static void group(gcap_doctor_heap_t* heap, gcap_doctor_graph_view_t* view, gcap_doctor_grouping_t grouping) {
  if (view->num_nodes == 0) return;
  gcap_doctor_heap_t local;
  gcap_doctor_heap_init(&local);
  named_t* named = gcap_doctor_heap_alloc(&local, view->num_nodes * sizeof(*named));
  for (uint32_t i = 0; i < view->num_nodes; ++i) named[i] = (named_t){view->nodes[i].names[grouping], i};
  sort(named, view->num_nodes, sizeof(*named), by_name);
  view->groups[grouping] = gcap_doctor_heap_alloc(heap, view->num_nodes * sizeof(*view->groups[grouping]));
  merge(view, grouping, named);
  sort(view->groups[grouping], view->num_groups[grouping], sizeof(*view->groups[grouping]), by_cost);
  tie_groups(&local, view, grouping, named);
  gcap_doctor_heap_deinit(&local);
}

// --- Layers ----------------------------------------------------------------------------------------------------------

// Successors of all nodes: those of node i are targets[first[i]] to targets[first[i + 1]].
typedef struct successors {
  uint32_t *first, *targets, *open;  // `open`: how many predecessors a node has
} successors_t;

static successors_t list_successors(gcap_doctor_heap_t* local, uint32_t num_nodes, const gcap_doctor_view_edge_t* edges,
                                    uint32_t num_edges) {
  successors_t lists = {gcap_doctor_heap_alloc(local, ((size_t)num_nodes + 2) * sizeof(uint32_t)),
                        gcap_doctor_heap_alloc(local, ((size_t)num_edges + 1) * sizeof(uint32_t)),
                        gcap_doctor_heap_alloc(local, ((size_t)num_nodes + 1) * sizeof(uint32_t))};
  for (uint32_t i = 0; i < num_edges; ++i) {
    ++lists.first[edges[i].from + 2];
    ++lists.open[edges[i].to];
  }
  for (uint32_t i = 2; i < num_nodes + 2; ++i) lists.first[i] += lists.first[i - 1];
  for (uint32_t i = 0; i < num_edges; ++i) lists.targets[lists.first[edges[i].from + 1]++] = edges[i].to;
  return lists;
}

// Takes nodes without open predecessors away, one by one.
uint32_t gcap_doctor_graph_layers(uint32_t num_nodes, const gcap_doctor_view_edge_t* edges, uint32_t num_edges,
                                  uint32_t* out_layers) {
  gcap_doctor_heap_t local;
  gcap_doctor_heap_init(&local);
  successors_t lists = list_successors(&local, num_nodes, edges, num_edges);
  uint32_t* ready = gcap_doctor_heap_alloc(&local, ((size_t)num_nodes + 1) * sizeof(*ready));
  uint32_t num_ready = 0, num_layers = 0;
  for (uint32_t i = 0; i < num_nodes; ++i) {
    out_layers[i] = 0;
    if (lists.open[i] == 0) ready[num_ready++] = i;
  }
  for (uint32_t i = 0; i < num_ready; ++i) {
    for (uint32_t j = lists.first[ready[i]]; j < lists.first[ready[i] + 1]; ++j) {
      uint32_t target = lists.targets[j];
      if (out_layers[target] < out_layers[ready[i]] + 1) out_layers[target] = out_layers[ready[i]] + 1;
      if (--lists.open[target] == 0) ready[num_ready++] = target;
    }
  }
  for (uint32_t i = 0; i < num_nodes; ++i) {
    if (lists.open[i] != 0) out_layers[i] = 0;
    if (out_layers[i] >= num_layers) num_layers = out_layers[i] + 1;
  }
  gcap_doctor_heap_deinit(&local);
  return num_layers;
}

static void layer(gcap_doctor_heap_t* heap, gcap_doctor_graph_view_t* view) {
  uint32_t* layers = gcap_doctor_heap_alloc(heap, ((size_t)view->num_nodes + 1) * sizeof(*layers));
  view->num_layers = gcap_doctor_graph_layers(view->num_nodes, view->edges, view->num_edges, layers);
  for (uint32_t i = 0; i < view->num_nodes; ++i) view->nodes[i].layer = layers[i];
}

// --- Building --------------------------------------------------------------------------------------------------------

// The ids of graphs, each once.
static uint32_t* collect_ids(builder_t* builder, size_t* out_count) {
  const gcap_doctor_diagnosis_t* diagnosis = builder->diagnosis;
  size_t most = builder->recording->num_nodes + diagnosis->num_captures, count = 0, unique = 0;
  uint32_t* ids = gcap_doctor_heap_alloc(&builder->views->heap, (most + 1) * sizeof(*ids));
  for (size_t i = 0; i < builder->recording->num_nodes; ++i) {
    uint32_t id = builder->nodes[i].node->graph;
    if (count == 0 || ids[count - 1] != id) ids[count++] = id;
  }
  for (size_t i = 0; i < diagnosis->num_captures; ++i) {
    if (diagnosis->captures[i].graph != GCAP_DOCTOR_NONE) ids[count++] = diagnosis->captures[i].graph;
  }
  sort(ids, count, sizeof(*ids), by_id);
  for (size_t i = 0; i < count; ++i) {
    if (unique == 0 || ids[unique - 1] != ids[i]) ids[unique++] = ids[i];
  }
  *out_count = unique;
  return ids;
}

static void add_views(builder_t* builder) {
  gcap_doctor_graph_views_t* views = builder->views;
  uint32_t* ids = collect_ids(builder, &views->count);
  views->items = gcap_doctor_heap_alloc(&views->heap, (views->count + 1) * sizeof(*views->items));
  size_t next = 0;
  for (size_t i = 0; i < views->count; ++i) {
    gcap_doctor_graph_view_t* view = &views->items[i];
    view->graph = ids[i];
    view->capture = GCAP_DOCTOR_NONE;
    view->nodes = &builder->nodes[next];
    while (next < builder->recording->num_nodes && builder->nodes[next].node->graph == ids[i]) ++next;
    view->num_nodes = (uint32_t)(&builder->nodes[next] - view->nodes);
  }
}

// The capture that a graph came of. A broken one gave no graph, but its nodes were made in it.
static void tie_captures(builder_t* builder) {
  const gcap_doctor_diagnosis_t* diagnosis = builder->diagnosis;
  gcap_doctor_graph_views_t* views = builder->views;
  for (size_t i = 0; i < diagnosis->num_captures; ++i) {
    gcap_doctor_graph_view_t* view =
        diagnosis->captures[i].graph != GCAP_DOCTOR_NONE ? find_view(views, diagnosis->captures[i].graph) : NULL;
    if (view != NULL) view->capture = (uint32_t)i;
  }
  for (size_t i = 0; i < views->count; ++i) {
    gcap_doctor_graph_view_t* view = &views->items[i];
    if (view->capture != GCAP_DOCTOR_NONE || view->num_nodes == 0 || view->nodes[0].node->call == GCAP_DOCTOR_NONE)
      continue;
    view->capture = gcap_doctor_diagnosis_capture_of(diagnosis, view->nodes[0].node->call);
  }
}

static void add_edges(builder_t* builder) {
  gcap_doctor_graph_views_t* views = builder->views;
  gcap_doctor_view_edge_t* edges =
      gcap_doctor_heap_alloc(&views->heap, (builder->recording->num_edges + 1) * sizeof(gcap_doctor_view_edge_t));
  for (size_t i = 0; i < builder->recording->num_edges; ++i) {
    const gcap_doctor_event_edge_t* edge = builder->edges[i];
    gcap_doctor_graph_view_t* view = find_view(views, edge->graph);
    const gcap_doctor_view_node_t* from = find_node(builder, edge->graph, edge->from);
    const gcap_doctor_view_node_t* to = find_node(builder, edge->graph, edge->to);
    if (view == NULL || from == NULL || to == NULL || from == to) continue;
    if (view->edges == NULL) view->edges = edges;
    view->edges[view->num_edges++] =
        (gcap_doctor_view_edge_t){(uint32_t)(from - view->nodes), (uint32_t)(to - view->nodes)};
    ++edges;
  }
}

static void sort_all(builder_t* builder) {
  const gcap_doctor_recording_t* recording = builder->recording;
  gcap_doctor_heap_t* heap = &builder->views->heap;
  builder->nodes = gcap_doctor_heap_alloc(heap, (recording->num_nodes + 1) * sizeof(*builder->nodes));
  for (size_t i = 0; i < recording->num_nodes; ++i) builder->nodes[i].node = &recording->nodes[i];
  sort(builder->nodes, recording->num_nodes, sizeof(*builder->nodes), by_graph_and_id);
  builder->edges = gcap_doctor_heap_alloc(heap, (recording->num_edges + 1) * sizeof(*builder->edges));
  for (size_t i = 0; i < recording->num_edges; ++i) builder->edges[i] = &recording->edges[i];
  sort(builder->edges, recording->num_edges, sizeof(*builder->edges), by_graph);
  builder->clones = gcap_doctor_heap_alloc(heap, (recording->num_clones + 1) * sizeof(*builder->clones));
  for (size_t i = 0; i < recording->num_clones; ++i) builder->clones[i] = &recording->clones[i];
  sort(builder->clones, recording->num_clones, sizeof(*builder->clones), by_exec_and_copy);
  builder->execs = gcap_doctor_heap_alloc(heap, (recording->num_execs + 1) * sizeof(*builder->execs));
  for (size_t i = 0; i < recording->num_execs; ++i) builder->execs[i] = &recording->execs[i];
  sort(builder->execs, recording->num_execs, sizeof(*builder->execs), by_exec);
  builder->names_of_frames =
      gcap_doctor_heap_alloc(heap, (recording->num_frames + 1) * sizeof(*builder->names_of_frames));
  builder->names_of_ranges =
      gcap_doctor_heap_alloc(heap, (recording->num_ranges + 1) * sizeof(*builder->names_of_ranges));
}

gcap_doctor_graph_views_t* gcap_doctor_graph_views_create(const gcap_doctor_diagnosis_t* diagnosis) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  gcap_doctor_graph_views_t* views = gcap_doctor_heap_alloc(&heap, sizeof(*views));
  views->heap = heap;
  builder_t builder = {.diagnosis = diagnosis, .recording = diagnosis->recording, .views = views};
  sort_all(&builder);
  for (size_t i = 0; i < builder.recording->num_nodes; ++i) name(&builder, &builder.nodes[i]);
  add_times(&builder);
  add_views(&builder);
  tie_captures(&builder);
  add_edges(&builder);
  add_execs(&builder);
  for (size_t i = 0; i < views->count; ++i) {
    gcap_doctor_graph_view_t* view = &views->items[i];
    for (size_t j = 0; j < view->num_nodes; ++j) {
      view->ns += view->nodes[j].ns;
      view->has_labels |= view->nodes[j].range != GCAP_DOCTOR_NONE;
    }
    for (int grouping = 0; grouping < GCAP_DOCTOR_NUM_GROUPINGS; ++grouping) {
      group(&views->heap, view, (gcap_doctor_grouping_t)grouping);
    }
    layer(&views->heap, view);
  }
  return views;
}

void gcap_doctor_graph_views_destroy(gcap_doctor_graph_views_t* views) {
  if (views == NULL) return;
  gcap_doctor_heap_t heap = views->heap;  // the views lie in it
  gcap_doctor_heap_deinit(&heap);
}

const char* gcap_doctor_grouping_name(gcap_doctor_grouping_t grouping) {
  static const char* const names[] = {"kernel", "call site", "Python line", "label"};
  return names[grouping];
}
