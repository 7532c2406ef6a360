// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// copy.h: copies and fills.
#ifndef GCAP_SIM_MEMORY_COPY_H_
#define GCAP_SIM_MEMORY_COPY_H_

#include <stdbool.h>
#include <stddef.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"

typedef struct gcap_sim_copy {
  void* dst;
  size_t dst_pitch;
  const void* src;
  size_t src_pitch;
  size_t width;  // bytes a row
  size_t height;
  size_t depth;      // slices; 0 counts as 1
  size_t dst_slice;  // bytes from one slice to the next
  size_t src_slice;
  enum cudaMemcpyKind kind;
  // What the addresses were at the call; the device is cudaInvalidDeviceId but for device memory.
  enum cudaMemoryType dst_type;
  enum cudaMemoryType src_type;
  int dst_device;
  int src_device;
} gcap_sim_copy_t;

typedef struct gcap_sim_fill {
  char* dst;
  size_t pitch;
  unsigned int value;
  unsigned int element_bytes;
  size_t width;  // elements a row
  size_t height;
  enum cudaMemoryType type;  // what the address was at the call
  int device;                // cudaInvalidDeviceId but for device memory
} gcap_sim_fill_t;

// Makes the task of a copy, and fills in the copy's types of memory; on failure returns NULL and sets the code.
gcap_sim_task_t* gcap_sim_copy_task(gcap_sim_copy_t* copy, cudaError_t* code);
// The same for a fill.
gcap_sim_task_t* gcap_sim_fill_task(const gcap_sim_fill_t* fill, cudaError_t* code);
// Is there memory, device or pinned, for all of the fill?
bool gcap_sim_fill_has_memory(const gcap_sim_fill_t* fill);
// The copy that the parameters describe, with positions folded into the addresses.
gcap_sim_copy_t gcap_sim_copy_of_params(const struct cudaMemcpy3DParms* params);
// Do the copied box and what the caller says of the memory around it go together?
cudaError_t gcap_sim_judge_copy_params(const struct cudaMemcpy3DParms* params);

// Judges, then queues or captures a copy; one that must is done on return.
cudaError_t gcap_sim_copy_async(gcap_sim_copy_t* copy, gcap_sim_stream_t* stream);
// The same, and on return it is done, unless it stays within devices.
cudaError_t gcap_sim_copy_sync(gcap_sim_copy_t* copy);
// Takes the source's bytes now; what becomes of them later does not matter to the copy.
void gcap_sim_copy_stage(gcap_sim_task_t* task);

cudaError_t gcap_sim_fill_async(const gcap_sim_fill_t* fill, gcap_sim_stream_t* stream);
// The same; a fill of host memory is done on return.
cudaError_t gcap_sim_fill_sync(const gcap_sim_fill_t* fill);

#endif  // GCAP_SIM_MEMORY_COPY_H_
