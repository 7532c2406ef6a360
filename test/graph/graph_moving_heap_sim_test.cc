// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs on buffers that move where host memory is short, and where rehearsals are forgotten. Only what gcap allocates
// before the first call of CUDA can fail: the simulator stops without memory.

#include <set>
#include <thread>

#include "test/base/heap_failure.h"
#include "test/graph/moving_test.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

using GraphMovingHeap = GraphMoving;

TEST_F(GraphMovingHeap, ARunThatCannotBeOpenedIsNamed) {
  const Floats input(1), output(0);
  const std::vector<gcap_graph_buffer_t> items = Items(input, output);
  const gcap_graph_buffers_t buffers = BuffersOf(items);
  void* at[2] = {};
  for (int skip = 0; skip < 2; ++skip) {  // the buffers, the run
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_CAPTURE;
    gcap_status_t status = nullptr;
    {
      const HeapFailure no_memory(1, skip);
      status = BeginPlainOn(manager_, kId, stream_->get(), &buffers, &kind, at);
      EXPECT_EQ(no_memory.hits(), 1);
    }
    GCAP_EXPECT_FAILS(status, GCAP_RESOURCE_EXHAUSTED, skip == 0 ? "2 buffers" : "id 3");
    EXPECT_EQ(kind, GCAP_GRAPH_RUN_EAGER);
    EXPECT_EQ(State(kId), "COLD");
  }
  ASSERT_TRUE(RunOn(input, output).ok());
  EXPECT_EQ(output.value(), 2);
}

TEST_F(GraphMovingHeap, AReplayElsewhereThatCannotBeBegunIsNamed) {
  const Floats input(1), output(0), other(5);
  ASSERT_TRUE(RunOn(input, output).ok());
  output.Fill(0);
  const std::vector<gcap_graph_buffer_t> items = Items(other, output);
  const gcap_graph_buffers_t buffers = BuffersOf(items);
  WorkOn work = AddOne;
  gcap_status_t status = nullptr;
  {
    const HeapFailure no_memory(1);
    status = RunPlainOn(manager_, kId, stream_->get(), &buffers, Issue, &work, true);
  }
  GCAP_EXPECT_FAILS(status, GCAP_RESOURCE_EXHAUSTED, "2 addresses");
  EXPECT_EQ(output.value(), 0);
  ASSERT_TRUE(RunOn(other, output).ok());
  EXPECT_EQ(output.value(), 6);
}

TEST_F(GraphMovingHeap, ASignatureThatCannotBeKeptIsNamedAndNoRunIsBegun) {
  const int64_t shape[] = {2, 3};
  const gcap_graph_binding_t binding = {"x", shape, 2, shape};
  ASSERT_EQ(Begin(kId), GCAP_GRAPH_RUN_CAPTURE);  // the id is known from here on
  EXPECT_FALSE(End(GCAP_STATUS(GCAP_CANCELLED, "not yet")).ok());
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  {
    const HeapFailure no_memory(1);
    GCAP_EXPECT_FAILS(BeginBound(manager_, kId, stream_->get(), &binding, 1, &kind), GCAP_RESOURCE_EXHAUSTED,
                      "a signature of 1 tensors");
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_EQ(Begin(kId), GCAP_GRAPH_RUN_CAPTURE);
  EXPECT_TRUE(End().ok());
}

// Of rehearsals, of captures each of which differs from the one before, and of the release.
TEST_F(GraphMovingHeap, NoBlockIsKeptOfAnIdThatWas) {
  const Floats first(1), second(5), output(0);
  const auto whole_life = [&] {
    for (const Floats* input : {&first, &second, &first}) {
      ASSERT_TRUE(RunOn(*input, output).ok());
      GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, kId));
    }
    GCAP_EXPECT_FAILS(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHAT_CHANGED), GCAP_FAILED_PRECONDITION,
                      "differs from its capture before");
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  };
  // The simulator's tables grow now and then, so not every life is told from what it keeps.
  std::set<long> kept;
  for (int life = 0; life < 8; ++life) {
    const long before = LiveBlocks();
    whole_life();
    kept.insert(LiveBlocks() - before);
  }
  EXPECT_EQ(*kept.begin(), 0);
}

// What a thread is known by lasts as long as a run that knows it.
TEST_F(GraphMovingHeap, ARunThatDoesNotBeginKeepsNothingOfItsThread) {
  CreateWith([](auto* options) { options->min_num_runs_before_capture = 0; });
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeRelaxed));
  std::set<long> kept;
  for (int life = 0; life < 8; ++life) {
    const long before = LiveBlocks();
    std::thread([&] {
      gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
      const Outcome outcome(BeginPlain(manager_, kId, stream_->get(), &kind));
      EXPECT_FALSE(outcome.ok());
    }).join();
    kept.insert(LiveBlocks() - before);
  }
  EXPECT_EQ(*kept.begin(), 0);
  EXPECT_EQ(warnings_, 0) << "no run was left open";
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_->get(), &graph));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(GraphMovingHeap, AnIdThatIsForgottenIsRehearsedAgain) {
  CreateWith([](auto* options) { options->max_ids_without_graph = 1; });
  const Floats input(1), output(0);
  void* at[2] = {};
  for (int id = kId; id < kId + 4; ++id) {
    EXPECT_EQ(BeginOn(Items(input, output), at, id), GCAP_GRAPH_RUN_REHEARSAL);
    GCAP_EXPECT_OK(AddOne(stream_->get(), at));
    EXPECT_TRUE(End().ok());
  }
  EXPECT_EQ(State(kId), "COLD");
  ASSERT_TRUE(RunOn(input, output).ok());
  EXPECT_EQ(State(kId), "CAPTURED");
  EXPECT_TRUE(WhyNotMovable().ok());
}

}  // namespace
}  // namespace testing
}  // namespace gcap
