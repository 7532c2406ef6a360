// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernels for nodes when something fails: each CUDA and library call once, each allocation of host memory once. The
// caller is told, and nothing is left.

#include <algorithm>
#include <memory>
#include <string>

#include "gcap/capture.h"
#include "gcap/kit/ops/nodes.h"
#include "gcap/scratch.h"
#include "gcap_sim.h"
#include "test/base/heap_failure.h"
#include "test/nodes/cases.h"
#include "test/nodes/node_rig.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// Cases of each operator with a plan, and of one without.
std::vector<NodeCase> Planned() {
  std::vector<NodeCase> planned;
  for (const NodeCase& c : AllCases()) {
    for (const char* name :
         {"ConvWithUnevenPads", "MatMul", "GemmWithARow", "AveragePool", "BatchNormalizationOfRank4", "LSTMWithAll",
          "GRUBothWays", "SliceBackwards", "EinsumBilinearForm", "MultiHeadAttentionWithAPast"}) {
      if (c.name == name) planned.push_back(c);
    }
  }
  EXPECT_EQ(planned.size(), 10u);
  return planned;
}

// One node with a runtime and kernels of its own.
class Node {
 public:
  explicit Node(const NodeCase& c) {
    if (c.attributes) c.attributes(&attributes_);
    std::vector<int> inputs, outputs;
    const auto add = [this](gcap_dtype_t type, const Shape& shape) {
      return builder_.Value("v", shape, type == kTyped ? GCAP_DTYPE_F32 : type);
    };
    for (const Input& input : c.inputs) inputs.push_back(add(input.type, input.shape));
    for (const auto& output : c.outputs) outputs.push_back(add(output.first, output.second));
    builder_.Node(c.op_type.c_str(), "n", inputs, outputs, attributes_.get());
    model_ = builder_.Model();
    const gcap_options_t options = NodeOptions();
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime_));
    GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime_, &resources_));
    GCAP_EXPECT_OK(gcap_node_kernels_create(0, &options.kernels, &kernels_));
  }
  ~Node() {
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_));
    GCAP_EXPECT_OK(gcap_node_kernels_destroy(kernels_));
  }
  Node(const Node&) = delete;

  // Makes the kernel and ends it.
  gcap_status_t Make() {
    return With([](const gcap_kernel_t&) { return nullptr; });
  }
  // Also computes.
  gcap_status_t Compute(const std::vector<gcap_tensor_t>& inputs, std::vector<gcap_tensor_t> outputs) {
    return With([&](const gcap_kernel_t& kernel) {
      gcap_kernel_context_t context = {};
      context.resources = resources_;
      context.inputs = inputs.data();
      context.outputs = outputs.data();
      return kernel.compute(kernel.self, &context);
    });
  }
  gcap_scratch_t* scratch() const { return resources_.scratch; }
  void Synchronize() { GCAP_EXPECT_OK(gcap_stream_synchronize(resources_.stream)); }

 private:
  template <typename Use>
  gcap_status_t With(const Use& use) {
    gcap_kernel_t kernel;
    GCAP_RETURN_IF_ERROR(gcap_node_kernels_create_kernel(kernels_, &resources_, &model_, &model_.nodes[0], &kernel));
    gcap_status_t status = use(kernel);
    kernel.destroy(kernel.self);
    return status;
  }

  Attributes attributes_;
  ModelBuilder builder_;
  gcap_model_t model_ = {};
  gcap_runtime_t* runtime_ = nullptr;
  gcap_run_resources_t resources_ = {};
  gcap_node_kernels_t* kernels_ = nullptr;
};

TEST(NodesOnSim, CreationReportsEachFailingCall) {
  const Walked walked = WalkFaults([](Fault& fault) {
    gcap_node_kernels_t* kernels = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_node_kernels_create(0, nullptr, &kernels); });
    EXPECT_EQ(outcome.ok(), kernels != nullptr);
    EXPECT_EQ(outcome.ok(), !fault.hit()) << fault.function();
    EXPECT_TRUE(outcome.ok() || outcome.Names(fault.function())) << outcome.message;
    GCAP_EXPECT_OK(gcap_node_kernels_destroy(kernels));
  });
  EXPECT_GT(walked.calls, 1u);
}

// A leak checker finds what could not be ended: somebody still points there.
TEST(NodesOnSim, KernelsWhoseStreamCannotBeEndedAreKept) {
  gcap_node_kernels_t* kernels = nullptr;
  GCAP_ASSERT_OK(gcap_node_kernels_create(0, nullptr, &kernels));
  gcap_sim_fault_t fault = {};
  fault.function = "cudaStreamSynchronize";
  fault.nth = 1;
  fault.code = cudaErrorUnknown;
  gcap_sim_inject(&fault);
  GCAP_EXPECT_FAILS(gcap_node_kernels_destroy(kernels), GCAP_LEAKED, "the node kernels are kept");
  gcap_sim_clear_faults();
}

// Of the end of what a search or a plan made, the log tells.
TEST(NodesOnSim, KernelsReportEachFailingCallOfTheirPlans) {
  for (const NodeCase& node_case : Planned()) {
    SCOPED_TRACE(node_case.name);
    WalkFaults([&](Fault& fault) {
      LogCatcher log;
      Node node(node_case);
      const Outcome outcome = fault.During([&] { return node.Make(); });
      if (fault.hit()) {
        EXPECT_TRUE(outcome.Names(fault.function()) || log.text().find(fault.function()) != std::string::npos)
            << fault.function() << ": " << outcome.message;
      } else {
        EXPECT_TRUE(outcome.ok()) << outcome.message;
      }
      GCAP_EXPECT_OK(node.Make());
    });
  }
}

// Of the end of what a plan made, the log tells.
void ExpectItsWorkspaceBackWhateverFails(const std::string& name) {
  SCOPED_TRACE(name);
  std::vector<NodeCase> cases = AllCases();
  const auto at = std::find_if(cases.begin(), cases.end(), [&](const NodeCase& c) { return c.name == name; });
  ASSERT_NE(at, cases.end());
  std::vector<std::unique_ptr<DeviceTensor>> memory;
  const auto view = [&](gcap_dtype_t type, const Shape& shape) {
    memory.push_back(std::make_unique<DeviceTensor>(type == kTyped ? GCAP_DTYPE_F32 : type, shape));
    return memory.back()->view();
  };
  std::vector<gcap_tensor_t> inputs, outputs;
  for (const Input& input : at->inputs) inputs.push_back(view(input.type, input.shape));
  for (const auto& output : at->outputs) outputs.push_back(view(output.first, output.second));
  const Walked walked = WalkFaults([&](Fault& fault) {
    LogCatcher log;
    Node node(*at);
    const Outcome outcome = fault.During([&] { return node.Compute(inputs, outputs); });
    const bool is_told = outcome.Names(fault.function()) || log.text().find(fault.function()) != std::string::npos;
    EXPECT_TRUE(fault.hit() ? is_told : outcome.ok()) << fault.function() << ": " << outcome.message;
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(node.scratch(), &stats);
    EXPECT_EQ(stats.in_use_bytes, 0u);
    node.Synchronize();
  });
  EXPECT_GT(walked.calls, 4u);  // a launch for each input but the first; a product and a launch for each step
}

TEST(NodesOnSim, WhatIsDoneInStepsGivesItsWorkspaceBackWhateverFails) {
  ExpectItsWorkspaceBackWhateverFails("MinOf5");
  ExpectItsWorkspaceBackWhateverFails("LSTMWithAll");
  ExpectItsWorkspaceBackWhateverFails("GRUBothWays");
  ExpectItsWorkspaceBackWhateverFails("EinsumBilinearForm");
  ExpectItsWorkspaceBackWhateverFails("MultiHeadAttentionWithAPast");
}

TEST(NodesOnSim, EverythingSaysThatThereIsNoHostMemory) {
  for (const NodeCase& node_case : Planned()) {
    SCOPED_TRACE(node_case.name);
    Node node(node_case);
    GCAP_ASSERT_OK(node.Make());  // also makes the stream's handles
    const size_t live = gcap_sim_live(nullptr);
    // The kernel, its node, its shapes; of products and convolutions also what holds the plan. The plans themselves are
    // the matter of //test/ops:heap_sim_test.
    const bool has_more = node_case.op_type == "Conv" || node_case.op_type == "MatMul" || node_case.op_type == "Gemm" ||
                          node_case.op_type == "LSTM" || node_case.op_type == "GRU" || node_case.op_type == "Einsum" ||
                          node_case.op_type == "com.microsoft.MultiHeadAttention";
    for (int skip = 0; skip < (has_more ? 4 : 3); ++skip) {
      gcap_status_t status = nullptr;
      {
        HeapFailure failure(/*count=*/1, skip);
        status = node.Make();
        EXPECT_EQ(failure.hits(), 1);
      }
      GCAP_EXPECT_FAILS(status, GCAP_RESOURCE_EXHAUSTED, "no host memory for node 'n'");
      EXPECT_EQ(gcap_sim_live(nullptr), live) << "allocation " << skip;
    }
    GCAP_EXPECT_OK(node.Make());
  }
  gcap_node_kernels_t* kernels = nullptr;
  gcap_status_t status = nullptr;
  {
    HeapFailure failure;
    status = gcap_node_kernels_create(0, nullptr, &kernels);
  }
  GCAP_EXPECT_FAILS(status, GCAP_RESOURCE_EXHAUSTED, "no host memory for node kernels");
  EXPECT_EQ(kernels, nullptr);
}

// A graph needs a plan; what needs none may be made in a capture.
TEST(NodesOnSim, PlansAreRefusedOnAThreadThatCaptures) {
  for (const NodeCase& node_case : Planned()) {
    SCOPED_TRACE(node_case.name);
    Node node(node_case);
    GCAP_ASSERT_OK(node.Make());
    gcap_stream_t* stream = nullptr;
    GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream), nullptr, &capture));
    const Outcome outcome(node.Make());
    if (node_case.op_type == "Slice") {
      EXPECT_TRUE(outcome.ok()) << outcome.message;
    } else {
      EXPECT_STREQ(gcap_code_name(outcome.code), "FAILED_PRECONDITION") << outcome.message;
    }
    gcap_capture_abort(capture);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
