// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// node_rig.h: an operator as a model of one node, on the provider of examples/minimal_ep, through a session.
#ifndef GCAP_TEST_NODES_NODE_RIG_H_
#define GCAP_TEST_NODES_NODE_RIG_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "examples/minimal_ep/minimal_ep.h"
#include "gcap/kit/session.h"
#include "gcap/options.h"
#include "gtest/gtest.h"
#include "test/ep/model_builder.h"
#include "test/ops/tensors.h"
#include "test/support/expect_status.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {

// Options of an EP that captures the second run, with products of all bits.
inline gcap_options_t NodeOptions() {
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  options.graph.min_num_runs_before_capture = 1;
  options.kernels.use_tf32 = false;
  return options;
}

inline gcap_run_options_t RunWithId(int graph_id) {
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  options.graph_id = graph_id;
  options.synchronize = true;
  return options;
}

// Attributes by name. What they point to lives as long as they do.
class Attributes {
 public:
  Attributes() = default;
  Attributes(const Attributes&) = delete;

  Attributes& Int(const char* name, int64_t value) {
    Add(name, GCAP_ATTRIBUTE_INT).i = value;
    return *this;
  }
  Attributes& Float(const char* name, float value) {
    Add(name, GCAP_ATTRIBUTE_FLOAT).f = value;
    return *this;
  }
  Attributes& String(const char* name, const char* value) {
    Add(name, GCAP_ATTRIBUTE_STRING).string = value;
    return *this;
  }
  Attributes& Ints(const char* name, const std::vector<int64_t>& values) {
    numbers_.push_back(values);
    gcap_attribute_t& attribute = Add(name, GCAP_ATTRIBUTE_INTS);
    attribute.count = values.size();
    attribute.ints = numbers_.back().data();
    return *this;
  }
  const gcap_attributes_t* get() {
    attributes_ = {items_.data(), items_.size()};
    return &attributes_;
  }

 private:
  gcap_attribute_t& Add(const char* name, gcap_attribute_kind_t kind) {
    gcap_attribute_t attribute = {};
    attribute.name = name;
    attribute.kind = kind;
    items_.push_back(attribute);
    return items_.back();
  }

  std::vector<gcap_attribute_t> items_;
  std::deque<std::vector<int64_t>> numbers_;
  gcap_attributes_t attributes_ = {};
};

// A tensor of a test: its elements are doubles.
struct Elements {
  Shape shape;
  Values at;
};

// An EP and a session of one model on it. With `cpu` also a CPU EP, behind it.
class NodeSession {
 public:
  explicit NodeSession(const gcap_options_t& options) {
    GCAP_EXPECT_OK(minimal_ep_create(&options, &ep_));
    runtime_ = gcap_ep_runtime(ep_);
  }
  ~NodeSession() {
    GCAP_EXPECT_OK(gcap_session_destroy(session_));
    GCAP_EXPECT_OK(gcap_ep_destroy(ep_));
  }
  NodeSession(const NodeSession&) = delete;

  gcap_status_t Create(const ModelBuilder& builder, gcap_ep_t* second = nullptr) {
    const gcap_model_t model = builder.Model();
    gcap_ep_t* const eps[] = {ep_, second};
    return gcap_session_create(&model, eps, second != nullptr ? 2 : 1, nullptr, &session_);
  }
  gcap_status_t Run(int graph_id, const std::vector<gcap_tensor_t>& inputs, const std::vector<gcap_tensor_t>& outputs) {
    const gcap_run_options_t options = RunWithId(graph_id);
    return gcap_session_run(session_, &options, inputs.data(), outputs.data());
  }
  gcap_graph_info_t Info(int graph_id) { return GraphInfo(runtime_, graph_id); }
  gcap_ep_t* ep() { return ep_; }
  gcap_runtime_t* runtime() { return runtime_; }
  gcap_session_t* session() { return session_; }

 private:
  gcap_ep_t* ep_ = nullptr;
  gcap_runtime_t* runtime_ = nullptr;
  gcap_session_t* session_ = nullptr;
};

// One input of a case. An input that the kernel reads on the host is a constant.
struct Input {
  gcap_dtype_t type;
  Shape shape;
  double low = -1, high = 1;  // where its elements are drawn from
  Values constant = {};       // not empty: a constant with these elements; with shape [0], with none
};

// The shape of an input or output that the node leaves out before others, and that no tensor has. The reference says
// nothing of the output.
const Shape kLeftOut = {-2};

// One operator with attributes and shapes. `type` of inputs and outputs: that of the test's parameter, where kTyped.
constexpr gcap_dtype_t kTyped = static_cast<gcap_dtype_t>(-1);
struct NodeCase {
  std::string name, op_type;
  std::function<void(Attributes*)> attributes;
  std::vector<Input> inputs;
  std::vector<std::pair<gcap_dtype_t, Shape>> outputs;
  // What each output must be, from the elements as they are stored.
  std::function<std::vector<Values>(const std::vector<Elements>&)> reference;
  // How far an element may be from that, beside one rounding to its type: by the computation in f32, and by further
  // roundings to the type of numbers up to `magnitude`.
  double error = 0;
  int roundings = 0;
  double magnitude = 0;
};

// A case in one type: the model, bound tensors, and the comparison.
class NodeRig {
 public:
  NodeRig(const NodeCase& node_case, gcap_dtype_t type, bool open, const gcap_options_t& options = NodeOptions())
      : case_(node_case), type_(type), run_(options), draws_(4711) {
    if (case_.attributes) case_.attributes(&attributes_);
    std::vector<int> inputs, outputs;
    for (const Input& input : case_.inputs) inputs.push_back(AddInput(input, open));
    for (const auto& output : case_.outputs) outputs.push_back(AddOutput(output.first, output.second, open));
    model_.Node(case_.op_type.c_str(), "n", inputs, outputs, attributes_.get());
  }

  gcap_status_t Create() { return run_.Create(model_); }

  // Draws other inputs, runs and compares.
  void ExpectRightRun(int graph_id) {
    Draw();
    std::vector<gcap_tensor_t> inputs, outputs;
    for (const auto& bound : bound_) inputs.push_back(bound->view());
    for (const auto& made : made_) outputs.push_back(made->view());
    GCAP_ASSERT_OK(run_.Run(graph_id, inputs, outputs));
    const std::vector<Values> expected = case_.reference(elements_);
    ASSERT_EQ(expected.size(), made_.size());
    for (size_t i = 0; i < made_.size(); ++i) Compare(made_[i]->type(), made_[i]->Get(), expected[i]);
  }
  NodeSession& run() { return run_; }

 private:
  gcap_dtype_t Resolved(gcap_dtype_t type) const { return type == kTyped ? type_ : type; }

  // What has no elements is a constant, or made by the node.
  int AddLeftOut(const void* content) {
    const int value = model_.Value("", {0}, GCAP_DTYPE_F32);
    model_.values[static_cast<size_t>(value)].host_data = content;
    return value;
  }
  int AddInput(const Input& input, bool open) {
    const gcap_dtype_t type = Resolved(input.type);
    Shape shape = input.shape;
    const bool is_constant = !input.constant.empty();
    if (shape == kLeftOut) {
      elements_.push_back({{0}, {}});
      return AddLeftOut(&nothing_);
    }
    for (size_t i = 0; open && !is_constant && i < shape.size(); ++i) {
      names_.push_back("s" + std::to_string(names_.size()));
      shape[i] = model_.Symbol(names_.back().c_str());
    }
    names_.push_back("v" + std::to_string(names_.size()));
    const int value = model_.Value(names_.back().c_str(), shape, type);
    elements_.push_back(
        {input.shape, Values(is_constant ? input.constant.size() : static_cast<size_t>(Count(input.shape)))});
    if (is_constant) {
      contents_.emplace_back(input.constant.size() * gcap_dtype_bytes(type));
      for (size_t i = 0; i < input.constant.size(); ++i) {
        Put(type, &contents_.back()[i * gcap_dtype_bytes(type)], input.constant[i]);
        elements_.back().at[i] = Stored(type, input.constant[i]);
      }
      model_.values[static_cast<size_t>(value)].host_data = contents_.back().data();
    } else {
      model_.inputs.push_back(value);
      bound_.push_back(std::make_unique<DeviceTensor>(type, input.shape));
    }
    return value;
  }
  int AddOutput(gcap_dtype_t type, Shape shape, bool open) {
    if (shape == kLeftOut && case_.outputs.size() > 1) return AddLeftOut(nullptr);  // one alone is empty
    made_.push_back(std::make_unique<DeviceTensor>(Resolved(type), shape));
    for (int64_t& size : shape) size = open ? GCAP_DIM_INFERRED : size;
    names_.push_back("v" + std::to_string(names_.size()));
    const int value = model_.Value(names_.back().c_str(), shape, Resolved(type));
    model_.outputs.push_back(value);
    return value;
  }
  void Draw() {
    size_t next = 0;
    for (size_t i = 0; i < case_.inputs.size(); ++i) {
      const Input& input = case_.inputs[i];
      if (!input.constant.empty() || input.shape == kLeftOut) continue;
      DeviceTensor* bound = bound_[next++].get();
      elements_[i].at = draws_.Elements(bound->type(), Count(input.shape), input.low, input.high);
      bound->Set(elements_[i].at);
    }
  }
  void Compare(gcap_dtype_t type, const Values& actual, const Values& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    const double unit = IsFloat(type) ? std::ldexp(1.0, -FormatOf(type).fraction_bits - 1) : 0;
    for (size_t i = 0; i < actual.size(); ++i) {
      // The last term: the least number of f16, to which what is smaller is rounded.
      const double tolerance = IsFloat(type) ? unit * (std::fabs(expected[i]) + case_.roundings * case_.magnitude) +
                                                   case_.error + std::ldexp(1.0, -25)
                                             : 0;
      ASSERT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
    }
  }

  const NodeCase& case_;
  gcap_dtype_t type_;
  Attributes attributes_;
  std::deque<std::string> names_;
  std::deque<std::vector<unsigned char>> contents_;
  ModelBuilder model_;
  const int64_t nothing_ = 0;
  std::vector<Elements> elements_;
  std::vector<std::unique_ptr<DeviceTensor>> bound_, made_;
  NodeSession run_;  // ends before what its graphs point to
  Draws draws_;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_NODES_NODE_RIG_H_
