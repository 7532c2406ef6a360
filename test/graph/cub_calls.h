// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cub_calls.h: algorithms of CUB over a whole device, as nvcc of the build's toolkit compiles them.
#ifndef GCAP_TEST_GRAPH_CUB_CALLS_H_
#define GCAP_TEST_GRAPH_CUB_CALLS_H_

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Each reads `count` numbers of x and writes y. `workspace` NULL: only sets `*bytes` to how large the workspace is to
// be.
typedef cudaError_t (*gcap_test_cub_call_t)(void* workspace, size_t* bytes, const uint32_t* x, uint32_t* y, int count,
                                            cudaStream_t stream);

cudaError_t gcap_test_cub_sort(void* workspace, size_t* bytes, const uint32_t* x, uint32_t* y, int count,
                               cudaStream_t stream);
cudaError_t gcap_test_cub_scan(void* workspace, size_t* bytes, const uint32_t* x, uint32_t* y, int count,
                               cudaStream_t stream);
cudaError_t gcap_test_cub_reduce(void* workspace, size_t* bytes, const uint32_t* x, uint32_t* y, int count,
                                 cudaStream_t stream);
// Needs no workspace.
cudaError_t gcap_test_cub_transform(void* workspace, size_t* bytes, const uint32_t* x, uint32_t* y, int count,
                                    cudaStream_t stream);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_GRAPH_CUB_CALLS_H_
