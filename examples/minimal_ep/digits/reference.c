// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Plain loops, one image at a time, activations in double on the stack (about 30 KB). Slow and obvious on purpose: what
// checks the fast path must not share its cleverness. No state, no locking.
#include "examples/minimal_ep/digits/reference.h"

#include <math.h>

// What weight (kernel_y, kernel_x) contributes is in[y + kernel_y - 1][x + kernel_x - 1], or zero outside the image.
static double convolve_at(const double* in, size_t height, size_t width, const float* kernel, size_t y, size_t x) {
  double sum = 0.0;
  for (size_t kernel_y = 0; kernel_y < 3; ++kernel_y) {
    for (size_t kernel_x = 0; kernel_x < 3; ++kernel_x) {
      const size_t row = y + kernel_y;  // one more than the input's row
      const size_t column = x + kernel_x;
      if (row < 1 || row > height || column < 1 || column > width) continue;
      sum += (double)kernel[kernel_y * 3 + kernel_x] * in[(row - 1) * width + (column - 1)];
    }
  }
  return sum;
}

void reference_conv3x3(const double* in, size_t in_channels, size_t height, size_t width, const float* weight,
                       const float* bias, size_t out_channels, double* out) {
  const size_t pixels = height * width;
  for (size_t o = 0; o < out_channels; ++o) {
    for (size_t pixel = 0; pixel < pixels; ++pixel) {
      double sum = (double)bias[o];
      for (size_t c = 0; c < in_channels; ++c) {
        const float* kernel = weight + (o * in_channels + c) * 9;
        sum += convolve_at(in + c * pixels, height, width, kernel, pixel / width, pixel % width);
      }
      out[o * pixels + pixel] = sum;
    }
  }
}

void reference_maxpool2x2(const double* in, size_t channels, size_t height, size_t width, double* out) {
  // Both are even, so the rows of all channels can be halved as if they were one image's.
  for (size_t row = 0; row < channels * height / 2; ++row) {
    for (size_t column = 0; column < width / 2; ++column) {
      const double* block = in + 2 * row * width + 2 * column;
      out[row * (width / 2) + column] = fmax(fmax(block[0], block[1]), fmax(block[width], block[width + 1]));
    }
  }
}

void reference_relu(double* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i] < 0.0) values[i] = 0.0;
  }
}

void reference_linear(const double* in, size_t inputs, const float* weight, const float* bias, size_t outputs,
                      double* out) {
  for (size_t o = 0; o < outputs; ++o) {
    double sum = (double)bias[o];
    for (size_t i = 0; i < inputs; ++i) sum += (double)weight[o * inputs + i] * in[i];
    out[o] = sum;
  }
}

void reference_softmax(const double* in, size_t count, double* out) {
  double largest = in[0];
  for (size_t i = 1; i < count; ++i) largest = fmax(largest, in[i]);
  double sum = 0.0;
  for (size_t i = 0; i < count; ++i) sum += out[i] = exp(in[i] - largest);
  for (size_t i = 0; i < count; ++i) out[i] /= sum;
}

static void forward_one(const reference_weights_t* weights, const float* image, float* out_probabilities) {
  double input[REFERENCE_IMAGE_PIXELS];
  double conv1[REFERENCE_CONV1_CHANNELS * REFERENCE_IMAGE_PIXELS];
  double conv2[REFERENCE_CONV2_CHANNELS * REFERENCE_IMAGE_PIXELS];
  double pooled[REFERENCE_FC1_INPUTS];
  double fc1[REFERENCE_FC1_OUTPUTS];
  double fc2[REFERENCE_CLASSES];
  double probabilities[REFERENCE_CLASSES];
  const size_t side = REFERENCE_IMAGE_SIDE;

  for (size_t i = 0; i < REFERENCE_IMAGE_PIXELS; ++i) input[i] = (double)image[i];
  reference_conv3x3(input, 1, side, side, weights->conv1_weight, weights->conv1_bias, REFERENCE_CONV1_CHANNELS, conv1);
  reference_relu(conv1, REFERENCE_CONV1_CHANNELS * REFERENCE_IMAGE_PIXELS);
  reference_conv3x3(conv1, REFERENCE_CONV1_CHANNELS, side, side, weights->conv2_weight, weights->conv2_bias,
                    REFERENCE_CONV2_CHANNELS, conv2);
  reference_maxpool2x2(conv2, REFERENCE_CONV2_CHANNELS, side, side, pooled);
  reference_relu(pooled, REFERENCE_FC1_INPUTS);
  reference_linear(pooled, REFERENCE_FC1_INPUTS, weights->fc1_weight, weights->fc1_bias, REFERENCE_FC1_OUTPUTS, fc1);
  reference_relu(fc1, REFERENCE_FC1_OUTPUTS);
  reference_linear(fc1, REFERENCE_FC1_OUTPUTS, weights->fc2_weight, weights->fc2_bias, REFERENCE_CLASSES, fc2);
  reference_softmax(fc2, REFERENCE_CLASSES, probabilities);
  for (size_t i = 0; i < REFERENCE_CLASSES; ++i) out_probabilities[i] = (float)probabilities[i];
}

void reference_forward(const reference_weights_t* weights, const float* images, size_t batch,
                       float* out_probabilities) {
  for (size_t n = 0; n < batch; ++n) {
    forward_one(weights, images + n * REFERENCE_IMAGE_PIXELS, out_probabilities + n * REFERENCE_CLASSES);
  }
}

size_t reference_argmax(const float* values, size_t count) {
  size_t best = 0;
  for (size_t i = 1; i < count; ++i) {
    if (values[i] > values[best]) best = i;
  }
  return best;
}
