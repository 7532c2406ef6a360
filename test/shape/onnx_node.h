// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// onnx_node.h: nodes with ONNX attributes, and host tensors with a content, for tests.
#ifndef GCAP_TEST_SHAPE_ONNX_NODE_H_
#define GCAP_TEST_SHAPE_ONNX_NODE_H_

#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "gcap/kit/model.h"
#include "gtest/gtest.h"

namespace gcap {
namespace testing {

using Sizes = std::vector<int64_t>;

template <typename T>
constexpr gcap_dtype_t DtypeOf();
template <>
constexpr gcap_dtype_t DtypeOf<float>() {
  return GCAP_DTYPE_F32;
}
template <>
constexpr gcap_dtype_t DtypeOf<int64_t>() {
  return GCAP_DTYPE_I64;
}
template <>
constexpr gcap_dtype_t DtypeOf<int32_t>() {
  return GCAP_DTYPE_I32;
}
template <>
constexpr gcap_dtype_t DtypeOf<uint8_t>() {
  return GCAP_DTYPE_BOOL;
}
template <>
constexpr gcap_dtype_t DtypeOf<int8_t>() {
  return GCAP_DTYPE_I8;
}
template <>
constexpr gcap_dtype_t DtypeOf<uint16_t>() {
  return GCAP_DTYPE_F16;
}

inline int64_t Count(const Sizes& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

// A tensor in host memory. Its content is known unless it was made of a shape alone.
struct Host {
  template <typename T>
  Host(const Sizes& sizes, const std::vector<T>& content)
      : dtype(DtypeOf<T>()), shape(sizes), bytes(content.size() * sizeof(T)), known(true) {
    if (!content.empty()) memcpy(bytes.data(), content.data(), bytes.size());
  }
  Host(gcap_dtype_t of, const Sizes& sizes) : dtype(of), shape(sizes), known(false) {}

  static Host Numbers(const std::vector<int64_t>& numbers) {
    return Host({static_cast<int64_t>(numbers.size())}, numbers);
  }

  gcap_tensor_t Tensor() const {
    gcap_tensor_t tensor = {};
    tensor.data = known && !bytes.empty() ? const_cast<char*>(bytes.data()) : nullptr;
    tensor.dtype = dtype;
    tensor.rank = static_cast<int>(shape.size());
    for (size_t i = 0; i < shape.size() && i < GCAP_MAX_RANK; ++i) tensor.shape[i] = shape[i];
    return tensor;
  }
  template <typename T>
  std::vector<T> As() const {
    EXPECT_EQ(dtype, DtypeOf<T>());
    std::vector<T> content(bytes.size() / sizeof(T));
    if (!content.empty()) memcpy(content.data(), bytes.data(), bytes.size());
    return content;
  }

  gcap_dtype_t dtype;
  Sizes shape;
  std::vector<char> bytes;
  bool known;
};

// A node named "n". What its attributes point to lives as long as it does.
class OnnxNode {
 public:
  explicit OnnxNode(std::string op_type) : op_type_(std::move(op_type)) {}
  OnnxNode(const OnnxNode&) = delete;

  OnnxNode& Int(const char* name, int64_t value) {
    gcap_attribute_t attribute = {};
    attribute.name = name;
    attribute.kind = GCAP_ATTRIBUTE_INT;
    attribute.i = value;
    items_.push_back(attribute);
    return *this;
  }
  OnnxNode& Float(const char* name, float value) {
    gcap_attribute_t attribute = {};
    attribute.name = name;
    attribute.kind = GCAP_ATTRIBUTE_FLOAT;
    attribute.f = value;
    items_.push_back(attribute);
    return *this;
  }
  OnnxNode& Ints(const char* name, const std::vector<int64_t>& values) {
    ints_.push_back(values);
    gcap_attribute_t attribute = {};
    attribute.name = name;
    attribute.kind = GCAP_ATTRIBUTE_INTS;
    attribute.count = values.size();
    attribute.ints = ints_.back().data();
    items_.push_back(attribute);
    return *this;
  }
  OnnxNode& String(const char* name, const char* value) {
    gcap_attribute_t attribute = {};
    attribute.name = name;
    attribute.kind = GCAP_ATTRIBUTE_STRING;
    attribute.string = value;
    items_.push_back(attribute);
    return *this;
  }
  const std::string& op_type() const { return op_type_; }

  // The node, with values 0, 1, … as inputs and the next ones as outputs.
  gcap_node_t Node(int num_inputs, int num_outputs = 1) {
    attributes_ = {items_.data(), items_.size()};
    indices_.resize(static_cast<size_t>(num_inputs + num_outputs));
    for (size_t i = 0; i < indices_.size(); ++i) indices_[i] = static_cast<int>(i);
    return {op_type_.c_str(), "n",         indices_.data(), num_inputs, indices_.data() + num_inputs,
            num_outputs,      &attributes_};
  }

 private:
  std::string op_type_;
  std::vector<gcap_attribute_t> items_;
  std::deque<std::vector<int64_t>> ints_;
  std::vector<int> indices_;
  gcap_attributes_t attributes_ = {};
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SHAPE_ONNX_NODE_H_
