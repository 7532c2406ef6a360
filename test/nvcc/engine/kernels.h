// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// kernels.h: launches of the engine's twelve kernels. kernels.cu has them as nvcc compiles them, kernels_by_hand.cc as
// it registers them.
#ifndef GCAP_TEST_NVCC_ENGINE_KERNELS_H_
#define GCAP_TEST_NVCC_ENGINE_KERNELS_H_

#include <cuda_runtime_api.h>

namespace engine {

struct AttentionParams {
  const float* q;
  const float* cache;
  float* out;
  int count;
  float factor;
};

void Embed(cudaStream_t stream, const int* tokens, const float* table, float* y, int count);
void LayerNorm(cudaStream_t stream, const float* x, const float* gamma, float* y, int count);
void Split(cudaStream_t stream, const float* x, float* q, float* k, float* v, int count);
void Rotate(cudaStream_t stream, float* x, int count);
void Append(cudaStream_t stream, float* cache, const float* x, int count);
void Attend(cudaStream_t stream, AttentionParams params);
void Project(cudaStream_t stream, const float* x, const float* weights, float* y, int count);
void Add(cudaStream_t stream, const float* a, const float* b, float* y, int count);
void Activate(cudaStream_t stream, float* x, int count);
void Scale(cudaStream_t stream, float* x, float factor, int count);
void Gather(cudaStream_t stream, const float* const* rows, float* y, int count);
void ArgMax(cudaStream_t stream, const float* x, int* token, int count);

}  // namespace engine

#endif  // GCAP_TEST_NVCC_ENGINE_KERNELS_H_
