// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// contents.h: what is inside a captured graph, read once: its nodes, what each launches, and, on request, the arguments
// as bytes. What compares graphs, moves them or audits them reads this, and asks the driver nothing more.
#ifndef GCAP_LIB_CONTENTS_CONTENTS_H_
#define GCAP_LIB_CONTENTS_CONTENTS_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gcap/status.h"
#include "lib/contents/driver.h"

#define GCAP_CONTENTS_TOP ((size_t)-1)

// A part of the arguments: one parameter of a kernel, or the whole struct of another node.
typedef struct gcap_contents_part {
  size_t offset;  // from the node's first byte
  size_t bytes;
} gcap_contents_part_t;

// A node that comes right before another one.
typedef struct gcap_contents_dependency {
  size_t node;
  cudaGraphEdgeData edge;
} gcap_contents_dependency_t;

typedef struct gcap_contents_node {
  cudaGraphNode_t node;  // lives as long as the graph
  enum cudaGraphNodeType type;
  size_t parent;  // the node whose child graph it is in; GCAP_CONTENTS_TOP: it is in none
  // In `dependencies` of the contents, by node; read with the arguments.
  size_t first_dependency, num_dependencies;
  // Of a kernel node.
  bool is_known;   // false: the driver does not tell one of these
  void* function;  // the driver's handles, as gcap_driver_kernel_t. Two functions are two kernels
  void *kernel, *context;
  unsigned grid[3], block[3], shared_bytes;
  unsigned cluster[3];  // 0: none. The preferred cluster cannot be read; it changes the speed alone
  int cooperative, priority, sync_domain;
  // The arguments, if they were asked for. Of a kernel: laid out as the device sees them. Of a memcpy, memset, host,
  // allocation, free or event node: the struct or the handle that the runtime tells.
  bool has_arguments;            // false: not asked for, or the driver does not tell
  bool by_extra;                 // a kernel whose arguments came as one buffer
  size_t begin, bytes;           // in `bytes` of the contents
  size_t first_part, num_parts;  // in `parts` of the contents
  uint64_t source_hash;          // of what a copy reads on the host; 0: not noted (left_behind.h)
} gcap_contents_node_t;

typedef struct gcap_contents {
  gcap_contents_node_t* nodes;  // in the order of their creation; those of a child graph behind the child
  size_t count, room;
  bool with_arguments;     // they were asked for
  size_t num_top;          // nodes that are in no child graph
  size_t num_kernels;      // nodes that are kernels
  size_t allocated_bytes;  // by allocation nodes that are in no child graph
  unsigned char* bytes;    // the arguments of all nodes
  size_t num_bytes, bytes_room;
  gcap_contents_part_t* parts;
  size_t num_parts, parts_room;
  gcap_contents_dependency_t* dependencies;
  size_t num_dependencies, dependencies_room;
} gcap_contents_t;

// Reads a graph. What the driver does not say is unknown, and no failure.
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the graph's nodes cannot be listed
gcap_status_t gcap_contents_read(cudaGraph_t graph, bool with_arguments, gcap_contents_t* out_contents);
void gcap_contents_free(gcap_contents_t* contents);

static inline unsigned char* gcap_contents_bytes_of(const gcap_contents_t* contents, const gcap_contents_node_t* node) {
  return contents->bytes + node->begin;
}
static inline const gcap_contents_part_t* gcap_contents_parts_of(const gcap_contents_t* contents,
                                                                 const gcap_contents_node_t* node) {
  return contents->parts + node->first_part;
}
// What a memcpy node with arguments copies. The bytes end with the last member, and the struct may go on.
static inline struct cudaMemcpy3DParms gcap_contents_copy_of(const gcap_contents_t* contents,
                                                             const gcap_contents_node_t* node) {
  struct cudaMemcpy3DParms copy;
  memset(&copy, 0, sizeof(copy));
  memcpy(&copy, gcap_contents_bytes_of(contents, node), node->bytes);
  return copy;
}

// "kernel", "memcpy"
const char* gcap_contents_type_name(enum cudaGraphNodeType type);
// The name of the node's kernel while its module is loaded; "" where the driver tells none, or it is no kernel.
const char* gcap_contents_kernel_name(const gcap_contents_node_t* node);
// Writes "node 3 of 7, kernel add", or "node 3 of 7, in the child graph of node 2, kernel add".
void gcap_contents_write_node(const gcap_contents_t* contents, const gcap_contents_node_t* node, char* text,
                              size_t capacity);

#endif  // GCAP_LIB_CONTENTS_CONTENTS_H_
