// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Elements that move, on the GPU.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/layout_kernels.h"

namespace {

template <typename T>
__device__ void Copy(const gcap_copy_params_t& p) {
  gcap::ForEach<2>(p.map, [&p](int64_t, const auto& offsets) {
    static_cast<T*>(p.y)[offsets[1]] = static_cast<const T*>(p.x)[offsets[0]];
  });
}

// Reads along x's rows and writes along y's, which only shared memory has both of. One column more keeps the threads
// that read a column of the tile on different banks.
template <typename T>
__device__ void Transpose(const gcap_transpose_params_t& p) {
  __shared__ T tile[GCAP_TILE][GCAP_TILE + 1];
  const int64_t tiles_across = (p.columns + GCAP_TILE - 1) / GCAP_TILE,
                tiles_down = (p.rows + GCAP_TILE - 1) / GCAP_TILE;
  const int at = threadIdx.x % GCAP_TILE, line = threadIdx.x / GCAP_TILE;
  for (int64_t i = blockIdx.x; i < p.batch * tiles_down * tiles_across; i += gridDim.x) {
    const int64_t left = i / tiles_across, batch = left / tiles_down;
    const int64_t column = (i - left * tiles_across) * GCAP_TILE, row = (left - batch * tiles_down) * GCAP_TILE;
    const T* x = static_cast<const T*>(p.x) + batch * p.rows * p.columns;
    T* y = static_cast<T*>(p.y) + batch * p.rows * p.columns;
    for (int k = line; k < GCAP_TILE; k += GCAP_TILE_LINES) {
      if (row + k < p.rows && column + at < p.columns) tile[k][at] = x[(row + k) * p.columns + column + at];
    }
    __syncthreads();
    for (int k = line; k < GCAP_TILE; k += GCAP_TILE_LINES) {
      if (column + k < p.columns && row + at < p.rows) y[(column + k) * p.rows + row + at] = tile[at][k];
    }
    __syncthreads();  // the tile may be written again
  }
}

template <typename T>
__device__ void Gather(const gcap_gather_params_t& p) {
  const T* x = static_cast<const T*>(p.x);
  const int64_t count = p.outer * p.num_indices * p.inner;
  for (int64_t i = gcap::FirstOfThread(); i < count; i += gcap::ThreadsOfGrid()) {
    const int64_t row = i / p.inner, outer = row / p.num_indices, at = row - outer * p.num_indices;
    int64_t index =
        p.index_bytes == 8 ? static_cast<const int64_t*>(p.indices)[at] : static_cast<const int32_t*>(p.indices)[at];
    if (index < 0) index += p.axis_size;
    const bool inside = index >= 0 && index < p.axis_size;
    static_cast<T*>(p.y)[i] = inside ? x[(outer * p.axis_size + index) * p.inner + (i - row * p.inner)] : T{};
  }
}

}  // namespace

#define DEFINE_KERNEL(bytes, type)                                                                           \
  __global__ void gcap_kernel_copy_##bytes(gcap_copy_params_t params) { Copy<type>(params); }                \
  __global__ void gcap_kernel_transpose_##bytes(gcap_transpose_params_t params) { Transpose<type>(params); } \
  __global__ void gcap_kernel_gather_##bytes(gcap_gather_params_t params) { Gather<type>(params); }
GCAP_UNIT_KERNELS(DEFINE_KERNEL)
