// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Values that change, on the simulator: how many calls a replay makes, calls that fail, and drawn programs whose
// arguments, grids and branches follow drawn values. The oracle of those is the program on the host.

#include <algorithm>
#include <cstdio>
#include <random>

#include "gcap_sim.h"
#include "test/graph/values_rig.h"
#include "test/support/environment.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// --- Calls ----------------------------------------------------------------------------------------------------------

class GraphValuesSim : public GraphValues {
 protected:
  static constexpr size_t kNodes = 3;

  void TearDown() override {
    gcap_sim_clear_faults();
    GraphValues::TearDown();
  }
  // y = x + value 0, then kNodes - 1 times y = y + value 0.
  WorkWith Chain() const {
    return [this](const gcap_run_resources_t* r) {
      const uint64_t addend = Read<uint64_t>(r, 0);
      GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_->get(), y_->get(), addend));
      for (size_t i = 1; i < kNodes; ++i) {
        GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, y_->get(), y_->get(), addend));
      }
      return gcap_status_t{nullptr};
    };
  }
  Outcome RunWithAddend(uint64_t addend) {
    const Number<uint64_t> number = {addend, 0, 255};
    const std::vector<gcap_graph_value_t> values = {number.As("addend")};
    return RunWith(With(values), Chain());
  }
  gcap_status_t ReplayWithAddend(uint64_t addend) {
    const Number<uint64_t> number = {addend, 0, 255};
    const std::vector<gcap_graph_value_t> values = {number.As("addend")};
    return ReplayWith(With(values));
  }
  float Expected(uint64_t addend) const { return 3 + static_cast<float>(kNodes * addend); }
};

TEST_F(GraphValuesSim, AReplaySetsEachNodeOnceAndNoneForTheSameValue) {
  ASSERT_TRUE(RunWithAddend(5).ok());
  const auto sets = [&](uint64_t addend) {
    const uint64_t before = gcap_sim_calls("cuGraphExecKernelNodeSetParams");
    GCAP_EXPECT_OK(ReplayWithAddend(addend));
    EXPECT_EQ(y_->value(), Expected(addend));
    return gcap_sim_calls("cuGraphExecKernelNodeSetParams") - before;
  };
  EXPECT_EQ(sets(5), 0u);
  EXPECT_EQ(sets(6), kNodes);
  EXPECT_EQ(sets(6), 0u);
}

TEST_F(GraphValuesSim, WhateverFailsInARunTheOutputIsRightOrTheRunFails) {
  uint64_t addend = 1;
  (void)WalkFaults([&](Fault& fault) {
    addend = addend % 200 + 1;
    y_->Fill(-1);
    const LogCatcher log;
    const Outcome outcome = fault.During([&] {
      const Number<uint64_t> number = {addend, 0, 255};
      const std::vector<gcap_graph_value_t> values = {number.As("addend")};
      const gcap_graph_buffers_t buffers = With(values);
      WorkWith work = Chain();
      gcap_run_t run = RunOf(kId, stream_->get(), /*synchronize=*/true);
      run.work = IssueWith;
      run.user = &work;
      run.buffers = &buffers;
      return gcap_graph_manager_run(manager_, &run);
    });
    EXPECT_TRUE(outcome.ok() || fault.hit()) << outcome.message;
    EXPECT_TRUE(!outcome.ok() || y_->value() == Expected(addend)) << fault.function();
    (void)cudaGetLastError();
    GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  });
}

// Whatever call of a replay fails, the next replay has the values that it asks for, or the graph is captured again.
TEST_F(GraphValuesSim, WhateverFailsInAReplayTheNextOneIsRight) {
  for (const Reach reach : {Reach::kOneCall, Reach::kAllAfter}) {
    (void)WalkFaults(
        [&](Fault& fault) {
          ASSERT_TRUE(RunWithAddend(5).ok());
          y_->Fill(-1);
          const Outcome outcome = fault.During([&] { return ReplayWithAddend(9); });
          EXPECT_EQ(outcome.ok(), !fault.hit()) << fault.function() << ": " << outcome.message;
          stream_->Synchronize();
          (void)cudaGetLastError();
          EXPECT_TRUE(!outcome.ok() || y_->value() == Expected(9)) << fault.function();
          for (const uint64_t addend : {9, 5, 7}) {
            const Outcome next = RunWithAddend(addend);
            ASSERT_TRUE(next.ok()) << next.message;
            EXPECT_EQ(y_->value(), Expected(addend)) << fault.function();
          }
          GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
        },
        reach);
  }
}

TEST_F(GraphValuesSim, AGraphThatCannotBeSetBackIsNotLaunched) {
  ASSERT_TRUE(RunWithAddend(5).ok());
  for (uint64_t nth = 2; nth <= 3; ++nth) {
    gcap_sim_fault_t fault = {};
    fault.function = "cuGraphExecKernelNodeSetParams";
    fault.nth = nth;
    fault.code = cudaErrorUnknown;
    gcap_sim_inject(&fault);
  }
  GCAP_EXPECT_FAILS(ReplayWithAddend(9), GCAP_CUDA_ERROR, "graph id 3 could not be moved, nor put back");
  gcap_sim_clear_faults();
  EXPECT_EQ(State(kId), "STALE");
  GCAP_EXPECT_FAILS(ReplayWithAddend(5), GCAP_NOT_FOUND, "STALE");
  ASSERT_TRUE(RunWithAddend(9).ok());
  EXPECT_EQ(y_->value(), Expected(9));
  EXPECT_EQ(State(kId), "CAPTURED");
}

// --- Drawn programs -------------------------------------------------------------------------------------------------

constexpr int kLow = 0, kHigh = 5000;

// What a step of a program adds, of the values a and b.
uint64_t Term(unsigned kind, int a, uint64_t b, unsigned constant) {
  const uint64_t wide = static_cast<uint64_t>(a);
  switch (kind) {
    case 0: return wide;
    case 1: return b;
    case 2: return constant;
    case 3: return wide + 1;
    case 4: return b / 2;
    case 5: return wide + b;
    case 6: return std::min<uint64_t>(wide, b);
    case 7: return wide % 2;
    case 8: return b >= constant * 40 ? 1 : 0;
    default: return wide - b;
  }
}
constexpr unsigned kKinds = 10, kPlainKinds = 3;

struct Step {
  unsigned kind, constant;
  bool branches, counts, grows;
};

struct Program {
  std::vector<Step> steps;
  bool is_plain;  // each argument is a value or a constant

  explicit Program(std::mt19937* random) : is_plain((*random)() % 2 == 0) {
    const auto draw = [&](unsigned end) { return static_cast<unsigned>((*random)() % end); };
    const unsigned count = 1 + draw(4);
    for (unsigned i = 0; i < count; ++i) {
      Step step = {draw(is_plain ? kPlainKinds : kKinds), draw(120), false, draw(3) == 0, false};
      step.branches = !is_plain && draw(8) == 0;
      step.grows = !is_plain && draw(8) == 0;
      steps.push_back(step);
    }
  }
  // Buffer 1 = buffer 0 + term, and each further step adds to buffer 1.
  gcap_status_t Issue(const gcap_run_resources_t* r) const {
    const int a = Read<int>(r, 0);
    const uint64_t b = Read<uint64_t>(r, 1);
    const uint32_t c = Read<uint32_t>(r, 2);
    const void* from = r->addresses[0];
    for (const Step& step : steps) {
      if (step.branches && a > static_cast<int>(step.constant) * 40) continue;
      const void* to = r->addresses[1];
      uint64_t addend = Term(step.kind, a, b, step.constant);
      uint32_t count = step.counts ? c : kFloats;
      void* args[] = {&from, &to, &addend, &count};
      const dim3 grid(step.grows ? static_cast<unsigned>(a) / 1000 + 1 : 1);
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(gcap_kernel_add_scalar), grid,
                                                      dim3(32), args, 0, r->cuda_stream)));
      from = to;
    }
    return nullptr;
  }
  // The same on the host.
  std::vector<float> Expect(const std::vector<float>& x, std::vector<float> y, int a, uint64_t b, uint32_t c) const {
    const std::vector<float>* from = &x;
    for (const Step& step : steps) {
      if (step.branches && a > static_cast<int>(step.constant) * 40) continue;
      const uint32_t count = step.counts ? c : kFloats;
      const float addend = static_cast<float>(Term(step.kind, a, b, step.constant) & 0xff);
      for (uint32_t i = 0; i < count; ++i) y[i] = (*from)[i] + addend;
      from = &y;
    }
    return y;
  }
};

class GraphValuesDrawn : public GraphValues {
 protected:
  // Runs a program with values and buffers that are drawn.
  void Play(unsigned seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto draw = [&](uint64_t end) { return random() % end; };
    const Program program(&random);
    const LogCatcher log;
    for (int run = 0; run < 8 && !HasFailure(); ++run) {
      const Number<int> a = {static_cast<int>(draw(kHigh + 1)), kLow, kHigh};
      const Number<uint64_t> b = {draw(5001), 0, 5000};
      const Number<uint32_t> c = {static_cast<uint32_t>(1 + draw(kFloats)), 1, kFloats};
      std::vector<gcap_graph_value_t> values = {a.As("a"), b.As("b"), c.As("c")};
      for (auto& value : values) value.may_be_unused = true;
      const size_t from = draw(places_.size()), to = (from + 1 + draw(places_.size() - 1)) % places_.size();
      places_[from]->Fill(static_cast<float>(draw(100)));
      places_[to]->Fill(-1);
      const std::vector<float> wanted = program.Expect(places_[from]->Read(), places_[to]->Read(), a.now, b.now, c.now);
      const std::vector<gcap_graph_buffer_t> items = Items(*places_[from], *places_[to]);
      gcap_graph_buffers_t buffers = With(values, items);
      const bool may_be_unused[] = {true, true};
      buffers.may_be_unused = may_be_unused;
      const Outcome outcome = RunWith(buffers, [&](const gcap_run_resources_t* r) { return program.Issue(r); });
      ASSERT_TRUE(outcome.ok()) << outcome.message;
      ASSERT_EQ(places_[to]->Read(), wanted) << "run " << run;
      ++(result_.outcome == GCAP_RUN_REPLAYED ? replays_ : others_);
      plain_eager_ += program.is_plain && result_.outcome == GCAP_RUN_EAGER;
    }
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }

  std::vector<std::unique_ptr<Floats>> places_;
  unsigned long replays_ = 0, others_ = 0, plain_eager_ = 0;
};

// GCAP_SIM_SEED is the first seed, GCAP_TEST_ROUNDS how many follow.
TEST_F(GraphValuesDrawn, EachRunIsAsTheWorkAlone) {
  constexpr unsigned long kRounds = 500;
  const unsigned long first = NumberOr("GCAP_SIM_SEED", 1), rounds = NumberOr("GCAP_TEST_ROUNDS", kRounds);
  for (int i = 0; i < 4; ++i) places_.push_back(std::make_unique<Floats>(0.0f));
  for (unsigned long seed = first; seed < first + rounds && !HasFailure(); ++seed) Play(static_cast<unsigned>(seed));
  places_.clear();
  std::printf("%lu replays, %lu others\n", replays_, others_);
  EXPECT_EQ(plain_eager_, 0u) << "what carries a value is found";
  if (rounds < kRounds) return;
  EXPECT_GT(replays_, rounds * 3);
  EXPECT_GT(others_, rounds * 2);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
