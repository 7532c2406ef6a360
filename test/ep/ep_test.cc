// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The EP's table: what gcap_ep_create refuses, what absent members default to, and what reaches the members.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gcap/ep.h"
#include "gcap/ep_ops.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"
#include "test/support/replays.h"

namespace {

// What the members of the table below were called with, and what they answer.
struct Recorder {
  std::vector<std::string> calls;
  int graph_id = 0;
  gcap_status_t run_status = nullptr;
  bool synchronize = false;
  bool answer = false;
  bool fails = false;
  gcap_code_t code = GCAP_INTERNAL;  // of a failure
  const gcap_graph_binding_t* bindings = nullptr;
  gcap_kernel_t kernel = {};

  gcap_status_t Record(const char* name) {
    calls.push_back(name);
    return fails ? GCAP_STATUS(code, "%s was told to fail", name) : nullptr;
  }
};

Recorder* Of(const void* self) { return static_cast<Recorder*>(const_cast<void*>(self)); }

bool Supports(void* self, const gcap_model_t*, const gcap_node_t*) {
  Of(self)->calls.push_back("supports");
  return Of(self)->answer;
}
gcap_status_t CreateKernel(void* self, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t* out_kernel) {
  *out_kernel = Of(self)->kernel;
  return Of(self)->Record("create_kernel");
}
gcap_status_t GetRunResources(void* self, gcap_run_resources_t*) { return Of(self)->Record("get_run_resources"); }
gcap_status_t Synchronize(void* self) { return Of(self)->Record("synchronize"); }
gcap_status_t BeginRun(void* self, int graph_id) {
  Of(self)->graph_id = graph_id;
  return Of(self)->Record("begin_run");
}
gcap_status_t EndRun(void* self, gcap_status_t run_status, bool synchronize) {
  Of(self)->run_status = run_status;
  Of(self)->synchronize = synchronize;
  return gcap_status_join(run_status, Of(self)->Record("end_run"));
}
bool IsGraphCaptureEnabled(const void* self) {
  Of(self)->calls.push_back("is_graph_capture_enabled");
  return Of(self)->answer;
}
bool IsGraphCaptured(void* self, int graph_id) {
  Of(self)->graph_id = graph_id;
  Of(self)->calls.push_back("is_graph_captured");
  return Of(self)->answer;
}
gcap_status_t ReplayGraph(void* self, int graph_id, const gcap_graph_replay_options_t* options, bool* out_replayed) {
  Of(self)->graph_id = graph_id;
  Of(self)->synchronize = options->synchronize;
  Of(self)->bindings = options->bindings;
  *out_replayed = Of(self)->answer;
  return Of(self)->Record("replay_graph");
}
gcap_status_t SignGraph(void*, const gcap_graph_binding_t*, size_t) { return nullptr; }
gcap_status_t ReleaseCapturedGraph(void* self, int graph_id) {
  Of(self)->graph_id = graph_id;
  return Of(self)->Record("release_captured_graph");
}
gcap_status_t Destroy(void* self) { return Of(self)->Record("destroy"); }

// Only what is required.
gcap_ep_ops_t Minimal(Recorder* recorder) {
  gcap_ep_ops_t ops = {};
  ops.struct_version = GCAP_EP_OPS_VERSION;
  ops.struct_bytes = sizeof(gcap_ep_ops_t);
  ops.name = "minimal";
  ops.self = recorder;
  ops.supports = Supports;
  ops.create_kernel = CreateKernel;
  ops.get_run_resources = GetRunResources;
  ops.synchronize = Synchronize;
  return ops;
}

gcap_ep_ops_t Full(Recorder* recorder) {
  gcap_ep_ops_t ops = Minimal(recorder);
  ops.name = "full";
  ops.supports_concurrent_runs = true;
  ops.begin_run = BeginRun;
  ops.end_run = EndRun;
  ops.is_graph_capture_enabled = IsGraphCaptureEnabled;
  ops.is_graph_captured = IsGraphCaptured;
  ops.replay_graph = ReplayGraph;
  ops.release_captured_graph = ReleaseCapturedGraph;
  ops.destroy = Destroy;
  return ops;
}

class EpOfTable : public ::testing::Test {
 protected:
  void Create(const gcap_ep_ops_t& ops) { GCAP_ASSERT_OK(gcap_ep_create(&ops, &ep_)); }
  void TearDown() override { GCAP_EXPECT_OK(gcap_ep_destroy(ep_)); }

  Recorder recorder_;
  gcap_ep_t* ep_ = nullptr;
  const gcap_model_t model_ = {};
  const gcap_node_t node_ = {"Op", "node_7", nullptr, 0, nullptr, 0, nullptr};
};

TEST(Ep, CreateRefusesATableThatIsNotWhole) {
  struct Row {
    const char* named;  // in the message
    std::function<void(gcap_ep_ops_t*)> spoil;
    bool minimal = false;  // starts from the required members only
  };
  const Row rows[] = {
      {"name is NULL", [](gcap_ep_ops_t* o) { o->name = nullptr; }},
      {"supports is NULL", [](gcap_ep_ops_t* o) { o->supports = nullptr; }},
      {"create_kernel is NULL", [](gcap_ep_ops_t* o) { o->create_kernel = nullptr; }},
      {"get_run_resources is NULL", [](gcap_ep_ops_t* o) { o->get_run_resources = nullptr; }},
      {"synchronize is NULL", [](gcap_ep_ops_t* o) { o->synchronize = nullptr; }},
      {"begin_run is NULL", [](gcap_ep_ops_t* o) { o->begin_run = nullptr; }},
      {"end_run is NULL", [](gcap_ep_ops_t* o) { o->end_run = nullptr; }},
      {"begin_run is NULL", [](gcap_ep_ops_t* o) { o->end_run = EndRun; }, true},
      {"end_run is NULL", [](gcap_ep_ops_t* o) { o->begin_run = BeginRun; }, true},
      {"can_copy is NULL",
       [](gcap_ep_ops_t* o) { o->copy_tensors = [](void*, const gcap_copy_t*, size_t) { return gcap_status_t{}; }; }},
      {"copy_tensors is NULL",
       [](gcap_ep_ops_t* o) { o->can_copy = [](const void*, gcap_memory_t, gcap_memory_t) { return true; }; }},
      {"fork is NULL", [](gcap_ep_ops_t* o) { o->join = Destroy; }},
      {"join is NULL",
       [](gcap_ep_ops_t* o) { o->fork = [](void*, size_t, gcap_stream_t**) { return gcap_status_t{}; }; }},
      {"runs_on_host is true and runtime is set",
       [](gcap_ep_ops_t* o) {
         o->runs_on_host = true;
         o->runtime = reinterpret_cast<gcap_runtime_t*>(o);  // is not followed
       }},
      {"struct_version 0", [](gcap_ep_ops_t* o) { o->struct_version = 0; }},
      {"version 2 has struct_bytes 0", [](gcap_ep_ops_t* o) { o->struct_bytes = 0; }},
      {"version 3 has struct_bytes 8",
       [](gcap_ep_ops_t* o) {
         o->struct_version = 3;
         o->struct_bytes = 8;
       }},
      {"struct_bytes ", [](gcap_ep_ops_t* o) { o->struct_bytes = offsetof(gcap_ep_ops_t, struct_bytes); }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.named);
    Recorder recorder;
    gcap_ep_ops_t ops = row.minimal ? Minimal(&recorder) : Full(&recorder);
    ops.destroy = Destroy;
    row.spoil(&ops);
    gcap_ep_t* ep = reinterpret_cast<gcap_ep_t*>(&recorder);
    GCAP_EXPECT_FAILS(gcap_ep_create(&ops, &ep), GCAP_INVALID_ARGUMENT, row.named);
    EXPECT_EQ(ep, nullptr);
    EXPECT_TRUE(recorder.calls.empty()) << "destroy is not called on failure";
  }
}

TEST(Ep, CreateRefusesNoTable) {
  gcap_ep_t* ep = nullptr;
  GCAP_EXPECT_FAILS(gcap_ep_create(nullptr, &ep), GCAP_INVALID_ARGUMENT, "NULL");
}

TEST(Ep, RefusalNamesTheEp) {
  Recorder recorder;
  gcap_ep_ops_t ops = Full(&recorder);
  ops.supports = nullptr;
  gcap_ep_t* ep = nullptr;
  GCAP_EXPECT_FAILS(gcap_ep_create(&ops, &ep), GCAP_INVALID_ARGUMENT, "'full'");
}

TEST(Ep, ReleaseOfGraphsMayBeAbsentWhenTheRestIsThere) {
  Recorder recorder;
  gcap_ep_ops_t ops = Full(&recorder);
  ops.release_captured_graph = nullptr;
  gcap_ep_t* ep = nullptr;
  GCAP_ASSERT_OK(gcap_ep_create(&ops, &ep));
  GCAP_EXPECT_FAILS(gcap_ep_release_captured_graph(ep, 3), GCAP_FAILED_PRECONDITION, "graph id 3");
  GCAP_EXPECT_OK(gcap_ep_destroy(ep));
}

// A CPU EP is its kernels, too.
TEST(Ep, ThatRunsOnTheHostNeedsNothingElse) {
  Recorder recorder;
  gcap_ep_ops_t ops = {};
  ops.struct_version = GCAP_EP_OPS_VERSION;
  ops.struct_bytes = sizeof(gcap_ep_ops_t);
  ops.name = "cpu";
  ops.self = &recorder;
  ops.supports = Supports;
  ops.create_kernel = CreateKernel;
  ops.runs_on_host = true;
  gcap_ep_t* ep = nullptr;
  GCAP_ASSERT_OK(gcap_ep_create(&ops, &ep));
  EXPECT_TRUE(gcap_ep_runs_on_host(ep));
  EXPECT_FALSE(gcap_ep_is_graph_capture_enabled(ep));
  gcap_run_resources_t resources = {reinterpret_cast<gcap_stream_t*>(ep), nullptr, nullptr};
  GCAP_EXPECT_OK(gcap_ep_get_run_resources(ep, &resources));
  EXPECT_EQ(resources.stream, nullptr);
  GCAP_EXPECT_OK(gcap_ep_begin_run(ep, 0));
  GCAP_EXPECT_OK(gcap_ep_end_run(ep, nullptr, /*synchronize=*/true));
  GCAP_EXPECT_OK(gcap_ep_synchronize(ep));
  float from[] = {1, 2, 3}, to[] = {0, 0, 0};
  const gcap_memory_t host = {GCAP_MEMORY_HOST, 0}, pinned = {GCAP_MEMORY_PINNED, 0}, device = {GCAP_MEMORY_DEVICE, 0};
  const gcap_tensor_t src = {from, GCAP_DTYPE_F32, 1, {3}}, dst = {to, GCAP_DTYPE_F32, 2, {1, 3}};
  gcap_copy_t copy = {&src, host, &dst, pinned, nullptr};
  EXPECT_TRUE(gcap_ep_can_copy(ep, host, pinned));
  EXPECT_FALSE(gcap_ep_can_copy(ep, host, device));
  GCAP_EXPECT_OK(gcap_ep_copy_tensor(ep, &copy));
  EXPECT_EQ(std::vector<float>(to, to + 3), std::vector<float>({1, 2, 3}));
  copy.stream = reinterpret_cast<gcap_stream_t*>(ep);  // is not followed
  GCAP_EXPECT_FAILS(gcap_ep_copy_tensor(ep, &copy), GCAP_INVALID_ARGUMENT, "EP 'cpu' runs on the host");
  copy.dst_memory = device;
  GCAP_EXPECT_FAILS(gcap_ep_copy_tensor(ep, &copy), GCAP_INVALID_ARGUMENT, "'cpu' does not copy");
  GCAP_EXPECT_OK(gcap_ep_destroy(ep));
}

TEST(Ep, DestroyOfNullIsFine) { GCAP_EXPECT_OK(gcap_ep_destroy(nullptr)); }

TEST_F(EpOfTable, KeepsACopyOfTheTableAndItsName) {
  char name[] = "short-lived";
  gcap_ep_ops_t ops = Full(&recorder_);
  ops.name = name;
  Create(ops);
  std::memset(name, 'x', sizeof(name) - 1);
  std::memset(&ops, 0, sizeof(ops));
  EXPECT_STREQ(gcap_ep_name(ep_), "short-lived");
  GCAP_EXPECT_OK(gcap_ep_synchronize(ep_));
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
  EXPECT_EQ(recorder_.calls, std::vector<std::string>({"destroy", "destroy", "destroy", "destroy"}));
}

// Was: OK, and the end of the session then used the EP that was gone.
TEST_F(EpOfTable, DestroyIsRefusedWhileASessionLives) {
  for (bool captures : {false, true}) {
    Create(Full(&recorder_));
    recorder_.answer = captures;
    GCAP_EXPECT_OK(gcap_ep_claim(ep_));
    if (!captures) GCAP_EXPECT_OK(gcap_ep_claim(ep_));
    GCAP_EXPECT_FAILS(gcap_ep_destroy(ep_), GCAP_FAILED_PRECONDITION,
                      captures ? "EP 'full' has 1 live session;" : "EP 'full' has 2 live sessions;");
    EXPECT_EQ(std::count(recorder_.calls.begin(), recorder_.calls.end(), "destroy"), 0);
    gcap_ep_unclaim(ep_);
    if (!captures) gcap_ep_unclaim(ep_);
    GCAP_EXPECT_OK(gcap_ep_destroy(ep_));
    ep_ = nullptr;
    recorder_.calls.clear();
  }
}

TEST_F(EpOfTable, ThatCapturesGraphsIsClaimedAgainOnlyIfNothingRan) {
  Create(Full(&recorder_));
  recorder_.answer = true;
  GCAP_EXPECT_OK(gcap_ep_claim(ep_));
  GCAP_EXPECT_FAILS(gcap_ep_claim(ep_), GCAP_FAILED_PRECONDITION, "make an EP for each session");
  gcap_ep_unclaim(ep_);
  GCAP_EXPECT_OK(gcap_ep_claim(ep_));
  GCAP_EXPECT_OK(gcap_ep_begin_run(ep_, GCAP_GRAPH_ID_NONE));
  GCAP_EXPECT_OK(gcap_ep_end_run(ep_, nullptr, false));
  gcap_ep_unclaim(ep_);
  GCAP_EXPECT_OK(gcap_ep_claim(ep_));
  GCAP_EXPECT_OK(gcap_ep_begin_run(ep_, 3));
  GCAP_EXPECT_OK(gcap_ep_end_run(ep_, nullptr, false));
  gcap_ep_unclaim(ep_);
  GCAP_EXPECT_FAILS(gcap_ep_claim(ep_), GCAP_FAILED_PRECONDITION, "make an EP for each session");
}

TEST_F(EpOfTable, AbsentMembersHaveDefaults) {
  Create(Minimal(&recorder_));
  EXPECT_FALSE(gcap_ep_supports_concurrent_runs(ep_));
  EXPECT_FALSE(gcap_ep_is_graph_capture_enabled(ep_));
  EXPECT_FALSE(gcap_ep_is_graph_captured(ep_, 0));
  bool replayed = true;
  GCAP_EXPECT_OK(gcap_ep_replay_graph(ep_, 0, nullptr, &replayed));
  EXPECT_FALSE(replayed);
  GCAP_EXPECT_FAILS(gcap_ep_release_captured_graph(ep_, 5), GCAP_FAILED_PRECONDITION, "graph id 5");
  GCAP_EXPECT_OK(gcap_ep_begin_run(ep_, 0));
  GCAP_EXPECT_OK(gcap_ep_end_run(ep_, nullptr, /*synchronize=*/false));
  EXPECT_TRUE(recorder_.calls.empty());
}

// A turn must end as it began, whatever the implementer would answer by then.
TEST_F(EpOfTable, ConcurrentRunsAreAskedForOnce) {
  static int asked;
  asked = 0;
  gcap_ep_ops_t ops = Minimal(&recorder_);
  ops.is_concurrent_run_supported = [](const void*) { return ++asked != 1; };
  Create(ops);
  gcap_ep_begin_turn(ep_);
  gcap_ep_end_turn(ep_);
  EXPECT_FALSE(gcap_ep_supports_concurrent_runs(ep_));
  EXPECT_EQ(asked, 1);
}

TEST_F(EpOfTable, AbsentEndRunSynchronizesWhenAsked) {
  Create(Minimal(&recorder_));
  GCAP_EXPECT_OK(gcap_ep_end_run(ep_, nullptr, /*synchronize=*/true));
  EXPECT_EQ(recorder_.calls, std::vector<std::string>({"synchronize"}));
  recorder_.fails = true;
  GCAP_EXPECT_FAILS(gcap_ep_end_run(ep_, nullptr, /*synchronize=*/true), GCAP_INTERNAL, "synchronize");
}

TEST_F(EpOfTable, CallsReachTheMembersWithTheirArguments) {
  Create(Full(&recorder_));
  EXPECT_TRUE(gcap_ep_supports_concurrent_runs(ep_));
  for (bool answer : {true, false}) {
    recorder_.answer = answer;
    EXPECT_EQ(gcap_ep_supports(ep_, &model_, &node_), answer);
    EXPECT_EQ(gcap_ep_is_graph_capture_enabled(ep_), answer);
    EXPECT_EQ(gcap_ep_is_graph_captured(ep_, 11), answer);
    EXPECT_EQ(recorder_.graph_id, 11);
    bool replayed = !answer;
    const gcap_graph_replay_options_t options = ReplayOptions(/*synchronize=*/answer);
    GCAP_EXPECT_OK(gcap_ep_replay_graph(ep_, 12, &options, &replayed));
    EXPECT_EQ(replayed, answer);
    EXPECT_EQ(recorder_.graph_id, 12);
    EXPECT_EQ(recorder_.synchronize, answer);
  }
  recorder_.calls.clear();
  GCAP_EXPECT_OK(gcap_ep_begin_run(ep_, 13));
  EXPECT_EQ(recorder_.graph_id, 13);
  gcap_status_t run_status = GCAP_STATUS(GCAP_UNAVAILABLE, "the kernels' outcome");
  const gcap_status_t given = run_status;
  GCAP_EXPECT_FAILS(gcap_ep_end_run(ep_, run_status, true), GCAP_UNAVAILABLE, "the kernels' outcome");
  EXPECT_EQ(recorder_.run_status, given);
  EXPECT_TRUE(recorder_.synchronize);
  GCAP_EXPECT_OK(gcap_ep_release_captured_graph(ep_, 15));
  EXPECT_EQ(recorder_.graph_id, 15);
  GCAP_EXPECT_OK(gcap_ep_synchronize(ep_));
  EXPECT_EQ(recorder_.calls,
            std::vector<std::string>({"begin_run", "end_run", "release_captured_graph", "synchronize"}));
}

TEST_F(EpOfTable, ReplayOfAnEpThatCannotSignRefusesBindings) {
  const int64_t shape[] = {1};
  const gcap_graph_binding_t binding = {"x", shape, 1, shape};
  gcap_graph_replay_options_t options = ReplayOptions(/*synchronize=*/false);
  options.check_bindings = true;
  options.bindings = &binding;
  options.num_bindings = 1;
  gcap_ep_ops_t ops = Full(&recorder_);
  Create(ops);
  bool replayed = true;
  GCAP_EXPECT_FAILS(gcap_ep_replay_graph(ep_, 0, &options, &replayed), GCAP_FAILED_PRECONDITION, "no sign_graph");
  EXPECT_FALSE(replayed);
  EXPECT_TRUE(recorder_.calls.empty());
  GCAP_EXPECT_OK(gcap_ep_destroy(ep_));
  ops.sign_graph = SignGraph;
  Create(ops);
  GCAP_EXPECT_OK(gcap_ep_replay_graph(ep_, 0, &options, &replayed));
  EXPECT_EQ(recorder_.bindings, &binding);
}

TEST_F(EpOfTable, TurnsOfAnEpWithoutConcurrentRunsExcludeEachOther) {
  for (const bool concurrent : {false, true}) {
    gcap_ep_ops_t ops = Minimal(&recorder_);
    ops.supports_concurrent_runs = concurrent;
    Create(ops);
    constexpr int kThreads = 4, kTurns = 200;
    std::atomic<int> inside{0}, most{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kTurns; ++i) {
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
    GCAP_EXPECT_OK(gcap_ep_destroy(ep_));
    ep_ = nullptr;
  }
}

TEST_F(EpOfTable, FailuresOfMembersAreHandedOn) {
  Create(Full(&recorder_));
  recorder_.fails = true;
  gcap_run_resources_t resources;
  gcap_kernel_t kernel;
  bool replayed = false;
  GCAP_EXPECT_FAILS(gcap_ep_get_run_resources(ep_, &resources), GCAP_INTERNAL, "get_run_resources");
  GCAP_EXPECT_FAILS(gcap_ep_create_kernel(ep_, &model_, &node_, &kernel), GCAP_INTERNAL, "create_kernel");
  GCAP_EXPECT_FAILS(gcap_ep_begin_run(ep_, 0), GCAP_INTERNAL, "begin_run");
  GCAP_EXPECT_FAILS(gcap_ep_end_run(ep_, nullptr, false), GCAP_INTERNAL, "end_run");
  GCAP_EXPECT_FAILS(gcap_ep_replay_graph(ep_, 0, nullptr, &replayed), GCAP_INTERNAL, "replay_graph");
  GCAP_EXPECT_FAILS(gcap_ep_release_captured_graph(ep_, 0), GCAP_INTERNAL, "release_captured_graph");
  GCAP_EXPECT_FAILS(gcap_ep_synchronize(ep_), GCAP_INTERNAL, "synchronize");
  recorder_.fails = false;
}

TEST_F(EpOfTable, KernelWithoutComputeIsRefusedAndItsNodeNamed) {
  Create(Full(&recorder_));
  gcap_status_t (*const compute)(void*, const gcap_kernel_context_t*) = [](void*, const gcap_kernel_context_t*) {
    return gcap_status_t(nullptr);
  };
  void (*const destroy)(void*) = [](void*) {};
  const gcap_kernel_t whole = {&recorder_, compute, destroy};
  gcap_kernel_t kernel;
  recorder_.kernel = whole;
  GCAP_EXPECT_OK(gcap_ep_create_kernel(ep_, &model_, &node_, &kernel));
  EXPECT_EQ(kernel.self, &recorder_);
  recorder_.kernel.compute = nullptr;
  GCAP_EXPECT_FAILS(gcap_ep_create_kernel(ep_, &model_, &node_, &kernel), GCAP_INVALID_ARGUMENT,
                    "'node_7' without compute");
}

// Was: refused, which no header said.
TEST_F(EpOfTable, KernelWithoutDestroyIsFine) {
  Create(Full(&recorder_));
  recorder_.kernel.compute = [](void*, const gcap_kernel_context_t*) { return gcap_status_t(nullptr); };
  gcap_kernel_t kernel;
  GCAP_EXPECT_OK(gcap_ep_create_kernel(ep_, &model_, &node_, &kernel));
  EXPECT_EQ(kernel.destroy, nullptr);
}

TEST_F(EpOfTable, NodeWithoutNameOrTypeIsRefused) {
  Create(Full(&recorder_));
  gcap_node_t node = node_;
  gcap_kernel_t kernel;
  node.name = nullptr;
  GCAP_EXPECT_FAILS(gcap_ep_create_kernel(ep_, &model_, &node, &kernel), GCAP_INVALID_ARGUMENT, "node->name is NULL");
  node = node_;
  node.op_type = nullptr;
  GCAP_EXPECT_FAILS(gcap_ep_create_kernel(ep_, &model_, &node, &kernel), GCAP_INVALID_ARGUMENT,
                    "node->op_type is NULL");
}

}  // namespace
