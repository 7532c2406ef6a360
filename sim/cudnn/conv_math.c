// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of a convolution, as the queued work runs it. All algorithms unfold an image to columns ((c, r, s)
// rows of output pixels), multiply those by the filter's rows and finish the sums; they differ in what stands in the
// workspace, and in how many pieces of work they are, as on a GPU:
//   IMPLICIT_GEMM          one kernel, no workspace
//   IMPLICIT_PRECOMP_GEMM  one, with a table in the workspace that says which input pixel a column element is
//   GEMM                   one, with the columns of one image and group in the workspace
//   WINOGRAD_NONFUSED, FFT_TILING
//                          four: filter rows, columns and sums in the workspace, each written by one and read by the
//                          next
//   FFT                    five: the same after a table
// So a workspace that another stream overwrites gives wrong results, as on a GPU. Sums are floats, those of doubles are
// doubles, in one fixed order, the same for all algorithms.
#include <math.h>
#include <stdlib.h>

#include "sim/cudnn/internal.h"
#include "sim/library/multiply.h"

enum {
  kOutside = -1,
  kPartAlignment = 256,  // of each part of a workspace
  kTableIndex = 0,
  kRowsIndex,
  kColumnsIndex,
  kSumsIndex
};

typedef struct sizes {
  int64_t images;
  int64_t channels;  // input channels of a group
  int64_t filters;   // output channels of a group
  int64_t taps;      // r * s, of all of the filter's depth
  int64_t depth;     // channels * taps
  int64_t pixels;    // p * q, of all of the output's depth
} sizes_t;

static sizes_t sizes_of(const gcap_sim_dnn_conv_t* conv) {
  const int64_t* w = conv->w.shape.dims;
  const int64_t* y = conv->y.shape.dims;
  const int64_t taps = w[2] * w[3] * w[4];
  return (sizes_t){conv->x.shape.dims[0], w[1], w[0] / conv->groups, taps, w[1] * taps, y[2] * y[3] * y[4]};
}

// For reports of what the host lacks.
static const char kName[] = "cudnnConvolutionForward";

static int32_t* allocate_table(const sizes_t* sizes) {
  _Static_assert(sizeof(int32_t) == sizeof(float), "a table has the size of as many floats");
  return gcap_sim_allocate_numbers(kName, CUDA_R_32F, sizes->taps * sizes->pixels);
}

// Where element `i` of a channel is on its three axes, in our order: h, w, d. The depth is counted last.
static void place(const gcap_sim_dnn_shape_t* shape, int64_t i, int64_t out[3]) {
  out[1] = i % shape->dims[3];
  out[0] = i / shape->dims[3] % shape->dims[2];
  out[2] = i / shape->dims[3] / shape->dims[2];
}

static int64_t offset_in_channel(const gcap_sim_dnn_shape_t* shape, const int64_t at[3]) {
  return gcap_sim_dnn_offset(shape, 0, 0, at[0], at[1]) + at[2] * shape->strides[GCAP_SIM_DNN_D];
}

// The input element that a tap meets at an output pixel; kOutside for padding.
static int32_t input_of(const gcap_sim_dnn_conv_t* conv, const int64_t tap[3], const int64_t pixel[3]) {
  int64_t at[3];
  for (int i = 0; i < 3; ++i) {
    at[i] = pixel[i] * conv->stride[i] - conv->pad[i] + tap[i] * conv->dilation[i];
    if (at[i] < 0 || at[i] >= conv->x.shape.dims[2 + i]) {
      return kOutside;
    }
  }
  return (int32_t)offset_in_channel(&conv->x.shape, at);
}

// table[tap * pixels + pixel] = offset of the input pixel inside a channel, or kOutside for padding
static void fill_table(const gcap_sim_dnn_conv_t* conv, int32_t* table) {
  const sizes_t sizes = sizes_of(conv);
  for (int64_t i = 0; i < sizes.taps; ++i) {
    int64_t tap[3];
    place(&conv->w.shape, i, tap);
    for (int64_t k = 0; k < sizes.pixels; ++k) {
      int64_t pixel[3];
      place(&conv->y.shape, k, pixel);
      *table++ = input_of(conv, tap, pixel);
    }
  }
}

// columns[(channel * taps + tap) * pixels + pixel], of one image and group
static void fill_columns(const gcap_sim_dnn_conv_t* conv, const int32_t* table, int64_t n, int64_t group,
                         void* columns) {
  const sizes_t sizes = sizes_of(conv);
  const cudaDataType type = gcap_sim_dnn_conv_compute_type(conv);
  ptrdiff_t out = 0;
  for (int64_t channel = 0; channel < sizes.channels; ++channel) {
    const int64_t plane = gcap_sim_dnn_offset(&conv->x.shape, n, group * sizes.channels + channel, 0, 0);
    for (int64_t i = 0; i < sizes.taps * sizes.pixels; ++i) {
      const ptrdiff_t at = (ptrdiff_t)(plane + table[i]);
      const double value = table[i] == kOutside ? 0.0 : gcap_sim_element_load(conv->x.data, conv->x.type, at);
      gcap_sim_element_store(columns, type, out++, value);
    }
  }
}

// rows[filter * depth + (channel * taps + tap)], turned round for a true convolution
static void fill_rows(const gcap_sim_dnn_conv_t* conv, void* rows) {
  const cudaDataType type = gcap_sim_dnn_conv_compute_type(conv);
  ptrdiff_t out = 0;
  const int64_t* dims = conv->w.shape.dims;
  const int64_t taps = sizes_of(conv).taps;
  for (int64_t filter = 0; filter < dims[0]; ++filter) {
    for (int64_t channel = 0; channel < dims[1]; ++channel) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        int64_t at[3];
        place(&conv->w.shape, conv->flip ? taps - 1 - tap : tap, at);
        const int64_t offset =
            gcap_sim_dnn_offset(&conv->w.shape, filter, channel, 0, 0) + offset_in_channel(&conv->w.shape, at);
        gcap_sim_element_store(rows, type, out++, gcap_sim_element_load(conv->w.data, conv->w.type, (ptrdiff_t)offset));
      }
    }
  }
}

// All filters of a group: `sums` has filters x pixels.
static void multiply_group(const gcap_sim_dnn_conv_t* conv, const void* rows, const void* columns, void* sums) {
  const sizes_t sizes = sizes_of(conv);
  gcap_sim_multiply(kName, gcap_sim_dnn_conv_compute_type(conv), rows, sizes.filters, sizes.depth, columns,
                    sizes.pixels, sums);
}

// Scale, add z and the bias, rectify: one output plane, whose sums start at index `first`.
static void finish_plane(const gcap_sim_dnn_conv_t* conv, int64_t n, int64_t k, const void* sums, int64_t first) {
  const cudaDataType type = gcap_sim_dnn_conv_compute_type(conv);
  const double bias = conv->bias.data != NULL ? gcap_sim_dnn_load(&conv->bias, 0, k, 0, 0) : 0.0;
  const int64_t pixels = sizes_of(conv).pixels;
  const int64_t plane = gcap_sim_dnn_offset(&conv->y.shape, n, k, 0, 0);
  const int64_t z_plane = conv->z.data != NULL ? gcap_sim_dnn_offset(&conv->z.shape, n, k, 0, 0) : 0;
  for (int64_t i = 0; i < pixels; ++i) {
    int64_t at[3];
    place(&conv->y.shape, i, at);
    double value =
        gcap_sim_element_round(type, conv->alpha * gcap_sim_element_load(sums, type, (ptrdiff_t)(first + i)));
    value = gcap_sim_element_round(type, value + bias);
    if (conv->z.data != NULL) {
      const int64_t z_at = z_plane + offset_in_channel(&conv->z.shape, at);
      const double z = gcap_sim_element_load(conv->z.data, conv->z.type, (ptrdiff_t)z_at);
      value = gcap_sim_element_round(type, value + gcap_sim_element_round(type, conv->beta * z));
    }
    if (conv->relu && !(value > 0.0) && !(conv->propagate_nan && isnan(value))) {
      value = 0.0;
    }
    gcap_sim_element_store(conv->y.data, conv->y.type, (ptrdiff_t)(plane + offset_in_channel(&conv->y.shape, at)),
                           value);
  }
}

// The filters of a group, of one image: `sums` has filters x pixels.
static void finish_group(const gcap_sim_dnn_conv_t* conv, int64_t n, int64_t group, const void* sums) {
  const sizes_t sizes = sizes_of(conv);
  for (int64_t f = 0; f < sizes.filters; ++f) {
    finish_plane(conv, n, group * sizes.filters + f, sums, f * sizes.pixels);
  }
}

// --- Parts of the workspace -----------------------------------------------------------------------------------------

static unsigned parts_of(cudnnConvolutionFwdAlgo_t algo) {
  switch (algo) {
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM: return GCAP_SIM_DNN_TABLE;
    case CUDNN_CONVOLUTION_FWD_ALGO_GEMM: return GCAP_SIM_DNN_COLUMNS;
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT:
      return GCAP_SIM_DNN_TABLE | GCAP_SIM_DNN_ROWS | GCAP_SIM_DNN_COLUMNS | GCAP_SIM_DNN_SUMS;
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING:
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED:
      return GCAP_SIM_DNN_ROWS | GCAP_SIM_DNN_COLUMNS | GCAP_SIM_DNN_SUMS;
    default: return 0;
  }
}

void gcap_sim_dnn_conv_part(const gcap_sim_dnn_conv_t* conv, cudnnConvolutionFwdAlgo_t algo, int part, size_t* offset,
                            size_t* bytes) {
  const sizes_t sizes = sizes_of(conv);
  const int64_t planes = algo == CUDNN_CONVOLUTION_FWD_ALGO_GEMM ? 1 : sizes.images * conv->groups;
  const int64_t elements[] = {sizes.taps * sizes.pixels, conv->groups * sizes.filters * sizes.depth,
                              planes * sizes.depth * sizes.pixels, planes * sizes.filters * sizes.pixels};
  const unsigned parts = parts_of(algo);
  const size_t number_bytes = gcap_sim_element_bytes(gcap_sim_dnn_conv_compute_type(conv));
  const size_t element_bytes[] = {sizeof(int32_t), number_bytes, number_bytes, number_bytes};
  size_t at = 0;
  for (int i = 0; i < part; ++i) {
    const size_t size = (parts >> i & 1u) != 0 ? (size_t)elements[i] * element_bytes[i] : 0;
    at += (size + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
  }
  *offset = at;
  *bytes = (parts >> part & 1u) != 0 ? (size_t)elements[part] * element_bytes[part] : 0;
}

size_t gcap_sim_dnn_conv_workspace(const gcap_sim_dnn_conv_t* conv, cudnnConvolutionFwdAlgo_t algo) {
  size_t end = 0;
  for (int part = 0; part < GCAP_SIM_DNN_NUM_PARTS; ++part) {
    size_t offset;
    size_t bytes;
    gcap_sim_dnn_conv_part(conv, algo, part, &offset, &bytes);
    end = bytes != 0 ? offset + bytes : end;
  }
  return end;
}

// The part in the workspace; NULL when the algorithm does not keep it there.
static void* part_of(const gcap_sim_dnn_conv_t* conv, int part) {
  size_t offset;
  size_t bytes;
  gcap_sim_dnn_conv_part(conv, conv->algo, part, &offset, &bytes);
  return bytes != 0 ? (char*)conv->workspace + offset : NULL;
}

// --- Pieces of work -------------------------------------------------------------------------------------------------

static void run_whole(void* payload) {
  const gcap_sim_dnn_conv_t* conv = payload;
  const sizes_t sizes = sizes_of(conv);
  int32_t* kept_table = part_of(conv, kTableIndex);
  const cudaDataType type = gcap_sim_dnn_conv_compute_type(conv);
  void* kept_columns = part_of(conv, kColumnsIndex);
  int32_t* table = kept_table != NULL ? kept_table : allocate_table(&sizes);
  void* own_columns = kept_columns != NULL ? NULL : gcap_sim_allocate_numbers(kName, type, sizes.depth * sizes.pixels);
  void* columns = kept_columns != NULL ? kept_columns : own_columns;
  void* rows = gcap_sim_allocate_numbers(kName, type, conv->w.shape.dims[0] * sizes.depth);
  void* sums = gcap_sim_allocate_numbers(kName, type, sizes.filters * sizes.pixels);
  fill_table(conv, table);
  fill_rows(conv, rows);
  for (int64_t n = 0; n < sizes.images; ++n) {
    for (int64_t group = 0; group < conv->groups; ++group) {
      fill_columns(conv, table, n, group, columns);
      multiply_group(conv, gcap_sim_element_at(rows, type, group * sizes.filters * sizes.depth), columns, sums);
      finish_group(conv, n, group, sums);
    }
  }
  free(sums);
  free(rows);
  free(own_columns);
  free(kept_table != NULL ? NULL : table);
}

static void run_table(void* payload) { fill_table(payload, part_of(payload, kTableIndex)); }

static void run_rows(void* payload) { fill_rows(payload, part_of(payload, kRowsIndex)); }

static void run_columns(void* payload) {
  const gcap_sim_dnn_conv_t* conv = payload;
  const sizes_t sizes = sizes_of(conv);
  int32_t* kept_table = part_of(conv, kTableIndex);
  int32_t* table = kept_table != NULL ? kept_table : allocate_table(&sizes);
  if (kept_table == NULL) {
    fill_table(conv, table);
  }
  const cudaDataType type = gcap_sim_dnn_conv_compute_type(conv);
  void* columns = part_of(conv, kColumnsIndex);
  for (int64_t i = 0; i < sizes.images * conv->groups; ++i) {
    fill_columns(conv, table, i / conv->groups, i % conv->groups,
                 gcap_sim_element_at(columns, type, i * sizes.depth * sizes.pixels));
  }
  free(kept_table != NULL ? NULL : table);
}

static void run_sums(void* payload) {
  const gcap_sim_dnn_conv_t* conv = payload;
  const sizes_t sizes = sizes_of(conv);
  const cudaDataType type = gcap_sim_dnn_conv_compute_type(conv);
  void* rows = part_of(conv, kRowsIndex);
  void* columns = part_of(conv, kColumnsIndex);
  void* sums = part_of(conv, kSumsIndex);
  for (int64_t i = 0; i < sizes.images * conv->groups; ++i) {
    multiply_group(conv, gcap_sim_element_at(rows, type, i % conv->groups * sizes.filters * sizes.depth),
                   gcap_sim_element_at(columns, type, i * sizes.depth * sizes.pixels),
                   gcap_sim_element_at(sums, type, i * sizes.filters * sizes.pixels));
  }
}

static void run_finish(void* payload) {
  const gcap_sim_dnn_conv_t* conv = payload;
  const sizes_t sizes = sizes_of(conv);
  const cudaDataType type = gcap_sim_dnn_conv_compute_type(conv);
  void* sums = part_of(conv, kSumsIndex);
  for (int64_t i = 0; i < sizes.images * conv->groups; ++i) {
    finish_group(conv, i / conv->groups, i % conv->groups,
                 gcap_sim_element_at(sums, type, i * sizes.filters * sizes.pixels));
  }
}

static const gcap_sim_dnn_stage_t whole[] = {
    {NULL, run_whole, 0, GCAP_SIM_DNN_TABLE | GCAP_SIM_DNN_COLUMNS, 1, 1, 1},
};

// All but the first for the algorithms without a table.
static const gcap_sim_dnn_stage_t transformed[] = {
    {"cudnn convolution: table", run_table, 0, GCAP_SIM_DNN_TABLE, 0, 0, 0},
    {"cudnn convolution: filter", run_rows, 0, GCAP_SIM_DNN_ROWS, 0, 1, 0},
    {"cudnn convolution: columns", run_columns, GCAP_SIM_DNN_TABLE, GCAP_SIM_DNN_COLUMNS, 1, 0, 0},
    {"cudnn convolution: sums", run_sums, GCAP_SIM_DNN_ROWS | GCAP_SIM_DNN_COLUMNS, GCAP_SIM_DNN_SUMS, 0, 0, 0},
    {"cudnn convolution: finish", run_finish, GCAP_SIM_DNN_SUMS, 0, 0, 0, 1},
};

const gcap_sim_dnn_stage_t* gcap_sim_dnn_conv_stages(cudnnConvolutionFwdAlgo_t algo, size_t* count) {
  switch (algo) {
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM:
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM:
    case CUDNN_CONVOLUTION_FWD_ALGO_GEMM: *count = 1; return whole;
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT: *count = 5; return transformed;
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING:
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED: *count = 4; return transformed + 1;
    default: *count = 0; return NULL;
  }
}
