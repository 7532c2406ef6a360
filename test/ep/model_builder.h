// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// model_builder.h: models for tests, written down value by value and node by node.
#ifndef GCAP_TEST_EP_MODEL_BUILDER_H_
#define GCAP_TEST_EP_MODEL_BUILDER_H_

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "gcap/kit/ep.h"

namespace gcap {
namespace testing {

// What the model points to lives as long as the builder. Its arrays may be spoiled by a test before Model() is called.
class ModelBuilder {
 public:
  int Value(const char* name, const std::vector<int64_t>& shape, gcap_dtype_t dtype = GCAP_DTYPE_F32) {
    gcap_value_t value = {name, dtype, static_cast<int>(shape.size()), {}, nullptr};
    std::copy(shape.begin(), shape.end(), value.shape);
    values.push_back(value);
    return static_cast<int>(values.size()) - 1;
  }

  int Constant(const char* name, const std::vector<int64_t>& shape, const std::vector<float>& content) {
    const int index = Value(name, shape);
    constants_.push_back(content);
    values[index].host_data = constants_.back().data();
    return index;
  }

  int Integers(const char* name, const std::vector<int64_t>& content) {
    const int index = Value(name, {static_cast<int64_t>(content.size())}, GCAP_DTYPE_I64);
    integers_.push_back(content);
    values[index].host_data = integers_.back().data();
    return index;
  }

  // A dimension that each run decides: GCAP_DIM_SYMBOL of the name.
  int64_t Symbol(const char* name) {
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (symbols[i] == std::string(name)) return GCAP_DIM_SYMBOL(i);
    }
    symbols.push_back(name);
    return GCAP_DIM_SYMBOL(symbols.size() - 1);
  }

  void Node(const char* op_type, const char* name, const std::vector<int>& node_inputs,
            const std::vector<int>& node_outputs, const void* attributes = nullptr) {
    const auto keep = [this](const std::vector<int>& indices) {
      indices_.push_back(indices);
      return indices_.back().data();
    };
    nodes.push_back({op_type, name, keep(node_inputs), static_cast<int>(node_inputs.size()), keep(node_outputs),
                     static_cast<int>(node_outputs.size()), attributes});
  }

  gcap_model_t Model() const {
    const auto size = [](const auto& list) { return static_cast<int>(list.size()); };
    return {values.data(), size(values),   nodes.data(),  size(nodes),    inputs.data(),
            size(inputs),  outputs.data(), size(outputs), symbols.data(), size(symbols)};
  }

  std::vector<const char*> symbols;
  std::vector<gcap_value_t> values;
  std::vector<gcap_node_t> nodes;
  std::vector<int> inputs;
  std::vector<int> outputs;

 private:
  std::deque<std::vector<float>> constants_;
  std::deque<std::vector<int64_t>> integers_;
  std::deque<std::vector<int>> indices_;
};

// A tensor of this shape at `data`.
inline gcap_tensor_t Tensor(void* data, const std::vector<int64_t>& shape, gcap_dtype_t dtype = GCAP_DTYPE_F32) {
  gcap_tensor_t tensor = {data, dtype, static_cast<int>(shape.size()), {}};
  std::copy(shape.begin(), shape.end(), tensor.shape);
  return tensor;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_EP_MODEL_BUILDER_H_
