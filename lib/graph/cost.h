// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cost.h: the device memory of executables.
//
// Measured on an H200 by bench/graph:cost_bench: each executable takes memory, and each of its kernel nodes takes more,
// whatever its arguments; the device gives it when the executable is made, in steps of 2 MiB for all executables
// together, and keeps it for later ones when they are destroyed. Nodes that fill take none. Those that copy on the
// device take as much as kernels, which is not counted: nothing but their parameters tells them apart from other
// copies. So no executable has a number of its own that the device would tell. What is counted is what one more of its
// kind takes where there are many: recorded numbers, scaled by what was seen to go on this device, once that is so much
// that the steps do not matter.
#ifndef GCAP_LIB_GRAPH_COST_H_
#define GCAP_LIB_GRAPH_COST_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Of an executable, and of one kernel node. Within 4 % of what 1,000 executables of 1 and of 10 kernel nodes took, 400
// of 100, 40 of 1,000 and 8 of 10,000; of few executables the first step is more than all of them.
#define GCAP_GRAPH_EXEC_BYTES ((size_t)112 << 10)
#define GCAP_GRAPH_KERNEL_NODE_BYTES ((size_t)2458)

// So much must have gone before it counts: a step more or less is 3 % of it.
#define GCAP_GRAPH_MEASURED_BYTES ((size_t)64 << 20)

// The bytes of an executable with so many kernel nodes, as far as is known now. Any thread.
size_t gcap_graph_exec_bytes(int device_id, size_t kernels);
// The same of a graph with `more` executables beside one.
static inline size_t gcap_graph_segments_bytes(int device_id, size_t kernels, size_t more) {
  return gcap_graph_exec_bytes(device_id, kernels) + more * gcap_graph_exec_bytes(device_id, 0);
}

// Watches the device's memory while an executable is made and launched for the first time. Between begin and end the
// thread makes nothing else that takes memory. Nothing here fails: what cannot be measured is not, as on a device that
// is not current. What the driver is asked is legal while any thread captures.
typedef struct gcap_graph_cost_watch {
  int device_id;
  size_t bytes;      // recorded, of the executable
  size_t new_bytes;  // of them, what finds no memory of destroyed ones
  size_t free_bytes;
  unsigned long long turn;
  bool is_measured;
} gcap_graph_cost_watch_t;

gcap_graph_cost_watch_t gcap_graph_cost_begin(int device_id, size_t kernels, bool may_measure);
// `made`: there is an executable more.
void gcap_graph_cost_end(const gcap_graph_cost_watch_t* watch, bool made);
// An executable was destroyed.
void gcap_graph_cost_forget(int device_id, size_t kernels);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_GRAPH_COST_H_
