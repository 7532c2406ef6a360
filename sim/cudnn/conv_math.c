// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of a convolution, as the queued work runs it. All algorithms unfold one image of one group to columns
// ((c, r, s) rows of output pixels) and multiply those by the filter; they differ in where the columns stand and who
// says which input pixel a column element is:
//   IMPLICIT_GEMM          columns on the host's heap, pixels computed: no workspace
//   IMPLICIT_PRECOMP_GEMM  the same with pixels looked up in a table in the workspace, which a kernel before wrote
//   GEMM                   columns in the workspace
// So a workspace that another stream overwrites gives wrong results, as on a GPU. Sums are floats in one fixed order.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cudnn/internal.h"

enum {
  kOutside = -1,
  kBlock = 4,  // filters that share a pass over the columns: enough to hide its loads
  kTile = 16   // pixels that such a pass sums at a time
};

typedef struct sizes {
  int64_t channels;  // input channels of a group
  int64_t filters;   // output channels of a group
  int64_t taps;      // r * s
  int64_t pixels;    // p * q
} sizes_t;

static sizes_t sizes_of(const sim_dnn_conv_t* conv) {
  const int64_t* w = conv->w_shape.dims;
  const int64_t* y = conv->y_shape.dims;
  return (sizes_t){w[1], w[0] / conv->groups, w[2] * w[3], y[2] * y[3]};
}

size_t sim_dnn_conv_workspace(const sim_dnn_conv_t* conv, cudnnConvolutionFwdAlgo_t algo) {
  const sizes_t sizes = sizes_of(conv);
  switch (algo) {
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM: return (size_t)(sizes.taps * sizes.pixels) * sizeof(int32_t);
    case CUDNN_CONVOLUTION_FWD_ALGO_GEMM: return (size_t)(sizes.channels * sizes.taps * sizes.pixels) * sizeof(float);
    default: return 0;
  }
}

static void* allocate(int64_t count, size_t bytes) {
  void* memory = malloc((size_t)count * bytes);
  if (memory == NULL) {
    sim_stop("cudnnConvolutionForward", "the host has no memory for %lld elements", (long long)count);
  }
  return memory;
}

// table[tap * pixels + pixel] = offset of the input pixel inside a channel, or kOutside for padding
static void fill_table(const sim_dnn_conv_t* conv, int32_t* table) {
  const int64_t* x = conv->x_shape.dims;
  const int64_t* w = conv->w_shape.dims;
  const int64_t* y = conv->y_shape.dims;
  for (int64_t tap = 0; tap < w[2] * w[3]; ++tap) {
    for (int64_t pixel = 0; pixel < y[2] * y[3]; ++pixel) {
      const int64_t row = pixel / y[3] * conv->stride[0] - conv->pad[0] + tap / w[3] * conv->dilation[0];
      const int64_t col = pixel % y[3] * conv->stride[1] - conv->pad[1] + tap % w[3] * conv->dilation[1];
      const int inside = row >= 0 && row < x[2] && col >= 0 && col < x[3];
      *table++ = inside ? (int32_t)sim_dnn_offset(&conv->x_shape, 0, 0, row, col) : kOutside;
    }
  }
}

void sim_dnn_run_conv_table(void* payload) {
  const sim_dnn_conv_t* conv = payload;
  fill_table(conv, conv->workspace);
}

// columns[(channel * taps + tap) * pixels + pixel], of one image and group
static void fill_columns(const sim_dnn_conv_t* conv, const int32_t* table, const float* image, float* columns) {
  const sizes_t sizes = sizes_of(conv);
  for (int64_t channel = 0; channel < sizes.channels; ++channel) {
    const float* plane = image + channel * conv->x_shape.strides[1];
    for (int64_t i = 0; i < sizes.taps * sizes.pixels; ++i) {
      *columns++ = table[i] == kOutside ? 0.0f : plane[table[i]];
    }
  }
}

// rows[filter * channels * taps + (channel * taps + tap)], turned round for a true convolution
static void fill_filter(const sim_dnn_conv_t* conv, float* rows) {
  const int64_t* dims = conv->w_shape.dims;
  const int64_t taps = dims[2] * dims[3];
  for (int64_t filter = 0; filter < dims[0]; ++filter) {
    for (int64_t channel = 0; channel < dims[1]; ++channel) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t at = conv->flip ? taps - 1 - tap : tap;
        *rows++ = conv->w[sim_dnn_offset(&conv->w_shape, filter, channel, at / dims[3], at % dims[3])];
      }
    }
  }
}

// The sums of `count` filters at up to kTile pixels. A full tile has constant loops, which a compiler turns into
// vectors that stay in registers over the whole depth; each sum is made in the same order either way.
static void multiply_tile(const float* rows, int64_t count, int64_t depth, const float* columns, int64_t pixels,
                          int64_t width, float sums[kBlock][kTile]) {
  for (int64_t l = 0; l < depth; ++l) {
    const float* column = columns + l * pixels;
    for (int64_t i = 0; i < count; ++i) {
      const float factor = rows[i * depth + l];
      if (width == kTile) {
        for (int p = 0; p < kTile; ++p) {
          sums[i][p] += factor * column[p];
        }
      } else {
        for (int64_t p = 0; p < width; ++p) {
          sums[i][p] += factor * column[p];
        }
      }
    }
  }
}

// sums[i * pixels + pixel] for the `count` filters whose rows start at `rows`
static void multiply(const float* rows, int64_t count, int64_t depth, const float* columns, int64_t pixels,
                     float* sums) {
  for (int64_t first = 0; first < pixels; first += kTile) {
    const int64_t width = pixels - first < kTile ? pixels - first : kTile;
    float tile[kBlock][kTile] = {{0.0f}};
    multiply_tile(rows, count, depth, columns + first, pixels, width, tile);
    for (int64_t i = 0; i < count; ++i) {
      memcpy(sums + i * pixels + first, tile[i], (size_t)width * sizeof(float));
    }
  }
}

// Scale, add z and the bias, rectify: one output plane.
static void finish(const sim_dnn_conv_t* conv, int64_t n, int64_t k, const float* sums) {
  const float bias = conv->bias != NULL ? conv->bias[k * conv->bias_stride] : 0.0f;
  for (int64_t p = 0; p < conv->y_shape.dims[2]; ++p) {
    for (int64_t q = 0; q < conv->y_shape.dims[3]; ++q) {
      float value = conv->alpha * *sums++ + bias;
      if (conv->z != NULL) {
        value += conv->beta * conv->z[sim_dnn_offset(&conv->z_shape, n, k, p, q)];
      }
      if (conv->relu && !(value > 0.0f) && !(conv->propagate_nan && isnan(value))) {
        value = 0.0f;
      }
      conv->y[sim_dnn_offset(&conv->y_shape, n, k, p, q)] = value;
    }
  }
}

// All filters of one image and group, kBlock at a time.
static void run_group(const sim_dnn_conv_t* conv, int64_t n, int64_t group, const float* rows, const float* columns,
                      float* sums) {
  const sizes_t sizes = sizes_of(conv);
  const int64_t depth = sizes.channels * sizes.taps;
  const int64_t first = group * sizes.filters;
  for (int64_t f = 0; f < sizes.filters; f += kBlock) {
    const int64_t count = sizes.filters - f < kBlock ? sizes.filters - f : kBlock;
    multiply(rows + (first + f) * depth, count, depth, columns, sizes.pixels, sums);
    for (int64_t i = 0; i < count; ++i) {
      finish(conv, n, first + f + i, sums + i * sizes.pixels);
    }
  }
}

void sim_dnn_run_conv(void* payload) {
  const sim_dnn_conv_t* conv = payload;
  const sizes_t sizes = sizes_of(conv);
  const int64_t depth = sizes.channels * sizes.taps;
  const int has_table = conv->algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  const int has_columns = conv->algo == CUDNN_CONVOLUTION_FWD_ALGO_GEMM;
  int32_t* table = has_table ? conv->workspace : allocate(sizes.taps * sizes.pixels, sizeof *table);
  float* columns = has_columns ? conv->workspace : allocate(depth * sizes.pixels, sizeof *columns);
  float* rows = allocate(conv->w_shape.dims[0] * depth, sizeof *rows);
  float* sums = allocate(kBlock * sizes.pixels, sizeof *sums);
  if (!has_table) {
    fill_table(conv, table);
  }
  fill_filter(conv, rows);
  for (int64_t n = 0; n < conv->x_shape.dims[0]; ++n) {
    for (int64_t group = 0; group < conv->groups; ++group) {
      const float* image = conv->x + sim_dnn_offset(&conv->x_shape, n, group * sizes.channels, 0, 0);
      fill_columns(conv, table, image, columns);
      run_group(conv, n, group, rows, columns, sums);
    }
  }
  free(sums);
  free(rows);
  free(has_columns ? NULL : columns);
  free(has_table ? NULL : table);
}
