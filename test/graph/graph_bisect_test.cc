// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Where a replay differs from its work, the first step that differs is found, and what is wrong with the graph there.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gcap/graph_guards.h"
#include "gcap/graph_values.h"
#include "gtest/gtest.h"
#include "test/graph/verify_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphBisect : public VerifyTest {
 protected:
  void SetUp() override {
    VerifyTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    verify_.bisect = true;
  }
  void Name(const char* name, const Floats& floats) { named_.push_back(Named(name, floats)); }
  void Capture(const WorkWith& work) {
    CreateManager();
    const Outcome run = RunVerified(work);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
    EXPECT_FALSE(report_.is_verified);
  }
  // The run differs, and this is found.
  Outcome ExpectFound(const WorkWith& work, size_t step, gcap_graph_fault_t fault) {
    const Outcome run = RunVerified(work);
    EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
    EXPECT_TRUE(report_.is_verified);
    EXPECT_EQ(report_.step, step) << run.message;
    EXPECT_EQ(report_.fault, fault) << run.message;
    EXPECT_EQ(State(kId), "COOLING");
    return run;
  }

  const Floats x_{1}, y_, z_;
  Hole hole_;
  const Floats* in_hole_ = nullptr;
  const LogCatcher log_;
};

TEST_F(GraphBisect, AFrozenValueIsFound) {
  Name("x", x_);
  Name("y", y_);
  Name("z", z_);
  uint64_t position = 3;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_.get(), y_.get(), 1));
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, y_.get(), z_.get(), position));
    return AddTo(r->cuda_stream, z_.get(), x_.get(), 2);
  };
  Capture(work);
  EXPECT_EQ(x_.value(), 7);
  position = 5;
  const Outcome run = ExpectFound(work, 1, GCAP_GRAPH_FAULT_FROZEN_VALUE);
  EXPECT_TRUE(run.Names("argument 2 is 0x3; a capture of the work would have 0x5")) << run.message;
  EXPECT_TRUE(run.Names("moving_test.h")) << run.message;
  EXPECT_EQ(report_.node, 1u);
  EXPECT_EQ(report_.step_buffer, 2u);
  EXPECT_EQ(report_.step_element, 0u);
  EXPECT_EQ(report_.step_replayed, 11);
  EXPECT_EQ(report_.step_eager, 13);
  EXPECT_FALSE(report_.is_linear);
  EXPECT_LE(report_.replays, 4u);
  EXPECT_EQ(x_.value(), 15) << "what the work left";
  EXPECT_EQ(y_.value(), 8);
  EXPECT_EQ(z_.value(), 13);
}

TEST_F(GraphBisect, AStalePointerIsFound) {
  Name("x", x_);
  Name("y", y_);
  const Floats old(10), fresh(20);
  const Floats* workspace = &old;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_.get(), y_.get(), 1));
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, workspace->get(), x_.get(), 1));
    return AddTo(r->cuda_stream, x_.get(), y_.get(), 2);
  };
  Capture(work);
  workspace = &fresh;
  const Outcome run = ExpectFound(work, 1, GCAP_GRAPH_FAULT_STALE_POINTER);
  EXPECT_TRUE(run.Names("argument 0")) << run.message;
  EXPECT_EQ(y_.value(), 23);
}

TEST_F(GraphBisect, ADroppedCallIsFound) {
  Name("x", x_);
  Name("y", y_);
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_.get(), y_.get(), 1));
    if (!gcap_thread_is_capturing()) GCAP_RETURN_IF_ERROR(Add(r, y_.get(), 4));
    return Add(r, x_.get(), 2);
  };
  Capture(work);
  ExpectFound(work, 1, GCAP_GRAPH_FAULT_DROPPED_CALL);
  EXPECT_EQ(y_.value(), 3 + 1 + 4);
}

// The steps behind a call that the capture did not make are found in the graph all the same.
TEST_F(GraphBisect, ADroppedCallWithoutEffectHidesNothing) {
  Name("x", x_);
  Name("y", y_);
  uint64_t position = 3;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    if (!gcap_thread_is_capturing()) {
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(z_.get(), 0, kFloatsBytes, r->cuda_stream)));
    }
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_.get(), y_.get(), 1));
    return AddTo(r->cuda_stream, y_.get(), x_.get(), position);
  };
  Capture(work);
  position = 4;
  ExpectFound(work, 2, GCAP_GRAPH_FAULT_FROZEN_VALUE);
}

// The capture made a call that the work does not make now.
TEST_F(GraphBisect, AHostDecisionIsFound) {
  Name("x", x_);
  Name("y", y_);
  bool is_first = true;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_.get(), y_.get(), 1));
    if (is_first) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(y_.get(), 0, kFloatsBytes, r->cuda_stream)));
    return Add(r, y_.get(), 2);
  };
  Capture(work);
  is_first = false;
  const Outcome run = ExpectFound(work, 1, GCAP_GRAPH_FAULT_HOST_DECISION);
  EXPECT_TRUE(run.Names("cudaMemsetAsync")) << run.message;
}

TEST_F(GraphBisect, AHoleThatForgotABufferIsFound) {
  Name("x", x_);
  Name("y", y_);
  hole_.function = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    return AddTo(r->cuda_stream, x_.get(), in_hole_->get(), 7);
  };
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(r, x_.get(), 1));
    in_hole_ = &y_;
    GCAP_RETURN_IF_ERROR(hole_.Issue(r));
    in_hole_ = &z_;
    return Add(r, x_.get(), 2);
  };
  Capture(work);
  const Outcome run = ExpectFound(work, 1, GCAP_GRAPH_FAULT_HOLE);
  EXPECT_TRUE(run.Names("hole 'hole'")) << run.message;
}

// Without a segment before and behind it, and in a graph that has no segment with work at all.
TEST_F(GraphBisect, AHoleAtTheEdgeOfAGraphIsFound) {
  for (const size_t segments : {0, 1}) {
    SCOPED_TRACE(segments);
    named_ = {Named("x", x_), Named("y", y_)};
    x_.Fill(1);
    y_.Fill(0);
    Hole last;
    last.name = "last";
    bool differs_first = false, differs_last = false;
    hole_.function = [&](const gcap_run_resources_t* r) {
      return Add(r, x_.get(), static_cast<uint64_t>(differs_first ? hole_.calls : 7));
    };
    last.function = [&](const gcap_run_resources_t* r) {
      return Add(r, y_.get(), static_cast<uint64_t>(differs_last ? last.calls : 9));
    };
    const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(hole_.Issue(r));
      for (size_t i = 0; i < segments; ++i) GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_.get(), y_.get(), 1));
      return last.Issue(r);
    };
    for (const bool is_first : {true, false}) {
      differs_first = differs_last = false;
      Capture(work);
      ExpectSound(work);
      (is_first ? differs_first : differs_last) = true;
      const Outcome run = ExpectFound(work, is_first ? 0 : 1 + segments, GCAP_GRAPH_FAULT_HOLE);
      EXPECT_TRUE(run.Names(is_first ? "hole 'hole'" : "hole 'last'")) << run.message;
      EXPECT_EQ(report_.step_buffer, is_first ? 0u : 1u);
      DestroyManager();
    }
  }
}

TEST_F(GraphBisect, AnUninitializedReadIsFound) {
  Name("x", x_);
  Name("y", y_);
  const Floats of_graph(3), of_work(4);
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(r, x_.get(), 1));
    const Floats& scratch = gcap_thread_is_capturing() ? of_graph : of_work;
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, scratch.get(), y_.get(), 1));
    return Add(r, x_.get(), 2);
  };
  Capture(work);
  const Outcome run = ExpectFound(work, 1, GCAP_GRAPH_FAULT_UNINITIALIZED);
  EXPECT_TRUE(run.Names("argument 0 leads to memory")) << run.message;
  EXPECT_FALSE(run.Names("the function of")) << "there is no hole: " << run.message;
}

// The function writes to memory that nobody named, which no node shows, and another thing each time.
TEST_F(GraphBisect, OfMemoryWithoutANameTheHoleBeforeIsNamed) {
  Name("x", x_);
  Name("y", y_);
  const Floats hidden;
  Hole other;
  other.name = "other";
  hole_.function = [&](const gcap_run_resources_t* r) {
    return AddTo(r->cuda_stream, x_.get(), hidden.get(), static_cast<uint64_t>(hole_.calls));
  };
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(other.Issue(r));
    GCAP_RETURN_IF_ERROR(Add(r, x_.get(), 1));
    GCAP_RETURN_IF_ERROR(hole_.Issue(r));
    return AddTo(r->cuda_stream, hidden.get(), y_.get(), 1);
  };
  Capture(work);
  const Outcome run = ExpectFound(work, 3, GCAP_GRAPH_FAULT_UNINITIALIZED);
  EXPECT_EQ(report_.node, 1u);
  EXPECT_TRUE(run.Names("or the function of hole 'hole', which comes before, writes there")) << run.message;
}

// What is wrong is in memory that nobody named, and shows steps later.
TEST_F(GraphBisect, TheCauseMayComeBeforeTheStep) {
  Name("x", x_);
  Name("y", y_);
  const Floats old(10), fresh(20), hidden;
  const Floats* workspace = &old;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(r, x_.get(), 1));
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, workspace->get(), hidden.get(), 1));
    GCAP_RETURN_IF_ERROR(Add(r, x_.get(), 2));
    return AddTo(r->cuda_stream, hidden.get(), y_.get(), 3);
  };
  Capture(work);
  workspace = &fresh;
  const Outcome run = ExpectFound(work, 3, GCAP_GRAPH_FAULT_STALE_POINTER);
  EXPECT_EQ(report_.node, 1u) << run.message;
  EXPECT_FALSE(report_.is_linear);
  EXPECT_EQ(y_.value(), 24);
}

// The difference goes, and comes again from memory that nobody named: halving finds where it comes again.
TEST_F(GraphBisect, WhatLaterWorkOverwritesIsLookedForStepByStep) {
  for (const char* name : {"x", "y", "z"}) Name(name, name[0] == 'x' ? x_ : name[0] == 'y' ? y_ : z_);
  const Floats of_graph(3), of_work(4), hidden;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    const Floats& scratch = gcap_thread_is_capturing() ? of_graph : of_work;
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, scratch.get(), y_.get(), 1));
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, y_.get(), hidden.get(), 1));
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_.get(), y_.get(), 1));
    GCAP_RETURN_IF_ERROR(Add(r, x_.get(), 1));
    return AddTo(r->cuda_stream, hidden.get(), z_.get(), 1);
  };
  Capture(work);
  const Outcome run = ExpectFound(work, 0, GCAP_GRAPH_FAULT_UNINITIALIZED);
  EXPECT_TRUE(report_.is_linear);
  EXPECT_TRUE(run.Names("a place at a time")) << run.message;
  EXPECT_EQ(report_.step_buffer, 1u);
  EXPECT_EQ(report_.step_replayed, 4);
  EXPECT_EQ(report_.step_eager, 5);
}

// A loop makes the same call again and again, and its capture makes one less.
TEST_F(GraphBisect, OfCallsThatAreAlikeTheDroppedOneIsFound) {
  Name("x", x_);
  Name("y", y_);
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    for (uint64_t i = 0; i < 9; ++i) {
      if (i == 4 && gcap_thread_is_capturing()) continue;
      GCAP_RETURN_IF_ERROR(Add(r, y_.get(), i + 1));
    }
    return nullptr;
  };
  Capture(work);
  ExpectFound(work, 4, GCAP_GRAPH_FAULT_DROPPED_CALL);
}

TEST_F(GraphBisect, WorkOutsideOfTheCaptureIsFound) {
  Name("x", x_);
  Name("y", y_);
  const RawStream outside;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(r, x_.get(), 1));
    GCAP_RETURN_IF_ERROR(AddTo(outside.get(), z_.get(), y_.get(), 5));
    if (!gcap_thread_is_capturing()) outside.Synchronize();
    return Add(r, x_.get(), 2);
  };
  Capture(work);
  outside.Synchronize();
  y_.Fill(0);
  const Outcome run = ExpectFound(work, 1, GCAP_GRAPH_FAULT_OUTSIDE_OF_CAPTURE);
  EXPECT_EQ(y_.value(), 5);
}

// Of a graph that is older than the first run with `bisect` no step is known, and its arguments are.
TEST_F(GraphBisect, OfAGraphWithoutStepsTheCauseIsLookedFor) {
  options_.keep_source = true;
  Name("x", x_);
  uint64_t position = 3;
  const WorkWith work = [&](const gcap_run_resources_t* r) { return Add(r, x_.get(), position); };
  CreateManager();
  ExpectRun(work, GCAP_RUN_CAPTURED);
  position = 4;
  const Outcome run = ExpectFound(work, SIZE_MAX, GCAP_GRAPH_FAULT_FROZEN_VALUE);
  EXPECT_TRUE(run.Names("captured without all of its steps")) << run.message;
  EXPECT_EQ(report_.node, 0u);
  EXPECT_EQ(x_.value(), 1 + 3 + 4);
}

TEST_F(GraphBisect, AGraphWithGuardsAndValuesInMemoryIsSearched) {
  Name("x", x_);
  int batch = 4;
  uint64_t position = 3;
  uint64_t table = 6;
  gcap_graph_value_t value = {};
  value.name = "table";
  value.data = &table;
  value.bytes = sizeof(table);
  value.in_memory = true;
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.values = &value;
  buffers.num_values = 1;
  const Floats seen;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.name = "batch";
    guard.kind = GCAP_GRAPH_GUARD_INTEGER;
    guard.address = &batch;
    guard.bytes = sizeof(batch);
    guard.low = guard.high = batch;
    GCAP_RETURN_IF_ERROR(gcap_graph_guard_state(&guard, __FILE__, __LINE__));
    GCAP_RETURN_IF_ERROR(
        GCAP_CUDA(cudaMemcpyAsync(seen.get(), r->values[0], sizeof(table), cudaMemcpyDeviceToDevice, r->cuda_stream)));
    return Add(r, x_.get(), position);
  };
  const auto run_with = [&](bool is_wrong) {
    gcap_run_t run = VerifiedRun();
    run.buffers = &buffers;
    const Outcome outcome = RunHoled(run, work);
    EXPECT_EQ(outcome.ok(), !is_wrong) << outcome.message;
    return outcome;
  };
  CreateManager();
  run_with(false);
  ASSERT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
  table = 7;
  run_with(false);
  EXPECT_TRUE(report_.is_verified);
  position = 4;
  const Outcome run = run_with(true);
  EXPECT_EQ(report_.step, 1u) << run.message;
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_FROZEN_VALUE) << run.message;
}

// A graph that is right is not blamed, and nothing is searched.
TEST_F(GraphBisect, AGraphThatIsRightHasNoReport) {
  Name("x", x_);
  Name("y", y_);
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_.get(), y_.get(), 1));
    return Add(r, x_.get(), 2);
  };
  Capture(work);
  for (int i = 0; i < 3; ++i) {
    const Outcome run = RunVerified(work);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_TRUE(report_.is_verified);
    EXPECT_EQ(report_.step, SIZE_MAX);
    EXPECT_EQ(report_.replays, 0u);
  }
  EXPECT_EQ(x_.value(), 1 + 4 * 2);
}

TEST_F(GraphBisect, TheDifferenceIsAFileOfEvents) {
  Name("x", x_);
  uint64_t position = 3;
  const WorkWith work = [&](const gcap_run_resources_t* r) {
    gcap_label("layer 3");
    const gcap_status_t status = Add(r, x_.get(), position);
    gcap_label(nullptr);
    return status;
  };
  const std::string path = ::testing::TempDir() + "/bisect.events";
  verify_.events = path.c_str();
  Capture(work);
  position = 4;
  const Outcome run = ExpectFound(work, 0, GCAP_GRAPH_FAULT_FROZEN_VALUE);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str().rfind("gcap-events\tversion=1", 0), 0u) << text.str();
  EXPECT_NE(text.str().find("\ndifference\tcall=1\tfault=frozen_value\ttext="), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("moving_test.h"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("\nrange\tid=1\ttext=layer 3\n"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("\trange=1\n"), std::string::npos) << text.str();
  EXPECT_TRUE(run.Names(" in label 'layer 3' at ")) << run.message;
}

}  // namespace
}  // namespace testing
}  // namespace gcap
