// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Softmax over rows on the GPU: maximum, sum of exponentials, quotient. Each pass reads the row again, from cache for
// all but the longest, and each element is written by the thread that read it, after every thread has read its share
// twice: y may be x.
//
// A row with a NaN or a +inf, or of nothing but -inf, becomes NaN: the same as the formula says.
#include <math.h>

#include "test/support/kernels/plain_kernels.h"

namespace {

constexpr unsigned kWarpThreads = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

struct Max {
  static constexpr float kIdentity = -INFINITY;
  static __device__ float Combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
  static constexpr float kIdentity = 0.0f;
  static __device__ float Combine(float a, float b) { return a + b; }
};

// The reduction of all lanes' values, given to every lane.
template <typename Op>
__device__ float WarpReduce(float v) {
  for (unsigned distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    v = Op::Combine(v, __shfl_xor_sync(kAllLanes, v, distance));
  }
  return v;
}

__device__ float ThreadMax(const float* row, int64_t cols, unsigned first, unsigned step) {
  float v = Max::kIdentity;
  for (int64_t i = first; i < cols; i += step) v = Max::Combine(v, row[i]);
  return v;
}

__device__ float ThreadSum(const float* row, int64_t cols, unsigned first, unsigned step, float max) {
  float v = Sum::kIdentity;
  for (int64_t i = first; i < cols; i += step) v += expf(row[i] - max);
  return v;
}

__device__ void ThreadWrite(const float* x, float* y, int64_t cols, unsigned first, unsigned step, float max,
                            float sum) {
  for (int64_t i = first; i < cols; i += step) y[i] = expf(x[i] - max) / sum;
}

}  // namespace

__global__ void gcap_kernel_softmax_warp_f32(const float* x, float* y, int64_t rows, int64_t cols) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarpThreads;
  if (row >= rows) return;  // a whole warp at once: nobody waits for its lanes
  const unsigned lane = threadIdx.x % kWarpThreads;
  x += row * cols;
  y += row * cols;
  const float max = WarpReduce<Max>(ThreadMax(x, cols, lane, kWarpThreads));
  const float sum = WarpReduce<Sum>(ThreadSum(x, cols, lane, kWarpThreads, max));
  ThreadWrite(x, y, cols, lane, kWarpThreads, max, sum);
}
