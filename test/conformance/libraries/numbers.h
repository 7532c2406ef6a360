// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// numbers.h: half and bfloat16 in plain arithmetic, for expectations that owe nothing to the code under test, and
// device memory that holds numbers of either type or floats.
#ifndef GCAP_TEST_CONFORMANCE_LIBRARIES_NUMBERS_H_
#define GCAP_TEST_CONFORMANCE_LIBRARIES_NUMBERS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "library_types.h"
#include "test/sim_libs/device.h"

namespace conformance {

// What there is to know of a type: bits after the point, and the exponent of its smallest normal number.
struct Format {
  int fraction_bits;
  int min_exponent;
  size_t bytes;
};

inline Format FormatOf(cudaDataType type) {
  if (type == CUDA_R_16F) return {10, -14, 2};
  if (type == CUDA_R_16BF) return {7, -126, 2};
  return {23, -126, 4};
}

inline const char* NameOf(cudaDataType type) {
  return type == CUDA_R_16F ? "f16" : type == CUDA_R_16BF ? "bf16" : "f32";
}

// The distance between numbers of the type around `value`.
inline double Spacing(double value, cudaDataType type) {
  const Format format = FormatOf(type);
  const int exponent = value == 0 ? format.min_exponent : std::max(std::ilogb(value), format.min_exponent);
  return std::ldexp(1.0, exponent - format.fraction_bits);
}

// Rounded to nearest, ties to even, as the type holds it. Not for values beyond its range.
inline double Round(double value, cudaDataType type) {
  const double spacing = Spacing(value, type);
  return std::nearbyint(value / spacing) * spacing;
}

// The bits of a number that the type holds exactly.
inline uint32_t Bits(double value, cudaDataType type) {
  if (type == CUDA_R_16F) {
    const uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
    const double magnitude = std::fabs(value);
    const int exponent = magnitude == 0 ? -14 : std::max(std::ilogb(magnitude), -14);
    const auto steps = static_cast<uint32_t>(magnitude / std::ldexp(1.0, exponent - 10));
    return sign | (static_cast<uint32_t>(exponent + 14) * 1024u + steps);
  }
  const auto single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  return type == CUDA_R_16BF ? bits >> 16 : bits;
}

inline double Value(uint32_t bits, cudaDataType type) {
  if (type == CUDA_R_16F) {
    const int exponent = static_cast<int>(bits >> 10 & 31u);
    const double fraction = (bits & 1023u) / 1024.0;
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
    return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
  }
  const uint32_t whole = type == CUDA_R_16BF ? bits << 16 : bits;
  float value;
  std::memcpy(&value, &whole, sizeof value);
  return value;
}

// Numbers on the device.
class Numbers {
 public:
  Numbers(const std::vector<double>& values, cudaDataType type) : type_(type), bytes_(Encode(values, type)) {}

  void* get() const { return bytes_.get(); }
  void Set(const std::vector<double>& values) { bytes_.Upload(Encode(values, type_)); }

  // The caller has synchronized.
  std::vector<double> Get() const {
    const std::vector<uint8_t> bytes = bytes_.Download();
    const size_t size = FormatOf(type_).bytes;
    std::vector<double> values;
    for (size_t i = 0; i < bytes.size(); i += size) {
      uint32_t bits = 0;
      std::memcpy(&bits, &bytes[i], size);
      values.push_back(Value(bits, type_));
    }
    return values;
  }

 private:
  static std::vector<uint8_t> Encode(const std::vector<double>& values, cudaDataType type) {
    const size_t size = FormatOf(type).bytes;
    std::vector<uint8_t> bytes(values.size() * size);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t bits = Bits(Round(values[i], type), type);
      std::memcpy(bytes.data() + i * size, &bits, size);
    }
    return bytes;
  }

  cudaDataType type_;
  gcap_test::DeviceArray<uint8_t> bytes_;
};

// Device memory that nobody has written.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes) { EXPECT_EQ(cudaSuccess, cudaMalloc(&data_, bytes)); }
  ~DeviceMemory() { EXPECT_EQ(cudaSuccess, cudaFree(data_)); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  char* get() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

// Multiples of 1/8 in [-1, 1], which all types hold and whose sums of products are exact.
inline std::vector<double> Eighths(uint32_t seed, size_t count) {
  gcap_test::Eighths sequence(seed);
  std::vector<double> values(count);
  for (double& value : values) value = sequence.Next();
  return values;
}

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_LIBRARIES_NUMBERS_H_
