// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// device_tools.cuh: what elementwise kernels share on the GPU: loops over the grid, several elements in one access, and
// the offsets that an index map gives.
#ifndef GCAP_OPS_KERNELS_DEVICE_TOOLS_CUH_
#define GCAP_OPS_KERNELS_DEVICE_TOOLS_CUH_

#include <stdint.h>

#include "ops/kernels/index_map.h"

namespace gcap {

__device__ inline int64_t FirstOfThread() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t ThreadsOfGrid() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

// Elements that are read or written in accesses of 16 bytes, or in one if they are fewer.
template <typename T, int kCount>
struct alignas(kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16) Pack {
  T values[kCount];
};

template <typename P>
__device__ bool IsAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % alignof(P) == 0;
}

// The offset of each operand for the map's element `i`.
template <int kOperands, typename Index>
__device__ void Offsets(const gcap_index_map_t& map, int64_t i, Index (&offsets)[kOperands]) {
#pragma unroll
  for (int k = 0; k < kOperands; ++k) offsets[k] = 0;
  Index left = static_cast<Index>(i);
  for (int axis = map.rank - 1; axis >= 0; --axis) {
    const Index size = static_cast<Index>(map.shape[axis]);
    const Index outer = axis == 0 ? 0 : left / size, at = left - outer * size;
    left = outer;
#pragma unroll
    for (int k = 0; k < kOperands; ++k) offsets[k] += at * static_cast<Index>(map.strides[k][axis]);
  }
}

// Gives `visit(i, offsets)` the elements of the map that fall to this thread.
template <int kOperands, typename Index, typename Visit>
__device__ void ForEachIndex(const gcap_index_map_t& map, Visit visit) {
  for (int64_t i = FirstOfThread(); i < map.count; i += ThreadsOfGrid()) {
    Index offsets[kOperands];
    Offsets<kOperands, Index>(map, i, offsets);
    visit(i, offsets);
  }
}

// Divisions of 32 bits take a fraction of the time of those of 64.
template <int kOperands, typename Visit>
__device__ void ForEach(const gcap_index_map_t& map, Visit visit) {
  if (map.narrow) {
    ForEachIndex<kOperands, int32_t>(map, visit);
  } else {
    ForEachIndex<kOperands, int64_t>(map, visit);
  }
}

}  // namespace gcap

#endif  // GCAP_OPS_KERNELS_DEVICE_TOOLS_CUH_
