// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The EP's table: what gcap_ep_create refuses, what absent members default to, what reaches the members, claims and
// turns, and tables of other versions.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gcap/kit/ep.h"
#include "gcap/kit/ep_ops.h"
#include "gtest/gtest.h"
#include "test/ep/test_ep.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/runs.h"

namespace {

using Names = std::vector<std::string>;

// What the members of the table below were called with, and what they answer.
struct Recorder {
  Names calls;
  bool fails = false;
  gcap_code_t code = GCAP_INTERNAL;  // of a failure
  gcap_kernel_t kernel = {};

  gcap_status_t Record(const char* name) {
    calls.push_back(name);
    return fails ? GCAP_STATUS(code, "%s was told to fail", name) : nullptr;
  }
};

Recorder* Of(const void* self) { return static_cast<Recorder*>(const_cast<void*>(self)); }

// What an EP on the host needs.
gcap_ep_ops_t OnHost(Recorder* recorder) {
  gcap_ep_ops_t ops = {};
  ops.struct_size = sizeof(ops);
  ops.name = "on host";
  ops.self = recorder;
  ops.runs_on_host = true;
  ops.supports = [](void* self, const gcap_model_t*, const gcap_node_t*) {
    Of(self)->calls.push_back("supports");
    return true;
  };
  ops.create_kernel = [](void* self, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t* out_kernel) {
    *out_kernel = Of(self)->kernel;
    return Of(self)->Record("create_kernel");
  };
  return ops;
}

gcap_ep_ops_t Full(Recorder* recorder) {
  gcap_ep_ops_t ops = OnHost(recorder);
  ops.name = "full";
  ops.supports_concurrent_runs = true;
  ops.input_place = [](void* self, const gcap_model_t*, const gcap_node_t*, int) {
    Of(self)->calls.push_back("input_place");
    return GCAP_INPUT_SHAPE_ONLY;
  };
  ops.infer_shapes = [](void* self, const gcap_model_t*, const gcap_node_t*, const gcap_tensor_t*, gcap_tensor_t*) {
    return Of(self)->Record("infer_shapes");
  };
  ops.graph_capture_node_assignment_policy = [](const void* self) {
    Of(self)->calls.push_back("policy");
    return GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES;
  };
  ops.trim = [](void* self) { return Of(self)->Record("trim"); };
  ops.destroy = [](void* self) { return Of(self)->Record("destroy"); };
  return ops;
}

class EpOfTable : public gcap::testing::DeviceTest {
 protected:
  void Create(const gcap_ep_ops_t& ops) { GCAP_ASSERT_OK(gcap_ep_create(&ops, &ep_)); }
  void End() {
    GCAP_EXPECT_OK(gcap_ep_destroy(ep_));
    ep_ = nullptr;
    recorder_.calls.clear();
  }
  void TearDown() override {
    recorder_.fails = false;
    End();
  }
  // An EP with a runtime of these options, which is `ops.runtime`.
  void CreateWithRuntime(gcap_ep_ops_t ops, const gcap_options_t& options = gcap::testing::GraphOptions()) {
    ops.runs_on_host = false;
    GCAP_ASSERT_OK(gcap_runtime_create(&options, &ops.runtime));
    Create(ops);
    EXPECT_EQ(gcap_ep_runtime(ep_), ops.runtime);
  }
  void Unclaim(bool has_run = false) { gcap_ep_unclaim(ep_, has_run); }

  Recorder recorder_;
  gcap_ep_t* ep_ = nullptr;
  const gcap_model_t model_ = {};
  const gcap_node_t node_ = {"Op", "node_7", nullptr, 0, nullptr, 0, nullptr};
  gcap_tensor_t output_ = {nullptr, GCAP_DTYPE_F32, 1, {GCAP_DIM_INFERRED}};
};

TEST(Ep, CreateRefusesATableThatIsNotWhole) {
  struct Row {
    const char* named;  // in the message
    std::function<void(gcap_ep_ops_t*)> spoil;
  };
  const Row rows[] = {
      {"name is NULL", [](gcap_ep_ops_t* o) { o->name = nullptr; }},
      {"EP 'full': member supports is NULL", [](gcap_ep_ops_t* o) { o->supports = nullptr; }},
      {"create_kernel is NULL", [](gcap_ep_ops_t* o) { o->create_kernel = nullptr; }},
      {"runtime is NULL", [](gcap_ep_ops_t* o) { o->runs_on_host = false; }},
      {"runs_on_host is true and runtime is set",
       [](gcap_ep_ops_t* o) { o->runtime = reinterpret_cast<gcap_runtime_t*>(o); }},  // is not followed
      {"struct_size is 0", [](gcap_ep_ops_t* o) { o->struct_size = 0; }},
      {"struct_size is 8", [](gcap_ep_ops_t* o) { o->struct_size = 8; }},
      {"no version's", [](gcap_ep_ops_t* o) { --o->struct_size; }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.named);
    Recorder recorder;
    gcap_ep_ops_t ops = Full(&recorder);
    row.spoil(&ops);
    gcap_ep_t* ep = reinterpret_cast<gcap_ep_t*>(&recorder);
    GCAP_EXPECT_FAILS(gcap_ep_create(&ops, &ep), GCAP_INVALID_ARGUMENT, row.named);
    EXPECT_EQ(ep, nullptr);
    EXPECT_TRUE(recorder.calls.empty()) << "destroy is not called on failure";
  }
}

TEST_F(EpOfTable, KeepsACopyOfTheTableAndItsName) {
  char name[] = "short-lived";
  gcap_ep_ops_t ops = Full(&recorder_);
  ops.name = name;
  Create(ops);
  std::memset(name, 'x', sizeof(name) - 1);
  std::memset(&ops, 0, sizeof(ops));
  EXPECT_STREQ(gcap_ep_name(ep_), "short-lived");
  GCAP_EXPECT_OK(gcap_ep_trim(ep_));
}

// Was: whatever the table's destroy answered, the EP was freed.
TEST_F(EpOfTable, RefusalOfDestroyLeavesTheEpWholeAndALeakDoesNot) {
  Create(Full(&recorder_));
  recorder_.fails = true;
  for (gcap_code_t refusal : {GCAP_FAILED_PRECONDITION, GCAP_CUDA_ERROR, GCAP_INTERNAL}) {
    recorder_.code = refusal;
    GCAP_EXPECT_FAILS(gcap_ep_destroy(ep_), refusal, "destroy was told to fail");
    EXPECT_STREQ(gcap_ep_name(ep_), "full");
  }
  recorder_.code = GCAP_LEAKED;
  GCAP_EXPECT_FAILS(gcap_ep_destroy(ep_), GCAP_LEAKED, "destroy was told to fail");
  ep_ = nullptr;
  EXPECT_EQ(recorder_.calls, Names({"destroy", "destroy", "destroy", "destroy"}));
}

// Was: OK, and the end of the session then used the EP that was gone.
TEST_F(EpOfTable, DestroyIsRefusedWhileASessionLives) {
  for (bool captures : {false, true}) {
    gcap_options_t options = gcap::testing::GraphOptions();
    options.enable_cuda_graph = captures;
    CreateWithRuntime(OnHost(&recorder_), options);
    GCAP_EXPECT_OK(gcap_ep_claim(ep_));
    if (!captures) GCAP_EXPECT_OK(gcap_ep_claim(ep_));
    GCAP_EXPECT_FAILS(gcap_ep_destroy(ep_), GCAP_FAILED_PRECONDITION,
                      captures ? "EP 'on host' has 1 live session;" : "EP 'on host' has 2 live sessions;");
    for (int i = captures ? 1 : 0; i < 2; ++i) Unclaim();
    End();
  }
}

TEST_F(EpOfTable, ThatCapturesGraphsIsClaimedAgainOnlyIfNothingRan) {
  CreateWithRuntime(OnHost(&recorder_));
  for (const bool has_run : {false, true}) {
    GCAP_EXPECT_OK(gcap_ep_claim(ep_));
    GCAP_EXPECT_FAILS(gcap_ep_claim(ep_), GCAP_FAILED_PRECONDITION, "make an EP for each session");
    Unclaim(has_run);
  }
  GCAP_EXPECT_FAILS(gcap_ep_claim(ep_), GCAP_FAILED_PRECONDITION, "make an EP for each session");
}

TEST_F(EpOfTable, OnTheHostAbsentMembersHaveDefaults) {
  Create(OnHost(&recorder_));
  EXPECT_TRUE(gcap_ep_runs_on_host(ep_));
  EXPECT_EQ(gcap_ep_runtime(ep_), nullptr);
  EXPECT_FALSE(gcap_ep_supports_concurrent_runs(ep_));
  EXPECT_EQ(gcap_ep_input_place(ep_, &model_, &node_, 0), GCAP_INPUT_IN_EP_MEMORY);
  GCAP_EXPECT_OK(gcap_ep_infer_shapes(ep_, &model_, &node_, nullptr, &output_));
  EXPECT_EQ(output_.shape[0], GCAP_DIM_INFERRED);
  EXPECT_EQ(gcap_ep_graph_capture_node_assignment_policy(ep_), GCAP_GRAPH_ALL_NODES_ON_EP);
  GCAP_EXPECT_OK(gcap_ep_trim(ep_));
  GCAP_EXPECT_OK(gcap_ep_claim(ep_));
  GCAP_EXPECT_OK(gcap_ep_claim(ep_));
  for (int i = 0; i < 2; ++i) Unclaim();
  EXPECT_TRUE(recorder_.calls.empty());
}

// With a runtime, all that runs need is the runtime's, and it ends with the EP.
TEST_F(EpOfTable, AbsentMembersHaveDefaults) {
  for (const bool shared : {false, true}) {
    gcap_options_t options = gcap::testing::GraphOptions();
    if (shared) options.graph_scope = GCAP_GRAPH_SCOPE_SESSION;
    gcap_ep_ops_t ops = OnHost(&recorder_);
    ops.supports_concurrent_runs = shared;  // is not read
    CreateWithRuntime(ops, options);
    EXPECT_EQ(gcap_ep_supports_concurrent_runs(ep_), !shared);
    gcap_run_resources_t run;
    void* block = nullptr;
    GCAP_EXPECT_OK(gcap_runtime_get_resources(gcap_ep_runtime(ep_), &run));
    GCAP_EXPECT_OK(gcap_scratch_alloc(run.scratch, 4096, run.stream, &block));
    GCAP_EXPECT_OK(gcap_scratch_free(run.scratch, block));
    GCAP_EXPECT_OK(gcap_runtime_synchronize(gcap_ep_runtime(ep_)));  // what the stream may still use is not trimmed
    gcap_allocator_stats_t before, after;
    gcap_scratch_get_stats(run.scratch, &before);
    GCAP_EXPECT_OK(gcap_ep_trim(ep_));
    gcap_scratch_get_stats(run.scratch, &after);
    EXPECT_GT(before.total_allocated_bytes, after.total_allocated_bytes);
    End();
  }
}

TEST_F(EpOfTable, CallsReachTheMembersWithTheirArguments) {
  for (const bool on_host : {true, false}) {
    on_host ? Create(Full(&recorder_)) : CreateWithRuntime(Full(&recorder_));
    gcap_runtime_t* const runtime = gcap_ep_runtime(ep_);
    recorder_.kernel = {&recorder_, [](void*, const gcap_kernel_context_t*) { return gcap_status_t(nullptr); }, nullptr,
                        /*not_capturable=*/on_host};
    gcap_kernel_t kernel;
    EXPECT_TRUE(gcap_ep_supports_concurrent_runs(ep_));
    EXPECT_TRUE(gcap_ep_supports(ep_, &model_, &node_));
    GCAP_EXPECT_OK(gcap_ep_create_kernel(ep_, &model_, &node_, &kernel));
    EXPECT_EQ(kernel.self, &recorder_);
    EXPECT_EQ(kernel.destroy, nullptr) << "a kernel without destroy is fine";
    EXPECT_EQ(kernel.not_capturable, on_host);
    EXPECT_EQ(gcap_ep_input_place(ep_, &model_, &node_, 0), GCAP_INPUT_SHAPE_ONLY);
    GCAP_EXPECT_OK(gcap_ep_infer_shapes(ep_, &model_, &node_, nullptr, &output_));
    EXPECT_EQ(gcap_ep_graph_capture_node_assignment_policy(ep_), GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES);
    GCAP_EXPECT_OK(gcap_ep_trim(ep_));
    EXPECT_EQ(recorder_.calls, Names({"supports", "create_kernel", "input_place", "infer_shapes", "policy", "trim"}));
    recorder_.fails = true;
    GCAP_EXPECT_FAILS(gcap_ep_create_kernel(ep_, &model_, &node_, &kernel), GCAP_INTERNAL, "create_kernel");
    GCAP_EXPECT_FAILS(gcap_ep_infer_shapes(ep_, &model_, &node_, nullptr, &output_), GCAP_INTERNAL, "infer_shapes");
    GCAP_EXPECT_FAILS(gcap_ep_trim(ep_), GCAP_INTERNAL, "trim");
    recorder_.fails = false;
    End();
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));  // with a destroy of its own, the EP leaves it
  }
}

TEST_F(EpOfTable, TurnsOfAnEpWithoutConcurrentRunsExcludeEachOther) {
  for (const bool concurrent : {false, true}) {
    gcap_ep_ops_t ops = OnHost(&recorder_);
    ops.supports_concurrent_runs = concurrent;
    Create(ops);
    std::atomic<int> inside{0}, most{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          gcap_ep_begin_turn(ep_);
          if (!concurrent) most = std::max<int>(most, ++inside);
          if (!concurrent) --inside;
          gcap_ep_end_turn(ep_);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(most, concurrent ? 0 : 1);
    if (concurrent) {  // a turn that another thread has holds nobody up
      gcap_ep_begin_turn(ep_);
      std::thread([this] {
        gcap_ep_begin_turn(ep_);
        gcap_ep_end_turn(ep_);
      }).join();
      gcap_ep_end_turn(ep_);
    }
    End();
  }
}

TEST_F(EpOfTable, KernelWithoutComputeAndNodesWithoutNameOrTypeAreRefused) {
  Create(Full(&recorder_));
  gcap_node_t no_name = node_, no_type = node_;
  no_name.name = no_type.op_type = nullptr;
  const std::pair<const gcap_node_t*, const char*> rows[] = {
      {&node_, "'node_7' without compute"}, {&no_name, "node->name is NULL"}, {&no_type, "node->op_type is NULL"}};
  gcap_kernel_t kernel;
  for (const auto& row : rows) {
    GCAP_EXPECT_FAILS(gcap_ep_create_kernel(ep_, &model_, row.first, &kernel), GCAP_INVALID_ARGUMENT, row.second);
  }
}

// --- Other versions -------------------------------------------------------------------------------------------------

TEST_F(EpOfTable, ANewerTableWorksAndItsTailIsNotRead) {
  struct {
    gcap_ep_ops_t ops;
    unsigned char tail[256];
  } table;
  std::memset(&table, 0xA5, sizeof(table));
  table.ops = Full(&recorder_);
  table.ops.struct_size = sizeof(table);
  Create(table.ops);
  GCAP_EXPECT_OK(gcap_ep_trim(ep_));
  EXPECT_EQ(recorder_.calls, Names({"trim"}));
}

TEST_F(EpOfTable, AShorterTableLacksTheMembersAfterItsEnd) {
  gcap_ep_ops_t ops = Full(&recorder_);
  ops.struct_size = offsetof(gcap_ep_ops_t, input_place);
  Create(ops);
  EXPECT_EQ(gcap_ep_input_place(ep_, &model_, &node_, 0), GCAP_INPUT_IN_EP_MEMORY);
  GCAP_EXPECT_OK(gcap_ep_infer_shapes(ep_, &model_, &node_, nullptr, &output_));
  EXPECT_EQ(gcap_ep_graph_capture_node_assignment_policy(ep_), GCAP_GRAPH_ALL_NODES_ON_EP);
  GCAP_EXPECT_OK(gcap_ep_trim(ep_));
  EXPECT_TRUE(recorder_.calls.empty());
  End();
  EXPECT_TRUE(recorder_.calls.empty()) << "no destroy";
}

}  // namespace
