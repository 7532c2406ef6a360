// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The product behind every simulated matmul and convolution: the plain loop's results, bit for bit, at every edge of
// its tiles.
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"

extern "C" {
#include "sim/library/multiply.h"
}

namespace {

constexpr unsigned kSeed = 4242;

template <typename T>
std::vector<T> Random(size_t count, std::mt19937* generator) {
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) value = uniform(*generator);
  return values;
}

template <typename T>
void ExpectThePlainLoop(int64_t count, int64_t depth, int64_t width, std::mt19937* generator) {
  SCOPED_TRACE(testing::Message() << count << " x " << depth << " x " << width << ", seed " << kSeed);
  const std::vector<T> rows = Random<T>(count * depth, generator), columns = Random<T>(depth * width, generator);
  std::vector<T> expected(count * width), actual(count * width + 1, 7);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      volatile T sum = 0;  // rounded at each step, whatever the compiler would rather do
      for (int64_t l = 0; l < depth; ++l) {
        volatile T product = rows[i * depth + l] * columns[l * width + j];
        sum = sum + product;
      }
      expected[i * width + j] = sum;
    }
  }
  const cudaDataType type = sizeof(T) == sizeof(double) ? CUDA_R_64F : CUDA_R_32F;
  gcap_sim_multiply("test", type, rows.data(), count, depth, columns.data(), width, actual.data());
  EXPECT_EQ(7, actual.back());  // nothing is written behind the sums
  actual.pop_back();
  if (!expected.empty()) {
    EXPECT_EQ(0, memcmp(expected.data(), actual.data(), expected.size() * sizeof(T)));
  }
}

template <typename T>
class Multiply : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Multiply, Types);

TYPED_TEST(Multiply, IsThePlainLoopAtEveryEdge) {
  std::mt19937 generator(kSeed);
  for (int64_t count = 0; count <= 9; ++count) {
    for (int64_t width = 0; width <= 17; ++width) {
      for (int64_t depth : {0, 1, 5}) ExpectThePlainLoop<TypeParam>(count, depth, width, &generator);
    }
  }
}

TYPED_TEST(Multiply, IsThePlainLoopForRandomShapes) {
  std::mt19937 generator(kSeed);
  std::uniform_int_distribution<int64_t> side(1, 70);
  for (int i = 0; i < 50; ++i) {
    const int64_t count = side(generator), depth = 5 * side(generator), width = side(generator);
    ExpectThePlainLoop<TypeParam>(count, depth, width, &generator);
  }
}

}  // namespace
