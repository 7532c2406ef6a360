// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// tensors.h: tensors of every type for the tests of kernels. Elements are doubles here, and f16 and bf16 are made and
// read by arithmetic on doubles, which shares nothing with the code under test.
#ifndef GCAP_TEST_OPS_TENSORS_H_
#define GCAP_TEST_OPS_TENSORS_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gcap/tensor.h"
#include "gtest/gtest.h"
#include "test/ops/op_test.h"

namespace gcap {
namespace testing {

using Shape = std::vector<int64_t>;
using Values = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr gcap_dtype_t kAllTypes[] = {GCAP_DTYPE_F32, GCAP_DTYPE_F16,  GCAP_DTYPE_BF16, GCAP_DTYPE_I64,
                                      GCAP_DTYPE_I32, GCAP_DTYPE_BOOL, GCAP_DTYPE_I8,   GCAP_DTYPE_U8};
constexpr gcap_dtype_t kFloatTypes[] = {GCAP_DTYPE_F32, GCAP_DTYPE_F16, GCAP_DTYPE_BF16};

inline bool IsFloat(gcap_dtype_t type) {
  return type == GCAP_DTYPE_F32 || type == GCAP_DTYPE_F16 || type == GCAP_DTYPE_BF16;
}

// Of a floating-point type: bits of the fraction, the least exponent of a normal number, the largest number.
struct Format {
  int fraction_bits;
  int least_exponent;
  double largest;
};
inline Format FormatOf(gcap_dtype_t type) {
  if (type == GCAP_DTYPE_F16) return {10, -14, 65504.0};
  return {type == GCAP_DTYPE_F32 ? 23 : 7, -126,
          std::ldexp(2.0 - std::ldexp(1.0, type == GCAP_DTYPE_F32 ? -23 : -7), 127)};
}

// The nearest number of the format, ties to even; infinite beyond the largest.
inline double Round(gcap_dtype_t type, double value) {
  if (!std::isfinite(value) || value == 0.0) return value;
  const Format format = FormatOf(type);
  const double quantum = std::ldexp(1.0, std::max(std::ilogb(value), format.least_exponent) - format.fraction_bits);
  const double rounded = std::nearbyint(value / quantum) * quantum;
  return std::fabs(rounded) > format.largest ? std::copysign(kInf, value) : rounded;
}

// The 16 bits of a number that the format has.
inline uint16_t Bits16(gcap_dtype_t type, double value) {
  const Format format = FormatOf(type);
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int infinity = 0x7fff >> format.fraction_bits << format.fraction_bits;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | 1 << (format.fraction_bits - 1));
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  const double magnitude = std::fabs(value);
  if (magnitude < std::ldexp(1.0, format.least_exponent)) {
    return static_cast<uint16_t>(sign |
                                 std::lround(std::ldexp(magnitude, format.fraction_bits - format.least_exponent)));
  }
  const int exponent = std::ilogb(magnitude);
  const long fraction = std::lround(std::ldexp(magnitude, format.fraction_bits - exponent));
  return static_cast<uint16_t>(sign | (((exponent - format.least_exponent) << format.fraction_bits) + fraction));
}

inline double FromBits16(gcap_dtype_t type, uint16_t bits) {
  const Format format = FormatOf(type);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  const int fraction = bits & ((1 << format.fraction_bits) - 1), exponent = (bits & 0x7fff) >> format.fraction_bits;
  if (exponent == 0x7fff >> format.fraction_bits) return std::copysign(fraction != 0 ? kNan : kInf, sign);
  const int whole = exponent == 0 ? fraction : fraction + (1 << format.fraction_bits);
  return sign * std::ldexp(whole, std::max(exponent, 1) - 1 + format.least_exponent - format.fraction_bits);
}

// The value that an element holds after it was stored: integers must be whole and in range.
inline double Stored(gcap_dtype_t type, double value) { return IsFloat(type) ? Round(type, value) : value; }

template <typename T>
void PutAs(unsigned char* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}
template <typename T>
T TakeAs(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

inline void Put(gcap_dtype_t type, unsigned char* at, double value) {
  switch (type) {
    case GCAP_DTYPE_F32: return PutAs(at, static_cast<float>(value));
    case GCAP_DTYPE_F16:
    case GCAP_DTYPE_BF16: return PutAs(at, Bits16(type, Round(type, value)));
    case GCAP_DTYPE_I64: return PutAs(at, static_cast<int64_t>(value));
    case GCAP_DTYPE_I32: return PutAs(at, static_cast<int32_t>(value));
    case GCAP_DTYPE_BOOL: return PutAs(at, static_cast<uint8_t>(value != 0.0));
    case GCAP_DTYPE_I8: return PutAs(at, static_cast<int8_t>(value));
    case GCAP_DTYPE_U8: return PutAs(at, static_cast<uint8_t>(value));
  }
}

inline double Take(gcap_dtype_t type, const unsigned char* at) {
  switch (type) {
    case GCAP_DTYPE_F32: return TakeAs<float>(at);
    case GCAP_DTYPE_F16:
    case GCAP_DTYPE_BF16: return FromBits16(type, TakeAs<uint16_t>(at));
    case GCAP_DTYPE_I64: return static_cast<double>(TakeAs<int64_t>(at));
    case GCAP_DTYPE_I32: return TakeAs<int32_t>(at);
    case GCAP_DTYPE_BOOL:
    case GCAP_DTYPE_U8: return TakeAs<uint8_t>(at);
    case GCAP_DTYPE_I8: return TakeAs<int8_t>(at);
  }
  return kNan;
}

inline int64_t Count(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

inline std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

inline gcap_tensor_t View(gcap_dtype_t type, const Shape& shape, void* data) {
  gcap_tensor_t view = {};
  view.data = data;
  view.dtype = type;
  view.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), view.shape);
  return view;
}

// A tensor in device memory, which starts `offset` elements into its allocation: there it is aligned as an element and
// no better. Bytes before and behind it keep a pattern, or the destructor says so.
class DeviceTensor {
 public:
  DeviceTensor(gcap_dtype_t type, const Shape& shape, const Values& values, size_t offset = 0)
      : type_(type), shape_(shape), offset_bytes_(offset * gcap_dtype_bytes(type)) {
    GCAP_EXPECT_CUDA(cudaMalloc(&memory_, AllBytes()));
    Set(values);
  }
  // Filled with bytes that are no result of a test.
  DeviceTensor(gcap_dtype_t type, const Shape& shape, size_t offset = 0)
      : DeviceTensor(type, shape, Values(Count(shape), type == GCAP_DTYPE_BOOL ? 1.0 : 77.0), offset) {}
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;
  ~DeviceTensor() {
    const std::vector<unsigned char> bytes = Read();
    const auto is_pattern = [](unsigned char byte) { return byte == kPattern; };
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.begin() + offset_bytes_, is_pattern)) << "written before the tensor";
    EXPECT_TRUE(std::all_of(bytes.end() - kBehind, bytes.end(), is_pattern)) << "written behind the tensor";
    GCAP_EXPECT_CUDA(cudaFree(memory_));
  }

  gcap_tensor_t view() const { return View(type_, shape_, static_cast<char*>(memory_) + offset_bytes_); }
  const Shape& shape() const { return shape_; }
  gcap_dtype_t type() const { return type_; }

  void Set(const Values& values) {
    ASSERT_EQ(static_cast<int64_t>(values.size()), Count(shape_));
    std::vector<unsigned char> bytes(AllBytes(), kPattern);
    for (size_t i = 0; i < values.size(); ++i) Put(type_, &bytes[offset_bytes_ + i * ElementBytes()], values[i]);
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(memory_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, cudaStreamPerThread));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
  }
  Values Get() const {
    const std::vector<unsigned char> bytes = Read();
    Values values(Count(shape_));
    for (size_t i = 0; i < values.size(); ++i) values[i] = Take(type_, &bytes[offset_bytes_ + i * ElementBytes()]);
    return values;
  }

 private:
  static constexpr unsigned char kPattern = 0xa5;
  static constexpr size_t kBehind = 32;

  size_t ElementBytes() const { return gcap_dtype_bytes(type_); }
  size_t AllBytes() const { return offset_bytes_ + static_cast<size_t>(Count(shape_)) * ElementBytes() + kBehind; }
  std::vector<unsigned char> Read() const {
    std::vector<unsigned char> bytes(AllBytes());
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(bytes.data(), memory_, bytes.size(), cudaMemcpyDeviceToHost, cudaStreamPerThread));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    return bytes;
  }

  gcap_dtype_t type_;
  Shape shape_;
  size_t offset_bytes_;
  void* memory_ = nullptr;
};

// Draws of one seed.
class Draws {
 public:
  explicit Draws(unsigned seed) : generator_(seed) {}

  int Int(int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator_); }
  double Real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(generator_); }
  // What a tensor of the type can hold: reals, or integers, in low..high, as far as the type has
  // them; booleans.
  Values Elements(gcap_dtype_t type, int64_t count, double low, double high) {
    Values values(count);
    for (double& value : values) {
      if (type == GCAP_DTYPE_BOOL) value = Int(0, 1);
      if (type == GCAP_DTYPE_I64 || type == GCAP_DTYPE_I32) value = Int(static_cast<int>(low), static_cast<int>(high));
      if (type == GCAP_DTYPE_I8)
        value = Int(std::max(-128, static_cast<int>(low)), std::min(127, static_cast<int>(high)));
      if (type == GCAP_DTYPE_U8) value = Int(std::max(0, static_cast<int>(low)), std::min(255, static_cast<int>(high)));
      if (IsFloat(type)) value = Round(type, Real(low, high));
    }
    return values;
  }
  // Rank and dimensions between these.
  Shape AnyShape(int least_rank, int most_rank, int most_size) {
    Shape shape(Int(least_rank, most_rank));
    for (int64_t& size : shape) size = Int(1, most_size);
    return shape;
  }

 private:
  std::mt19937 generator_;
};

// The index of element `i` on each axis, and back.
inline Shape Unravel(int64_t i, const Shape& shape) {
  Shape index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; i /= shape[axis]) index[axis] = i % shape[axis];
  return index;
}
inline int64_t Ravel(const Shape& index, const Shape& shape) {
  int64_t i = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) i = i * shape[axis] + index[axis];
  return i;
}

// Expects `actual` to be `expected`, exact numbers, stored once in the type, after a computation in f32 whose relative
// error is at most `roundings` of 2^-24. Integers must be equal. NaN stands for NaN.
inline void ExpectStored(gcap_dtype_t type, const Values& actual, const Values& expected, double roundings) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(actual[i])) << "element " << i << " is " << actual[i];
      continue;
    }
    if (!IsFloat(type) || std::isinf(Round(type, expected[i]))) {
      ASSERT_EQ(actual[i], Stored(type, expected[i])) << "element " << i;
      continue;
    }
    const Format format = FormatOf(type);
    const double subnormal = std::ldexp(1.0, format.least_exponent - format.fraction_bits);
    const double relative = std::ldexp(1.0, -format.fraction_bits - 1) + std::ldexp(roundings, -24);
    ASSERT_NEAR(actual[i], expected[i], relative * std::fabs(expected[i]) + subnormal) << "element " << i;
  }
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_OPS_TENSORS_H_
