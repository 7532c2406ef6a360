// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// kernels.h: the decoder's CUDA kernels, for the C code that launches them, for nvcc, and for their CPU twins: the
// sizes of the model, what a step knows of each row, the parameters of each kernel, and what kernel and twin compute
// alike.
//
// A row of a step is one sequence of the batch. What changes from step to step is in device memory, two values for each
// row: the kernels' arguments are the same in each step of a graph, but for the addresses of two buffers. A bucket has
// more rows than a batch has sequences. Such a row has the position -1: it reads and writes no page, its activations
// are zeros, and it gives no token.
#ifndef GCAP_EXAMPLES_DECODER_KERNELS_H_
#define GCAP_EXAMPLES_DECODER_KERNELS_H_

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define DECODER_KERNEL __global__
#define DECODER_BODY static __device__ inline
#else
#define DECODER_KERNEL
#define DECODER_BODY static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

// The model. The kernels have a thread for each element of a row, so a width is also the size of a block.
enum {
  DECODER_LAYERS = 2,
  DECODER_HEADS = 4,
  DECODER_HEAD_WIDTH = 16,
  DECODER_WIDTH = 64,  // DECODER_HEADS * DECODER_HEAD_WIDTH
  DECODER_HIDDEN = 128,
  DECODER_WORDS = 256,
  DECODER_MAX_ROWS = 8,
  DECODER_PAGE_TOKENS = 8,
  DECODER_MAX_PAGES = 8,       // of a sequence
  DECODER_MAX_POSITIONS = 64,  // DECODER_MAX_PAGES * DECODER_PAGE_TOKENS; attend_kernel has a thread for each
};

// Keys and values of DECODER_PAGE_TOKENS positions of one sequence.
typedef struct decoder_page {
  float keys[DECODER_LAYERS][DECODER_PAGE_TOKENS][DECODER_WIDTH];
  float values[DECODER_LAYERS][DECODER_PAGE_TOKENS][DECODER_WIDTH];
} decoder_page_t;

// What a step knows of a row.
typedef struct decoder_row {
  int32_t position;   // of the token that the row reads; -1: the row has no sequence
  int32_t token;      // of the prompt; -1: what the sequence's last step chose
  int32_t slot;       // where the sequence's last choice is kept
  uint32_t seed;      // of the sequence's noise
  float temperature;  // how strong the noise is; 0: none
} decoder_row_t;

// Which pages of the pool the sequence of a row has, in the order of its positions.
typedef struct decoder_pages {
  int32_t numbers[DECODER_MAX_PAGES];
} decoder_pages_t;

// Where they are in device memory, for each row of the bucket.
typedef struct decoder_values {
  const decoder_row_t* rows[DECODER_MAX_ROWS];
  const decoder_pages_t* pages[DECODER_MAX_ROWS];
} decoder_values_t;

typedef struct embed_params {
  decoder_values_t values;
  const int32_t* chosen;  // [DECODER_MAX_ROWS], by slot
  const float* table;     // [words, width]
  float* x;               // [rows, width]
} embed_params_t;

typedef struct norm_params {
  const float* x;      // [rows, width]
  const float* scale;  // [width]
  float* y;            // [rows, width]
} norm_params_t;

typedef struct rotate_params {
  decoder_values_t values;
  float* qkv;  // [rows, 3 * width]
  decoder_page_t* pages;
  int64_t layer;
} rotate_params_t;

typedef struct attend_params {
  decoder_values_t values;
  const float* qkv;  // [rows, 3 * width]
  const decoder_page_t* pages;
  float* y;  // [rows, width]
  int64_t layer;
} attend_params_t;

typedef struct gate_params {
  const float* gate_and_up;  // [rows, 2 * hidden]
  float* y;                  // [rows, hidden]
} gate_params_t;

typedef struct choose_params {
  decoder_values_t values;
  const float* logits;  // [rows, words]
  int32_t* chosen;      // [DECODER_MAX_ROWS], by slot
  int32_t* tokens;      // [rows], page-locked memory of the host
} choose_params_t;

// Launched by their addresses, never called. The grid has a block for each row, attend_kernel's for each head of it.

// x = the embedding of the row's token.
DECODER_KERNEL void embed_kernel(embed_params_t params);  // DECODER_WIDTH threads
// y = x / root mean square of the row * scale.
DECODER_KERNEL void norm_kernel(norm_params_t params);  // DECODER_WIDTH threads
// Rotates query and key by the row's position, and stores key and value in the row's page.
DECODER_KERNEL void rotate_kernel(rotate_params_t params);  // DECODER_WIDTH threads
// y = the values of all positions up to the row's, weighted by the softmax of query times key.
DECODER_KERNEL void attend_kernel(attend_params_t params);  // DECODER_MAX_POSITIONS threads
// y = silu(gate) * up.
DECODER_KERNEL void gate_kernel(gate_params_t params);  // DECODER_HIDDEN threads
// The token with the largest logit, the first of equals.
DECODER_KERNEL void choose_kernel(choose_params_t params);  // DECODER_WORDS threads
// The same of logits plus noise, which draws a token with the softmax's probability at a temperature of 1.
DECODER_KERNEL void draw_kernel(choose_params_t params);  // DECODER_WORDS threads

#ifdef __cplusplus
}  // extern "C"
#endif

// --- What kernel and twin compute alike -----------------------------------------------------------------------------

DECODER_BODY int32_t decoder_token(const decoder_row_t* row, const int32_t* chosen) {
  return row->token >= 0 ? row->token : chosen[row->slot];
}

// The page of a position.
DECODER_BODY int32_t decoder_page_of(const decoder_pages_t* pages, int32_t position) {
  return pages->numbers[position / DECODER_PAGE_TOKENS];
}

// Rotates the pair (x[0], x[half a head]) of dimension `pair` of its head.
DECODER_BODY void decoder_rotate(float* x, int32_t pair, int32_t position) {
  const float angle = (float)position * powf(10000.0f, -2.0f * (float)pair / DECODER_HEAD_WIDTH);
  const float cosine = cosf(angle), sine = sinf(angle);
  const float a = x[0], b = x[DECODER_HEAD_WIDTH / 2];
  x[0] = a * cosine - b * sine;
  x[DECODER_HEAD_WIDTH / 2] = a * sine + b * cosine;
}

// The noise of a word: Gumbel's distribution, from a hash of what it belongs to.
DECODER_BODY float decoder_noise(const decoder_row_t* row, int32_t word) {
  uint32_t hash = row->seed ^ ((uint32_t)row->position * 0x9e3779b9u) ^ ((uint32_t)word * 0x85ebca6bu);
  hash = (hash ^ (hash >> 16)) * 0x7feb352du;
  hash = (hash ^ (hash >> 15)) * 0x846ca68bu;
  hash ^= hash >> 16;
  const float uniform = ((float)(hash >> 9) + 0.5f) / 8388608.0f;  // 23 bits, never 0 and never 1
  return -logf(-logf(uniform));
}

#endif  // GCAP_EXAMPLES_DECODER_KERNELS_H_
