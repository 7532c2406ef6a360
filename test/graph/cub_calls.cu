// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Calls of CUB, one of a kind: each instantiation takes nvcc seconds for each architecture.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_transform.cuh>

#include "test/graph/cub_calls.h"

namespace {

struct Twice {
  __host__ __device__ uint32_t operator()(uint32_t x) const { return 2 * x; }
};

}  // namespace

cudaError_t gcap_test_cub_sort(void* workspace, size_t* bytes, const uint32_t* x, uint32_t* y, int count,
                               cudaStream_t stream) {
  return cub::DeviceRadixSort::SortKeys(workspace, *bytes, x, y, count, 0, 32, stream);
}

cudaError_t gcap_test_cub_scan(void* workspace, size_t* bytes, const uint32_t* x, uint32_t* y, int count,
                               cudaStream_t stream) {
  return cub::DeviceScan::InclusiveSum(workspace, *bytes, x, y, count, stream);
}

cudaError_t gcap_test_cub_reduce(void* workspace, size_t* bytes, const uint32_t* x, uint32_t* y, int count,
                                 cudaStream_t stream) {
  return cub::DeviceReduce::Sum(workspace, *bytes, x, y, count, stream);
}

cudaError_t gcap_test_cub_transform(void* workspace, size_t* bytes, const uint32_t* x, uint32_t* y, int count,
                                    cudaStream_t stream) {
  if (workspace == nullptr) {
    *bytes = 1;
    return cudaSuccess;
  }
  return cub::DeviceTransform::Transform(x, y, count, Twice{}, stream);
}
