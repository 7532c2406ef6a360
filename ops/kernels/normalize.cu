// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Softmax and layer normalization on the GPU: each pass reads the row again, from cache for all but the longest, and
// each element is written by the thread that read it, after every thread has read its share for the last time: y may be
// x.
#include "ops/kernels/device_rows.cuh"
#include "ops/kernels/normalize_kernels.h"

namespace {

__device__ float Max(float a, float b) { return gcap_max_float(a, b); }

// A row with a NaN or +infinity, or of nothing but -infinity, becomes NaN, as the formula says.
template <typename Op>
__device__ void RunSoftmax(const gcap_softmax_params_t& p) {
  const gcap::Group group(p.lanes);
  for (int64_t row = group.first_row; row < p.rows; row += group.row_step) {
    const int64_t outer = p.inner == 1 ? row : row / p.inner;
    const int64_t first = (outer * p.columns) * p.inner + (row - outer * p.inner);
    const auto* x = static_cast<const typename Op::Element*>(p.x) + first;
    auto* y = static_cast<typename Op::Element*>(p.y) + first;
    float largest = -INFINITY;
    for (int64_t i = group.lane; i < p.columns; i += group.lanes) largest = Max(largest, Op::Load(x[i * p.inner]));
    largest = gcap::CombineGroup(group, largest, -INFINITY, Max);
    const float sum =
        gcap::SumOf(group, p.columns, [&](int64_t i) { return expf(Op::Load(x[i * p.inner]) - largest); });
    for (int64_t i = group.lane; i < p.columns; i += group.lanes) {
      y[i * p.inner] = Op::Apply(Op::Load(x[i * p.inner]) - largest, sum);
    }
  }
}

template <typename Op>
__device__ void RunLayerNorm(const gcap_layer_norm_params_t& p) {
  const gcap::Group group(p.lanes);
  const auto* scale = static_cast<const typename Op::Element*>(p.scale);
  const auto* bias = static_cast<const typename Op::Element*>(p.bias);
  const float columns = static_cast<float>(p.columns);
  for (int64_t row = group.first_row; row < p.rows; row += group.row_step) {
    const auto* x = static_cast<const typename Op::Element*>(p.x) + row * p.columns;
    auto* y = static_cast<typename Op::Element*>(p.y) + row * p.columns;
    const float mean = gcap::SumOf(group, p.columns, [&](int64_t i) { return Op::Load(x[i]); }) / columns;
    const auto square = [&](int64_t i) { return (Op::Load(x[i]) - mean) * (Op::Load(x[i]) - mean); };
    const float deviation = sqrtf(gcap::SumOf(group, p.columns, square) / columns + p.epsilon);
    if (group.lane == 0 && p.mean != nullptr) p.mean[row] = mean;
    if (group.lane == 0 && p.inv_std_dev != nullptr) p.inv_std_dev[row] = 1.0f / deviation;
    for (int64_t i = group.lane; i < p.columns; i += group.lanes) {
      const float shift = bias == nullptr ? 0.0f : Op::Load(bias[i]);
      y[i] = Op::Store((Op::Load(x[i]) - mean) / deviation * Op::Load(scale[i]) + shift);
    }
  }
}

}  // namespace

#define DEFINE_SOFTMAX(name, type, result)                                                    \
  namespace {                                                                                 \
  struct name##_##type##_op {                                                                 \
    using Element = gcap_##type##_t;                                                          \
    static __device__ float Load(Element v) { return gcap_load_##type(v); }                   \
    static __device__ Element Apply(float a, float sum) { return gcap_store_##type(result); } \
  };                                                                                          \
  }                                                                                           \
  GCAP_ROW_KERNEL gcap_kernel_##name##_##type(gcap_softmax_params_t params) { RunSoftmax<name##_##type##_op>(params); }

#define DEFINE_LAYER_NORM(type)                                                    \
  namespace {                                                                      \
  struct layer_norm_##type##_op {                                                  \
    using Element = gcap_##type##_t;                                               \
    static __device__ float Load(Element v) { return gcap_load_##type(v); }        \
    static __device__ Element Store(float v) { return gcap_store_##type(v); }      \
  };                                                                               \
  }                                                                                \
  GCAP_ROW_KERNEL gcap_kernel_layer_norm_##type(gcap_layer_norm_params_t params) { \
    RunLayerNorm<layer_norm_##type##_op>(params);                                  \
  }

GCAP_SOFTMAX_KERNELS(DEFINE_SOFTMAX)
GCAP_LAYER_NORM_KERNELS(DEFINE_LAYER_NORM)
