// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// driver.h: the few functions of the CUDA driver that the runtime has no counterpart of. The runtime hands them out, so
// no program links the driver. The types are those of cuda.h, which a build against the simulator does not have.
//
// Why the driver: of a kernel of cuBLAS or cuDNN the runtime's cudaGraphKernelNodeGetParams tells nothing (98,
// invalid device function), and of no kernel does it tell how large the arguments are. Measured on an H200.
#ifndef GCAP_LIB_CONTENTS_DRIVER_H_
#define GCAP_LIB_CONTENTS_DRIVER_H_

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"

// CUDA_KERNEL_NODE_PARAMS_v2.
typedef struct gcap_driver_kernel {
  void* function;  // CUfunction
  unsigned grid[3], block[3], shared_bytes;
  void** params;
  void** extra;
  void* kernel;  // CUkernel; NULL: only `function` names the kernel
  void* context;
} gcap_driver_kernel_t;

// Keys of `extra`, in pairs with values, in any order, up to an END.
#define GCAP_DRIVER_EXTRA_END ((void*)0)
#define GCAP_DRIVER_EXTRA_BUFFER ((void*)1)
#define GCAP_DRIVER_EXTRA_BYTES ((void*)2)

// Each answers with a CUresult, whose numbers are those of cudaError_t.
typedef struct gcap_driver {
  int (*get_kernel)(cudaGraphNode_t node, gcap_driver_kernel_t* out_kernel);
  int (*set_kernel)(cudaGraphExec_t exec, cudaGraphNode_t node, const gcap_driver_kernel_t* kernel);
  int (*function_param)(void* function, size_t index, size_t* out_offset, size_t* out_bytes);
  int (*function_name)(const char** out_name, void* function);
  int (*reserve)(uintptr_t* out_address, size_t bytes, size_t alignment, uintptr_t fixed, unsigned long long flags);
  int (*unreserve)(uintptr_t address, size_t bytes);
  int (*current_context)(void** out_context);  // NULL: the thread has none
  int (*pointer_attributes)(unsigned count, const int* attributes, void** out_values, uintptr_t address);
} gcap_driver_t;

// Gives the functions.
// Thread:  any.
// Capture: legal; the calls that the members stand for, too, but not as nodes.
//   UNIMPLEMENTED  the driver is older than CUDA 12.4, which brought the youngest of the functions
//   CUDA_ERROR     the runtime does not hand a function out
gcap_status_t gcap_driver_get(gcap_driver_t* out_driver);

// The status of an answer of the driver's function of this name.
#define GCAP_DRIVER(name, answer) gcap_driver_status((answer), (name), __FILE__, __LINE__)
gcap_status_t gcap_driver_status(int result, const char* name, const char* file, int line);

#endif  // GCAP_LIB_CONTENTS_DRIVER_H_
