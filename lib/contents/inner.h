// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// inner.h: what other modules use of the contents module, and users do not see: the nodes of a graph and their
// arguments, how two graphs differ, how buffers lie to one another, values that change, stand-ins, which bytes are
// pointers into a buffer or carry a value, notes of whose memory a graph points into, what memory an address is in, and
// why a graph does something else than a fresh capture of its work.
// What the files of the module have for one another alone is in a header of each.
#ifndef GCAP_LIB_CONTENTS_INNER_H_
#define GCAP_LIB_CONTENTS_INNER_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/graph_contents.h"
#include "gcap/graph_values.h"
#include "gcap/status.h"

// --- The nodes of a graph -------------------------------------------------------------------------------------------

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

#define GCAP_CONTENTS_TOP ((size_t)-1)

typedef struct gcap_contents_node {
  cudaGraphNode_t node;  // lives as long as the graph
  enum cudaGraphNodeType type;
  size_t graph;   // of those that were read together; each has an executable of its own
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
  size_t num_graphs;       // that were read
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
// The same of several graphs, which are launched one after the other and are compared, moved and audited as one: the
// nodes of each come behind those of the graph before.
gcap_status_t gcap_contents_read_all(const cudaGraph_t* graphs, size_t count, bool with_arguments,
                                     gcap_contents_t* out_contents);
void gcap_contents_free(gcap_contents_t* contents);
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_contents_copy(const gcap_contents_t* contents, gcap_contents_t* out_copy);

// The index of node number `top` of a graph, of those that are in no child graph; behind the graph's last: its end.
size_t gcap_contents_index_of_top(const gcap_contents_t* contents, size_t graph, size_t top);

// "kernel", "memcpy"
const char* gcap_contents_type_name(enum cudaGraphNodeType type);
// Writes "node 3 of 7, kernel add", or "node 3 of 7, in the child graph of node 2, kernel add".
void gcap_contents_write_node(const gcap_contents_t* contents, const gcap_contents_node_t* node, char* text,
                              size_t capacity);

// --- How two graphs differ ------------------------------------------------------------------------------------------

// NULL if cudaGraphExecUpdate from `before` to `after` does what it says, or the driver will refuse it. Else CUDA_ERROR
// with the node and the attribute, in words that follow "could not be updated in place".
//
// Measured on an H200 (driver 580.159.04, CUDA 13.0): after an update to a kernel node with other clusters the old
// clusters are in force, and with another function the old or the new ones, as the program was built. Priorities and
// memory synchronization domains are answered with success too, and nothing tells whether they are in force. So what
// the new graph wants is compared with what the executable was made of, and where that differs there is no update.
gcap_status_t gcap_contents_check_update(const gcap_contents_t* before, const gcap_contents_t* after);

// As gcap_graph_diff, of contents that have arguments. The graph of `before` may be gone, and its kernels too.
size_t gcap_contents_diff(const gcap_contents_t* before, const gcap_contents_t* after,
                          gcap_graph_difference_fn on_difference, void* user);

// --- How buffers lie to one another ---------------------------------------------------------------------------------

// Buffers that share a byte, directly or through others, are one group, which moves by one distance. So the groups, and
// the distances within each, are all that a graph can depend on: which buffers overlap by how much, which are equal,
// and which are apart. Of two groups the one may also end where the other begins.

// The same work is captured at up to so many stand-ins of each buffer and each value: two show what buffers do, and
// three what values do.
#define GCAP_STAND_IN_SETS 3

// A buffer of a graph.
typedef struct gcap_moving_buffer {
  const char* name;  // not NULL; "" for none
  uintptr_t address;
  size_t bytes;
  size_t alignment;                         // a power of two; `address` is a multiple
  uintptr_t stand_ins[GCAP_STAND_IN_SETS];  // 0: none yet
} gcap_moving_buffer_t;

#define GCAP_LAYOUT_NONE ((size_t)-1)

typedef struct gcap_layout_group {
  size_t first;      // the buffer that begins first
  size_t bytes;      // from there to the end of the last one
  size_t alignment;  // the largest of its buffers: each distance of the group is a multiple
  size_t next;       // the group that begins where this one ends, or GCAP_LAYOUT_NONE
} gcap_layout_group_t;

typedef struct gcap_layout_span {
  uintptr_t begin, end;
  size_t group;
} gcap_layout_span_t;

// Thread: one at a time.
typedef struct gcap_layout {
  size_t* group_of;             // [number of buffers]
  gcap_layout_group_t* groups;  // by address
  gcap_layout_span_t* spans;    // [num_groups], room for a check
  size_t num_buffers, num_groups;
} gcap_layout_t;

// How two buffers, or groups, lie otherwise.
typedef struct gcap_layout_conflict {
  size_t a, b;       // buffers
  const char* what;  // in words that follow "buffers a and b "
} gcap_layout_conflict_t;

// Looks how the buffers lie at their addresses.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_layout_create(const gcap_moving_buffer_t* buffers, size_t count, gcap_layout_t* out_layout);
void gcap_layout_free(gcap_layout_t* layout);

// Whether the two have the same groups, with the same distances in each. Both are of as many buffers of the same sizes.
bool gcap_layout_is_same(const gcap_layout_t* layout, const gcap_moving_buffer_t* buffers, const gcap_layout_t* other,
                         const gcap_moving_buffer_t* other_buffers);

// Whether the buffers lie as at their creation when each is at its address, or at addresses[i] if that is not 0. Their
// ends are no overflow. Costs a sort of the groups, and less if one group moves.
bool gcap_layout_holds(gcap_layout_t* layout, const gcap_moving_buffer_t* buffers, const uintptr_t* addresses,
                       gcap_layout_conflict_t* out_conflict);

// Whether those that touched at their creation touch still, of buffers that lie as then. Nothing shows what they are
// apart where a graph was not found to be the same at the stand-ins.
bool gcap_layout_still_touches(const gcap_layout_t* layout, const gcap_moving_buffer_t* buffers,
                               const uintptr_t* addresses, gcap_layout_conflict_t* out_conflict);

// --- Values that change ---------------------------------------------------------------------------------------------

// Scalars that change from replay to replay (values.h).

// Aligned as any value: the work reads it here.
typedef struct gcap_value_bytes {
  unsigned char at[GCAP_GRAPH_VALUE_MAX_BYTES] __attribute__((aligned(16)));  // those behind the value's own are 0
} gcap_value_bytes_t;

// A value of a graph.
typedef struct gcap_changing_value {
  const char* name;  // not NULL; "" for none
  size_t bytes;
  gcap_graph_value_type_t type;
  bool may_be_unused;      // no argument need carry it
  gcap_value_bytes_t now;  // of the real capture, then what the executable has
  // Of a number the bounds, which it may have too. Of BYTES two others that are valid. What the other values are does
  // not matter.
  gcap_value_bytes_t low, high;
  gcap_value_bytes_t stand_ins[GCAP_STAND_IN_SETS];
} gcap_changing_value_t;

// Checks a value, but for its stand-ins.
//   INVALID_ARGUMENT  no such type, or not of so many bytes; bounds that are equal, in the wrong order or no numbers; or
//                     `now` is not within them
gcap_status_t gcap_value_check(const gcap_changing_value_t* value, size_t index);
// Whether the value may be these bytes: within its bounds.
bool gcap_value_may_be(const gcap_changing_value_t* value, const gcap_value_bytes_t* bytes);
// Writes a value as its type has it: "17", "-0.5", "0x11000000".
void gcap_value_write(const gcap_changing_value_t* value, const gcap_value_bytes_t* bytes, char* text, size_t capacity);

// Gives each value, which was checked, its stand-ins. In some captures one value rises where another one falls, and no
// two values are alike in all captures, as far as their bounds allow.
void gcap_values_choose(gcap_changing_value_t* values, size_t count);

// --- Stand-ins of buffers -------------------------------------------------------------------------------------------

// Other addresses for the buffers of a graph, at which the same work is captured once more.

// A range of addresses. base 0: none.
typedef struct gcap_stand_ins {
  uintptr_t base;
  size_t bytes;
  bool is_memory;
} gcap_stand_ins_t;

// Gives each buffer its stand-in number `set`: set 0 first, then the others, which are like set 1. The stand-ins of a
// group lie to one another as its buffers do; groups are apart. What a capture might take from an address is another at
// one of them:
//   - Between the promised alignment and 64 KiB each bit of the address is 1 in set 0 and 0 in set 1, or, if the buffer
//     is aligned to 64 KiB already, 0 at the buffer. So is the greatest power of two that an address is a multiple of.
//   - The groups are in one order in set 0, and in the other in set 1. So each difference of two addresses changes by
//     128 KiB at least, and so does which one is greater.
//   - The upper 32 bits are those of no buffer, and others in set 1 than in set 0. Memory, which comes from the driver
//     where the driver likes, is not promised that.
// With `is_memory` the range is memory of that device, -1: the current one; else address space with nothing mapped,
// which cudaMemcpyAsync refuses.
// Capture: not on a thread that captures.
//   RESOURCE_EXHAUSTED  the buffers are too large to be reserved together
//   UNIMPLEMENTED       no address space, since the driver is older than CUDA 12.4
//   CUDA_ERROR          the range could not be had
gcap_status_t gcap_stand_ins_create(gcap_moving_buffer_t* buffers, const gcap_layout_t* layout, size_t set,
                                    int device_id, bool is_memory, gcap_stand_ins_t* out_stand_ins);
// Gives the range back. The buffers keep the numbers.
//   CUDA_ERROR  the range could not be given back; it may be tried again
gcap_status_t gcap_stand_ins_destroy(gcap_stand_ins_t* stand_ins);

// Whether set 1 can show what the buffers and set 0 together do not. It cannot if there is one group, with its bits all
// alike between the promised alignment and 64 KiB, and the opposite in set 0.
bool gcap_stand_ins_need_second(const gcap_moving_buffer_t* buffers, const gcap_layout_t* layout);

// Whether stand-ins that `earlier` got show of `buffers` what their own would: the groups are in the same order, and
// alike in each bit that is varied. The two lay alike to one another.
bool gcap_stand_ins_serve(const gcap_moving_buffer_t* buffers, const gcap_layout_t* layout,
                          const gcap_moving_buffer_t* earlier, const gcap_layout_t* earlier_layout);

// --- Pointers into buffers, and places of values --------------------------------------------------------------------

// Which words of a graph's arguments are pointers into its buffers, or carry its values, and how an executable gets
// others (relocation.h). Of one executable.
// Thread: one at a time.
typedef struct gcap_relocation gcap_relocation_t;

// Notes what copies read on the host now, but for copies from a buffer: work may fill a table for the buffers that a
// capture of it gets. `set`: the stand-ins at which the graph was captured, or GCAP_STAND_IN_SETS for the buffers'
// addresses. The memory is still there, as for a launch of the graph.
//   errors of gcap_driver_find_allocation
gcap_status_t gcap_left_behind_note_sources(gcap_contents_t* contents, const gcap_moving_buffer_t* buffers,
                                            size_t count, size_t set);

// The captures of the same work at stand-ins: elsewhere[i] at set i. `count`: up to GCAP_STAND_IN_SETS.
typedef struct gcap_relocation_rehearsals {
  const gcap_contents_t* elsewhere;
  size_t count;
} gcap_relocation_rehearsals_t;

// What differs between the captures.
typedef struct gcap_relocation_changes {
  const gcap_moving_buffer_t* buffers;
  size_t num_buffers;
  const gcap_changing_value_t* values;
  size_t num_values;
} gcap_relocation_changes_t;

// Finds the words. `real` is the contents of the graph that executables are made from, captured with the buffers at
// their addresses and the values as they are now: graph and contents outlive the relocation, which changes the
// arguments in the contents. All have arguments. The names of buffers and values outlive the relocation.
//   FAILED_PRECONDITION  the graph cannot be moved: node, place and values are named; or no argument carries a value
//   RESOURCE_EXHAUSTED   no host memory
gcap_status_t gcap_relocation_create(gcap_contents_t* real, const gcap_relocation_rehearsals_t* rehearsals,
                                     const gcap_relocation_changes_t* changes, gcap_relocation_t** out_relocation);
void gcap_relocation_destroy(gcap_relocation_t* relocation);

// Where the buffers are now, and what the values are.
const gcap_moving_buffer_t* gcap_relocation_buffers(const gcap_relocation_t* relocation);
const gcap_changing_value_t* gcap_relocation_values(const gcap_relocation_t* relocation);

// Whether a word points into the buffer, or into another one of its group at an address that is the buffer's too.
// `layout` is that of the buffers.
bool gcap_relocation_uses(const gcap_relocation_t* relocation, const gcap_layout_t* layout, size_t buffer);

// Whether the words that may be two numbers keep their upper halves when the buffer is at the address.
bool gcap_relocation_keeps_halves(const gcap_relocation_t* relocation, size_t buffer, uintptr_t address);

// Whether nothing that stays is an address in the buffer when the buffer is at the address. What a capture there would
// show, nobody knows.
bool gcap_relocation_is_clear(const gcap_relocation_t* relocation, size_t buffer, uintptr_t address);

// Whether the value keeps each byte that was the same in all captures. What a capture with another one would show,
// nobody knows.
bool gcap_relocation_keeps_bytes(const gcap_relocation_t* relocation, size_t value, const gcap_value_bytes_t* bytes);

// Sets each node that has words as it is, once. So a node that the driver does not change in an executable is known
// before a buffer moves.
//   FAILED_PRECONDITION  the driver refuses a node, which is named; or a node copies several rows
gcap_status_t gcap_relocation_check_nodes(gcap_relocation_t* relocation, const cudaGraphExec_t* execs);

// Whether gcap_relocation_move sets copies or fills, perhaps by a call that a capture of another thread forbids. None
// forbids the call for kernels. Measured on an H200: during.cudaGraphExecKernelNodeSetParams.
bool gcap_relocation_needs_mode(const gcap_relocation_t* relocation);

// Sets the buffers' addresses and the values in the executables. execs[i]: that of the graph that was read as number
// `i`; NULL for a graph without nodes, unless it is the last. addresses[i] 0: that buffer stays. `addresses` or
// `values` NULL: all of them stay. Only nodes that read what is another one are touched, each once, whatever they read.
// Launches in flight keep what they had. Neither is checked. If the call succeeds, both arrays have the old ones.
// Capture: legal.
//   CUDA_ERROR  the driver refused one; all are as before. `*out_torn`: they could not be set back, and the executable
//               must not be launched
gcap_status_t gcap_relocation_move(gcap_relocation_t* relocation, const cudaGraphExec_t* execs, uintptr_t* addresses,
                                   gcap_value_bytes_t* values, bool* out_torn);

// Sets the arguments as they are now in an executable that was made from a clone of graph number `graph`, of which the
// nodes from number `end` of the contents on were removed.
//   FAILED_PRECONDITION  a node that reads a buffer or a value is in a child graph; the message names the node
//   CUDA_ERROR           the driver refused a node
gcap_status_t gcap_relocation_set_clone(gcap_relocation_t* relocation, size_t graph, size_t end, cudaGraph_t clone,
                                        cudaGraphExec_t exec);

// --- Whose memory ---------------------------------------------------------------------------------------------------

// The application's allocator.
typedef struct gcap_block_finder {
  gcap_graph_find_block_fn find;  // NULL: none
  void* user;
} gcap_block_finder_t;

// Memory of which somebody says that it is kept while the graph replays.
typedef struct gcap_owned {
  gcap_graph_owner_t owner;
  const char* name;  // "" for none
  uintptr_t start;
  size_t bytes;
  bool is_named;  // each run names it
} gcap_owned_t;

// What is known of a graph.
typedef struct gcap_audit_subject {
  const gcap_contents_t* contents;  // with arguments; outlives the notes
  gcap_block_finder_t finder;
  const gcap_owned_t* owned;
  size_t num_owned;
  const gcap_relocation_t* relocation;  // NULL: no buffer of the graph moves
} gcap_audit_subject_t;

// As gcap_graph_notes_create, but for the graph's nodes.
gcap_status_t gcap_notes_make(const gcap_audit_subject_t* subject, gcap_graph_notes_t** out_notes);
// The buffers were moved: notes the pointers into those that are elsewhere now.
gcap_status_t gcap_notes_follow(gcap_graph_notes_t* notes, const gcap_relocation_t* relocation);
// A run named its buffers: notes the pointers into those that are other memory at the same address.
gcap_status_t gcap_notes_name(gcap_graph_notes_t* notes);

// NULL, or why the graph must not be launched: FAILED_PRECONDITION names the first finding, and tells how many more
// there are. Else as gcap_graph_audit.
gcap_status_t gcap_notes_check(const gcap_graph_notes_t* notes);

// --- What memory an address is in -----------------------------------------------------------------------------------

// CUmemorytype, of what gcap looks for.
enum { GCAP_DRIVER_NO_MEMORY = 0, GCAP_DRIVER_PINNED_MEMORY = 1, GCAP_DRIVER_DEVICE_MEMORY = 2 };

// The allocation that an address is in.
typedef struct gcap_driver_allocation {
  unsigned type;  // CUmemorytype; GCAP_DRIVER_NO_MEMORY: the driver knows none there
  int device;
  uint64_t buffer_id;  // no two allocations share one
  uintptr_t start;
  size_t bytes;
} gcap_driver_allocation_t;

// Capture: legal. Measured on an H200.
//   UNIMPLEMENTED  as gcap_driver_get
//   CUDA_ERROR     the driver does not answer
gcap_status_t gcap_driver_find_allocation(uintptr_t address, gcap_driver_allocation_t* out_allocation);

// --- Why a graph does something else ---------------------------------------------------------------------------------

// What a graph does is compared with a fresh capture of the same work, which was read and thrown away: node by node, in
// the order of their creation.

// How a node has something else than the same node of a fresh capture.
typedef enum gcap_change_kind {
  GCAP_CHANGE_NONE = 0,
  GCAP_CHANGE_POINTER,  // a word that leads to memory, in one of the two
  GCAP_CHANGE_VALUE,    // a word that is no pointer, a grid, a kernel
} gcap_change_kind_t;

typedef struct gcap_node_change {
  gcap_change_kind_t kind;
  char place[64];             // "argument 2", "the source", "grid"
  char now[400], fresh[400];  // "0x7f3c00000000, in buffer id 17, 4096 bytes at 0x7f3c00000000"
} gcap_node_change_t;

// The first thing that a node has otherwise than node `fresh_node` of the fresh capture. Pointers into scratch may
// differ: a graph keeps its own. With `fresh` NULL, and where nothing differs, a pointer to memory that is nobody's;
// but for the host's end of a copy, of which nobody knows whose it is.
//   errors of gcap_memory_look
gcap_status_t gcap_contents_find_change(const gcap_contents_t* now, size_t node, const gcap_contents_t* fresh,
                                        size_t fresh_node, const gcap_block_finder_t* finder,
                                        gcap_node_change_t* out_change);

// Memory that has a name, and of which the caller knows who writes it.
typedef struct gcap_named_memory {
  const char* name;
  uintptr_t start;
  size_t bytes;
} gcap_named_memory_t;

// The memory that the nodes of a graph work on.
typedef struct gcap_touches_subject {
  const gcap_contents_t* contents;  // with arguments
  gcap_block_finder_t finder;
  const gcap_named_memory_t* named;
  size_t num_named;
  // Whether the node may write named memory number `index`. Of a copy and a fill the arguments tell that, and it is not
  // asked. NULL: each kernel may write.
  bool (*writes)(void* user, size_t node, size_t index);
  // Finds the scratch that the node works on at the address, as the work was handed it; `*out_index`, from num_named
  // on, is for `writes`. False: none is known there. NULL: none is known.
  bool (*find_scratch)(void* user, size_t node, uintptr_t address, gcap_named_memory_t* out_memory, size_t* out_index);
  void* user;
} gcap_touches_subject_t;

// Two nodes that work on the same memory, which one of them writes, and that no path of edges orders.
typedef struct gcap_unordered_nodes {
  size_t earlier, later;
  char memory[128];  // "buffer 'x'"
} gcap_unordered_nodes_t;

// Looks for two such nodes. `later`: which the later one is; GCAP_CONTENTS_TOP: the first such node. Of several earlier
// ones the last. A kernel's pointers into memory without a name count only in scratch: elsewhere nobody knows whether
// both read it alone.
//   RESOURCE_EXHAUSTED  no host memory
//   errors of gcap_memory_look
gcap_status_t gcap_contents_find_unordered(const gcap_touches_subject_t* subject, size_t later,
                                           gcap_unordered_nodes_t* out_nodes, bool* out_found);

// Whether the node works on memory without a name that no node before it works on: `place` and `memory` say which. Of
// scratch that `find_scratch` finds, whether the node works on what no node has written so far, and does not write it.
//   RESOURCE_EXHAUSTED, errors of gcap_memory_look  likewise
gcap_status_t gcap_contents_find_first_use(const gcap_touches_subject_t* subject, size_t node, char place[64],
                                           char memory[400], bool* out_found);

#endif  // GCAP_LIB_CONTENTS_INNER_H_
