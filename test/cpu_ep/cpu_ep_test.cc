// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU EP as a host sees it: what it supports, where it reads, what it checks of tensors, and what happens when the
// host's memory is short.

#include <thread>

#include "test/base/heap_failure.h"
#include "test/cpu_ep/cpu_node.h"

namespace {

using gcap::testing::CpuEp;
using gcap::testing::HeapFailure;
using gcap::testing::Host;
using gcap::testing::OnnxNode;
using gcap::testing::Outcome;
using gcap::testing::Sizes;
using gcap::testing::Vector;

constexpr gcap_dtype_t kF32 = GCAP_DTYPE_F32, kF16 = GCAP_DTYPE_F16, kBf16 = GCAP_DTYPE_BF16, kI64 = GCAP_DTYPE_I64,
                       kI32 = GCAP_DTYPE_I32, kBool = GCAP_DTYPE_BOOL;

Host Of(gcap_dtype_t dtype) { return Host(dtype, Sizes{2}); }

TEST_F(CpuEp, IsAnEpOnTheHost) {
  EXPECT_STREQ(gcap_ep_name(ep_), "cpu");
  EXPECT_TRUE(gcap_ep_runs_on_host(ep_));
  EXPECT_TRUE(gcap_ep_supports_concurrent_runs(ep_));
  EXPECT_EQ(gcap_ep_runtime(ep_), nullptr);
}

TEST_F(CpuEp, SupportsTypes) {
  for (gcap_dtype_t dtype : {kF32, kF16, kBf16, kI64, kI32, kBool}) {
    SCOPED_TRACE(gcap_dtype_name(dtype));
    const bool number = dtype == kF32 || dtype == kI64 || dtype == kI32;
    EXPECT_EQ(Supports(OnnxNode("Add"), {Of(dtype), Of(dtype)}, dtype), number);
    EXPECT_EQ(Supports(OnnxNode("And"), {Of(dtype), Of(dtype)}, dtype), dtype == kBool);
    EXPECT_EQ(Supports(OnnxNode("Equal"), {Of(dtype), Of(dtype)}, kBool), number || dtype == kBool);
    EXPECT_EQ(Supports(OnnxNode("MatMul"), {Of(dtype), Of(dtype)}, dtype), dtype == kF32);
    EXPECT_EQ(Supports(OnnxNode("Cast"), {Of(dtype)}, kI64), number || dtype == kBool);
    EXPECT_TRUE(Supports(OnnxNode("Gather"), {Of(dtype), Of(kI32)}, dtype));
    EXPECT_TRUE(Supports(OnnxNode("Identity"), {Of(dtype)}, dtype));
    EXPECT_TRUE(Supports(OnnxNode("Shape"), {Of(dtype)}, kI64));
    EXPECT_EQ(Supports(OnnxNode("Reshape"), {Of(kF32), Of(dtype)}, kF32), dtype == kI64);
  }
}

TEST_F(CpuEp, TypesMustAgree) {
  EXPECT_FALSE(Supports(OnnxNode("Add"), {Of(kI64), Of(kI32)}, kI64));
  EXPECT_FALSE(Supports(OnnxNode("Add"), {Of(kI64), Of(kI64)}, kI32));
  EXPECT_FALSE(Supports(OnnxNode("Concat"), {Of(kI64), Of(kI64), Of(kI32)}, kI64));
  EXPECT_FALSE(Supports(OnnxNode("Less"), {Of(kI64), Of(kI64)}, kI64));
  EXPECT_FALSE(Supports(OnnxNode("Where"), {Of(kI64), Of(kI64), Of(kI64)}, kI64));
  EXPECT_FALSE(Supports(OnnxNode("Shape"), {Of(kI64)}, kI32));
  EXPECT_FALSE(Supports(OnnxNode("Add"), {Of(kI64), Of(kI64)}, static_cast<gcap_dtype_t>(8)));
}

TEST_F(CpuEp, InputsAreCounted) {
  for (int count = 0; count <= 6; ++count) {
    const std::vector<Host> inputs(static_cast<size_t>(count), Of(kI64));
    EXPECT_EQ(Supports(OnnxNode("Add"), inputs, kI64), count == 2) << count;
    EXPECT_EQ(Supports(OnnxNode("Slice"), inputs, kI64), count >= 3 && count <= 5) << count;
    EXPECT_EQ(Supports(OnnxNode("Max"), inputs, kI64), count >= 1) << count;
    EXPECT_EQ(Supports(OnnxNode("ReduceSum"), inputs, kI64), count == 1 || count == 2) << count;
  }
}

TEST_F(CpuEp, AttributesMustFitTheType) {
  EXPECT_TRUE(Supports(std::move(OnnxNode("Cast").Int("to", 6)), {Of(kI64)}, kI32));
  EXPECT_FALSE(Supports(std::move(OnnxNode("Cast").Int("to", 7)), {Of(kI64)}, kI32));
  EXPECT_FALSE(Supports(OnnxNode("Mod"), {Of(kF32), Of(kF32)}, kF32));
  EXPECT_TRUE(Supports(std::move(OnnxNode("Mod").Int("fmod", 1)), {Of(kF32), Of(kF32)}, kF32));
  EXPECT_FALSE(Supports(std::move(OnnxNode("ConstantOfShape").Float("value", 1)), {Of(kI64)}, kI64));
  EXPECT_TRUE(Supports(std::move(OnnxNode("ConstantOfShape").Float("value", 1)), {Of(kI64)}, kF32));
}

TEST_F(CpuEp, OtherOperatorsAndBadIndicesAreNotSupported) {
  EXPECT_FALSE(Supports(OnnxNode("Conv"), {Of(kF32), Of(kF32)}, kF32));
  EXPECT_FALSE(Supports(OnnxNode(""), {Of(kF32)}, kF32));
  OnnxNode op("Neg");
  Model model(op, {Of(kF32)}, kF32, 1, true);
  const int bad[] = {-1, 2};
  for (const int& index : bad) {
    gcap_node_t node = model.node;
    node.inputs = &index;
    EXPECT_FALSE(gcap_ep_supports(ep_, &model.model, &node)) << index;
    node = model.node;
    node.outputs = &index;
    EXPECT_FALSE(gcap_ep_supports(ep_, &model.model, &node)) << index;
  }
}

TEST_F(CpuEp, SaysWhereItReads) {
  OnnxNode shape("Shape"), reshape("Reshape");
  Model of_shape(shape, {Of(kF32)}, kI64, 1, true), of_reshape(reshape, {Of(kF32), Of(kI64)}, kF32, 1, true);
  EXPECT_EQ(gcap_ep_input_place(ep_, &of_shape.model, &of_shape.node, 0), GCAP_INPUT_SHAPE_ONLY);
  for (int i : {0, 1}) {
    EXPECT_EQ(gcap_ep_input_place(ep_, &of_reshape.model, &of_reshape.node, i), GCAP_INPUT_IN_EP_MEMORY);
  }
}

TEST_F(CpuEp, AKernelThatItDoesNotSupportIsRefused) {
  OnnxNode op("Neg");
  Model model(op, {Of(kBool)}, kBool, 1, false);
  gcap_kernel_t kernel = {};
  const Outcome outcome(gcap_ep_create_kernel(ep_, &model.model, &model.node, &kernel));
  EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
  EXPECT_EQ(outcome.message, "EP 'cpu' does not support node 'n' (Neg) with its types and attributes");
}

TEST_F(CpuEp, AConstantThatDoesNotFitIsRefusedWhenTheKernelIsMade) {
  OnnxNode op("Reshape");
  Model model(op, {Host(kF32, Sizes{6}), Of(kI64)}, kF32, 2, false);
  const int64_t request[] = {4, 2};
  model.values[1].host_data = request;
  gcap_kernel_t kernel = {};
  const Outcome outcome(gcap_ep_create_kernel(ep_, &model.model, &model.node, &kernel));
  EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
  EXPECT_EQ(outcome.message, "node 'n' (Reshape): input 0 has 6 elements, input 1 asks for 8");
}

// A kernel of Expand: 2 elements to a shape of two numbers. What the model pointed to is gone before it computes.
class CpuKernel : public CpuEp {
 protected:
  CpuKernel() {
    OnnxNode op("Expand");
    Model model(op, {Of(kF32), Of(kI64)}, kF32, 2, false);
    std::string name = "gone";
    model.node.name = name.c_str();
    GCAP_EXPECT_OK(gcap_ep_create_kernel(ep_, &model.model, &model.node, &kernel_));
    name.assign("____");
  }
  ~CpuKernel() override { kernel_.destroy(kernel_.self); }

  Outcome Compute() {
    gcap_kernel_context_t context = {};
    context.inputs = inputs_;
    context.outputs = &output_;
    return Outcome(kernel_.compute(kernel_.self, &context));
  }

  gcap_kernel_t kernel_ = {};
  const Host x_ = Vector<float>({1, 2}), shape_ = Vector<int64_t>({3, 2}), y_{Sizes{3, 2}, std::vector<float>(6)};
  gcap_tensor_t inputs_[2] = {x_.Tensor(), shape_.Tensor()}, output_ = y_.Tensor();
};

TEST_F(CpuKernel, KeepsNothingOfTheModel) {
  EXPECT_EQ(Compute().message, "OK");
  EXPECT_EQ(y_.As<float>(), (std::vector<float>{1, 2, 1, 2, 1, 2}));
}

TEST_F(CpuKernel, RunsOnSeveralThreadsAtOnce) {
  std::vector<std::vector<float>> results(4, std::vector<float>(6));
  std::vector<std::thread> threads;
  for (std::vector<float>& result : results) {
    threads.emplace_back([this, &result] {
      gcap_tensor_t output = output_;
      output.data = result.data();
      gcap_kernel_context_t context = {};
      context.inputs = inputs_;
      context.outputs = &output;
      for (int run = 0; run < 100; ++run) GCAP_EXPECT_OK(kernel_.compute(kernel_.self, &context));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : results) EXPECT_EQ(result, (std::vector<float>{1, 2, 1, 2, 1, 2}));
}

TEST_F(CpuKernel, RefusesAnotherShapeThanItsInputsGive) {
  output_.shape[0] = 4;
  EXPECT_EQ(Compute().message, "node 'gone' (Expand): dimension 0 of output 0 is 4, its inputs give 3");
  output_.shape[0] = GCAP_DIM_INFERRED;
  EXPECT_EQ(Compute().message,
            "node 'gone' (Expand): dimension 0 of output 0 is -9223372036854775808, allowed is 0 or more");
}

TEST_F(CpuKernel, RefusesAnotherType) {
  inputs_[0].dtype = kI32;
  EXPECT_EQ(Compute().message, "node 'gone' (Expand): input 0 is of type i32, the node's is of type f32");
  inputs_[0].dtype = kF32;
  output_.dtype = kI64;
  EXPECT_EQ(Compute().message, "node 'gone' (Expand): output 0 is of type i64, the node's is of type f32");
}

TEST_F(CpuKernel, RefusesMissingMemory) {
  inputs_[0].data = nullptr;
  EXPECT_EQ(Compute().message, "node 'gone' (Expand): input 0 has 2 elements at NULL");
  inputs_[0] = x_.Tensor();
  inputs_[1].data = nullptr;
  EXPECT_EQ(Compute().message, "node 'gone' (Expand): input 1 has 2 elements at NULL");
  inputs_[1] = shape_.Tensor();
  output_.data = nullptr;
  EXPECT_EQ(Compute().message, "node 'gone' (Expand): output 0 has 6 elements at NULL");
}

TEST_F(CpuEp, AttributesAreCopied) {
  Expect<int64_t>(std::move(OnnxNode("Transpose").String("comment", "none").Float("f", 1).Ints("perm", {1, 0})),
                  {Host(Sizes{1, 2}, std::vector<int64_t>{1, 2})}, {2, 1}, {1, 2});
}

TEST_F(CpuEp, EachAllocationOfAKernelMayFail) {
  OnnxNode op("Neg");
  Model model(op, {Of(kF32)}, kF32, 1, false);
  model.values[1].shape[0] = 2;
  gcap_kernel_t kernel = {};
  int failures = 0;
  for (;; ++failures) {
    HeapFailure failure(1, failures);
    gcap_status_t status = gcap_ep_create_kernel(ep_, &model.model, &model.node, &kernel);
    if (failure.hits() == 0) {
      GCAP_EXPECT_OK(status);
      break;
    }
    const Outcome outcome(status);
    EXPECT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED);
    EXPECT_EQ(outcome.message, "no host memory for node 'n'");
    EXPECT_EQ(kernel.compute, nullptr);
  }
  EXPECT_EQ(failures, 3) << "the model's tensors, the kernel, the node";
  kernel.destroy(kernel.self);
}

TEST(CpuEpCreate, SaysWhenMemoryIsShort) {
  gcap_ep_t* ep = nullptr;
  HeapFailure failure;
  const Outcome outcome(gcap_cpu_ep_create(&ep));
  EXPECT_EQ(failure.hits(), 1);
  EXPECT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED);
  EXPECT_EQ(ep, nullptr);
}

}  // namespace
