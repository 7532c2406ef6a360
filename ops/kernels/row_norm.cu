// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Normalization of rows on the GPU: each pass reads the row again, from cache for all but the longest, and each element
// is written by the thread that read it, after every thread has read its share for the last time: y may be x. A thread
// reads no other elements of a sum than it wrote itself.
#include "ops/kernels/device_rows.cuh"
#include "ops/kernels/row_norm_kernels.h"

namespace {

// Writes a row of x with what is added, and returns where.
template <typename Op>
__device__ const typename Op::Element* AddSkip(const gcap_row_norm_params_t& p, const gcap::Group& group, int64_t row) {
  using Element = typename Op::Element;
  const auto* x = static_cast<const Element*>(p.x) + row * p.columns;
  const auto* skip = static_cast<const Element*>(p.skip) + row % p.skip_rows * p.columns;
  const auto* addend = static_cast<const Element*>(p.addend);
  auto* sum = static_cast<Element*>(p.sum) + row * p.columns;
  for (int64_t i = group.lane; i < p.columns; i += group.lanes) {
    sum[i] = Op::Store(Op::Load(x[i]) + Op::Load(skip[i]) + (addend == nullptr ? 0.0f : Op::Load(addend[i])));
  }
  return sum;
}

template <typename Op>
__device__ void RunRowNorm(const gcap_row_norm_params_t& p) {
  const gcap::Group group(p.lanes);
  const auto* scale = static_cast<const typename Op::Element*>(p.scale);
  const auto* bias = static_cast<const typename Op::Element*>(p.bias);
  for (int64_t row = group.first_row; row < p.rows; row += group.row_step) {
    const auto* x = p.skip != nullptr ? AddSkip<Op>(p, group, row)
                                      : static_cast<const typename Op::Element*>(p.x) + gcap_row_norm_first(&p, row);
    auto* y = static_cast<typename Op::Element*>(p.y) + gcap_row_norm_first(&p, row);
    const auto at = [&](int64_t i) { return Op::Load(x[gcap_row_norm_offset(&p, i)]); };
    const float mean = p.centers ? gcap::SumOf(group, p.columns, at) / static_cast<float>(p.columns) : 0.0f;
    const auto term = [&](int64_t i) { return gcap_row_norm_term(&p, at(i) - mean); };
    const float divisor = gcap_row_norm_divisor(&p, gcap::SumOf(group, p.columns, term));
    for (int64_t i = group.lane; i < p.columns; i += group.lanes) {
      const int64_t k = gcap_row_norm_scale_at(&p, row, i);
      const float factor = scale == nullptr ? 1.0f : Op::Load(scale[k]);
      const float shift = bias == nullptr ? 0.0f : Op::Load(bias[k]);
      y[gcap_row_norm_offset(&p, i)] = Op::Store((at(i) - mean) / divisor * factor + shift);
    }
  }
}

}  // namespace

#define DEFINE_KERNEL(type)                                                    \
  namespace {                                                                  \
  struct row_norm_##type##_op {                                                \
    using Element = gcap_##type##_t;                                           \
    static __device__ float Load(Element v) { return gcap_load_##type(v); }    \
    static __device__ Element Store(float v) { return gcap_store_##type(v); }  \
  };                                                                           \
  }                                                                            \
  GCAP_ROW_KERNEL gcap_kernel_row_norm_##type(gcap_row_norm_params_t params) { \
    RunRowNorm<row_norm_##type##_op>(params);                                  \
  }

GCAP_ROW_NORM_KERNELS(DEFINE_KERNEL)
