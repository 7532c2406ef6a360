// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// reference.h: the program's network in plain C on the CPU, which the provider's results are compared with.
#ifndef GCAP_EXAMPLES_MINIMAL_EP_DIGITS_REFERENCE_H_
#define GCAP_EXAMPLES_MINIMAL_EP_DIGITS_REFERENCE_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// The network's sizes. Images and activations are NCHW.
#define REFERENCE_IMAGE_SIDE 8
#define REFERENCE_IMAGE_PIXELS (REFERENCE_IMAGE_SIDE * REFERENCE_IMAGE_SIDE)
#define REFERENCE_CONV1_CHANNELS 16
#define REFERENCE_CONV2_CHANNELS 32
#define REFERENCE_FC1_INPUTS 512  // 32 channels of 4x4 after the max-pool
#define REFERENCE_FC1_OUTPUTS 64
#define REFERENCE_CLASSES 10

// reference_weights_t: the network's weights, filled by the caller.
// Thread:   read only by the functions below, so any number of threads may share it
// Lifetime: the arrays are the caller's and must outlive each call
typedef struct reference_weights {
  const float* conv1_weight;  // [16][1][3][3]
  const float* conv1_bias;    // [16]
  const float* conv2_weight;  // [32][16][3][3]
  const float* conv2_bias;    // [32]
  const float* fc1_weight;    // [64][512]: outputs, inputs
  const float* fc1_bias;      // [64]
  const float* fc2_weight;    // [10][64]
  const float* fc2_bias;      // [10]
} reference_weights_t;

// Classifies `batch` images: conv1, relu, conv2, max-pool, relu, fc1, relu, fc2, softmax. Everything between the float
// images, float[batch][1][8][8] in 0..1, and the float result, float[batch][10], is computed in double, so that the
// result's own error is a rounding of the last bit. Thread-safe; allocates nothing; cannot fail.
void reference_forward(const reference_weights_t* weights, const float* images, size_t batch, float* out_probabilities);

// The index of the largest of `count` values, the first one among equals; `count` is at least 1. NaN never wins, unless
// it comes first.
size_t reference_argmax(const float* values, size_t count);

// The layers, for one image.

// 3x3 convolution (as networks mean it: the kernel is not flipped), stride 1, one pixel of zeros around the input:
// double[in_channels][height][width] to double[out_channels][height][width].
void reference_conv3x3(const double* in, size_t in_channels, size_t height, size_t width, const float* weight,
                       const float* bias, size_t out_channels, double* out);

// Largest of each 2x2 block, `height` and `width` even: double[channels][height][width] to half of both.
void reference_maxpool2x2(const double* in, size_t channels, size_t height, size_t width, double* out);

// In place: negative values become 0.
void reference_relu(double* values, size_t count);

// out[o] = bias[o] + the sum over i of weight[o][i] * in[i].
void reference_linear(const double* in, size_t inputs, const float* weight, const float* bias, size_t outputs,
                      double* out);

// Exponentials divided by their sum; the largest value is subtracted first, so that none overflows. `count` is at
// least 1.
void reference_softmax(const double* in, size_t count, double* out);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MINIMAL_EP_DIGITS_REFERENCE_H_
