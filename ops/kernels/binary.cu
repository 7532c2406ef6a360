// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators of two inputs on the GPU. Bound by memory: where both inputs are dense or one value, 16 bytes of input a
// thread and step when the addresses allow it. Every element is read and written by one thread, so y may be a or b.
#include "ops/kernels/binary_kernels.h"
#include "ops/kernels/device_tools.cuh"

namespace {

template <typename Op>
__device__ void RunDense(const gcap_binary_params_t& p) {
  using In = typename Op::In;
  using Out = typename Op::Out;
  constexpr int kPack = 16 / sizeof(In);
  using InPack = gcap::Pack<In, kPack>;
  using OutPack = gcap::Pack<Out, kPack>;
  const In* a = static_cast<const In*>(p.a);
  const In* b = static_cast<const In*>(p.b);
  Out* y = static_cast<Out*>(p.y);
  const int64_t a_step = p.map.strides[0][0], b_step = p.map.strides[1][0];
  const bool aligned = (a_step == 0 || gcap::IsAligned<InPack>(a)) && (b_step == 0 || gcap::IsAligned<InPack>(b)) &&
                       gcap::IsAligned<OutPack>(y);
  const int64_t packs = aligned ? p.map.count / kPack : 0;
  InPack u, v;
#pragma unroll
  for (int k = 0; k < kPack; ++k) u.values[k] = *a, v.values[k] = *b;
  for (int64_t i = gcap::FirstOfThread(); i < packs; i += gcap::ThreadsOfGrid()) {
    if (a_step != 0) u = reinterpret_cast<const InPack*>(a)[i];
    if (b_step != 0) v = reinterpret_cast<const InPack*>(b)[i];
    OutPack w;
#pragma unroll
    for (int k = 0; k < kPack; ++k) w.values[k] = Op::Apply(u.values[k], v.values[k], &p);
    reinterpret_cast<OutPack*>(y)[i] = w;
  }
  for (int64_t i = kPack * packs + gcap::FirstOfThread(); i < p.map.count; i += gcap::ThreadsOfGrid()) {
    y[i] = Op::Apply(a[i * a_step], b[i * b_step], &p);
  }
}

template <typename Op>
__device__ void Run(const gcap_binary_params_t& p) {
  if (p.map.rank == 1) return RunDense<Op>(p);
  gcap::ForEach<2>(p.map, [&p](int64_t i, const auto& offsets) {
    static_cast<typename Op::Out*>(p.y)[i] = Op::Apply(static_cast<const typename Op::In*>(p.a)[offsets[0]],
                                                       static_cast<const typename Op::In*>(p.b)[offsets[1]], &p);
  });
}

}  // namespace

#define DEFINE_KERNEL(op, name, in, out, formula)                                             \
  namespace {                                                                                 \
  struct name##_##in##_op {                                                                   \
    using In = gcap_##in##_t;                                                                 \
    using Out = gcap_##out##_t;                                                               \
    static __device__ Out Apply(In x, In y, [[maybe_unused]] const gcap_binary_params_t* p) { \
      const gcap_computed_##in##_t a = gcap_load_##in(x), b = gcap_load_##in(y);              \
      return gcap_store_##out(formula);                                                       \
    }                                                                                         \
  };                                                                                          \
  }                                                                                           \
  __global__ void gcap_kernel_binary_##name##_##in(gcap_binary_params_t params) { Run<name##_##in##_op>(params); }

GCAP_BINARY_KERNELS(DEFINE_KERNEL)
