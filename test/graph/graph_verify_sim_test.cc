// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Verified runs under faults: whichever CUDA call or allocation fails, nothing leaks, a sound graph is never called
// wrong, and a wrong one never right. And drawn programs: no report of a sound graph.

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/graph/verify_test.h"
#include "test/support/environment.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphVerifyFaults : public VerifyTest {
 protected:
  // x += addend_, with a hole in between that adds 10.
  WorkWith InPlace(bool has_hole) {
    hole_.function = [this](const gcap_run_resources_t* r) { return Add(r, x_->get(), 10); };
    return [this, has_hole](const gcap_run_resources_t* r) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(Add(r, x_->get(), addend_));
      return has_hole ? hole_.Issue(r) : nullptr;
    };
  }
  void Capture(const WorkWith& work) {
    addend_ = 1;
    CreateManager();
    x_ = std::make_unique<Floats>();
    named_ = {Named("x", *x_)};
    GCAP_EXPECT_OK(RunRaw(work));
    ASSERT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
  }
  // The calls of a verified run fail, one after the other; `addend`: that of the work, where the graph has 1.
  Walked Walk(uint64_t addend, bool has_hole, Reach reach) {
    return WalkFaults(
        [&](Fault& fault) {
          const LogCatcher log;
          const WorkWith work = InPlace(has_hole);
          Capture(work);
          addend_ = addend;
          const float before = x_->value();
          const Outcome outcome = fault.During([&] { return RunRaw(work); });
          GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
          EXPECT_EQ(result_.outcome == GCAP_RUN_REPLAYED, outcome.ok()) << fault.function() << ": " << outcome.message;
          const bool is_sound = addend == 1;
          const float done = x_->value() - before;
          if (outcome.ok()) {
            EXPECT_TRUE(is_sound || !report_.is_verified) << fault.function();
          } else if (outcome.code == GCAP_REPLAY_DIFFERS) {
            EXPECT_FALSE(is_sound) << fault.function() << ": " << outcome.message;
            EXPECT_EQ(done, static_cast<float>(addend + (has_hole ? 10 : 0)));
            EXPECT_EQ(State(kId), "COOLING");
          } else {
            EXPECT_TRUE(fault.ComesFirst(outcome)) << fault.function() << ": " << outcome.message;
            EXPECT_TRUE(done == 0 || result_.was_issued) << outcome.message;
          }
          EXPECT_TRUE(fault.hit() || outcome.code == (is_sound ? GCAP_OK : GCAP_REPLAY_DIFFERS)) << outcome.message;
          addend_ = 1;
          for (int i = 0; i < 3; ++i) {
            const float at = x_->value();
            GCAP_EXPECT_OK(RunRaw(work));
            EXPECT_EQ(x_->value(), at + (has_hole ? 11 : 1));
          }
          DestroyManager();
          x_.reset();
        },
        reach);
  }

  std::unique_ptr<Floats> x_;
  uint64_t addend_ = 1;
  Hole hole_;
};

TEST_F(GraphVerifyFaults, OfASoundGraphEachCallMayFail) {
  const Walked walked = Walk(1, false, Reach::kOneCall);
  for (const char* function : {"cudaMalloc", "cudaMemcpyAsync", "cudaGraphLaunch", "cudaStreamSynchronize", "cudaFree",
                               "cudaStreamGetDevice"}) {
    EXPECT_EQ(walked.functions.count(function), 1u) << function;
  }
}
TEST_F(GraphVerifyFaults, OfASoundGraphWithAHoleEachCallMayFail) { Walk(1, true, Reach::kOneCall); }
TEST_F(GraphVerifyFaults, OfAWrongGraphEachCallMayFail) { Walk(4, false, Reach::kOneCall); }
TEST_F(GraphVerifyFaults, AllLaterCallsMayFailToo) {
  Walk(1, false, Reach::kAllAfter);
  Walk(4, false, Reach::kAllAfter);
}

// What is taken before the first copy: the list of blocks, the state, its four lists and the two chunks. The simulator
// stops without memory, so what comes behind cannot fail here.
TEST_F(GraphVerifyFaults, WithoutHostMemoryARunIsRefusedAndNothingLeaks) {
  const LogCatcher log;
  const WorkWith work = InPlace(false);
  Capture(work);
  const float before = x_->value();
  for (int skip = 0; skip < 7; ++skip) {
    const long blocks = LiveBlocks();
    gcap_status_t status = nullptr;
    {
      const HeapFailure no_memory(1, skip);
      status = RunRaw(work);
      EXPECT_EQ(no_memory.hits(), 1);
    }
    GCAP_EXPECT_FAILS(status, GCAP_RESOURCE_EXHAUSTED, "no host memory to verify");
    EXPECT_EQ(LiveBlocks(), blocks) << skip;
    EXPECT_FALSE(result_.was_issued);
    EXPECT_EQ(x_->value(), before);
  }
  ExpectSound(work);
  DestroyManager();
  x_.reset();
}

TEST_F(GraphVerifyFaults, WithoutDeviceMemoryTheCopiesAreInHostMemory) {
  const LogCatcher log(GCAP_LOG_INFO);
  const WorkWith work = InPlace(false);
  Capture(work);
  for (const uint64_t nth : {1, 2}) {
    gcap_sim_fail_nth("cudaMalloc", nth, cudaErrorMemoryAllocation);
    ExpectSound(work);
    gcap_sim_clear_faults();
    EXPECT_NE(log.text().find("a copy of 256 bytes, to verify a run, is in host memory"), std::string::npos);
  }
  gcap_sim_fail_nth("cudaMalloc", 1, cudaErrorMemoryAllocation);
  addend_ = 3;
  ExpectWrong(work, "buffer 0 'x' differs first in element 0 (f32): the replay has 4, the work 6");
  gcap_sim_clear_faults();
  EXPECT_EQ(x_->value(), 6);
  DestroyManager();
  x_.reset();
}

TEST_F(GraphVerifyFaults, WithoutAnyMemoryForTheCopiesARunIsRefused) {
  const LogCatcher log;
  const WorkWith work = InPlace(false);
  Capture(work);
  bool is_refused = false;
  for (int skip = 7; !is_refused; ++skip) {
    ASSERT_LT(skip, 20);
    const float before = x_->value();
    gcap_sim_fail_nth("cudaMalloc", 1, cudaErrorMemoryAllocation);
    gcap_status_t status = nullptr;
    {
      const HeapFailure no_memory(1, skip);
      status = RunRaw(work);
    }
    gcap_sim_clear_faults();
    const Outcome outcome(status);
    is_refused = outcome.Names("no host memory either for a copy of 256 bytes, to verify a run");
    if (!is_refused) continue;
    EXPECT_STREQ(gcap_code_name(outcome.code), "RESOURCE_EXHAUSTED");
    EXPECT_FALSE(result_.was_issued);
    EXPECT_EQ(x_->value(), before);
  }
  ExpectSound(work);
  DestroyManager();
  x_.reset();
}

// --- Drawn programs -------------------------------------------------------------------------------------------------

constexpr size_t kPlaces = 4;

// Sound graphs, of kernels, copies and fills on buffers that may be elsewhere or be one another, with values: each
// replay is verified, and none is reported. And each program once with something planted that its work does not do.
class GraphVerifyDrawn : public VerifyTest, public ::testing::WithParamInterface<int> {
 protected:
  struct Step {
    enum Kind { kAdd, kCopy, kFill, kHole } kind;
    size_t from, to;
    uint64_t addend;
  };

  unsigned Draw(unsigned end) { return static_cast<unsigned>(random_() % end); }

  static gcap_status_t Issue(const Step& step, const gcap_run_resources_t* r) {
    const void* from = r->addresses[step.from];
    void* to = r->addresses[step.to];
    switch (step.kind) {
      case Step::kAdd: return AddTo(r->cuda_stream, from, to, step.addend);
      case Step::kCopy:
        return GCAP_CUDA(cudaMemcpyAsync(to, from, kFloatsBytes, cudaMemcpyDeviceToDevice, r->cuda_stream));
      case Step::kFill:
        return GCAP_CUDA(cudaMemsetAsync(to, static_cast<int>(step.addend), kFloatsBytes, r->cuda_stream));
      case Step::kHole: break;
    }
    return nullptr;
  }
  void DrawProgram() {
    steps_.clear();
    holes_.clear();
    for (unsigned i = 2 + Draw(20); i > 0; --i) {
      const auto kind = static_cast<Step::Kind>(Draw(4));
      const size_t from = Draw(3), to = kind == Step::kCopy ? (from + 1 + Draw(2)) % 3 : Draw(3);
      steps_.push_back({kind, from, to, Draw(50)});
      if (kind == Step::kHole) holes_.push_back(std::make_unique<Hole>());
    }
  }
  WorkWith Work() {
    return [this](const gcap_run_resources_t* r) -> gcap_status_t {
      size_t hole = 0;
      for (const Step& step : steps_) {
        if (step.kind == Step::kHole) {
          Hole* made = holes_[hole++].get();
          made->function = [step](const gcap_run_resources_t* at) {
            return Add(at, at->addresses[step.to], step.addend);
          };
          GCAP_RETURN_IF_ERROR(made->Issue(r));
        }
        GCAP_RETURN_IF_ERROR(Issue(step, r));
      }
      return AddTo(r->cuda_stream, r->addresses[0], r->addresses[2], extra_);
    };
  }
  Outcome RunOnPlaces() {
    std::vector<gcap_graph_buffer_t> items;
    for (const size_t place : at_) items.push_back({"buffer", places_[place]->get(), kFloatsBytes, 256});
    gcap_graph_buffers_t buffers = UnusedBuffersOf(items);
    gcap_run_t run = VerifiedRun();
    run.buffers = &buffers;
    return RunHoled(run, Work());
  }
  void Play(int seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(static_cast<uint32_t>(seed));
    const LogCatcher log;
    options_.backoff_runs = 0;
    CreateManager();
    for (auto& place : places_) place = std::make_unique<Floats>(static_cast<float>(Draw(100)));
    DrawProgram();
    extra_ = 1;
    verify_.each = 1 + Draw(3);
    for (int i = 0; i < 8; ++i) {
      if (Draw(2) == 0) {
        for (size_t& at : at_) at = Draw(kPlaces);
      }
      const Outcome sound = RunOnPlaces();
      ASSERT_TRUE(sound.ok()) << sound.message;
      verified_ += report_.is_verified;
      EXPECT_EQ(report_.different, 0u);
    }
    Plant();
    DestroyManager();
  }
  // The last step is frozen with another addend.
  void Plant() {
    at_ = {0, 1, 2};
    verify_.each = 1;
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
    EXPECT_TRUE(RunOnPlaces().ok());
    ASSERT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
    extra_ = 2;
    const Outcome wrong = RunOnPlaces();
    EXPECT_STREQ(gcap_code_name(wrong.code), "REPLAY_DIFFERS");
    EXPECT_EQ(report_.buffer, 2u);
    EXPECT_LT(report_.element, sizeof(float)) << "a byte of the first float";
  }

  std::mt19937 random_;
  std::vector<Step> steps_;
  std::vector<std::unique_ptr<Hole>> holes_;
  std::unique_ptr<Floats> places_[kPlaces];
  std::vector<size_t> at_ = {0, 1, 2};
  uint64_t extra_ = 1;
  int verified_ = 0;
};

TEST_P(GraphVerifyDrawn, OfASoundGraphNothingIsReportedAndWhatIsPlantedIs) {
  const int first = static_cast<int>(NumberOr("GCAP_SIM_SEED", 0));
  for (int i = 0; i < 63 && !HasFailure(); ++i) Play(first + 1000 * GetParam() + i);
  EXPECT_GT(verified_, 63);
  for (auto& place : places_) place.reset();
}
INSTANTIATE_TEST_SUITE_P(Seeds, GraphVerifyDrawn, ::testing::Range(0, 8));

}  // namespace
}  // namespace testing
}  // namespace gcap
