// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Selections on the GPU. Of an extremum, a group of threads takes a row: first the largest key, then the first or last
// index that has it. Of the k largest, a block takes a row; its threads count and sort together, and what one writes to
// the output another reads behind a barrier.
#include "ops/kernels/device_rows.cuh"
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/select_kernels.h"

namespace {

// --- Extrema --------------------------------------------------------------------------------------------------------

template <typename T, typename Key>
__device__ void Arg(const gcap_arg_params_t& p, Key key_of) {
  const gcap::Group group(p.lanes);
  const auto larger = [](auto a, auto b) { return a > b ? a : b; };
  const auto smaller = [](auto a, auto b) { return a < b ? a : b; };
  for (int64_t row = group.first_row; row < p.rows; row += group.row_step) {
    const T* x = static_cast<const T*>(p.x) + gcap_row_place(row, p.columns, p.inner);
    uint64_t key = 0;
    for (int64_t i = group.lane; i < p.columns; i += group.lanes) key = larger(key, key_of(x[i * p.inner], p.smallest));
    key = gcap::CombineGroup(group, key, uint64_t{0}, larger);
    int64_t first = p.columns, last = -1;
    for (int64_t i = group.lane; i < p.columns; i += group.lanes) {
      if (key_of(x[i * p.inner], p.smallest) != key) continue;
      first = smaller(first, i);
      last = i;
    }
    const int64_t index = p.last ? gcap::CombineGroup(group, last, int64_t{-1}, larger)
                                 : gcap::CombineGroup(group, first, p.columns, smaller);
    if (group.lane == 0) p.y[row] = index;
  }
}

// --- The k largest --------------------------------------------------------------------------------------------------

// How many threads of the block before this one have the flag; `*total`: how many have.
__device__ int CountBefore(bool flag, int* total) {
  __shared__ int of_warps[gcap::kMaxWarps];
  const unsigned lane = threadIdx.x % gcap::kWarpThreads, warp = threadIdx.x / gcap::kWarpThreads;
  const unsigned flags = __ballot_sync(gcap::kAllLanes, flag);
  if (lane == 0) of_warps[warp] = __popc(flags);
  __syncthreads();
  int before = __popc(flags & ((1u << lane) - 1));
  *total = 0;
  for (unsigned i = 0; i < blockDim.x / gcap::kWarpThreads; ++i) {
    if (i < warp) before += of_warps[i];
    *total += of_warps[i];
  }
  __syncthreads();  // of_warps may be written again
  return before;
}

// The k-th largest key; `*left`: how many of its equals are among the k.
template <int kBits, typename Key>
__device__ uint64_t FindKey(const gcap_top_params_t& p, Key key_at, int64_t* left) {
  __shared__ unsigned long long counts[GCAP_NUM_DIGITS];
  __shared__ uint32_t found;
  __shared__ int64_t still_left;
  uint64_t prefix = 0;
  *left = p.k;
  for (int shift = kBits - GCAP_DIGIT_BITS; shift >= 0; shift -= GCAP_DIGIT_BITS) {
    for (int i = threadIdx.x; i < GCAP_NUM_DIGITS; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < p.columns; i += blockDim.x) {
      const uint64_t key = key_at(i);
      if (gcap_key_begins(key, shift, prefix)) atomicAdd(&counts[(key >> shift) % GCAP_NUM_DIGITS], 1ull);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int64_t rest = *left;
      found = gcap_digit_of(counts, &rest);
      still_left = rest;
    }
    __syncthreads();
    prefix = prefix << GCAP_DIGIT_BITS | found;
    *left = still_left;
    __syncthreads();  // all of it may be written again
  }
  return prefix;
}

// Writes the indices of the k largest, in their own order.
template <typename Key>
__device__ void Collect(const gcap_top_params_t& p, Key key_at, uint64_t threshold, int64_t left, int64_t* indices) {
  int64_t taken = 0;
  for (int64_t first = 0; first < p.columns && taken < p.k; first += blockDim.x) {
    const int64_t i = first + threadIdx.x;
    const uint64_t key = i < p.columns ? key_at(i) : 0;
    const bool is_equal = i < p.columns && key == threshold;
    int equals = 0, takes = 0;
    const int equals_before = CountBefore(is_equal, &equals);
    const bool is_taken = (i < p.columns && key > threshold) || (is_equal && equals_before < left);
    const int takes_before = CountBefore(is_taken, &takes);
    if (is_taken) indices[(taken + takes_before) * p.inner] = i;
    left -= equals;
    taken += takes;
  }
  __syncthreads();
}

template <typename Order>
__device__ void Sort(const gcap_top_params_t& p, int64_t* indices, Order order) {
  for (int64_t size = 2; size / 2 < p.k; size *= 2) {
    for (int64_t half = size / 2; half > 0; half /= 2) {
      for (int64_t i = threadIdx.x; i < p.k; i += blockDim.x) {
        const int64_t partner = gcap_network_partner(i, size, half);
        if (partner > i && partner < p.k) order(&indices[i * p.inner], &indices[partner * p.inner]);
      }
      __syncthreads();
    }
  }
}

template <typename T, int kBits, typename Key, typename Order>
__device__ void Top(const gcap_top_params_t& p, Key key_of, Order order) {
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(p.x) + gcap_row_place(row, p.columns, p.inner);
    const int64_t place = gcap_row_place(row, p.k, p.inner);
    int64_t* indices = p.indices + place;
    const auto key_at = [&](int64_t i) { return key_of(x[i * p.inner], p.smallest); };
    int64_t left;
    const uint64_t threshold = FindKey<kBits>(p, key_at, &left);
    Collect(p, key_at, threshold, left, indices);
    if (p.sorted) Sort(p, indices, [&](int64_t* a, int64_t* b) { order(&p, x, a, b); });
    for (int64_t i = threadIdx.x; i < p.k; i += blockDim.x) {
      static_cast<T*>(p.values)[place + i * p.inner] = x[indices[i * p.inner] * p.inner];
    }
  }
}

}  // namespace

#define DEFINE_KERNELS(T, bits)                                                                                \
  GCAP_ROW_KERNEL gcap_kernel_arg_##T(gcap_arg_params_t params) {                                              \
    Arg<gcap_##T##_t>(params, [](gcap_##T##_t v, int32_t smallest) { return gcap_arg_key_##T(v, smallest); }); \
  }                                                                                                            \
  __global__ void gcap_kernel_top_##T(gcap_top_params_t params) {                                              \
    Top<gcap_##T##_t, bits>(                                                                                   \
        params, [](gcap_##T##_t v, int32_t smallest) { return gcap_top_key_##T(v, smallest); },                \
        [](const gcap_top_params_t* p, const gcap_##T##_t* x, int64_t* a, int64_t* b) {                        \
          gcap_top_order_##T(p, x, a, b);                                                                      \
        });                                                                                                    \
  }
GCAP_SELECT_KERNELS(DEFINE_KERNELS)
