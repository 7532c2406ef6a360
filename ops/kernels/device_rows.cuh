// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// device_rows.cuh: groups of threads that share a row: one thread, a warp, or a block. Which one, the launch says, so
// the branch is the same for all threads.
#ifndef GCAP_OPS_KERNELS_DEVICE_ROWS_CUH_
#define GCAP_OPS_KERNELS_DEVICE_ROWS_CUH_

#include <stdint.h>

#include "ops/kernels/compensated_sum.h"
#include "ops/kernels/row_lanes.h"

// A kernel of groups: its blocks have up to GCAP_ROW_BLOCK_THREADS threads. Without the bound nvcc may give a thread
// 255 registers, and a block of more than 256 such threads cannot be launched.
#define GCAP_ROW_KERNEL __global__ void __launch_bounds__(GCAP_ROW_BLOCK_THREADS)

namespace gcap {

constexpr unsigned kWarpThreads = GCAP_WARP_THREADS;
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr unsigned kMaxWarps = GCAP_ROW_BLOCK_THREADS / kWarpThreads;

// The calling thread's group, of `lanes` threads, and its place in it.
struct Group {
  __device__ explicit Group(unsigned group_lanes)
      : lanes(group_lanes),
        lane(threadIdx.x % group_lanes),
        first_row((static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / group_lanes),
        row_step(static_cast<int64_t>(gridDim.x) * blockDim.x / group_lanes) {}

  unsigned lanes;
  unsigned lane;
  int64_t first_row;  // then each that is `row_step` further; the same rows for the whole group
  int64_t row_step;
};

// The combination of the values of `count` lanes of a warp, given to each of its lanes.
template <typename T, typename Combine>
__device__ T CombineWarp(T value, Combine combine) {
  for (unsigned distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

// The combination of the values of the group, given to each of its threads. `none` combines with any value to that.
template <typename T, typename Combine>
__device__ T CombineGroup(const Group& group, T value, T none, Combine combine) {
  if (group.lanes == 1) return value;
  value = CombineWarp(value, combine);
  if (group.lanes == kWarpThreads) return value;
  __shared__ T partials[kMaxWarps];
  const unsigned lane = threadIdx.x % kWarpThreads;
  if (lane == 0) partials[threadIdx.x / kWarpThreads] = value;
  __syncthreads();
  value = CombineWarp(lane < blockDim.x / kWarpThreads ? partials[lane] : none, combine);
  __syncthreads();  // partials may be written again
  return value;
}

__device__ inline float AddFloats(float a, float b) { return a + b; }

// The sum of term(i) over the group's lanes' shares of `count`.
template <typename Term>
__device__ float SumOf(const Group& group, int64_t count, Term term) {
  gcap_sum_t sum = gcap_sum_zero();
  for (int64_t i = group.lane; i < count; i += group.lanes) gcap_sum_add(&sum, term(i));
  return CombineGroup(group, gcap_sum_value(sum), 0.0f, AddFloats);
}

}  // namespace gcap

#endif  // GCAP_OPS_KERNELS_DEVICE_ROWS_CUH_
