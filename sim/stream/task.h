// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// task.h: what a piece of device work does.
#ifndef GCAP_SIM_STREAM_TASK_H_
#define GCAP_SIM_STREAM_TASK_H_

#include <stdbool.h>
#include <stddef.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/submit.h"
#include "sim/api/types.h"
#include "sim/check/origin.h"
#include "sim/check/shadow.h"
#include "sim/memory/copy.h"

typedef enum gcap_sim_task_kind {
  GCAP_SIM_TASK_EMPTY,
  GCAP_SIM_TASK_KERNEL,
  GCAP_SIM_TASK_LIBRARY,
  GCAP_SIM_TASK_COPY,
  GCAP_SIM_TASK_FILL,
  GCAP_SIM_TASK_HOST,
  GCAP_SIM_TASK_EVENT_RECORD,
  GCAP_SIM_TASK_EVENT_WAIT,
  GCAP_SIM_TASK_ALLOC,
  GCAP_SIM_TASK_FREE,
  GCAP_SIM_TASK_NOTE,  // tells the checks of a sub-allocation; does nothing
} gcap_sim_task_kind_t;

// Immutable once submitted, and counted: a stream's queue, graphs, their clones and executables share one.
struct gcap_sim_task {
  size_t refs;
  gcap_sim_task_kind_t kind;
  const char* name;
  gcap_sim_origin_t* origin;  // the call that made it
  gcap_sim_memory_t** named;  // of a graph's task: to what each address belonged that it names, or NULL
  size_t num_named;
  struct gcap_sim_watch* watched[2];  // the source and the target of a graph's copy that are pageable memory
  union {
    struct {
      struct gcap_sim_twin* twin;
      gcap_sim_launch_t launch;
      void** args;   // one block: the pointers, then the copied arguments
      void** extra;  // the same as they were given, in one buffer: a block; NULL for those given one by one
    } kernel;
    struct {
      const gcap_sim_library_kernel_t* kernel;
      void* payload;  // in the block of one of the following; the other is NULL
      void** args;    // as of a kernel
      void** extra;
      gcap_sim_access_t* accesses;
      size_t num_accesses;
    } library;
    struct {
      gcap_sim_copy_t copy;
      void* staged;  // the source as it was at the call, for eager copies from pageable memory
    } copy;
    gcap_sim_fill_t fill;
    struct {
      cudaHostFn_t function;
      void* data;
    } host;
    gcap_sim_event_t* event;
    gcap_sim_allocation_t* allocation;
    struct {
      gcap_sim_memory_t* memory;
      bool begins;
    } note;
  } u;
};

gcap_sim_task_t* gcap_sim_task_create(gcap_sim_task_kind_t kind, const char* name);
gcap_sim_task_t* gcap_sim_task_retain(gcap_sim_task_t* task);
void gcap_sim_task_release(gcap_sim_task_t* task);
// Does the work. Not for host functions and event nodes: the scheduler does those.
void gcap_sim_task_run(const gcap_sim_task_t* task);
// Is it a copy into pageable memory? A launch of a graph holds the host until it is done.
static inline bool gcap_sim_task_holds_host(const gcap_sim_task_t* task) {
  return task->kind == GCAP_SIM_TASK_COPY && task->u.copy.copy.dst_type == cudaMemoryTypeUnregistered;
}
enum cudaGraphNodeType gcap_sim_task_node_type(const gcap_sim_task_t* task);

#endif  // GCAP_SIM_STREAM_TASK_H_
