// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The engine's kernels and their launches, as a project that knows nothing of a simulator writes them: templates, a
// struct by value, C linkage, a table of pointers. What they compute does not matter here: nothing runs them.
#include "test/nvcc/engine/kernels.h"

namespace engine {
namespace {

__device__ int Index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

struct Relu {
  static __device__ float Apply(float x) { return x < 0 ? 0 : x; }
};

constexpr int kBlock = 32;
int BlocksFor(int count) { return (count + kBlock - 1) / kBlock; }

}  // namespace

__global__ void embed(const int* tokens, const float* table, float* y, int count) {
  if (Index() < count) y[Index()] = table[tokens[Index()]];
}

__global__ void layer_norm(const float* x, const float* gamma, float* y, int count) {
  if (Index() < count) y[Index()] = x[Index()] * gamma[Index()];
}

__global__ void split(const float* x, float* q, float* k, float* v, int count) {
  if (Index() < count) q[Index()] = k[Index()] = v[Index()] = x[Index()];
}

__global__ void rotate(float* x, int count) {
  if (Index() < count) x[Index()] = -x[Index()];
}

__global__ void append(float* cache, const float* x, int count) {
  if (Index() < count) cache[Index()] = x[Index()];
}

__global__ void attend(AttentionParams params) {
  if (Index() < params.count) params.out[Index()] = params.factor * params.q[Index()] * params.cache[Index()];
}

__global__ void project(const float* __restrict__ x, const float* __restrict__ weights, float* __restrict__ y,
                        int count) {
  if (Index() < count) y[Index()] = x[Index()] * weights[Index()];
}

template <typename T>
__global__ void add(const T* a, const T* b, T* y, int count) {
  if (Index() < count) y[Index()] = a[Index()] + b[Index()];
}

template <typename Op>
__global__ void activate(float* x, int count) {
  if (Index() < count) x[Index()] = Op::Apply(x[Index()]);
}

extern "C" __global__ void engine_scale(float* x, float factor, int count) {
  if (Index() < count) x[Index()] *= factor;
}

__global__ void gather(const float* const* rows, float* y, int count) {
  if (Index() < count) y[Index()] = rows[0][Index()];
}

static __global__ void arg_max(const float* x, int* token, int count) {
  if (Index() == 0) *token = x[0] > x[count - 1] ? 0 : count - 1;
}

void Embed(cudaStream_t stream, const int* tokens, const float* table, float* y, int count) {
  embed<<<BlocksFor(count), kBlock, 0, stream>>>(tokens, table, y, count);
}
void LayerNorm(cudaStream_t stream, const float* x, const float* gamma, float* y, int count) {
  layer_norm<<<BlocksFor(count), kBlock, 0, stream>>>(x, gamma, y, count);
}
void Split(cudaStream_t stream, const float* x, float* q, float* k, float* v, int count) {
  split<<<BlocksFor(count), kBlock, 0, stream>>>(x, q, k, v, count);
}
void Rotate(cudaStream_t stream, float* x, int count) { rotate<<<BlocksFor(count), kBlock, 0, stream>>>(x, count); }
void Append(cudaStream_t stream, float* cache, const float* x, int count) {
  append<<<BlocksFor(count), kBlock, 0, stream>>>(cache, x, count);
}
void Attend(cudaStream_t stream, AttentionParams params) {
  attend<<<BlocksFor(params.count), kBlock, 0, stream>>>(params);
}
void Project(cudaStream_t stream, const float* x, const float* weights, float* y, int count) {
  project<<<BlocksFor(count), kBlock, 0, stream>>>(x, weights, y, count);
}
void Add(cudaStream_t stream, const float* a, const float* b, float* y, int count) {
  add<float><<<BlocksFor(count), kBlock, 0, stream>>>(a, b, y, count);
}
void Activate(cudaStream_t stream, float* x, int count) {
  activate<Relu><<<BlocksFor(count), kBlock, 0, stream>>>(x, count);
}
void Scale(cudaStream_t stream, float* x, float factor, int count) {
  engine_scale<<<BlocksFor(count), kBlock, 0, stream>>>(x, factor, count);
}
void Gather(cudaStream_t stream, const float* const* rows, float* y, int count) {
  gather<<<BlocksFor(count), kBlock, 0, stream>>>(rows, y, count);
}
void ArgMax(cudaStream_t stream, const float* x, int* token, int count) {
  arg_max<<<1, kBlock, 0, stream>>>(x, token, count);
}

}  // namespace engine
