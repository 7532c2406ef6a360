// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tasks: one piece of device work each, and how it is done on the CPU.
//
// The idea: a task is made once at the call and never changes, so the queue of a stream, a graph, the graph's clones
// and its executables all share it by count. Locking: the global mutex, also while a twin runs.
#include "sim/stream/task.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/fault.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/bridge/task_access.h"
#include "sim/check/origin.h"
#include "sim/check/shadow.h"
#include "sim/device/twin.h"
#include "sim/memory/allocation.h"
#include "sim/memory/copy.h"
#include "sim/memory/host_range.h"
#include "sim/stream/event.h"

gcap_sim_task_t* gcap_sim_task_create(gcap_sim_task_kind_t kind, const char* name) {
  gcap_sim_task_t* task = gcap_sim_calloc(1, sizeof(*task));
  task->refs = 1;
  task->kind = kind;
  task->name = name;
  task->origin = gcap_sim_origin_retain(gcap_sim_origin_current());
  return task;
}

gcap_sim_task_t* gcap_sim_task_retain(gcap_sim_task_t* task) {
  ++task->refs;
  return task;
}

static void task_free(gcap_sim_task_t* task) {
  switch (task->kind) {
    case GCAP_SIM_TASK_KERNEL:
      free(task->u.kernel.args);
      free(task->u.kernel.extra);
      break;
    case GCAP_SIM_TASK_LIBRARY:
      free(task->u.library.args);
      free(task->u.library.extra);
      free(task->u.library.accesses);
      break;
    case GCAP_SIM_TASK_COPY: free(task->u.copy.staged); break;
    case GCAP_SIM_TASK_EVENT_RECORD:
    case GCAP_SIM_TASK_EVENT_WAIT: gcap_sim_event_release(task->u.event); break;
    case GCAP_SIM_TASK_ALLOC:
    case GCAP_SIM_TASK_FREE: gcap_sim_allocation_release(task->u.allocation); break;
    case GCAP_SIM_TASK_NOTE: gcap_sim_memory_release(task->u.note.memory); break;
    case GCAP_SIM_TASK_EMPTY:
    case GCAP_SIM_TASK_FILL:
    case GCAP_SIM_TASK_HOST: break;
  }
  gcap_sim_access_unbind(task);
  gcap_sim_origin_release(task->origin);
  free(task);
}

void gcap_sim_task_release(gcap_sim_task_t* task) {
  if (task != NULL && --task->refs == 0) task_free(task);
}

static void copy_slice(char* dst, size_t dst_pitch, const char* src, size_t src_pitch, size_t width, size_t height) {
  for (size_t row = 0; row < height; ++row) memmove(dst + row * dst_pitch, src + row * src_pitch, width);
}

static void run_copy(const gcap_sim_task_t* task) {
  const gcap_sim_copy_t* copy = &task->u.copy.copy;
  if (task->u.copy.staged == NULL) gcap_sim_check_source(copy);
  gcap_sim_check_destination(copy);
  const char* src = task->u.copy.staged != NULL ? task->u.copy.staged : copy->src;
  size_t src_pitch = task->u.copy.staged != NULL ? copy->width : copy->src_pitch;
  size_t src_slice = task->u.copy.staged != NULL ? copy->width * copy->height : copy->src_slice;
  char* dst = copy->dst;
  size_t slice = 0;
  do {
    copy_slice(dst + slice * copy->dst_slice, copy->dst_pitch, src + slice * src_slice, src_pitch, copy->width,
               copy->height);
  } while (++slice < copy->depth);
}

static void run_fill(const gcap_sim_fill_t* fill) {
  for (size_t row = 0; row < fill->height; ++row) {
    char* p = fill->dst + row * fill->pitch;
    if (fill->element_bytes == 1) {
      memset(p, (int)fill->value, fill->width);
      continue;
    }
    // The low bytes of the value come first: the simulated devices are little-endian, as their hosts are.
    for (size_t i = 0; i < fill->width; ++i) memcpy(p + i * fill->element_bytes, &fill->value, fill->element_bytes);
  }
}

static void run(const gcap_sim_task_t* task) {
  switch (task->kind) {
    case GCAP_SIM_TASK_KERNEL:
      gcap_sim_twin_run(task->u.kernel.twin, &task->u.kernel.launch, task->u.kernel.args);
      break;
    case GCAP_SIM_TASK_LIBRARY: task->u.library.kernel->run(task->u.library.payload); break;
    case GCAP_SIM_TASK_COPY: run_copy(task); break;
    case GCAP_SIM_TASK_FILL: run_fill(&task->u.fill); break;
    case GCAP_SIM_TASK_ALLOC: gcap_sim_allocation_begin(task->u.allocation); break;
    case GCAP_SIM_TASK_FREE: gcap_sim_allocation_end(task->u.allocation); break;
    case GCAP_SIM_TASK_EMPTY:
    case GCAP_SIM_TASK_NOTE:
    case GCAP_SIM_TASK_HOST:
    case GCAP_SIM_TASK_EVENT_RECORD:
    case GCAP_SIM_TASK_EVENT_WAIT: break;
  }
}

void gcap_sim_task_run(const gcap_sim_task_t* task) {
  // Addresses live and die also on a device that a fault has stopped: that is bookkeeping of the host.
  if (gcap_sim_fault_stops_work() && task->kind != GCAP_SIM_TASK_ALLOC && task->kind != GCAP_SIM_TASK_FREE) return;
  gcap_sim_thread()->in_device_work = true;
  run(task);
  gcap_sim_thread()->in_device_work = false;
}

enum cudaGraphNodeType gcap_sim_task_node_type(const gcap_sim_task_t* task) {
  switch (task->kind) {
    case GCAP_SIM_TASK_KERNEL:
    case GCAP_SIM_TASK_LIBRARY: return cudaGraphNodeTypeKernel;
    case GCAP_SIM_TASK_COPY: return cudaGraphNodeTypeMemcpy;
    case GCAP_SIM_TASK_FILL: return cudaGraphNodeTypeMemset;
    case GCAP_SIM_TASK_HOST: return cudaGraphNodeTypeHost;
    case GCAP_SIM_TASK_EVENT_RECORD: return cudaGraphNodeTypeEventRecord;
    case GCAP_SIM_TASK_EVENT_WAIT: return cudaGraphNodeTypeWaitEvent;
    case GCAP_SIM_TASK_ALLOC: return cudaGraphNodeTypeMemAlloc;
    case GCAP_SIM_TASK_FREE: return cudaGraphNodeTypeMemFree;
    case GCAP_SIM_TASK_NOTE:
    case GCAP_SIM_TASK_EMPTY: break;
  }
  return cudaGraphNodeTypeEmpty;
}
