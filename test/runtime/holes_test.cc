// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Holes in runs of a runtime: one reservation of scratch over all segments, functions that find the runtime's
// resources, forked streams around a hole, and threads with graphs of their own.

#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gcap/graph_holes.h"
#include "gcap/graph_plan.h"
#include "gtest/gtest.h"
#include "test/runtime/runtime_fixture.h"
#include "test/support/log_catcher.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);

class RuntimeHoles : public RuntimeTest {
 protected:
  // A copy of x by way of a block of scratch that crosses the hole, and in the hole by way of another one.
  struct Around {
    explicit Around(RuntimeHoles* test) : test(test) {}
    RuntimeHoles* test;
    DeviceFloats x{Floats(kCount)}, y{Floats(kCount)}, z{Floats(kCount)};
    int calls = 0;
    bool break_where_refused = false, waits = false;
    void *crossing = nullptr, *inside = nullptr;

    static gcap_status_t Call(void* user, const gcap_run_resources_t* run) {
      Around* around = static_cast<Around*>(user);
      ++around->calls;
      if (around->waits) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(run->cuda_stream)));
      return CopyByScratch(*run, around->y, around->z, kBytes, &around->inside);
    }
    gcap_status_t Issue(const gcap_run_resources_t& run) {
      const cudaStream_t stream = gcap_stream_handle(run.stream);
      GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, kBytes, run.stream, &crossing));
      GCAP_RETURN_IF_ERROR(Move(crossing, x.get(), stream));
      GCAP_RETURN_IF_ERROR(Move(y.get(), x.get(), stream));
      gcap_graph_hole_t hole;
      gcap_graph_hole_init(&hole);
      hole.name = "copy";
      hole.work = Call;
      hole.user = this;
      hole.break_where_refused = break_where_refused;
      GCAP_RETURN_IF_ERROR(gcap_graph_hole_issue(&run, &hole));
      GCAP_RETURN_IF_ERROR(Move(y.get(), crossing, stream));
      return gcap_scratch_free(run.scratch, crossing);
    }
    static gcap_status_t Move(void* to, const void* from, cudaStream_t stream) {
      return GCAP_CUDA(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, stream));
    }
    void ExpectRight(int id, float value) {
      x.Set(Floats(kCount, value));
      y.Set(Floats(kCount));
      z.Set(Floats(kCount));
      const Outcome run = test->RunWhole(id, [this](const gcap_run_resources_t& run) { return Issue(run); });
      EXPECT_TRUE(run.ok()) << run.message;
      EXPECT_EQ(y.Get(), Floats(kCount, value));
      EXPECT_EQ(z.Get(), Floats(kCount, value));
    }
  };
};

TEST_F(RuntimeHoles, OneReservationIsKeptOverAllSegments) {
  for (const bool is_shared : {false, true}) {
    SCOPED_TRACE(is_shared ? "shared" : "of each graph");
    gcap_options_t options = GraphOptions(1);
    options.share_graph_memory = is_shared;
    const LogCatcher log;
    Create(options);
    Around around(this), other(this);
    for (int round = 1; round <= 4; ++round) {
      around.ExpectRight(0, static_cast<float>(round));
      other.ExpectRight(1, static_cast<float>(10 * round));
      EXPECT_EQ(around.calls, round);
      if (round >= 2) {
        EXPECT_NE(around.inside, around.crossing) << "what crosses the hole is the graph's";
      }
    }
    EXPECT_EQ(Info(0).captures, 1u);
    EXPECT_EQ(Info(0).holes, 1u);
    EXPECT_GE(Info(0).bytes - Info(0).exec_bytes, is_shared ? kBytes / 2 : kBytes);
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
    GCAP_EXPECT_OK(gcap_runtime_release(runtime_, 0));
    around.ExpectRight(0, 77);
    Destroy();
    EXPECT_EQ(log.text(), "");
  }
}

TEST_F(RuntimeHoles, AFunctionFindsTheResourcesOfTheRun) {
  Create(GraphOptions(1));
  struct Seen {
    std::vector<gcap_run_resources_t> all;
  } seen;
  const Work work = [&](const gcap_run_resources_t& run) {
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.work = [](void* user, const gcap_run_resources_t* resources) -> gcap_status_t {
      static_cast<Seen*>(user)->all.push_back(*resources);
      return nullptr;
    };
    hole.user = &seen;
    return gcap_graph_hole_issue(&run, &hole);
  };
  const LogCatcher log;
  for (int round = 0; round < 3; ++round) EXPECT_TRUE(RunWhole(0, work).ok());
  const gcap_run_resources_t own = Resources();
  ASSERT_EQ(seen.all.size(), 3u);
  for (const gcap_run_resources_t& resources : seen.all) {
    EXPECT_EQ(resources.stream, own.stream);
    EXPECT_EQ(resources.cuda_stream, gcap_stream_handle(own.stream));
    EXPECT_EQ(resources.scratch, own.scratch);
    EXPECT_EQ(resources.allocator, own.allocator);
  }
}

TEST_F(RuntimeHoles, ForkedStreamsAreJoinedBeforeAHoleAndForkedAgainBehindIt) {
  Create(GraphOptions(1));
  Around around(this);
  const DeviceFloats copy{Floats(kCount)};
  bool joins = true;
  const Work work = [&](const gcap_run_resources_t& run) -> gcap_status_t {
    gcap_stream_t* forked = nullptr;
    for (int part = 0; part < 2; ++part) {
      GCAP_RETURN_IF_ERROR(gcap_runtime_fork(runtime_, 1, &forked));
      GCAP_RETURN_IF_ERROR(Around::Move(copy.get(), around.x.get(), gcap_stream_handle(forked)));
      if (joins) GCAP_RETURN_IF_ERROR(gcap_runtime_join(runtime_));
      if (part == 0) GCAP_RETURN_IF_ERROR(around.Issue(run));
      if (!joins) return gcap_runtime_join(runtime_);
    }
    return nullptr;
  };
  for (int round = 0; round < 3; ++round) {
    around.x.Set(Floats(kCount, static_cast<float>(round + 1)));
    const Outcome run = RunWhole(0, work);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(copy.Get(), Floats(kCount, static_cast<float>(round + 1)));
  }
  EXPECT_EQ(Info(0).captures, 1u);
  joins = false;
  const LogCatcher log;
  EXPECT_TRUE(RunWhole(1, work).ok()) << "an eager run orders what it likes";
  EXPECT_TRUE(RunWhole(1, work).ok());
  EXPECT_NE(log.text().find("hole 'copy': work of other streams was not joined"), std::string::npos) << log.text();
  EXPECT_FALSE(IsCaptured(1));
}

TEST_F(RuntimeHoles, AFunctionForksNothingOfTheRuntimeInAnyRun) {
  Create(GraphOptions(0));
  const Work work = [&](const gcap_run_resources_t& run) {
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.work = [](void* runtime, const gcap_run_resources_t*) {
      gcap_stream_t* stream = nullptr;
      return gcap_runtime_fork(static_cast<gcap_runtime_t*>(runtime), 1, &stream);
    };
    hole.user = runtime_;
    return gcap_graph_hole_issue(&run, &hole);
  };
  const LogCatcher log;
  for (const int id : {GCAP_GRAPH_ID_NONE, 0, 0}) {
    const Outcome run = RunWhole(id, work);
    EXPECT_TRUE(run.Names("gcap_runtime_fork: called by the function of a hole")) << run.message;
  }
}

TEST_F(RuntimeHoles, AnExceptionOfAFunctionReachesTheCaller) {
  Create(GraphOptions(0));
  bool throws = true;
  const Work work = [&](const gcap_run_resources_t& run) {
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.work = [](void* throws, const gcap_run_resources_t*) -> gcap_status_t {
      if (*static_cast<bool*>(throws)) throw std::runtime_error("thrown in a hole");
      return nullptr;
    };
    hole.user = &throws;
    return gcap_graph_hole_issue(&run, &hole);
  };
  const LogCatcher log;
  for (const int id : {GCAP_GRAPH_ID_NONE, 0, 0}) EXPECT_THROW(RunWhole(id, work), std::runtime_error);
  throws = false;
  for (const int id : {GCAP_GRAPH_ID_NONE, 0, 0}) EXPECT_TRUE(RunWhole(id, work).ok());
}

TEST_F(RuntimeHoles, APlanCountsAllSegments) {
  Create(GraphOptions(1));
  Around around(this);
  around.ExpectRight(0, 1);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = 0;
  run.work = [](void* user, const gcap_run_resources_t* resources) {
    return static_cast<Around*>(user)->Issue(*resources);
  };
  run.user = &around;
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_OK(gcap_runtime_plan(runtime_, &run, 1, &plan));
  EXPECT_EQ(plan.graphs, 1u);
  EXPECT_EQ(plan.nodes, 3u);
  EXPECT_EQ(around.calls, 1);
  around.ExpectRight(0, 2);
  EXPECT_EQ(Info(0).nodes, plan.nodes);
  EXPECT_EQ(Info(0).exec_bytes, plan.exec_bytes);
}

// The scratch of a step is the graph's as long as the step is part of the segment.
TEST_F(RuntimeHoles, AStepThatCapturesMayRefuseFindsItsScratchEitherWay) {
  for (const bool waits : {false, true}) {
    SCOPED_TRACE(waits);
    Create(GraphOptions(1));
    Around around(this);
    around.break_where_refused = true;
    around.waits = waits;
    const LogCatcher log;
    for (int round = 1; round <= 5; ++round) around.ExpectRight(0, static_cast<float>(round));
    EXPECT_EQ(around.calls, waits ? 6 : 2) << "twice in the run whose capture was refused; or in two runs alone";
    EXPECT_EQ(Info(0).captures, 1u);
    EXPECT_EQ(Info(0).holes, waits);
    EXPECT_EQ(Info(0).refused_steps, waits);
    EXPECT_EQ(log.text().find("graph id 0: a capture refused the step 'copy'") != std::string::npos, waits)
        << log.text();
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
    Destroy();
  }
}

TEST_F(RuntimeHoles, APlanAWarmUpAndARecordedRunEndInAGraphWithARefusedStep) {
  Create(GraphOptions(1));
  Around around(this);
  around.break_where_refused = around.waits = true;
  gcap_run_t run;
  gcap_run_init(&run);
  run.work = [](void* user, const gcap_run_resources_t* resources) {
    return static_cast<Around*>(user)->Issue(*resources);
  };
  run.user = &around;
  run.synchronize = true;
  const LogCatcher log;
  for (const bool capture_only : {false, true}) {
    run.id = capture_only;
    run.capture_only = capture_only;
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    if (!capture_only) {
      around.ExpectRight(run.id, 3);  // finds the memory
    }
    GCAP_EXPECT_OK(gcap_runtime_plan(runtime_, &run, 1, &plan));
    EXPECT_EQ(plan.nodes, 3u);
    GCAP_EXPECT_OK(gcap_runtime_warm_up(runtime_, &run, 1, nullptr, nullptr));
    EXPECT_EQ(Info(run.id).refused_steps, 1u);
    EXPECT_EQ(Info(run.id).nodes, plan.nodes);
    EXPECT_EQ(Info(run.id).exec_bytes, plan.exec_bytes);
    around.ExpectRight(run.id, 4);
  }
}

TEST_F(RuntimeHoles, ThreadsHaveGraphsWithHolesOfTheirOwn) {
  for (const gcap_graph_scope_t scope : {GCAP_GRAPH_SCOPE_THREAD, GCAP_GRAPH_SCOPE_SESSION}) {
    gcap_options_t options = GraphOptions(1);
    options.graph_scope = scope;
    const LogCatcher log;
    Create(options);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([this, i] {
        Around around(this);
        around.break_where_refused = around.waits = i % 2 == 1;
        for (int round = 0; round < 8; ++round) around.ExpectRight(i, static_cast<float>(100 * i + round));
        EXPECT_EQ(around.calls, 8 + i % 2) << "once more where a capture refuses it";
        GCAP_EXPECT_OK(gcap_runtime_release(runtime_, i));
      });
    }
    for (std::thread& thread : threads) thread.join();
    Destroy();
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
