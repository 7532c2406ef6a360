// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_contents.h: what is inside a captured graph, and whose memory it works on, for any cudaGraph_t, with or without
// the graph manager. docs/graphs.md is its page.
#ifndef GCAP_GRAPH_CONTENTS_H_
#define GCAP_GRAPH_CONTENTS_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
// Capture:  legal. Neither graph is one that is being captured. In a capture scope of gcap, what the driver does not
//           answer fails the scope.
//   INVALID_ARGUMENT    a graph is NULL
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the nodes of a graph cannot be read
GCAP_API gcap_status_t gcap_graph_diff(cudaGraph_t before, cudaGraph_t after, gcap_graph_difference_fn on_difference,
                                       void* user, size_t* out_count) GCAP_NODISCARD;

// --- Audit ----------------------------------------------------------------------------------------------------------

// Each replay of a graph works on the addresses of its capture. If the memory there was freed since, or was given to
// somebody else, the replay reads and writes what is not the graph's, and nothing says so. An audit does. At the
// capture it notes whose memory each pointer of the graph points into; later it looks whether the memory is that one
// still.
//
// Pointers are the sources and destinations of copies and fills, and each 8-byte word, at a multiple of 8, of a
// kernel's arguments that lies in memory known to the driver, those of cuBLAS and cuDNN kernels too. A number among the
// arguments that happens to be such an address counts as a pointer.
//
// Memory is told apart by the driver's buffer id, which no two allocations share; in a gcap_scratch_t by its hand-outs
// and reservations, which the driver does not see; in another allocator that keeps memory for its next request, by what
// `find_block` says.
//
// What cannot be seen: a node whose arguments the driver keeps to itself; a pointer that lies in memory, as in an array
// of pointers; a kernel's pointer into memory that was freed before the notes were made; a block of such an allocator
// without `find_block`; and whether pageable memory is still what it was, so a copy from or to it is a finding at once.

// Whose memory a pointer points into.
typedef enum gcap_graph_owner {
  GCAP_GRAPH_OWNER_UNKNOWN = 0,  // pageable memory, or none: the driver does not know the address
  GCAP_GRAPH_OWNER_BUFFER,       // a buffer or a binding of the run (gcap/graph.h)
  GCAP_GRAPH_OWNER_RETAINED,     // what the graph retains (gcap_capture_retain), given as the entry's `user`
  GCAP_GRAPH_OWNER_GRAPH,        // an allocation node of the same graph
  GCAP_GRAPH_OWNER_RESERVATION,  // a scratch reservation: memory that captured graphs keep
  GCAP_GRAPH_OWNER_SCRATCH,      // a block of a gcap_scratch_t that no graph keeps
  GCAP_GRAPH_OWNER_ALLOCATOR,    // a block that `find_block` knows
  GCAP_GRAPH_OWNER_FOREIGN,      // an allocation of the driver that gcap knows nothing else of
} gcap_graph_owner_t;

GCAP_API const char* gcap_graph_owner_name(gcap_graph_owner_t owner);  // "RESERVATION"

// A block of an allocator that keeps memory for its next request, as a framework's caching allocator does.
typedef struct gcap_graph_block {
  const void* address;  // of its first byte
  size_t bytes;
  uint64_t number;  // what no other hand-out of the allocator ever has, such as a count of them; 0: the block is free
} gcap_graph_block_t;

// Finds the block that the address is in. False: the address is none of the allocator's. Called with locks of gcap
// held, on any thread: it calls nothing of gcap.
typedef bool (*gcap_graph_find_block_fn)(void* user, const void* address, gcap_graph_block_t* out_block);

// One pointer of a graph. The texts are valid during the call.
typedef struct gcap_graph_pointer {
  size_t struct_size;
  size_t node;            // as in gcap_graph_difference_t
  const char* node_text;  // "node 3 of 7, kernel scale"
  const char* place;      // "argument 2", "the source"
  const void* address;
  gcap_graph_owner_t owner;
  const char* memory;  // as noted: "buffer id 17, 4096 bytes at 0x7f3c00000000"
  bool is_finding;     // the memory is gone, is somebody else's, or was nobody's when the notes were made
  // Of a finding: what is there now, and what became of the memory that was: "... (freed and handed out again since)";
  // else NULL.
  const char* now;
} gcap_graph_pointer_t;

typedef void (*gcap_graph_pointer_fn)(void* user, const gcap_graph_pointer_t* pointer);

// Notes: whose memory the pointers of one graph pointed into.
// Thread:   any, one at a time. Nobody changes the graph while the notes are made.
// Capture:  all functions are legal. The graph is none that is being captured. In a capture scope of gcap, what the
//           driver does not answer fails the scope.
// Lifetime: independent of the graph. The modules of its kernels stay loaded.
typedef struct gcap_graph_notes gcap_graph_notes_t;

// Makes the notes of a graph: right after its capture, while all that it works on is alive. `find_block` may be NULL.
//   INVALID_ARGUMENT    the graph is NULL
//   RESOURCE_EXHAUSTED  no host memory
//   UNIMPLEMENTED       the driver is older than CUDA 12.4
//   CUDA_ERROR          the nodes of the graph cannot be read, or the query for the memory of an address failed
GCAP_API gcap_status_t gcap_graph_notes_create(cudaGraph_t graph, gcap_graph_find_block_fn find_block, void* user,
                                               gcap_graph_notes_t** out_notes) GCAP_NODISCARD;

// NULL is fine.
GCAP_API void gcap_graph_notes_destroy(gcap_graph_notes_t* notes);

// Looks where the pointers of the notes point now. Calls `on_pointer` for each, in the order of the nodes; NULL: only
// counts. `*out_findings`: how many are findings; NULL is fine. Launches nothing, waits for nothing.
//   INVALID_ARGUMENT    `notes` is NULL
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the query for the memory of an address failed
GCAP_API gcap_status_t gcap_graph_audit(const gcap_graph_notes_t* notes, gcap_graph_pointer_fn on_pointer, void* user,
                                        size_t* out_findings) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_CONTENTS_H_
