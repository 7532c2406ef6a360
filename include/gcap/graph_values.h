// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_values.h: scalars that change from replay to replay, as a position, a length or a seed
// (gcap_graph_buffers_t.values).
//
// A captured graph has the arguments of its capture. An id may be captured together with the values that its work reads
// on the host, and each replay may be given other ones: without a new capture. The values of a run go with its buffers,
// and the nodes that read what is another one are set once before the launch, whatever they read.
//
// The work reads the values from gcap_run_resources_t.values, and nowhere else: that is how gcap can have it read
// others. The work is captured up to four times. In three rehearsals, in which nothing is executed, the values are
// others; then the work is captured with the values of the run. An argument of a kernel, a part of it, or the value of
// a fill carries a value if it has the value's bytes in all captures. Of a value of more than 4 bytes, 4 or 8 bytes at
// a multiple of that size may be carried alone.
//
// A graph is adjusted only where this proves that a capture would have the same arguments. It cannot be, and
// GCAP_GRAPH_WHY_NOT_MOVABLE names the node, the argument and the values, if
//   - anything else differs between the captures: an argument that is computed from a value, the size of a copy or of a
//     fill, a kernel, a grid, a number of nodes, the bytes that a copy reads on the host;
//   - no argument carries a value, and gcap_graph_value_t.may_be_unused does not allow that;
//   - there is a host function, and gcap_graph_buffers_t.host_functions_may_stay does not allow that;
//   - an argument may carry either of two values, which were alike in all captures.
// Such a graph replays with the values of its capture alone. Runs with others are eager, as are runs with a value
// outside of the bounds of the capture, or in which a byte that was the same in all captures is another one.
//
// A number is captured as it is, at its bounds, and at a third number whose bits are others. So a threshold, and
// whatever only rises or only falls with the number, is seen; so is whether the number is even. In some of the captures
// one value is at its lower bound where another one is at its upper one, so a sum or a difference of two is seen. Other
// decisions may not be seen: whether a value is one number between its bounds, or a multiple of one, or whether two
// flags are both set. They belong into the id, as all decisions of the host that no value says.
//
// A value that many nodes read, or that no argument can carry, may be read on the device instead
// (gcap_graph_value_t.in_memory).
//
// A pointer is no value: name what it points to as a buffer (graph_buffers.h), which audits follow, or as one in
// memory.
#ifndef GCAP_GRAPH_VALUES_H_
#define GCAP_GRAPH_VALUES_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// The most bytes of a value that arguments carry. A larger struct of the work's is several values, one for each field
// that changes, or one in memory.
#define GCAP_GRAPH_VALUE_MAX_BYTES 32
// The most bytes of a value in memory, as a row of a table of blocks. What is larger is a buffer.
#define GCAP_GRAPH_VALUE_IN_MEMORY_MAX_BYTES 4096

// What a value is.
typedef enum gcap_graph_value_type {
  GCAP_GRAPH_VALUE_BYTES = 0,  // a struct, or whatever else is no number
  GCAP_GRAPH_VALUE_SIGNED,     // an integer of 1, 2, 4 or 8 bytes
  GCAP_GRAPH_VALUE_UNSIGNED,
  GCAP_GRAPH_VALUE_FLOAT,  // of 4 or 8 bytes
} gcap_graph_value_type_t;

// A value of a run.
// Thread:   plain data, as the run.
// Capture:  no call.
// Lifetime: the struct, and what it points to, is read before the call of the run returns. Where the work finds the
//           value: see gcap_run_resources_t.values.
typedef struct gcap_graph_value {
  const char* name;  // for messages; may be NULL
  const void* data;  // of this run; any alignment
  size_t bytes;      // 1 to GCAP_GRAPH_VALUE_MAX_BYTES; `in_memory`: to GCAP_GRAPH_VALUE_IN_MEMORY_MAX_BYTES
  gcap_graph_value_type_t type;
  // Two others that the work is captured with, of the same type: each is valid, whatever the other values are. Of a
  // number the least and the greatest that it may be, at each replay too. Of BYTES any two; bytes in which they and the
  // capture's own are all alike stay as they are.
  const void* low;
  const void* high;
  bool may_be_unused;  // this work may have no argument that carries the value
  // The work reads the value on the device: gcap_run_resources_t.values has an address there, the same in all runs of a
  // graph, a multiple of 16. One copy from pinned memory brings all such values before a launch, whatever reads them,
  // and no node is set. The work does not see the value on the host, so nothing else follows it, and `low` and `high`
  // do not count. Of a stream that is capturing, and of a device without memory pools, runs with such values are
  // refused. Their bytes on the device are in gcap_graph_info_t.bytes; the ring in pinned memory is not: up to 64 KiB,
  // or 8 times the bytes where that is more.
  bool in_memory;
} gcap_graph_value_t;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_VALUES_H_
