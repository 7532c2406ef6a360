// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators of one input, and casts, on the GPU. Bound by memory: 16 bytes of input a thread and step when both
// addresses allow it. Every element is read and written by one thread, so y may be x.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/unary_kernels.h"

namespace {

template <typename Op>
__device__ void Run(const gcap_unary_params_t& p) {
  using In = typename Op::In;
  using Out = typename Op::Out;
  constexpr int kPack = 16 / sizeof(In);
  using InPack = gcap::Pack<In, kPack>;
  using OutPack = gcap::Pack<Out, kPack>;
  const In* x = static_cast<const In*>(p.x);
  Out* y = static_cast<Out*>(p.y);
  const int64_t packs = gcap::IsAligned<InPack>(x) && gcap::IsAligned<OutPack>(y) ? p.count / kPack : 0;
  for (int64_t i = gcap::FirstOfThread(); i < packs; i += gcap::ThreadsOfGrid()) {
    const InPack v = reinterpret_cast<const InPack*>(x)[i];
    OutPack w;
#pragma unroll
    for (int k = 0; k < kPack; ++k) w.values[k] = Op::Apply(v.values[k], &p);
    reinterpret_cast<OutPack*>(y)[i] = w;
  }
  for (int64_t i = kPack * packs + gcap::FirstOfThread(); i < p.count; i += gcap::ThreadsOfGrid()) {
    y[i] = Op::Apply(x[i], &p);
  }
}

}  // namespace

#define DEFINE_KERNEL(op, name, in, out, formula)                                      \
  namespace {                                                                          \
  struct name##_##in##_op {                                                            \
    using In = gcap_##in##_t;                                                          \
    using Out = gcap_##out##_t;                                                        \
    static __device__ Out Apply(In x, [[maybe_unused]] const gcap_unary_params_t* p) { \
      const gcap_computed_##in##_t a = gcap_load_##in(x);                              \
      return gcap_store_##out(formula);                                                \
    }                                                                                  \
  };                                                                                   \
  }                                                                                    \
  __global__ void gcap_kernel_unary_##name##_##in(gcap_unary_params_t params) { Run<name##_##in##_op>(params); }

GCAP_UNARY_KERNELS(DEFINE_KERNEL)
GCAP_CAST_KERNELS(DEFINE_KERNEL)
