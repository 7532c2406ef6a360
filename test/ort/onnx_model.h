// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// onnx_model.h: small ONNX models as bytes, for tests that have no onnx package. It writes the fields of ONNX's
// protocol buffers that the tests need.
#ifndef GCAP_TEST_ORT_ONNX_MODEL_H_
#define GCAP_TEST_ORT_ONNX_MODEL_H_

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace gcap {
namespace testing {

// A message of protocol buffers under construction.
class Message {
 public:
  Message& Number(int field, uint64_t value) {
    Varint(static_cast<uint64_t>(field) << 3);
    Varint(value);
    return *this;
  }
  Message& Float(int field, float value) {
    Varint(static_cast<uint64_t>(field) << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  Message& Text(int field, const std::string& text) {
    Varint(static_cast<uint64_t>(field) << 3 | 2);
    Varint(text.size());
    bytes_ += text;
    return *this;
  }
  Message& Sub(int field, const Message& message) { return Text(field, message.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

enum OnnxType { kOnnxFloat = 1, kOnnxInt16 = 5, kOnnxInt64 = 7, kOnnxDouble = 11 };
constexpr int64_t kAnySize = -1;

// A model of one graph. Each function adds to the graph.
class OnnxModel {
 public:
  using Names = std::vector<std::string>;
  using Shape = std::vector<int64_t>;

  // An attribute of the node that is added next.
  OnnxModel& Int(const std::string& name, int64_t value) {
    attributes_.push_back(Message().Text(1, name).Number(3, static_cast<uint64_t>(value)).Number(20, 2));
    return *this;
  }
  OnnxModel& Ints(const std::string& name, const std::vector<int64_t>& values) {
    Message attribute = Message().Text(1, name).Number(20, 7);
    for (int64_t value : values) attribute.Number(8, static_cast<uint64_t>(value));
    attributes_.push_back(attribute);
    return *this;
  }
  OnnxModel& Tensor(const std::string& name, const std::vector<float>& values) {
    return Tensor(name, kOnnxFloat, values.size(), values.data(), values.size() * sizeof(float));
  }
  OnnxModel& Tensor(const std::string& name, const std::vector<int64_t>& values) {
    return Tensor(name, kOnnxInt64, values.size(), values.data(), values.size() * sizeof(int64_t));
  }
  OnnxModel& Node(const std::string& op_type, const std::string& name, const Names& inputs, const Names& outputs,
                  const std::string& domain = "") {
    Message node;
    for (const std::string& input : inputs) node.Text(1, input);
    for (const std::string& output : outputs) node.Text(2, output);
    node.Text(3, name).Text(4, op_type).Text(7, domain);
    if (!domain.empty() && domains_.insert(domain).second) imports_.push_back(Message().Text(1, domain).Number(2, 1));
    for (const Message& attribute : attributes_) node.Sub(5, attribute);
    attributes_.clear();
    graph_.Sub(1, node);
    return *this;
  }
  OnnxModel& Constant(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    return Initializer(name, shape, kOnnxFloat, values.data(), values.size() * sizeof(float));
  }
  OnnxModel& Constant(const std::string& name, const Shape& shape, const std::vector<int64_t>& values) {
    return Initializer(name, shape, kOnnxInt64, values.data(), values.size() * sizeof(int64_t));
  }
  // Sizes of kAnySize are open.
  OnnxModel& Input(const std::string& name, const Shape& shape, OnnxType type = kOnnxFloat) {
    graph_.Sub(11, Value(name, shape, type));
    return *this;
  }
  OnnxModel& Output(const std::string& name, const Shape& shape, OnnxType type = kOnnxFloat) {
    graph_.Sub(12, Value(name, shape, type));
    return *this;
  }
  OnnxModel& InputOfAnyRank(const std::string& name) {
    graph_.Sub(11, ValueOfAnyRank(name));
    return *this;
  }
  OnnxModel& OutputOfAnyRank(const std::string& name) {
    graph_.Sub(12, ValueOfAnyRank(name));
    return *this;
  }
  // What the model says of a value between nodes.
  OnnxModel& Info(const std::string& name, const Shape& shape) {
    graph_.Sub(13, Value(name, shape, kOnnxFloat));
    return *this;
  }
  std::string Bytes(int opset = 17) const {
    Message graph = graph_;
    graph.Text(2, "graph");
    const Message import = Message().Text(1, "").Number(2, static_cast<uint64_t>(opset));
    Message model = Message().Number(1, 9).Sub(7, graph).Sub(8, import);
    for (const Message& other : imports_) model.Sub(8, other);
    return model.bytes();
  }

 private:
  OnnxModel& Tensor(const std::string& name, OnnxType type, size_t count, const void* data, size_t bytes) {
    const Message tensor =
        Message().Number(1, count).Number(2, type).Text(9, std::string(static_cast<const char*>(data), bytes));
    attributes_.push_back(Message().Text(1, name).Sub(5, tensor).Number(20, 4));
    return *this;
  }
  static Message Value(const std::string& name, const Shape& shape, OnnxType type) {
    Message dims;
    for (int64_t size : shape) {
      dims.Sub(1, size >= 0 ? Message().Number(1, static_cast<uint64_t>(size)) : Message().Text(2, "any"));
    }
    const Message tensor = Message().Number(1, type).Sub(2, dims);
    return Message().Text(1, name).Sub(2, Message().Sub(1, tensor));
  }
  static Message ValueOfAnyRank(const std::string& name) {
    return Message().Text(1, name).Sub(2, Message().Sub(1, Message().Number(1, kOnnxFloat)));
  }
  OnnxModel& Initializer(const std::string& name, const Shape& shape, OnnxType type, const void* data, size_t bytes) {
    Message tensor;
    for (int64_t size : shape) tensor.Number(1, static_cast<uint64_t>(size));
    tensor.Number(2, type).Text(8, name).Text(9, std::string(static_cast<const char*>(data), bytes));
    graph_.Sub(5, tensor);
    return *this;
  }

  Message graph_;
  std::vector<Message> attributes_, imports_;  // of domains but ONNX's own
  std::set<std::string> domains_;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_ORT_ONNX_MODEL_H_
