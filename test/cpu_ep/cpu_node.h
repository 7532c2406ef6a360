// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cpu_node.h: one node on the CPU EP, as a host runs it: supported, inferred, made into a kernel, computed.
#ifndef GCAP_TEST_CPU_EP_CPU_NODE_H_
#define GCAP_TEST_CPU_EP_CPU_NODE_H_

#include <string>
#include <utility>
#include <vector>

#include "gcap/kit/cpu_ep.h"
#include "gtest/gtest.h"
#include "test/shape/onnx_node.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

class CpuEp : public ::testing::Test {
 protected:
  CpuEp() { GCAP_EXPECT_OK(gcap_cpu_ep_create(&ep_)); }
  ~CpuEp() override { GCAP_EXPECT_OK(gcap_ep_destroy(ep_)); }

  // A model of this node alone; its values are the inputs, then the output. Shapes of inputs are open if `open`.
  struct Model {
    Model(OnnxNode& op, const std::vector<Host>& inputs, gcap_dtype_t output, size_t output_rank, bool open) {
      for (const Host& input : inputs) Add(input.dtype, input.shape, open);
      Add(output, Sizes(output_rank, GCAP_DIM_INFERRED), false);
      node = op.Node(static_cast<int>(inputs.size()));
      model.values = values.data();
      model.num_values = static_cast<int>(values.size());
      model.nodes = &node;
      model.num_nodes = 1;
    }
    Model(const Model&) = delete;
    void Add(gcap_dtype_t dtype, const Sizes& shape, bool open) {
      gcap_value_t value = {};
      value.name = "v";
      value.dtype = dtype;
      value.rank = static_cast<int>(shape.size());
      for (size_t i = 0; i < shape.size(); ++i) {
        value.shape[i] = open ? GCAP_DIM_SYMBOL(static_cast<int64_t>(values.size())) : shape[i];
      }
      values.push_back(value);
    }
    std::vector<gcap_value_t> values;
    gcap_node_t node;
    gcap_model_t model = {};
  };

  bool Supports(OnnxNode&& op, const std::vector<Host>& inputs, gcap_dtype_t output) {
    Model open(op, inputs, output, 1, /*open=*/true);
    return gcap_ep_supports(ep_, &open.model, &open.node);
  }

  // Runs the node on the inputs; the result is as large as the EP infers it to be.
  gcap_status_t TryRun(OnnxNode& op, const std::vector<Host>& inputs, gcap_dtype_t output, size_t rank, Host* result) {
    Model open(op, inputs, output, rank, /*open=*/true);
    EXPECT_TRUE(gcap_ep_supports(ep_, &open.model, &open.node)) << op.op_type();
    std::vector<gcap_tensor_t> tensors;
    for (const Host& input : inputs) tensors.push_back(input.Tensor());
    result->shape = Sizes(rank, GCAP_DIM_INFERRED);
    gcap_tensor_t made = result->Tensor();
    GCAP_RETURN_IF_ERROR(gcap_ep_infer_shapes(ep_, &open.model, &open.node, tensors.data(), &made));
    result->shape = Sizes(made.shape, made.shape + made.rank);
    result->known = true;
    result->bytes.assign(gcap_tensor_bytes(&made), '\x5a');

    Model fixed(op, inputs, output, 0, /*open=*/false);
    fixed.values.back().rank = made.rank;
    for (int i = 0; i < made.rank; ++i) fixed.values.back().shape[i] = made.shape[i];
    gcap_kernel_t kernel = {};
    GCAP_RETURN_IF_ERROR(gcap_ep_create_kernel(ep_, &fixed.model, &fixed.node, &kernel));
    gcap_tensor_t outputs = result->Tensor();
    gcap_kernel_context_t context = {};
    context.inputs = tensors.data();
    context.outputs = &outputs;
    context.ep = ep_;
    gcap_status_t status = kernel.compute(kernel.self, &context);
    kernel.destroy(kernel.self);
    return status;
  }

  Host Run(OnnxNode&& op, const std::vector<Host>& inputs, gcap_dtype_t output, size_t rank) {
    Host result(output, Sizes{});
    GCAP_EXPECT_OK(TryRun(op, inputs, output, rank, &result));
    return result;
  }

  // The node computes `expected`, shape and content.
  template <typename T>
  void Expect(OnnxNode&& op, const std::vector<Host>& inputs, const Sizes& shape, const std::vector<T>& expected) {
    SCOPED_TRACE(op.op_type());
    const Host result = Run(std::move(op), inputs, DtypeOf<T>(), shape.size());
    EXPECT_EQ(result.shape, shape);
    EXPECT_EQ(result.template As<T>(), expected);
  }

  void ExpectRefused(OnnxNode&& op, const std::vector<Host>& inputs, gcap_dtype_t output, size_t rank,
                     const std::string& message) {
    Host result(output, Sizes{});
    const Outcome outcome(TryRun(op, inputs, output, rank, &result));
    EXPECT_STREQ(gcap_code_name(outcome.code), "INVALID_ARGUMENT");
    EXPECT_EQ(outcome.message, "node 'n' (" + op.op_type() + "): " + message);
  }

  gcap_ep_t* ep_ = nullptr;
};

// One-line tensors.
template <typename T>
Host Vector(const std::vector<T>& content) {
  return Host(Sizes{static_cast<int64_t>(content.size())}, content);
}
template <typename T>
Host Scalar(T content) {
  return Host(Sizes{}, std::vector<T>{content});
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_CPU_EP_CPU_NODE_H_
