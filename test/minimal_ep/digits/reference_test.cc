// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Each layer against numbers worked out by hand, the order of the layers by a network with few weights that are not
// zero, and the whole against the labels of the held-out digits.
#include "examples/minimal_ep/digits/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "examples/minimal_ep/digits/npy.h"

namespace {

// Relative to the directory that Bazel starts tests in.
const char kDataDir[] = "examples/minimal_ep/digits/data/";

TEST(Conv3x3, SumsTheNeighbourhoodAndPadsWithZeros) {
  const double in[] = {1, 2, 3,  //
                       4, 5, 6,  //
                       7, 8, 9};
  const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  const float bias[] = {0.5f};
  double out[9];
  reference_conv3x3(in, 1, 3, 3, ones, bias, 1, out);
  const double expected[] = {12.5, 21.5, 16.5,  //
                             27.5, 45.5, 33.5,  //
                             24.5, 39.5, 28.5};
  for (int i = 0; i < 9; ++i) EXPECT_EQ(out[i], expected[i]) << i;
}

TEST(Conv3x3, DoesNotFlipTheKernel) {
  const double in[] = {1, 2, 3,  //
                       4, 5, 6};
  const float right_above[] = {0, 0, 1, 0, 0, 0, 0, 0, 0};  // takes the pixel one row up, one column to the right
  const float bias[] = {0};
  double out[6];
  reference_conv3x3(in, 1, 2, 3, right_above, bias, 1, out);
  const double expected[] = {0, 0, 0,  //
                             2, 3, 0};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out[i], expected[i]) << i;
}

TEST(Conv3x3, AddsInputChannelsAndSeparatesOutputChannels) {
  const double in[] = {3, 5};  // two channels of one pixel
  float weight[2 * 2 * 9] = {};
  weight[0 * 9 + 4] = 10;  // output 0, input 0, centre
  weight[1 * 9 + 4] = 100;
  weight[2 * 9 + 4] = -1;
  weight[3 * 9 + 4] = 2;
  const float bias[] = {1, 2};
  double out[2];
  reference_conv3x3(in, 2, 1, 1, weight, bias, 2, out);
  EXPECT_EQ(out[0], 531);  // 1 + 10 * 3 + 100 * 5
  EXPECT_EQ(out[1], 9);    // 2 - 1 * 3 + 2 * 5
}

TEST(MaxPool2x2, TakesTheLargestOfEachBlockOfEachChannel) {
  const double in[] = {-4, -3, 1, 0,  // channel 0
                       -2, -9, 0, 2,  //
                       5,  1,  3, 8,  // channel 1
                       1,  1,  9, 7};
  double out[4];
  reference_maxpool2x2(in, 2, 2, 4, out);
  const double expected[] = {-2, 2, 5, 9};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], expected[i]) << i;
}

TEST(Relu, ZeroesNegativesOnly) {
  double values[] = {-1.5, 0.0, 2.5, -1e-300};
  reference_relu(values, 4);
  const double expected[] = {0, 0, 2.5, 0};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(values[i], expected[i]) << i;
}

TEST(Linear, WeightsAreOutputsByInputs) {
  const double in[] = {1, 2, 3};
  const float weight[] = {1, 10, 100, -1, 0, 2};
  const float bias[] = {0.5f, -0.5f};
  double out[2];
  reference_linear(in, 3, weight, bias, 2, out);
  EXPECT_EQ(out[0], 321.5);
  EXPECT_EQ(out[1], 4.5);
}

TEST(Softmax, OfLogarithmsIsTheirProportions) {
  const double in[] = {std::log(1.0), std::log(2.0), std::log(5.0)};
  double out[3];
  reference_softmax(in, 3, out);
  // The logarithms and exponentials are each off by an ulp or so, 2e-16.
  EXPECT_NEAR(out[0], 0.125, 1e-15);
  EXPECT_NEAR(out[1], 0.25, 1e-15);
  EXPECT_NEAR(out[2], 0.625, 1e-15);
}

TEST(Softmax, DoesNotOverflow) {
  const double in[] = {1e6, 1e6, -1e6};
  double out[3];
  reference_softmax(in, 3, out);
  EXPECT_EQ(out[0], 0.5);
  EXPECT_EQ(out[1], 0.5);
  EXPECT_EQ(out[2], 0.0);
}

TEST(Argmax, IsTheFirstOfTheLargest) {
  const float values[] = {-3, 7, 2, 7};
  EXPECT_EQ(reference_argmax(values, 4), 1u);
  EXPECT_EQ(reference_argmax(values, 1), 0u);
}

TEST(Argmax, SkipsNaNThatIsNotFirst) {
  const float values[] = {1, std::numeric_limits<float>::quiet_NaN(), 2};
  EXPECT_EQ(reference_argmax(values, 3), 2u);
}

// Weights of the right sizes, all zero, that a test sets a few of.
struct Weights {
  std::vector<float> conv1_weight = std::vector<float>(16 * 1 * 9);
  std::vector<float> conv1_bias = std::vector<float>(16);
  std::vector<float> conv2_weight = std::vector<float>(32 * 16 * 9);
  std::vector<float> conv2_bias = std::vector<float>(32);
  std::vector<float> fc1_weight = std::vector<float>(64 * 512);
  std::vector<float> fc1_bias = std::vector<float>(64);
  std::vector<float> fc2_weight = std::vector<float>(10 * 64);
  std::vector<float> fc2_bias = std::vector<float>(10);

  reference_weights_t view() const {
    return {conv1_weight.data(), conv1_bias.data(), conv2_weight.data(), conv2_bias.data(),
            fc1_weight.data(),   fc1_bias.data(),   fc2_weight.data(),   fc2_bias.data()};
  }
};

TEST(Forward, ZeroWeightsGiveEqualProbabilities) {
  const Weights weights;
  const reference_weights_t view = weights.view();
  const std::vector<float> image(64, 0.25f);
  float out[10];
  reference_forward(&view, image.data(), 1, out);
  for (float probability : out) EXPECT_EQ(probability, 0.1f);
}

// One path through the network is open: pixel (5, 2) -> conv1 channel 3 -> conv2 channel 7 -> pooled (2, 1) -> fc1
// unit 9 -> class 4. Every stage multiplies, adds and clips by known numbers; image 1 is clipped by the first relu.
TEST(Forward, FollowsOneOpenPathInEachImageOfABatch) {
  Weights weights;
  weights.conv1_weight[3 * 9 + 4] = 2.0f;
  weights.conv1_bias[3] = -1.0f;
  weights.conv2_weight[(7 * 16 + 3) * 9 + 4] = 4.0f;
  weights.conv2_bias[7] = 0.5f;
  weights.fc1_weight[9 * 512 + (7 * 16 + 2 * 4 + 1)] = 0.5f;
  weights.fc1_bias[9] = -0.25f;
  weights.fc2_weight[4 * 64 + 9] = 3.0f;
  weights.fc2_bias[4] = -2.0f;
  const reference_weights_t view = weights.view();

  std::vector<float> images(2 * 64);
  images[5 * 8 + 2] = 0.75f;       // 2 * 0.75 - 1 = 0.5; 4 * 0.5 + 0.5 = 2.5; 1.25 - 0.25 = 1; 3 - 2 = 1
  images[64 + 5 * 8 + 2] = 0.25f;  // 2 * 0.25 - 1 < 0; 0.5; 0.25 - 0.25 = 0; -2
  float out[20];
  reference_forward(&view, images.data(), 2, out);

  const double logits[] = {1.0, -2.0};
  for (int image = 0; image < 2; ++image) {
    const double sum = 9.0 + std::exp(logits[image]);  // the other nine logits are 0
    for (int c = 0; c < 10; ++c) {
      const double expected = (c == 4 ? std::exp(logits[image]) : 1.0) / sum;
      EXPECT_FLOAT_EQ(out[image * 10 + c], static_cast<float>(expected)) << "image " << image << ", class " << c;
    }
  }
}

// A .npy file of the program's data.
template <typename T>
std::vector<T> Load(const std::string& name, const std::vector<int64_t>& shape) {
  npy_array_t array;
  char error[512];
  const npy_dtype_t dtype = std::is_same<T, float>::value ? NPY_FLOAT32 : NPY_INT32;
  const std::string path = kDataDir + name + ".npy";
  if (npy_load(path.c_str(), dtype, shape.data(), shape.size(), &array, error, sizeof error)) {
    ADD_FAILURE() << error;
    return {};
  }
  const T* data = static_cast<const T*>(array.data);
  const std::vector<T> values(data, data + array.count);
  npy_free(&array);
  return values;
}

TEST(Forward, ClassifiesTheHeldOutDigits) {
  Weights weights;
  weights.conv1_weight = Load<float>("conv1_weight", {16, 1, 3, 3});
  weights.conv1_bias = Load<float>("conv1_bias", {16});
  weights.conv2_weight = Load<float>("conv2_weight", {32, 16, 3, 3});
  weights.conv2_bias = Load<float>("conv2_bias", {32});
  weights.fc1_weight = Load<float>("fc1_weight", {64, 512});
  weights.fc1_bias = Load<float>("fc1_bias", {64});
  weights.fc2_weight = Load<float>("fc2_weight", {10, 64});
  weights.fc2_bias = Load<float>("fc2_bias", {10});
  const std::vector<float> images = Load<float>("heldout_images", {NPY_ANY, 1, 8, 8});
  const std::vector<int32_t> labels = Load<int32_t>("heldout_labels", {NPY_ANY});
  ASSERT_FALSE(HasFailure());
  ASSERT_GE(labels.size(), 350u);
  ASSERT_EQ(images.size(), labels.size() * 64);

  const reference_weights_t view = weights.view();
  std::vector<float> out(labels.size() * 10);
  reference_forward(&view, images.data(), labels.size(), out.data());
  size_t right = 0;
  for (size_t n = 0; n < labels.size(); ++n) {
    right += reference_argmax(&out[n * 10], 10) == static_cast<size_t>(labels[n]);
    double sum = 0;
    for (size_t c = 0; c < 10; ++c) sum += out[n * 10 + c];
    ASSERT_NEAR(sum, 1.0, 1e-6) << "image " << n;  // ten roundings to float, each at most 6e-8
  }
  EXPECT_GE(static_cast<double>(right), 0.97 * static_cast<double>(labels.size()));
}

}  // namespace
