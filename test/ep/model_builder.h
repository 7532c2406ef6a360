// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// model_builder.h: models for tests, written down value by value and node by node.
#ifndef GCAP_TEST_EP_MODEL_BUILDER_H_
#define GCAP_TEST_EP_MODEL_BUILDER_H_

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
    gcap_value_t value = {};
    value.name = name;
    value.dtype = dtype;
    value.rank = static_cast<int>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) value.shape[i] = shape[i];
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
    indices_.push_back(node_inputs);
    const std::vector<int>& kept_inputs = indices_.back();
    indices_.push_back(node_outputs);
    const std::vector<int>& kept_outputs = indices_.back();
    gcap_node_t node = {};
    node.op_type = op_type;
    node.name = name;
    node.inputs = kept_inputs.data();
    node.num_inputs = static_cast<int>(kept_inputs.size());
    node.outputs = kept_outputs.data();
    node.num_outputs = static_cast<int>(kept_outputs.size());
    node.attributes = attributes;
    nodes.push_back(node);
  }

  gcap_model_t Model() const {
    gcap_model_t model = {};
    model.values = values.data();
    model.num_values = static_cast<int>(values.size());
    model.nodes = nodes.data();
    model.num_nodes = static_cast<int>(nodes.size());
    model.inputs = inputs.data();
    model.num_inputs = static_cast<int>(inputs.size());
    model.outputs = outputs.data();
    model.num_outputs = static_cast<int>(outputs.size());
    model.symbols = symbols.data();
    model.num_symbols = static_cast<int>(symbols.size());
    return model;
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
  gcap_tensor_t tensor = {};
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = static_cast<int>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) tensor.shape[i] = shape[i];
  return tensor;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_EP_MODEL_BUILDER_H_
