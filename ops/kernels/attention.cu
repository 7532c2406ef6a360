// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The weights of an attention on the GPU: each pass reads the row again, and each weight is written by the thread that
// read its score, after every thread has read its share for the last time: weights may be where the scores are.
#include "ops/kernels/attention_kernels.h"
#include "ops/kernels/device_rows.cuh"

namespace {

__device__ float Max(float a, float b) { return gcap_max_float(a, b); }

// A row of which no score counts becomes NaN, as the formula says.
template <typename Op>
__device__ void Run(const gcap_attention_params_t& p) {
  const gcap::Group group(p.lanes);
  for (int64_t row = group.first_row; row < p.rows; row += group.row_step) {
    const gcap_score_row_t r = gcap_score_row(&p, row);
    auto* weights = static_cast<typename Op::Element*>(p.weights) + row * p.keys;
    float largest = -INFINITY;
    for (int64_t i = group.lane; i < p.keys; i += group.lanes) largest = Max(largest, Op::Score(&p, &r, i));
    largest = gcap::CombineGroup(group, largest, -INFINITY, Max);
    const float sum = gcap::SumOf(group, p.keys, [&](int64_t i) { return expf(Op::Score(&p, &r, i) - largest); });
    for (int64_t i = group.lane; i < p.keys; i += group.lanes) {
      weights[i] = Op::Store(expf(Op::Score(&p, &r, i) - largest) / sum);
    }
  }
}

}  // namespace

#define DEFINE_KERNEL(T)                                                                                    \
  namespace {                                                                                               \
  struct attention_##T##_op {                                                                               \
    using Element = gcap_##T##_t;                                                                           \
    static __device__ float Score(const gcap_attention_params_t* p, const gcap_score_row_t* r, int64_t i) { \
      return gcap_score_##T(p, r, i);                                                                       \
    }                                                                                                       \
    static __device__ Element Store(float v) { return gcap_store_##T(v); }                                  \
  };                                                                                                        \
  }                                                                                                         \
  GCAP_ROW_KERNEL gcap_kernel_attention_##T(gcap_attention_params_t params) { Run<attention_##T##_op>(params); }
GCAP_ATTENTION_KERNELS(DEFINE_KERNEL)
