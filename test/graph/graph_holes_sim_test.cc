// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Holes under faults: whichever CUDA call fails, the work of a run is done once, or the run fails and says so. And
// drawn programs with drawn holes, whose captures and replays do what eager runs do.

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph_guards.h"
#include "gcap/graph_values.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/graph/holes_test.h"
#include "test/support/environment.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// What the function is in a capture.
enum Kind { kHole, kStep, kRefusedStep };

class GraphHolesFaults : public HolesTest {
 protected:
  // x += 1; the function: x += 10; x += 100, in place: what is done twice, or half, shows.
  WorkWith InPlace() {
    hole_.break_where_refused = kind_ != kHole;
    hole_.function = [this](const gcap_run_resources_t* resources) -> gcap_status_t {
      float found = 0;
      if (kind_ == kRefusedStep) GCAP_RETURN_IF_ERROR(ReadFirst(resources, At(resources), &found));
      return Add(resources, At(resources), 10);
    };
    return [this](const gcap_run_resources_t* resources) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(Add(resources, At(resources), 1));
      GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
      return Add(resources, At(resources), 100);
    };
  }
  void* At(const gcap_run_resources_t* resources) const {
    return resources->num_addresses != 0 ? resources->addresses[0] : x_->get();
  }
  gcap_run_t RunMoving(gcap_graph_buffers_t* buffers, std::vector<gcap_graph_buffer_t>* items) {
    *items = {{"x", x_->get(), kFloatsBytes, 256}};
    *buffers = BuffersOf(*items);
    gcap_run_t run = RunBy();
    run.buffers = buffers;
    return run;
  }
  // What the run left: all of its work once, or a failure that the result goes with.
  void ExpectDoneOrTold(const Outcome& outcome, float before) {
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
    const float done = x_->value() - before;
    if (outcome.ok()) {
      EXPECT_EQ(done, 111);
    } else if (done != 0) {
      EXPECT_TRUE(result_.was_issued) << outcome.message;
    }
    EXPECT_TRUE(done == 0 || done == 1 || done == 11 || done == 111) << done << ": " << outcome.message;
    EXPECT_FALSE(gcap_thread_is_capturing());
  }
  void ExpectNextRunsAreRight(bool moves) {
    for (int i = 0; i < 4; ++i) {
      const float before = x_->value();
      gcap_graph_buffers_t buffers;
      std::vector<gcap_graph_buffer_t> items;
      const Outcome run = RunHoled(moves ? RunMoving(&buffers, &items) : RunBy(), InPlace());
      EXPECT_TRUE(run.ok()) << run.message;
      EXPECT_EQ(x_->value(), before + 111);
    }
    EXPECT_EQ(State(kId), "CAPTURED");
  }
  // A run, the first of its id or a replay, with each of its calls failing.
  void WalkRun(bool moves, bool is_replay, Reach reach, Kind kind = kHole) {
    kind_ = kind;
    options_.rerun_failed_capture = reach == Reach::kOneCall;  // all of an eager run would fail
    const Walked walked = WalkFaults(
        [&](Fault& fault) {
          const LogCatcher log;
          CreateManager();
          x_ = std::make_unique<Floats>();
          gcap_graph_buffers_t buffers;
          std::vector<gcap_graph_buffer_t> items;
          if (is_replay) {
            for (int i = 0; i <= (kind == kRefusedStep && !moves); ++i) {
              EXPECT_TRUE(RunHoled(moves ? RunMoving(&buffers, &items) : RunBy(), InPlace()).ok());
            }
          }
          std::unique_ptr<Floats> elsewhere = std::make_unique<Floats>();
          if (moves && is_replay) std::swap(x_, elsewhere);
          const float before = x_->value();
          const gcap_run_t run = moves ? RunMoving(&buffers, &items) : RunBy();
          const WorkWith work = InPlace();
          fault.Arm();
          const Outcome outcome = RunHoled(run, work);
          fault.Disarm();
          if (stream_->CaptureStatus() != cudaStreamCaptureStatusNone) {  // its end failed twice
            cudaGraph_t graph = nullptr;
            GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_->get(), &graph));
            GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
          }
          // A look that failed may be made up for; what fails behind it is told.
          const bool is_first = reach == Reach::kAllAfter || fault.ComesFirst(outcome);
          EXPECT_TRUE(outcome.ok() || is_first) << fault.function() << ": " << outcome.message;
          ExpectDoneOrTold(outcome, before);
          if (fault.Failures("cudaStreamEndCapture") < 2) ExpectNextRunsAreRight(moves);
          const Outcome ended(gcap_graph_manager_destroy(manager_));
          manager_ = nullptr;
          if (!ended.ok()) fault.AllowKept();
          x_.reset();
          if (log.text().find(" kept") != std::string::npos) fault.AllowKept();
        },
        reach);
    EXPECT_GT(walked.calls, is_replay ? 3u : 10u);
    if (!is_replay) {
      EXPECT_EQ(walked.functions.count("cudaStreamBeginCapture"), 1u);
    }
  }

  std::unique_ptr<Floats> x_;
  Hole hole_;
  Kind kind_ = kHole;
};

TEST_F(GraphHolesFaults, ACaptureIsDoneOnceOrFails) { WalkRun(false, false, Reach::kOneCall); }
TEST_F(GraphHolesFaults, AReplayIsDoneOrFails) { WalkRun(false, true, Reach::kOneCall); }
TEST_F(GraphHolesFaults, ACaptureOnBuffersIsDoneOnceOrFails) { WalkRun(true, false, Reach::kOneCall); }
TEST_F(GraphHolesFaults, AReplayOnBuffersIsDoneOrFails) { WalkRun(true, true, Reach::kOneCall); }

TEST_F(GraphHolesFaults, WithFaultsThatStayARunIsDoneOnceOrFails) {
  for (const Kind kind : {kHole, kStep}) {
    for (const bool moves : {false, true}) {
      for (const bool is_replay : {false, true}) {
        SCOPED_TRACE(std::to_string(kind) + (moves ? ", moving" : "") + (is_replay ? ", a replay" : ""));
        WalkRun(moves, is_replay, Reach::kAllAfter, kind);
      }
    }
  }
}

TEST_F(GraphHolesFaults, ACaptureOfAStepIsDoneOnceOrFails) { WalkRun(false, false, Reach::kOneCall, kStep); }
TEST_F(GraphHolesFaults, ACaptureOfAStepOnBuffersIsDoneOnceOrFails) { WalkRun(true, false, Reach::kOneCall, kStep); }
TEST_F(GraphHolesFaults, ARefusedStepIsDoneOnceOrFails) { WalkRun(false, false, Reach::kOneCall, kRefusedStep); }
TEST_F(GraphHolesFaults, ARefusedStepOnBuffersIsDoneOnceOrFails) {
  WalkRun(true, false, Reach::kOneCall, kRefusedStep);
}
TEST_F(GraphHolesFaults, AReplayOfARefusedStepIsDoneOrFails) { WalkRun(false, true, Reach::kOneCall, kRefusedStep); }

// Where the next segment's capture cannot be begun, what the work issues all the same runs at once: nobody issues it
// again.
TEST_F(GraphHolesFaults, WorkThatIsIssuedInSpiteOfALostSegmentIsNotIssuedAgain) {
  for (const bool moves : {false, true}) {
    SCOPED_TRACE(moves);
    const LogCatcher log;
    CreateManager();
    x_ = std::make_unique<Floats>();
    const WorkWith work = [this](const gcap_run_resources_t* resources) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(Add(resources, x_->get(), 1));
      gcap_sim_fail_nth("cudaStreamBeginCapture", 1, cudaErrorUnknown);
      gcap_status_ignore(hole_.Issue(resources));
      return Add(resources, x_->get(), 100);
    };
    gcap_graph_buffers_t buffers;
    std::vector<gcap_graph_buffer_t> items;
    const Outcome run = RunHoled(moves ? RunMoving(&buffers, &items) : RunBy(), work);
    gcap_sim_clear_faults();
    EXPECT_STREQ(gcap_code_name(run.code), "CUDA_ERROR") << run.message;
    EXPECT_TRUE(run.Names("hole 'hole'")) << run.message;
    EXPECT_EQ(result_.outcome, GCAP_RUN_NOT_DONE);
    EXPECT_TRUE(result_.was_issued);
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(x_->value(), 100) << "once";
    EXPECT_EQ(hole_.calls, 0);
    DestroyManager();
    x_.reset();
  }
}

// The simulator needs memory of its own, so only the first block that a hole takes is refused here: its place in the
// list.
TEST_F(GraphHolesFaults, WithoutMemoryForAHoleThereIsNoGraph) {
  const LogCatcher log;
  CreateManager();
  x_ = std::make_unique<Floats>();
  const WorkWith in_place = InPlace();
  int calls = 0, hits = 0;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    if (++calls > 1) return in_place(resources);
    const HeapFailure no_memory(1);
    const Outcome told(hole_.Issue(resources));
    hits = no_memory.hits();
    EXPECT_EQ(told.code, GCAP_RESOURCE_EXHAUSTED);
    EXPECT_TRUE(told.Names("no host memory for hole")) << told.message;
    return nullptr;  // the work drops what it is told
  };
  const Outcome run = RunHoled(RunBy(), work);
  EXPECT_TRUE(run.ok()) << run.message;
  EXPECT_EQ(hits, 1);
  EXPECT_EQ(result_.why_eager, GCAP_EAGER_CAPTURE_FAILED);
  EXPECT_EQ(x_->value(), 111);
  EXPECT_EQ(hole_.calls, 1);
  DestroyManager();
  x_.reset();
}

// The next block behind the end of the capture is the one that remembers the step.
TEST_F(GraphHolesFaults, WithoutMemoryToRememberAStepTheIdCoolsDown) {
  const LogCatcher log;
  kind_ = kRefusedStep;
  CreateManager();
  x_ = std::make_unique<Floats>();
  std::unique_ptr<HeapFailure> no_memory;
  const auto arm = [](void* user, bool) {
    *static_cast<std::unique_ptr<HeapFailure>*>(user) = std::make_unique<HeapFailure>(1);
  };
  const WorkWith in_place = InPlace();
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_capture_t* capture = gcap_capture_current();
    if (capture != nullptr) GCAP_RETURN_IF_ERROR(gcap_capture_on_close(capture, arm, &no_memory));
    return in_place(resources);
  };
  const Outcome run = RunHoled(RunBy(), work);
  EXPECT_TRUE(run.ok()) << run.message;
  ASSERT_NE(no_memory, nullptr);
  EXPECT_EQ(no_memory->hits(), 1);
  no_memory.reset();
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
  EXPECT_EQ(State(kId), "COOLING");
  EXPECT_EQ(x_->value(), 111);
  EXPECT_EQ(log.text().find("a capture refused the step"), std::string::npos);
  ExpectNextRunsAreRight(false);
  EXPECT_EQ(Info(kId).refused_steps, 1u);
  DestroyManager();
  x_.reset();
}

// --- Drawn programs -------------------------------------------------------------------------------------------------

constexpr size_t kBuffers = 3;

// A step of a program, on the run's buffers.
struct DrawnStep {
  enum { kAdd, kFork, kHole, kGuard, kTry } kind;
  size_t from, to;
  int addend;
  bool is_refused;  // of a step to be tried: a capture refuses it
};

// A program of an id: its buffers are vectors of the host in an eager run of the oracle.
struct Program {
  std::vector<DrawnStep> steps;
  std::vector<std::unique_ptr<Hole>> holes;
  int decision = 0;  // of a guard
  int luck = 0;      // of this run: what a hole adds; 0: it does nothing; -1: it fails; -2: it cancels the run
  uint64_t position = 0;
};

using Model = std::array<float, kBuffers>;

class GraphHolesDrawn : public HolesTest, public ::testing::WithParamInterface<int> {
 protected:
  using Draws = std::mt19937_64;
  static size_t Below(Draws& draws, size_t end) { return static_cast<size_t>(draws() % end); }

  static std::unique_ptr<Program> Draw(Draws& draws) {
    auto program = std::make_unique<Program>();
    const size_t count = 1 + Below(draws, 12);
    for (size_t i = 0; i < count; ++i) {
      const size_t kind = Below(draws, 10);
      const size_t from = Below(draws, kBuffers), to = Below(draws, kBuffers);
      DrawnStep step = {DrawnStep::kAdd, from, to, static_cast<int>(Below(draws, 5)), Below(draws, 2) == 0};
      if (kind >= 5) step.kind = Below(draws, 2) == 0 ? DrawnStep::kHole : DrawnStep::kTry;
      if (kind == 9) step.kind = DrawnStep::kGuard;
      if (kind == 4) step.kind = DrawnStep::kFork;
      if (step.kind == DrawnStep::kHole || step.kind == DrawnStep::kTry) {
        program->holes.push_back(std::make_unique<Hole>());
        program->holes.back()->break_where_refused = step.kind == DrawnStep::kTry;
        if (Below(draws, 2) == 0) program->holes.back()->name = "another";
      }
      program->steps.push_back(step);
    }
    return program;
  }

  // to = from + addend, where the position is one of the addends.
  static gcap_status_t IssueAdd(const gcap_run_resources_t* resources, cudaStream_t stream, const DrawnStep& step) {
    const uint64_t position = *static_cast<const uint64_t*>(resources->values[0]);
    GCAP_RETURN_IF_ERROR(AddTo(stream, resources->addresses[step.from], resources->addresses[step.to],
                               static_cast<uint64_t>(step.addend)));
    return AddTo(stream, resources->addresses[step.to], resources->addresses[step.to], position);
  }
  gcap_status_t IssueFork(const gcap_run_resources_t* resources, const DrawnStep& step) {
    const cudaStream_t forked = forked_->get();
    gcap_capture_t* capture = gcap_capture_current();
    if (capture == nullptr) return IssueAdd(resources, resources->cuda_stream, step);
    GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &forked, 1));
    GCAP_RETURN_IF_ERROR(IssueAdd(resources, forked, step));
    return gcap_capture_join(capture, &forked, 1);
  }
  static gcap_status_t FailAsDrawn(const Program& program) {
    return GCAP_STATUS(program.luck == -1 ? GCAP_UNAVAILABLE : GCAP_CANCELLED, "as drawn");
  }
  // A step that a capture refuses ends a run as a hole does; another one is captured, and is not called by a replay.
  static gcap_status_t TryDrawn(Program* program, const DrawnStep& step, const gcap_run_resources_t* resources) {
    if (!step.is_refused) return IssueAdd(resources, resources->cuda_stream, step);
    const uint64_t position = *static_cast<const uint64_t*>(resources->values[0]);
    float found = 0;
    GCAP_RETURN_IF_ERROR(ReadFirst(resources, resources->addresses[step.from], &found));
    if (program->luck < 0) return FailAsDrawn(*program);
    return Add(resources, resources->addresses[step.to], static_cast<uint64_t>(found) % 7 + position);
  }
  static gcap_status_t CallDrawn(Program* program, const DrawnStep& step, const gcap_run_resources_t* resources) {
    if (step.kind == DrawnStep::kTry) return TryDrawn(program, step, resources);
    if (program->luck < 0) return FailAsDrawn(*program);
    if (program->luck == 0) return nullptr;
    const uint64_t position = *static_cast<const uint64_t*>(resources->values[0]);
    float found = 0;
    GCAP_RETURN_IF_ERROR(ReadFirst(resources, resources->addresses[step.from], &found));
    const uint64_t addend = static_cast<uint64_t>(found) % 7 + position + static_cast<uint64_t>(program->luck);
    return Add(resources, resources->addresses[step.to], addend);
  }
  gcap_status_t State(Program* program) {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.name = "decision";
    guard.address = &program->decision;
    guard.bytes = sizeof(program->decision);
    guard.low = guard.high = program->decision;
    return GCAP_GRAPH_GUARD(&guard);
  }
  gcap_status_t IssueStep(Program* program, const DrawnStep& step, size_t* hole,
                          const gcap_run_resources_t* resources) {
    if (step.kind == DrawnStep::kFork) return IssueFork(resources, step);
    if (step.kind == DrawnStep::kAdd) return IssueAdd(resources, resources->cuda_stream, step);
    if (step.kind == DrawnStep::kHole || step.kind == DrawnStep::kTry) {
      Hole* made = program->holes[(*hole)++].get();
      made->function = [program, step](const gcap_run_resources_t* at) { return CallDrawn(program, step, at); };
      return made->Issue(resources);
    }
    GCAP_RETURN_IF_ERROR(State(program));
    return Add(resources, resources->addresses[step.to], static_cast<uint64_t>(program->decision));
  }
  WorkWith WorkOf(Program* program) {
    return [this, program](const gcap_run_resources_t* resources) -> gcap_status_t {
      size_t hole = 0;
      for (const DrawnStep& step : program->steps) {
        GCAP_RETURN_IF_ERROR(IssueStep(program, step, &hole, resources));
      }
      return nullptr;
    };
  }
  // What a run does, up to the hole that fails.
  static bool Compute(const Program& program, Model* x) {
    const float position = static_cast<float>(program.position);
    for (const DrawnStep& step : program.steps) {
      const float from = (*x)[step.from];
      float* to = &(*x)[step.to];
      const bool is_captured_try = step.kind == DrawnStep::kTry && !step.is_refused;
      if (step.kind == DrawnStep::kAdd || step.kind == DrawnStep::kFork || is_captured_try) {
        *to = from + static_cast<float>(step.addend) + position;
      } else if (step.kind == DrawnStep::kGuard) {
        *to += static_cast<float>(program.decision);
      } else if (program.luck < 0) {
        return false;
      } else if (step.kind == DrawnStep::kTry) {
        *to += static_cast<float>(static_cast<int>(from) % 7) + position;
      } else if (program.luck > 0) {
        *to += static_cast<float>(static_cast<int>(from) % 7 + static_cast<int>(program.position) + program.luck);
      }
    }
    return true;
  }

  // A run of the program on these buffers, compared with what it computes.
  void RunDrawn(int id, Program* program, const Floats (&floats)[kBuffers]) {
    static const bool unused[kBuffers] = {true, true, true};
    const uint64_t low = 0, high = 100;
    gcap_graph_value_t value = {};
    value.name = "position";
    value.type = GCAP_GRAPH_VALUE_UNSIGNED;
    value.data = &program->position;
    value.bytes = sizeof(program->position);
    value.low = &low;
    value.high = &high;
    value.may_be_unused = true;
    std::vector<gcap_graph_buffer_t> items;
    Model x;
    for (size_t i = 0; i < kBuffers; ++i) {
      items.push_back({"buffer", floats[i].get(), kFloatsBytes, 256});
      floats[i].Fill(static_cast<float>(i + 1));
      x[i] = static_cast<float>(i + 1);
    }
    gcap_graph_buffers_t buffers = BuffersOf(items);
    buffers.may_be_unused = unused;
    buffers.values = &value;
    buffers.num_values = 1;
    gcap_run_t run = RunBy(id);
    run.buffers = &buffers;
    const Outcome outcome = RunHoled(run, WorkOf(program));
    const bool succeeds = Compute(*program, &x);
    EXPECT_EQ(outcome.ok(), succeeds) << outcome.message;
    if (!succeeds) {
      EXPECT_STREQ(gcap_code_name(outcome.code), program->luck == -1 ? "UNAVAILABLE" : "CANCELLED");
      EXPECT_TRUE(outcome.Names("hole '")) << outcome.message;
      stream_->Synchronize();
    }
    for (size_t i = 0; i < kBuffers; ++i) EXPECT_EQ(floats[i].value(), x[i]) << "buffer " << i;
    ++outcomes_[result_.outcome];
    num_cancelled_ += outcome.code == GCAP_CANCELLED;
    most_refused_ = std::max(most_refused_, Info(id).refused_steps);
  }
  void RunAll(uint64_t seed) {
    forked_ = std::make_unique<RawStream>();
    options_.max_graphs = 3;
    CreateManager();
    Draws draws(seed);
    std::vector<std::unique_ptr<Program>> programs;
    for (int id = 0; id < 4; ++id) programs.push_back(Draw(draws));
    const Floats places[2][kBuffers];
    for (int round = 0; round < 40 && !::testing::Test::HasFailure(); ++round) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
      const size_t which = Below(draws, programs.size());
      Program* program = programs[which].get();
      program->decision = static_cast<int>(Below(draws, 2));
      program->luck = static_cast<int>(Below(draws, 9)) - 2;
      program->position = Below(draws, 100);
      RunDrawn(static_cast<int>(which), program, places[Below(draws, 2)]);
      if (Below(draws, 10) == 0) gcap_status_ignore(gcap_graph_manager_release(manager_, static_cast<int>(which)));
      if (Below(draws, 10) == 0) gcap_status_ignore(gcap_graph_manager_recapture(manager_, static_cast<int>(which)));
    }
    DestroyManager();
    forked_.reset();
  }

  std::unique_ptr<RawStream> forked_;
  std::array<int, 5> outcomes_{};
  int num_cancelled_ = 0;
  size_t most_refused_ = 0;
};

TEST_P(GraphHolesDrawn, EachRunDoesWhatItsStepsSay) {
  for (int i = 0; i < 10; ++i) RunAll(NumberOr("GCAP_SIM_SEED", static_cast<uint64_t>(GetParam() * 10 + i)));
  EXPECT_GT(outcomes_[GCAP_RUN_REPLAYED], 50);
  EXPECT_GT(outcomes_[GCAP_RUN_CAPTURED], 20);
  EXPECT_GT(outcomes_[GCAP_RUN_NOT_DONE], 5);
  EXPECT_GT(num_cancelled_, 5);
  EXPECT_GT(most_refused_, 1u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GraphHolesDrawn, ::testing::Range(0, 10));

// Streams are forked before a hole, in drawn order and by drawn ways, and some are not joined.
class UnjoinedDrawn : public HolesTest {};

TEST_F(UnjoinedDrawn, EachUnjoinedStreamIsNamedAndNoOther) {
  options_.rerun_failed_capture = false;
  options_.capture.ledger_calls = 1024;
  CreateManager();
  std::array<RawStream, 6> streams;
  const Floats x, y;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 draws(seed);
    std::vector<cudaStream_t> forked, unjoined;
    for (const RawStream& stream : streams) {
      if (draws() % 3 != 0) forked.push_back(stream.get());
    }
    std::shuffle(forked.begin(), forked.end(), draws);
    Hole hole;
    const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
      gcap_capture_t* capture = gcap_capture_current();
      for (const cudaStream_t stream : forked) {
        GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &stream, 1));
        GCAP_RETURN_IF_ERROR(AddTo(stream, x.get(), y.get(), 1));
        GCAP_RETURN_IF_ERROR(gcap_capture_join(capture, &stream, 1));
        if (draws() % 2 == 0) continue;
        GCAP_RETURN_IF_ERROR(AddTo(stream, x.get(), x.get(), 0));  // behind the join
        GCAP_CAPTURE_NOTE("add", stream);
        if (draws() % 2 == 0) {
          GCAP_RETURN_IF_ERROR(gcap_capture_join(capture, &stream, 1));
        } else {
          unjoined.push_back(stream);
        }
      }
      return hole.Issue(resources);
    };
    const Outcome run = RunHoled(RunBy(static_cast<int>(seed)), work);
    EXPECT_EQ(run.ok(), unjoined.empty()) << run.message;
    for (const RawStream& stream : streams) {
      char name[64];
      snprintf(name, sizeof(name), "stream %p (its last call: add", static_cast<void*>(stream.get()));
      const bool is_unjoined = std::find(unjoined.begin(), unjoined.end(), stream.get()) != unjoined.end();
      EXPECT_EQ(run.Names(name), is_unjoined) << run.message;
    }
    EXPECT_EQ(hole.calls, unjoined.empty());
    gcap_status_ignore(gcap_graph_manager_release(manager_, static_cast<int>(seed)));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
