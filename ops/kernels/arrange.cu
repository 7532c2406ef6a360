// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Elements that are chosen by where they are, on the GPU: a thread for each unit of the output, in the order of memory.
#include "ops/kernels/arrange_kernels.h"
#include "ops/kernels/device_tools.cuh"

namespace {

template <typename T>
__device__ void Triangle(const gcap_triangle_params_t& p) {
  const T* x = static_cast<const T*>(p.x);
  const T value = *reinterpret_cast<const T*>(&p.value);
  for (int64_t i = gcap::FirstOfThread(); i < p.count; i += gcap::ThreadsOfGrid()) {
    T element{};
    if (gcap_triangle_has(&p, i)) element = x != nullptr ? x[i] : value;
    static_cast<T*>(p.y)[i] = element;
  }
}

template <typename T>
__device__ void OneHot(const gcap_one_hot_params_t& p) {
  const T* values = static_cast<const T*>(p.values);
  for (int64_t i = gcap::FirstOfThread(); i < p.count; i += gcap::ThreadsOfGrid()) {
    static_cast<T*>(p.y)[i] = values[gcap_one_hot_is_on(&p, i)];
  }
}

template <typename T>
__device__ void Reverse(const gcap_reverse_params_t& p) {
  const T* x = static_cast<const T*>(p.x);
  for (int64_t i = gcap::FirstOfThread(); i < p.count; i += gcap::ThreadsOfGrid()) {
    static_cast<T*>(p.y)[i] = x[gcap_reverse_source(&p, i)];
  }
}

}  // namespace

#define DEFINE_KERNEL(bytes, type)                                                                        \
  __global__ void gcap_kernel_triangle_##bytes(gcap_triangle_params_t params) { Triangle<type>(params); } \
  __global__ void gcap_kernel_one_hot_##bytes(gcap_one_hot_params_t params) { OneHot<type>(params); }     \
  __global__ void gcap_kernel_reverse_##bytes(gcap_reverse_params_t params) { Reverse<type>(params); }
GCAP_UNIT_KERNELS(DEFINE_KERNEL)
