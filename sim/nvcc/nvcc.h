// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// nvcc.h: the functions that objects which nvcc compiled call, beside those of the runtime. No program declares them,
// or calls them by hand.
#ifndef GCAP_SIM_NVCC_NVCC_H_
#define GCAP_SIM_NVCC_NVCC_H_

#include <stddef.h>

#include "cuda_runtime_api.h"

struct CUkern_st;  // here a kernel's handle: the address of its host function

#pragma GCC visibility push(default)

// Before main: the device code of an object, then its kernels and variables; at exit its end.
void** __cudaRegisterFatBinary(void* fatCubin);
void __cudaRegisterFunction(void** fatCubinHandle, const char* hostFun, char* deviceFun, const char* deviceName,
                            int thread_limit, uint3* tid, uint3* bid, dim3* bDim, dim3* gDim, int* wSize);
void __cudaRegisterVar(void** fatCubinHandle, char* hostVar, char* deviceAddress, const char* deviceName, int ext,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void** fatCubinHandle, void** hostVarPtrAddress, char* deviceAddress,
                              const char* deviceName, int ext, size_t size, int constant, int global);
void __cudaRegisterFatBinaryEnd(void** fatCubinHandle);
char __cudaInitModule(void** fatCubinHandle);
void __cudaUnregisterFatBinary(void** fatCubinHandle);

// A launch with <<<>>>: the caller pushes the configuration and calls the kernel's host function, which pops it.
// Pushing answers 0 when the host function is to be called.
unsigned int __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* gridDim, dim3* blockDim, size_t* sharedMem, void* stream);
cudaError_t __cudaGetKernel(struct CUkern_st** kernel, const void* entry);
cudaError_t __cudaLaunchKernel(struct CUkern_st* kernel, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                               cudaStream_t stream);

#pragma GCC visibility pop

#endif  // GCAP_SIM_NVCC_NVCC_H_
