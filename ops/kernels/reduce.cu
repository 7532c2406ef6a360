// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reductions on the GPU: each group of threads takes an element of the output; its lanes share the terms.
#include "ops/kernels/device_rows.cuh"
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/reduce_kernels.h"

namespace {

template <typename Op, typename Index>
__device__ void RunIndexed(const gcap_reduce_params_t& p) {
  const gcap::Group group(p.lanes);
  const auto* x = static_cast<const typename Op::Element*>(p.x);
  const auto combine = [](auto a, auto b) { return Op::Combine(a, b); };
  for (int64_t row = group.first_row; row < p.kept.count; row += group.row_step) {
    Index start[1];
    gcap::Offsets<1, Index>(p.kept, row, start);
    auto accumulator = Op::Start();
    for (int64_t i = group.lane; i < p.terms; i += group.lanes) {
      Index offset[1];
      gcap::Offsets<1, Index>(p.reduced, i, offset);
      Op::Step(accumulator, x[start[0] + offset[0]]);
    }
    const auto value = gcap::CombineGroup(group, Op::End(accumulator), Op::End(Op::Start()), combine);
    if (group.lane == 0) static_cast<typename Op::Element*>(p.y)[row] = Op::Result(value, p.terms);
  }
}

template <typename Op>
__device__ void Run(const gcap_reduce_params_t& p) {
  if (p.kept.narrow && p.reduced.narrow) {
    RunIndexed<Op, int32_t>(p);
  } else {
    RunIndexed<Op, int64_t>(p);
  }
}

}  // namespace

#define DEFINE_KERNEL(op, name, type, accumulator, start, step, end, combination, result)                       \
  namespace {                                                                                                   \
  struct name##_##type##_op {                                                                                   \
    using Element = gcap_##type##_t;                                                                            \
    using Value = gcap_computed_##type##_t;                                                                     \
    static __device__ accumulator Start() { return start; }                                                     \
    static __device__ void Step(accumulator& acc, Element element) {                                            \
      const Value v = gcap_load_##type(element);                                                                \
      step;                                                                                                     \
    }                                                                                                           \
    static __device__ Value End(const accumulator& acc) { return end; }                                         \
    static __device__ Value Combine(Value a, Value b) { return combination; }                                   \
    static __device__ Element Result(Value a, [[maybe_unused]] int64_t n) { return gcap_store_##type(result); } \
  };                                                                                                            \
  }                                                                                                             \
  GCAP_ROW_KERNEL gcap_kernel_reduce_##name##_##type(gcap_reduce_params_t params) { Run<name##_##type##_op>(params); }

GCAP_REDUCE_KERNELS(DEFINE_KERNEL)
