// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// typed.h: device arrays of f32, f16 and bf16 for the tests of the ops, as doubles on the host.
#ifndef GCAP_TEST_OPS_TYPED_H_
#define GCAP_TEST_OPS_TYPED_H_

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "gcap/tensor.h"
#include "gtest/gtest.h"

namespace gcap {
namespace testing {

// The bits of a mantissa behind the point, and the exponent of the smallest normal number.
inline int MantissaBits(gcap_dtype_t dtype) { return dtype == GCAP_DTYPE_F32 ? 23 : dtype == GCAP_DTYPE_F16 ? 10 : 7; }
inline int LeastExponent(gcap_dtype_t dtype) { return dtype == GCAP_DTYPE_F16 ? -14 : -126; }

// The most that a rounding to the type changes of a number of normal size, as a part of it: half of the last place.
inline double Rounding(gcap_dtype_t dtype) { return std::ldexp(1.0, -MantissaBits(dtype) - 1); }

// `value` rounded to the nearest of the type, ties to even. Not for what is too large.
inline double Rounded(double value, gcap_dtype_t dtype) {
  if (value == 0.0) return value;
  const int exponent = std::max(std::ilogb(value), LeastExponent(dtype));
  const double unit = std::ldexp(1.0, exponent - MantissaBits(dtype));
  return std::nearbyint(value / unit) * unit;
}

// The bits of a value that the type holds exactly, and back.
inline uint16_t Bits16(double value, gcap_dtype_t dtype) {
  const int mantissa_bits = MantissaBits(dtype), least = LeastExponent(dtype);
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (value == 0.0) return sign;
  const int exponent = std::ilogb(value);
  if (exponent < least) return sign | static_cast<uint16_t>(std::ldexp(std::fabs(value), mantissa_bits - least));
  const double mantissa = std::ldexp(std::fabs(value), mantissa_bits - exponent) - (1 << mantissa_bits);
  return sign | static_cast<uint16_t>((exponent - least + 1) << mantissa_bits) | static_cast<uint16_t>(mantissa);
}
inline double FromBits16(uint16_t bits, gcap_dtype_t dtype) {
  const int mantissa_bits = MantissaBits(dtype), least = LeastExponent(dtype);
  const int exponent = (bits & 0x7fff) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (0x7fff >> mantissa_bits)) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, least - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - 1 + least - mantissa_bits);
}

// Uniform in [-1, 1), rounded to the type.
inline std::vector<double> RandomValues(size_t count, gcap_dtype_t dtype, std::mt19937* generator) {
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> values(count);
  for (double& value : values) value = Rounded(uniform(*generator), dtype);
  return values;
}

// Values in device memory, `offset` elements behind the start of an allocation. Copies as DeviceFloats does.
class TypedArray {
 public:
  TypedArray(gcap_dtype_t dtype, const std::vector<double>& values, size_t offset = 0)
      : dtype_(dtype), offset_(offset), size_(values.size()) {
    EXPECT_EQ(cudaMalloc(&data_, (offset_ + size_ + 1) * gcap_dtype_bytes(dtype)), cudaSuccess);
    Set(values);
  }
  TypedArray(const TypedArray&) = delete;
  TypedArray& operator=(const TypedArray&) = delete;
  ~TypedArray() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }

  void* get() const { return static_cast<char*>(data_) + offset_ * gcap_dtype_bytes(dtype_); }

  void Set(const std::vector<double>& values) {
    ASSERT_EQ(values.size(), size_);
    std::vector<char> bytes(Bytes());
    for (size_t i = 0; i < size_; ++i) {
      if (dtype_ == GCAP_DTYPE_F32) {
        const float value = static_cast<float>(values[i]);
        std::memcpy(&bytes[i * sizeof(value)], &value, sizeof(value));
      } else {
        const uint16_t value = Bits16(values[i], dtype_);
        std::memcpy(&bytes[i * sizeof(value)], &value, sizeof(value));
      }
    }
    EXPECT_EQ(cudaMemcpyAsync(get(), bytes.data(), Bytes(), cudaMemcpyHostToDevice, cudaStreamPerThread), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  }
  std::vector<double> Get() const {
    std::vector<char> bytes(Bytes());
    EXPECT_EQ(cudaMemcpyAsync(bytes.data(), get(), Bytes(), cudaMemcpyDeviceToHost, cudaStreamPerThread), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    std::vector<double> values(size_);
    for (size_t i = 0; i < size_; ++i) {
      if (dtype_ == GCAP_DTYPE_F32) {
        float value;
        std::memcpy(&value, &bytes[i * sizeof(value)], sizeof(value));
        values[i] = value;
      } else {
        uint16_t value;
        std::memcpy(&value, &bytes[i * sizeof(value)], sizeof(value));
        values[i] = FromBits16(value, dtype_);
      }
    }
    return values;
  }

 private:
  size_t Bytes() const { return size_ * gcap_dtype_bytes(dtype_); }

  gcap_dtype_t dtype_;
  size_t offset_, size_;
  void* data_ = nullptr;
};

// What an op must give, and how far from it each element may be.
struct TypedExpectation {
  std::vector<double> value, tolerance;
};

inline void ExpectNear(const std::vector<double>& actual, const TypedExpectation& expected) {
  ASSERT_EQ(actual.size(), expected.value.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected.value[i], expected.tolerance[i]) << "element " << i;
  }
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_OPS_TYPED_H_
