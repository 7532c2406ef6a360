// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The choice between two inputs on the GPU. Every element is read and written by one thread, so y may be an input.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/where_kernels.h"

namespace {

template <typename T>
__device__ void Run(const gcap_where_params_t& p) {
  gcap::ForEach<3>(p.map, [&p](int64_t i, const auto& offsets) {
    static_cast<T*>(p.y)[i] =
        p.condition[offsets[0]] ? static_cast<const T*>(p.a)[offsets[1]] : static_cast<const T*>(p.b)[offsets[2]];
  });
}

}  // namespace

#define DEFINE_KERNEL(bytes, type) \
  __global__ void gcap_kernel_where_##bytes(gcap_where_params_t params) { Run<type>(params); }
GCAP_WHERE_KERNELS(DEFINE_KERNEL)
