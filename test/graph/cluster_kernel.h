// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cluster_kernel.h: kernels that tell the size of the clusters they run in.
#ifndef GCAP_TEST_GRAPH_CLUSTER_KERNEL_H_
#define GCAP_TEST_GRAPH_CLUSTER_KERNEL_H_

#ifdef __CUDACC__
#define CLUSTER_KERNEL __global__
#else
#define CLUSTER_KERNEL
#endif

#ifdef __cplusplus
extern "C" {
#endif

// *out = the blocks of a cluster: 1 without clusters. The two are alike, and differ as functions.
CLUSTER_KERNEL void cluster_kernel(int* out);
CLUSTER_KERNEL void other_cluster_kernel(int* out);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_GRAPH_CLUSTER_KERNEL_H_
