// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which streams have work that was never joined: the driver refuses such a capture without naming them.
//
// All nodes that the origin's next node would depend on, directly or not, are joined. A stream is unjoined if its own
// next node would depend on any other node. The graph's edges are read once, sorted by their end, and walked backwards
// from the origin. Nothing is read if gcap_capture_join joined all known streams. Locking: none.

#include "lib/capture/unjoined.h"

#include <stdint.h>
#include <stdlib.h>

#include "lib/base/capture_hooks.h"
#include "lib/internal/hash_table.h"

// Where a stream stands in a capture.
typedef struct position {
  unsigned long long id;  // 0: in none
  cudaGraph_t graph;
  const cudaGraphNode_t* nodes;  // what its next node depends on; the driver's, until its next call with the stream
  size_t num_nodes;
} position_t;

typedef struct edge {
  cudaGraphNode_t from, to;
} edge_t;

// Nodes, each once. A cell of the table is the key alone.
typedef struct node_set {
  gcap_hash_table_t table;   // by the node's handle
  cudaGraphNode_t* members;  // in the order in which they came
} node_set_t;

static gcap_status_t locate(cudaStream_t stream, position_t* out_position) {
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  const cudaGraphEdgeData* data = NULL;  // without a place for it, edges that carry data are an error
  *out_position = (position_t){.id = 0};
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetCaptureInfo(stream, &state, &out_position->id, &out_position->graph,
                                                          &out_position->nodes, &data, &out_position->num_nodes)));
  if (state != cudaStreamCaptureStatusActive) *out_position = (position_t){.id = 0};
  return NULL;
}

static uint64_t key_of(cudaGraphNode_t node) { return (uint64_t)(uintptr_t)node; }

static bool contains(const node_set_t* set, cudaGraphNode_t node) {
  return gcap_hash_table_find(&set->table, key_of(node)) != NULL;
}

// There is room: node_set_init made it.
static void insert(node_set_t* set, cudaGraphNode_t node) {
  if (contains(set, node)) return;
  set->members[set->table.count] = node;
  (void)gcap_hash_table_insert(&set->table, key_of(node));
}

static bool node_set_init(node_set_t* set, size_t max_nodes) {
  *set = (node_set_t){.table = {.cell_bytes = sizeof(uint64_t)}};
  set->members = calloc(max_nodes + 1, sizeof(*set->members));
  return set->members != NULL && gcap_hash_table_reserve(&set->table, max_nodes);
}

static void node_set_deinit(node_set_t* set) {
  free(set->members);
  gcap_hash_table_deinit(&set->table);
}

static int compare_ends(const void* a, const void* b) {
  uintptr_t left = (uintptr_t)((const edge_t*)a)->to, right = (uintptr_t)((const edge_t*)b)->to;
  return left < right ? -1 : left > right;
}

// The first edge that ends in the node, or the place where it would be.
static size_t first_edge(const edge_t* edges, size_t num_edges, cudaGraphNode_t to) {
  size_t low = 0, high = num_edges;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if ((uintptr_t)edges[middle].to < (uintptr_t)to) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Adds all that comes before the members of the set.
static void walk_back(node_set_t* set, const edge_t* edges, size_t num_edges) {
  for (size_t next = 0; next < set->table.count; ++next) {
    cudaGraphNode_t to = set->members[next];
    for (size_t i = first_edge(edges, num_edges, to); i < num_edges && edges[i].to == to; ++i) {
      insert(set, edges[i].from);
    }
  }
}

// Gives the graph's edges, sorted by their end; the caller frees them.
static gcap_status_t get_edges(cudaGraph_t graph, edge_t** out_edges, size_t* out_count) {
  *out_edges = NULL;
  *out_count = 0;
  size_t count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count)));
  if (count == 0) return NULL;
  edge_t* edges = malloc(count * sizeof(*edges));
  cudaGraphNode_t* ends = malloc(2 * count * sizeof(cudaGraphNode_t));
  cudaGraphEdgeData* data = malloc(count * sizeof(*data));
  gcap_status_t status = NULL;
  if (edges == NULL || ends == NULL || data == NULL) {
    status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the %zu edges of a capture", count);
  } else {
    status = GCAP_CUDA(cudaGraphGetEdges(graph, ends, ends + count, data, &count));
  }
  if (status == NULL) {
    for (size_t i = 0; i < count; ++i) edges[i] = (edge_t){ends[i], ends[count + i]};
    qsort(edges, count, sizeof(*edges), compare_ends);
    *out_edges = edges;
    *out_count = count;
    edges = NULL;
  }
  free(data);
  free(ends);
  free(edges);
  return status;
}

// Fills the set with all that the origin has reached.
static gcap_status_t find_joined(const position_t* origin, node_set_t* out_joined) {
  *out_joined = (node_set_t){.members = NULL};
  edge_t* edges = NULL;
  size_t num_edges = 0;
  GCAP_RETURN_IF_ERROR(get_edges(origin->graph, &edges, &num_edges));
  gcap_status_t status = NULL;
  if (node_set_init(out_joined, origin->num_nodes + num_edges)) {
    for (size_t i = 0; i < origin->num_nodes; ++i) insert(out_joined, origin->nodes[i]);
    walk_back(out_joined, edges, num_edges);
  } else {
    status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the nodes of a capture");
  }
  free(edges);
  return status;
}

static bool all_joined(const gcap_capture_members_t* members) {
  for (size_t i = 0; i < members->count; ++i) {
    if (!members->items[i].joined) return false;
  }
  return true;
}

static gcap_status_t find(gcap_capture_members_t* members, cudaStream_t origin) {
  position_t origin_position;
  GCAP_RETURN_IF_ERROR(locate(origin, &origin_position));
  if (origin_position.id == 0) return NULL;  // broken: that is what will be told
  node_set_t joined;
  gcap_status_t status = find_joined(&origin_position, &joined);
  for (size_t i = 0; status == NULL && i < members->count; ++i) {
    gcap_capture_member_t* member = &members->items[i];
    if (member->joined) continue;
    position_t position;
    status = locate(member->stream, &position);
    if (status != NULL || position.id != origin_position.id) continue;
    for (size_t k = 0; k < position.num_nodes; ++k) member->unjoined |= !contains(&joined, position.nodes[k]);
  }
  node_set_deinit(&joined);
  return status;
}

gcap_status_t gcap_capture_find_unjoined(gcap_capture_members_t* members, cudaStream_t origin) {
  for (size_t i = 0; i < members->count; ++i) members->items[i].unjoined = false;
  if (all_joined(members)) return NULL;
  const gcap_note_fn note = gcap_thread_note;
  gcap_thread_note = NULL;  // a short ledger would lose the calls of the work to these questions
  gcap_status_t status = find(members, origin);
  gcap_thread_note = note;
  return status;
}
