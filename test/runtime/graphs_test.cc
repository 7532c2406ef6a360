// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Several graphs of one EP: each is captured at its first try, none meets another or an eager run, and with
// arena.share_graph_memory they keep no more than the largest of them.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph_buffers.h"
#include "gcap/graph_guards.h"
#include "gcap/graph_plan.h"
#include "gcap/kit/ep_ops.h"
#include "gtest/gtest.h"
#include "test/runtime/runtime_fixture.h"
#include "test/support/log_catcher.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kUnit = 64 << 10;

class EpGraphs : public RuntimeTest {
 protected:
  // One model for each graph id: a copy by way of some units of scratch.
  struct Model {
    explicit Model(size_t units) : scratch_bytes(units * kUnit), x(Floats(64)), y(Floats(64)) {}
    const size_t scratch_bytes;
    DeviceFloats x, y;
    void* scratch = nullptr;
  };
  void AddModels(const std::vector<size_t>& units) {
    models_.clear();
    for (size_t n : units) models_.push_back(std::make_unique<Model>(n));
  }
  Outcome RunModel(int id) {
    Model* const model = models_[static_cast<size_t>(id)].get();
    return Run(id, [model](const gcap_run_resources_t& run) { return WorkOfModel(model, &run); });
  }
  // One run of each model, with new content.
  void RunAll(float seed) {
    for (size_t i = 0; i < models_.size(); ++i) {
      const int id = static_cast<int>(i);
      const Floats content(64, seed + static_cast<float>(i));
      models_[i]->x.Set(content);
      models_[i]->y.Set(Floats(64, -1.0f));
      if (!Replay(id)) {
        const Outcome outcome = RunModel(id);
        EXPECT_TRUE(outcome.ok()) << outcome.message;
      }
      EXPECT_EQ(models_[i]->y.Get(), content) << "graph " << id;
    }
  }
  // Warms each up in turn, then captures one after the other, which must succeed at once.
  void CaptureAll() {
    for (int run = 0; run < 3; ++run) RunAll(static_cast<float>(10 * run));
    for (size_t i = 0; i < models_.size(); ++i) {
      const gcap_graph_info_t info = Info(static_cast<int>(i));
      EXPECT_EQ(info.captures, 1u);
      EXPECT_EQ(info.failures, 0u);
    }
  }
  size_t SumOfBytes() {
    size_t bytes = 0;
    for (size_t i = 0; i < models_.size(); ++i) bytes += Retained(static_cast<int>(i));
    return bytes;
  }
  // What its graph keeps of the scratch.
  size_t Retained(int id) {
    const gcap_graph_info_t info = Info(id);
    return info.bytes - info.exec_bytes;
  }
  static gcap_status_t WorkOfModel(void* user, const gcap_run_resources_t* run) {
    Model* model = static_cast<Model*>(user);
    return CopyByScratch(*run, model->x, model->y, model->scratch_bytes, &model->scratch);
  }
  gcap_status_t TryPlan(size_t count, gcap_graph_plan_t* out_plan) {
    return PlanOnRuntime(runtime_, planned_.data(), count, out_plan);
  }
  gcap_graph_plan_t Plan() {
    PlanModels();
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    GCAP_EXPECT_OK(TryPlan(planned_.size(), &plan));
    return plan;
  }
  void PlanModels() {
    planned_.clear();
    for (size_t i = 0; i < models_.size(); ++i) {
      planned_.push_back({static_cast<int>(i), WorkOfModel, models_[i].get()});
    }
  }
  static gcap_options_t Options(bool shared) {
    gcap_options_t options = GraphOptions(2);
    options.share_graph_memory = shared;
    return options;
  }

  std::vector<std::unique_ptr<Model>> models_;
  std::vector<PlannedWork> planned_;
};

TEST_F(EpGraphs, EachIsCapturedAtItsFirstTryWithoutACallUpstream) {
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared ? "shared" : "apart");
    gcap_options_t options = Options(shared);
    options.external_alloc = Memory::Alloc;
    options.external_free = Memory::Free;
    options.arena.extend_as_requested = true;  // no region is larger by chance
    options.arena.initial_chunk_bytes = 256;
    Create(options);
    Memory::calls_in_capture = 0;
    AddModels({1, 4, 4, 2, 8});
    CaptureAll();
    EXPECT_EQ(Memory::calls_in_capture, 0);
    RunAll(100.0f);
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
  }
}

TEST_F(EpGraphs, SharedTheyKeepWhatTheLargestNeedsAndTheLastGivesItBack) {
  for (const bool largest_first : {false, true}) {
    Create(Options(/*shared=*/true));
    std::vector<size_t> units = {1, 2, 3, 4, 5, 6, 7, 8};
    if (largest_first) std::reverse(units.begin(), units.end());
    AddModels(units);
    CaptureAll();
    EXPECT_EQ(SumOfBytes(), 8 * kUnit);
    EXPECT_EQ(Retained(0), kUnit) << "its part";
    for (float round = 0; round < 3; ++round) RunAll(50 * round);
    gcap_scratch_t* scratch = gcap_runtime_scratch(runtime_);
    int left = 8;
    for (int id : {3, 0, 7, 5, 1, 6, 4, 2}) {
      GCAP_EXPECT_OK(gcap_scratch_trim(scratch));
      EXPECT_GE(ScratchStats().total_allocated_bytes, 8 * kUnit) << left << " graphs are left";
      EXPECT_EQ(Retained(id), 8 * kUnit / static_cast<size_t>(left));
      GCAP_EXPECT_OK(gcap_runtime_release(runtime_, id));
      GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
      --left;
    }
    GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_));
    GCAP_EXPECT_OK(gcap_scratch_trim(scratch));
    EXPECT_EQ(ScratchStats().total_allocated_bytes, 0u);
    RunAll(7.0f);  // and from the beginning
  }
}

// After one eager run of each, before any is captured.
TEST_F(EpGraphs, PlanIsWhatTheyWillKeep) {
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared ? "shared" : "apart");
    Create(Options(shared));
    AddModels({1, 5, 3, 8});
    RunAll(0.0f);
    const gcap_graph_plan_t plan = Plan();
    EXPECT_EQ(plan.graphs, 4u);
    EXPECT_EQ(plan.retained_bytes, shared ? 8 * kUnit : 17 * kUnit);
    EXPECT_EQ(plan.nodes, 8u);
    EXPECT_EQ(plan.bytes, plan.retained_bytes + plan.exec_bytes);
    for (int id = 0; id < 4; ++id) EXPECT_EQ(Info(id).state, GCAP_GRAPH_WARMING);
    EXPECT_EQ(ScratchStats().in_use_bytes, 0);
    for (int run = 1; run < 3; ++run) RunAll(static_cast<float>(10 * run));
    size_t exec_bytes = 0;
    for (int id = 0; id < 4; ++id) exec_bytes += Info(id).exec_bytes;
    EXPECT_EQ(plan.exec_bytes, exec_bytes);
    EXPECT_EQ(plan.retained_bytes, SumOfBytes());
    EXPECT_EQ(Plan().bytes, plan.bytes) << "and of those that are captured it is what they keep";
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
  }
}

TEST_F(EpGraphs, PlanOfARunOnBuffersGivesTheWorkTheirAddresses) {
  Create(GraphOptions(1));
  const DeviceFloats x(Floats(64));
  const gcap_graph_buffer_t item = {"x", x.get(), x.Bytes(), 0};
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = &item;
  buffers.count = 1;
  void* address = nullptr;
  gcap_run_t run = RunOf(0);
  run.buffers = &buffers;
  run.user = &address;
  run.work = [](void* out_address, const gcap_run_resources_t* resources) {
    *static_cast<void**>(out_address) = resources->addresses[0];
    return GCAP_CUDA(cudaMemsetAsync(resources->addresses[0], 0, sizeof(float), resources->cuda_stream));
  };
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_ASSERT_OK(gcap_runtime_plan(runtime_, &run, 1, &plan));
  EXPECT_EQ(address, x.get());
  EXPECT_EQ(plan.nodes, 1u);
}

// The work finds them in device memory, as in a capture.
TEST_F(EpGraphs, PlanOfValuesInMemoryCountsThem) {
  Create(Options(/*shared=*/false));
  const DeviceFloats x({1});
  const float number = 3;
  const unsigned char more[50] = {};
  const gcap_graph_value_t values[] = {
      {"number", &number, sizeof(number), GCAP_GRAPH_VALUE_BYTES, nullptr, nullptr, false, true},
      {"more", more, sizeof(more), GCAP_GRAPH_VALUE_BYTES, nullptr, nullptr, false, true}};
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.values = values;
  buffers.num_values = 2;
  std::array<gcap_run_t, 2> runs;
  for (int i = 0; i < 2; ++i) {
    gcap_run_t& run = runs[static_cast<size_t>(i)] = RunOf(i);
    run.buffers = &buffers;
    run.user = x.get();
    run.work = [](void* to, const gcap_run_resources_t* resources) {
      cudaPointerAttributes memory = {};
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaPointerGetAttributes(&memory, resources->values[1])));
      EXPECT_EQ(memory.type, cudaMemoryTypeDevice);
      return GCAP_CUDA(
          cudaMemcpyAsync(to, resources->values[0], sizeof(float), cudaMemcpyDeviceToDevice, resources->cuda_stream));
    };
  }
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_ASSERT_OK(gcap_runtime_plan(runtime_, runs.data(), runs.size(), &plan));
  EXPECT_EQ(plan.nodes, 2u);
  EXPECT_EQ(plan.retained_bytes, 2u * (16 + 64));
  EXPECT_EQ(plan.bytes, plan.retained_bytes + plan.exec_bytes);
}

// A graph that is there counts as it is, also where a key names it.
TEST_F(EpGraphs, PlanOfAKeyThatHasAGraphCallsNoWork) {
  Create(Options(/*shared=*/false));
  const DeviceFloats x({1});
  struct Counted {
    void* memory;
    int calls;
  } counted = {x.get(), 0};
  const int32_t number = 3;
  const gcap_graph_key_t key = {&number, sizeof(number), "decode"};
  gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, /*synchronize=*/true);
  run.key = &key;
  run.user = &counted;
  run.work = [](void* user, const gcap_run_resources_t* resources) {
    auto* counted = static_cast<Counted*>(user);
    ++counted->calls;
    return GCAP_CUDA(cudaMemsetAsync(counted->memory, 0, sizeof(float), resources->cuda_stream));
  };
  for (const bool has_graph : {false, true}) {
    const int calls = counted.calls;
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    GCAP_ASSERT_OK(gcap_runtime_plan(runtime_, &run, 1, &plan));
    EXPECT_EQ(plan.graphs, 1u);
    EXPECT_EQ(counted.calls == calls, has_graph);
    if (!has_graph) GCAP_ASSERT_OK(gcap_runtime_warm_up(runtime_, &run, 1, nullptr, nullptr));
  }
}

// The memory of one rehearsal serves the next.
TEST_F(EpGraphs, PlanNeedsTheMemoryOfTheLargest) {
  gcap_options_t options = Options(/*shared=*/false);
  options.arena.initial_chunk_bytes = options.arena.memory_limit_bytes = 10 * kUnit;
  Create(options);
  AddModels({8, 5, 8, 3, 8});
  RunAll(0.0f);
  EXPECT_EQ(Plan().retained_bytes, 32 * kUnit);
  EXPECT_LE(ScratchStats().total_allocated_bytes, static_cast<int64_t>(10 * kUnit));
}

TEST_F(EpGraphs, PlanOfWorkThatFailsNamesTheIdAndLeavesNothing) {
  for (const bool shared : {false, true}) {
    Create(Options(shared));
    AddModels({2, 4});
    RunAll(0.0f);
    PlanModels();
    planned_[1].work = [](void* model, const gcap_run_resources_t* run) {
      GCAP_RETURN_IF_ERROR(WorkOfModel(model, run));
      return GCAP_STATUS(GCAP_UNAVAILABLE, "the kernel is out of ideas");
    };
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    const Outcome outcome(TryPlan(2, &plan));
    EXPECT_EQ(outcome.code, GCAP_CAPTURE_INVALIDATED);
    EXPECT_TRUE(outcome.Names("graph id 1") && outcome.Names("out of ideas")) << outcome.message;
    EXPECT_EQ(plan.bytes, 0u);
    const std::pair<PlannedWork, const char*> wrong[] = {{{-3, WorkOfModel, nullptr}, "runs[1].id is -3"},
                                                         {{-1, WorkOfModel, nullptr}, "runs[1].id is -1"},
                                                         {{1, nullptr, nullptr}, "runs[1].work"}};
    for (const auto& row : wrong) {
      planned_[1] = row.first;
      GCAP_EXPECT_FAILS(TryPlan(2, &plan), GCAP_INVALID_ARGUMENT, row.second);
    }
    GCAP_EXPECT_OK(TryPlan(0, &plan));
    EXPECT_EQ(plan.graphs, 0u);
    for (int run = 1; run < 3; ++run) RunAll(static_cast<float>(run));
    EXPECT_EQ(Info(1).captures, 1u);
  }
}

TEST_F(EpGraphs, SharedMemoryCountsOnceForTheBudget) {
  for (const bool shared : {true, false}) {
    gcap_options_t options = Options(shared);
    options.graph.max_bytes = 88 * kUnit;  // room for four executables
    Create(options);
    AddModels({80, 70, 60, 50});
    for (int run = 0; run < 3; ++run) RunAll(static_cast<float>(run));
    uint64_t evictions = 0;
    for (int id = 0; id < 4; ++id) evictions += Info(id).evictions;
    EXPECT_EQ(evictions, shared ? 0u : 3u);
  }
}

// By the work's failure, or since the stream has an open reservation.
TEST_F(EpGraphs, CaptureThatFailsLeavesTheOthersAlone) {
  for (const bool shared : {false, true}) {
    for (const bool is_in_the_way : {false, true}) {
      Create(Options(shared));
      AddModels({4});
      CaptureAll();
      models_.push_back(std::make_unique<Model>(2));
      for (int run = 0; run < 2; ++run) EXPECT_TRUE(RunModel(1).ok());
      const gcap_run_resources_t run = Resources();
      gcap_scratch_reservation_t* in_the_way = nullptr;
      if (is_in_the_way) GCAP_ASSERT_OK(gcap_scratch_reservation_open(run.scratch, run.stream, &in_the_way));
      const Outcome outcome = Run(1, [&](const gcap_run_resources_t& run) {
        GCAP_RETURN_IF_ERROR(CopyByScratch(run, models_[1]->x, models_[1]->y, kUnit, &models_[1]->scratch));
        return is_in_the_way ? nullptr : GCAP_STATUS(GCAP_UNAVAILABLE, "the kernel is out of ideas");
      });
      EXPECT_EQ(outcome.code, GCAP_CAPTURE_INVALIDATED);
      EXPECT_TRUE(outcome.Names(is_in_the_way ? "has an open scratch reservation" : "out of ideas")) << outcome.message;
      gcap_scratch_reservation_release(in_the_way);
      EXPECT_EQ(Retained(0), 4 * kUnit) << "alone again";
      for (int round = 0; round < 3; ++round) RunAll(static_cast<float>(round));
      EXPECT_EQ(Info(1).captures, 1u);
      EXPECT_EQ(Retained(0), (shared ? 2 : 4) * kUnit);
    }
  }
}

TEST_F(EpGraphs, CaptureThatCannotBePreparedIsTriedAllTheSame) {
  gcap_options_t options = Options(/*shared=*/false);
  options.arena.initial_chunk_bytes = options.arena.memory_limit_bytes = 6 * kUnit;
  Create(options);
  AddModels({4});
  CaptureAll();
  models_.push_back(std::make_unique<Model>(2));
  const LogCatcher log;
  for (int run = 0; run < 3; ++run) EXPECT_TRUE(RunModel(1).ok());
  EXPECT_NE(log.text().find("a capture may lack memory"), std::string::npos) << log.text();
  EXPECT_TRUE(IsCaptured(1)) << "its peak is not the stream's";
  RunAll(5.0f);
}

// A run by key is one of its id to the scratch: each graph keeps memory of its own, and frees it with the id.
TEST_F(EpGraphs, OfKeysKeepMemoryOfTheirOwn) {
  gcap_options_t options = GraphOptions();
  options.graph.min_num_runs_before_capture = 1;
  Create(options);
  AddModels({1, 2});
  const int numbers[2] = {1, 2};
  const gcap_graph_key_t keys[2] = {{&numbers[0], sizeof(int), "one"}, {&numbers[1], sizeof(int), "two"}};
  int ids[2] = {0, 0};
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 2; ++i) {
      const Floats content(64, static_cast<float>(10 * round + i));
      models_[static_cast<size_t>(i)]->x.Set(content);
      gcap_run_result_t result;
      gcap_run_result_init(&result);
      gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, /*synchronize=*/true);
      run.key = &keys[i];
      run.work = WorkOfModel;
      run.user = models_[static_cast<size_t>(i)].get();
      run.result = &result;
      GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
      EXPECT_EQ(models_[static_cast<size_t>(i)]->y.Get(), content);
      const gcap_run_outcome_t expected[] = {GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED, GCAP_RUN_REPLAYED};
      EXPECT_EQ(result.outcome, expected[round]);
      ids[i] = result.id;
    }
  }
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_STREQ(Info(ids[1]).name, "two");
  EXPECT_GE(Retained(ids[0]), kUnit);
  EXPECT_GE(Retained(ids[1]), 2 * kUnit);
  EXPECT_TRUE(IsCaptured(ids[0]));
  GCAP_EXPECT_OK(gcap_runtime_release(runtime_, ids[0]));
  EXPECT_FALSE(IsCaptured(ids[0]));
  bool replayed = true;
  gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE);
  run.key = &keys[0];
  GCAP_EXPECT_OK(gcap_runtime_replay(runtime_, &run, &replayed));
  EXPECT_FALSE(replayed);
  GCAP_EXPECT_FAILS(gcap_runtime_replay(runtime_, &run, nullptr), GCAP_NOT_FOUND, "'one'");
}

// Of a run that must be a replay.
TEST_F(EpGraphs, AReplayThatIsRefusedNamesTheGuard) {
  Create(GraphOptions(0));
  int decision = 1;
  const DeviceFloats x{Floats(8)}, y{Floats(8)};
  const Work work = [&](const gcap_run_resources_t& run) -> gcap_status_t {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.name = "decision";
    guard.address = &decision;
    guard.bytes = sizeof(decision);
    guard.low = guard.high = decision;
    GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    return Copy(run, x, y);
  };
  EXPECT_TRUE(RunWhole(0, work).ok());
  for (const bool synchronize : {false, true}) {
    const gcap_run_t run = RunOf(0, synchronize);
    decision = 1;
    GCAP_EXPECT_OK(gcap_runtime_replay(runtime_, &run, nullptr));
    decision = 2;
    GCAP_EXPECT_FAILS(gcap_runtime_replay(runtime_, &run, nullptr), GCAP_FAILED_PRECONDITION, "guard 'decision'");
  }
  const gcap_run_t unknown = RunOf(1);
  GCAP_EXPECT_FAILS(gcap_runtime_replay(runtime_, &unknown, nullptr), GCAP_NOT_FOUND, "graph id 1 is not captured");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
