// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tables of other versions: one that was compiled against version 1, newer ones, and ones that say that they capture
// and cannot. Each runs a session.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "gcap/ep_ops.h"
#include "gcap/session.h"
#include "gtest/gtest.h"
#include "test/ep/model_builder.h"
#include "test/ep/test_ep.h"
#include "test/ep/version_1/version_1_ep.h"
#include "test/support/device_floats.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"

namespace {

using gcap::testing::DeviceFloats;
using gcap::testing::GraphOptions;
using gcap::testing::LogCatcher;
using gcap::testing::ModelBuilder;

using Floats = std::vector<float>;

class EpVersions : public gcap::testing::DeviceTest {
 protected:
  void CreateRuntime() {
    const gcap_options_t options = GraphOptions(1);
    GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime_));
  }

  void CreateSession() {
    ModelBuilder m;
    const int x = m.Value("x", {3}), y = m.Value("y", {3});
    m.inputs = {x};
    m.outputs = {y};
    m.Node("Copy", "copy", {x}, {y});
    const gcap_model_t model = m.Model();
    GCAP_ASSERT_OK(gcap_session_create(&model, &ep_, 1, nullptr, &session_));
  }

  gcap_status_t Run(bool check_bindings) {
    gcap_tensor_t input = {x_.get(), GCAP_DTYPE_F32, 1, {3}}, output = {y_.get(), GCAP_DTYPE_F32, 1, {3}};
    gcap_run_options_t options;
    gcap_run_options_init(&options);
    options.check_bindings = check_bindings;
    return gcap_session_run(session_, &options, &input, &output);
  }

  void ExpectRightRuns(int runs) {
    for (int run = 1; run <= runs; ++run) {
      const float value = static_cast<float>(run);
      x_.Set({value, -value, 2 * value});
      y_.Set({0, 0, 0});
      GCAP_EXPECT_OK(Run(/*check_bindings=*/false));
      EXPECT_EQ(y_.Get(), Floats({value, -value, 2 * value})) << run;
    }
  }

  gcap_graph_info_t Info() {
    gcap_graph_info_t info;
    gcap_runtime_get_graph_info(runtime_, 0, &info);
    return info;
  }

  void End() {
    GCAP_EXPECT_OK(gcap_session_destroy(session_));
    GCAP_EXPECT_OK(gcap_ep_destroy(ep_));
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_));
    session_ = nullptr;
    ep_ = nullptr;
    runtime_ = nullptr;
  }
  void TearDown() override { End(); }

  DeviceFloats x_{Floats(3)}, y_{Floats(3)};
  gcap_runtime_t* runtime_ = nullptr;
  gcap_ep_t* ep_ = nullptr;
  gcap_session_t* session_ = nullptr;
};

TEST_F(EpVersions, ATableOfVersion1RunsCapturesAndReplays) {
  CreateRuntime();
  GCAP_ASSERT_OK(version_1_ep_create(runtime_, nullptr, &ep_));
  CreateSession();
  ExpectRightRuns(5);
  EXPECT_EQ(Info().eager_runs, 1u);
  EXPECT_EQ(Info().captures, 1u);
  EXPECT_EQ(Info().replays, 4u);
  GCAP_EXPECT_OK(gcap_session_release_captured_graph(session_, 0));
  EXPECT_FALSE(gcap_ep_is_graph_captured(ep_, 0));
}

// What version 1 has no member for. After the table there is no zero, so nothing was read there.
TEST_F(EpVersions, ATableOfVersion1HasTheDefaultsOfNewMembers) {
  CreateRuntime();
  GCAP_ASSERT_OK(version_1_ep_create(runtime_, nullptr, &ep_));
  EXPECT_FALSE(gcap_ep_runs_on_host(ep_));
  EXPECT_TRUE(gcap_ep_supports_concurrent_runs(ep_));
  EXPECT_EQ(gcap_ep_graph_capture_node_assignment_policy(ep_), GCAP_GRAPH_ALL_NODES_ON_EP);
  const gcap_model_t model = {};
  const gcap_node_t node = {};
  gcap_tensor_t output = {nullptr, GCAP_DTYPE_F32, 1, {GCAP_DIM_INFERRED}};
  EXPECT_EQ(gcap_ep_input_place(ep_, &model, &node, 0), GCAP_INPUT_IN_EP_MEMORY);
  GCAP_EXPECT_OK(gcap_ep_infer_shapes(ep_, &model, &node, nullptr, &output));
  EXPECT_EQ(output.shape[0], GCAP_DIM_INFERRED);
  GCAP_EXPECT_OK(gcap_ep_trim(ep_));
  EXPECT_FALSE(gcap_ep_can_copy(ep_, {GCAP_MEMORY_HOST, 0}, {GCAP_MEMORY_DEVICE, 0}));
  EXPECT_TRUE(gcap_ep_copies_in_default_stream(ep_));
  Floats host(3);
  const gcap_tensor_t src = {host.data(), GCAP_DTYPE_F32, 1, {3}}, dst = {x_.get(), GCAP_DTYPE_F32, 1, {3}};
  const gcap_copy_t copy = {&src, {GCAP_MEMORY_HOST, 0}, &dst, {GCAP_MEMORY_DEVICE, 0}, nullptr};
  GCAP_EXPECT_FAILS(gcap_ep_copy_tensor(ep_, &copy), GCAP_INVALID_ARGUMENT,
                    "EP 'version 1' does not copy from host memory");
  gcap_stream_t* stream = nullptr;
  GCAP_EXPECT_FAILS(gcap_ep_create_stream(ep_, &stream), GCAP_UNIMPLEMENTED, "no create_stream and no runtime");
  GCAP_EXPECT_FAILS(gcap_ep_fork(ep_, 1, &stream), GCAP_UNIMPLEMENTED, "no fork and no runtime");
  GCAP_EXPECT_FAILS(gcap_ep_join(ep_), GCAP_UNIMPLEMENTED, "no join and no runtime");
  gcap_allocator_t *allocator = nullptr, *of_runtime = nullptr;
  GCAP_EXPECT_FAILS(gcap_ep_get_allocator(ep_, GCAP_MEMORY_PINNED, &allocator), GCAP_UNIMPLEMENTED, "get_allocator");
  GCAP_EXPECT_OK(gcap_ep_get_allocator(ep_, GCAP_MEMORY_DEVICE, &allocator));
  GCAP_EXPECT_OK(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_DEVICE, &of_runtime));
  EXPECT_EQ(allocator, of_runtime);
}

TEST_F(EpVersions, AnEpThatCannotCheckBindingsSaysSo) {
  CreateRuntime();
  GCAP_ASSERT_OK(version_1_ep_create(runtime_, nullptr, &ep_));
  CreateSession();
  GCAP_EXPECT_FAILS(Run(/*check_bindings=*/true), GCAP_FAILED_PRECONDITION, "sign_graph");
  ExpectRightRuns(3);
}

// ONNX Runtime's host warns and disables capture too.
TEST_F(EpVersions, AnEpThatSaysThatItCapturesAndCannotRunsWithoutCapture) {
  for (const char* missing : {"is_graph_captured", "replay_graph", "begin_run and end_run"}) {
    SCOPED_TRACE(missing);
    CreateRuntime();
    const LogCatcher log;
    GCAP_ASSERT_OK(version_1_ep_create(runtime_, missing, &ep_));
    CreateSession();
    ExpectRightRuns(4);
    EXPECT_FALSE(gcap_ep_is_graph_capture_enabled(ep_));
    EXPECT_EQ(Info().captures, 0u);
    const std::string warning = "EP 'version 1' says that it captures graphs, but its table has no " +
                                std::string(missing) + " and no runtime; it runs without capture";
    EXPECT_EQ(log.text(), warning) << "exactly one warning";
    End();
  }
}

// The members of an EP that has a runtime.
bool SupportsCopy(void*, const gcap_model_t*, const gcap_node_t* node) {
  return std::strcmp(node->op_type, "Copy") == 0;
}
gcap_status_t CreateCopy(void*, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t* out_kernel) {
  out_kernel->compute = [](void*, const gcap_kernel_context_t* context) {
    return GCAP_CUDA(cudaMemcpyAsync(context->outputs[0].data, context->inputs[0].data,
                                     gcap_tensor_bytes(&context->outputs[0]), cudaMemcpyDeviceToDevice,
                                     gcap_stream_handle(context->resources.stream)));
  };
  return nullptr;
}

// A table of a version to come.
TEST_F(EpVersions, ANewerTableWorksAndItsTailIsNotRead) {
  struct {
    gcap_ep_ops_t ops;
    unsigned char tail[256];
  } table = {};
  std::memset(table.tail, 0xA5, sizeof(table.tail));
  table.ops.struct_version = GCAP_EP_OPS_VERSION + 1;
  table.ops.struct_bytes = sizeof(table);
  table.ops.name = "newer";
  table.ops.supports = SupportsCopy;
  table.ops.create_kernel = CreateCopy;
  CreateRuntime();
  table.ops.runtime = runtime_;
  GCAP_ASSERT_OK(gcap_ep_create(&table.ops, &ep_));
  CreateSession();
  ExpectRightRuns(4);
  EXPECT_EQ(Info().captures, 1u);
  GCAP_EXPECT_OK(gcap_session_destroy(session_));
  session_ = nullptr;
  GCAP_EXPECT_OK(gcap_ep_destroy(ep_));  // ends the runtime
  ep_ = nullptr;
  runtime_ = nullptr;
}

// An EP that was compiled when version 2 had fewer members.
TEST_F(EpVersions, AShorterTableLacksTheMembersAfterItsEnd) {
  constexpr size_t kEnd = offsetof(gcap_ep_ops_t, runs_on_host);
  gcap_ep_ops_t ops;
  std::memset(&ops, 0xA5, sizeof(ops));
  std::memset(&ops, 0, kEnd);
  ops.struct_version = 2;
  ops.struct_bytes = kEnd;
  ops.name = "shorter";
  ops.supports = SupportsCopy;
  ops.create_kernel = CreateCopy;
  CreateRuntime();
  ops.runtime = runtime_;
  ops.destroy = [](void*) { return gcap_status_t(nullptr); };
  GCAP_ASSERT_OK(gcap_ep_create(&ops, &ep_));
  EXPECT_FALSE(gcap_ep_runs_on_host(ep_));
  EXPECT_TRUE(gcap_ep_can_copy(ep_, {GCAP_MEMORY_HOST, 0}, {GCAP_MEMORY_DEVICE, 0}));
  CreateSession();
  ExpectRightRuns(3);
}

}  // namespace
