// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernels on the GPU. Sums go over shared memory in a fixed order, so that a step computes the same bits each time.
#include "examples/decoder/kernels.h"

#define EPSILON 1e-5f

// The sum of `value` over the block's COUNT threads, a power of two, for each of them.
template <int COUNT>
static __device__ float sum_of_block(float value) {
  __shared__ float sums[COUNT];
  sums[threadIdx.x] = value;
  for (int half = COUNT / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  return sums[0];
}

__global__ void embed_kernel(embed_params_t p) {
  const decoder_row_t* row = p.values.rows[blockIdx.x];
  const int i = threadIdx.x;
  float x = 0;
  if (row->position >= 0) x = p.table[decoder_token(row, p.chosen) * DECODER_WIDTH + i];
  p.x[blockIdx.x * DECODER_WIDTH + i] = x;
}

__global__ void norm_kernel(norm_params_t p) {
  const int i = threadIdx.x;
  const float x = p.x[blockIdx.x * DECODER_WIDTH + i];
  const float mean = sum_of_block<DECODER_WIDTH>(x * x) / DECODER_WIDTH;
  p.y[blockIdx.x * DECODER_WIDTH + i] = x / sqrtf(mean + EPSILON) * p.scale[i];
}

// The first half of the threads rotates a pair of the query each, the second half a pair of the key.
__global__ void rotate_kernel(rotate_params_t p) {
  const decoder_row_t* row = p.values.rows[blockIdx.x];
  if (row->position < 0) return;
  const int half = DECODER_HEAD_WIDTH / 2;
  const int is_key = threadIdx.x >= DECODER_WIDTH / 2;
  const int number = threadIdx.x % (DECODER_WIDTH / 2), pair = number % half;
  float* qkv = p.qkv + blockIdx.x * 3 * DECODER_WIDTH;
  decoder_rotate(qkv + is_key * DECODER_WIDTH + number / half * DECODER_HEAD_WIDTH + pair, pair, row->position);
  __syncthreads();
  decoder_page_t* page = &p.pages[decoder_page_of(p.values.pages[blockIdx.x], row->position)];
  const int at = row->position % DECODER_PAGE_TOKENS;
  page->keys[p.layer][at][threadIdx.x] = qkv[DECODER_WIDTH + threadIdx.x];
  page->values[p.layer][at][threadIdx.x] = qkv[2 * DECODER_WIDTH + threadIdx.x];
}

// A thread for each position, then one for each element of the head.
__global__ void attend_kernel(attend_params_t p) {
  __shared__ float weights[DECODER_MAX_POSITIONS];
  const decoder_row_t* row = p.values.rows[blockIdx.x];
  const int first = blockIdx.y * DECODER_HEAD_WIDTH, t = threadIdx.x;
  const float* query = p.qkv + blockIdx.x * 3 * DECODER_WIDTH + first;
  float score = -INFINITY;
  if (t <= row->position) {
    const decoder_page_t* page = &p.pages[decoder_page_of(p.values.pages[blockIdx.x], t)];
    const float* key = &page->keys[p.layer][t % DECODER_PAGE_TOKENS][first];
    score = 0;
    for (int i = 0; i < DECODER_HEAD_WIDTH; ++i) score += query[i] * key[i];
    score *= rsqrtf(DECODER_HEAD_WIDTH);
  }
  weights[t] = score;
  __syncthreads();
  float largest = -INFINITY;
  for (int i = 0; i <= row->position; ++i) largest = fmaxf(largest, weights[i]);
  __syncthreads();
  const float weight = t <= row->position ? expf(score - largest) : 0;
  weights[t] = weight;
  const float sum = sum_of_block<DECODER_MAX_POSITIONS>(weight);
  if (t >= DECODER_HEAD_WIDTH) return;
  float y = 0;
  for (int i = 0; i <= row->position; ++i) {
    const decoder_page_t* page = &p.pages[decoder_page_of(p.values.pages[blockIdx.x], i)];
    y += weights[i] * page->values[p.layer][i % DECODER_PAGE_TOKENS][first + t];
  }
  p.y[blockIdx.x * DECODER_WIDTH + first + t] = row->position >= 0 ? y / sum : 0;
}

__global__ void gate_kernel(gate_params_t p) {
  const float* gate = p.gate_and_up + blockIdx.x * 2 * DECODER_HIDDEN;
  const float x = gate[threadIdx.x];
  p.y[blockIdx.x * DECODER_HIDDEN + threadIdx.x] = x / (1.0f + expf(-x)) * gate[DECODER_HIDDEN + threadIdx.x];
}

static __device__ void choose(const choose_params_t& p, float temperature) {
  __shared__ float best[DECODER_WORDS];
  __shared__ int words[DECODER_WORDS];
  const decoder_row_t* row = p.values.rows[blockIdx.x];
  const int word = threadIdx.x;
  if (row->position < 0) return;
  float logit = p.logits[blockIdx.x * DECODER_WORDS + word];
  if (temperature > 0) logit += temperature * decoder_noise(row, word);
  best[word] = logit;
  words[word] = word;
  for (int half = DECODER_WORDS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (word >= half) continue;
    const float other = best[word + half];
    if (other < best[word] || (other == best[word] && words[word + half] > words[word])) continue;
    best[word] = other;
    words[word] = words[word + half];
  }
  if (word != 0) return;
  p.chosen[row->slot] = words[0];
  p.tokens[blockIdx.x] = words[0];
}

__global__ void choose_kernel(choose_params_t p) { choose(p, 0); }
__global__ void draw_kernel(choose_params_t p) { choose(p, p.values.rows[blockIdx.x]->temperature); }
