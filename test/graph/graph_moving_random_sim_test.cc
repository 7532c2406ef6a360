// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Random runs, binds, replays, recaptures and releases of a few ids on a few buffers, with and without calls that fail
// by chance. What succeeds is right, whatever came before, and nothing is left.

#include <iterator>
#include <random>

#include "gcap_sim.h"
#include "test/graph/moving_test.h"
#include "test/support/faults.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kSeeds = 300;
constexpr int kSteps = 40, kIds = 3, kPlaces = 5;

// What may fail without leaving a stream that captures, or a handle.
constexpr const char* kFunctions[] = {"cuGraphExecKernelNodeSetParams",
                                      "cuGraphKernelNodeGetParams",
                                      "cuMemAddressReserve",
                                      "cuPointerGetAttributes",
                                      "cudaGraphExecMemcpyNodeSetParams",
                                      "cudaGraphGetEdges",
                                      "cudaGraphGetNodes",
                                      "cudaGraphInstantiateWithParams",
                                      "cudaGraphLaunch",
                                      "cudaGraphMemcpyNodeGetParams",
                                      "cudaLaunchKernel",
                                      "cudaMalloc",
                                      "cudaMemcpyAsync",
                                      "cudaStreamBeginCapture"};

class GraphMovingRandom : public GraphMoving {
 protected:
  // What an id's graph works on, as far as it is known.
  struct Bound {
    int from = -1, to = -1;
  };

  size_t Draw(size_t end) { return random_() % end; }

  // Does the step, perhaps with faults, and tells whether it succeeded.
  template <typename Step>
  bool Try(Step step) {
    if (has_faults_) {
      gcap_sim_fault_t fault = {};
      fault.function = kFunctions[Draw(std::size(kFunctions))];
      fault.nth = 1 + Draw(4);
      fault.code = cudaErrorUnknown;
      gcap_sim_inject(&fault);
    }
    const Outcome outcome(step());
    gcap_sim_clear_faults();
    stream_->Synchronize();
    (void)cudaGetLastError();
    EXPECT_TRUE(outcome.ok() || has_faults_ || outcome.code == GCAP_NOT_FOUND) << outcome.message;
    num_ok_ += outcome.ok();
    return outcome.ok();
  }
  void Prepare(const Bound& bound) {
    places_[bound.from]->Fill(static_cast<float>(Draw(1000)));
    places_[bound.to]->Fill(-1);
  }
  void ExpectRan(int id, const Bound& bound) {
    EXPECT_EQ(places_[bound.to]->value(), places_[bound.from]->value() + static_cast<float>(id + 1));
  }

  void RunAnywhere(int id) {
    const int from = static_cast<int>(Draw(kPlaces));
    const Bound wanted = {from, static_cast<int>((from + 1 + Draw(kPlaces - 1)) % kPlaces)};
    Prepare(wanted);
    WorkOn work = [&](cudaStream_t stream, void* const* at) {
      if (id == 1) {
        GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(at[1], at[0], kFloatsBytes, cudaMemcpyDeviceToDevice, stream)));
        return AddTo(stream, at[1], at[1], 2);
      }
      return AddTo(stream, at[0], at[1], static_cast<uint64_t>(id + 1));
    };
    const std::vector<gcap_graph_buffer_t> items = Items(*places_[wanted.from], *places_[wanted.to]);
    gcap_graph_buffers_t buffers = BuffersOf(items);
    if (Draw(4) == 0) buffers.stand_ins = GCAP_GRAPH_STAND_INS_MEMORY;
    const auto step = [&] { return RunPlainOn(manager_, id, stream_->get(), &buffers, Issue, &work, true); };
    bound_[id] = {};
    if (!Try(step)) return;
    ExpectRan(id, wanted);
    if (gcap_graph_manager_is_captured(manager_, id) && WhyNotMovable(id).ok()) bound_[id] = wanted;
  }
  void BindAnywhere(int id) {
    if (bound_[id].from < 0) return;
    Bound wanted = bound_[id];
    wanted.from = static_cast<int>((wanted.to + 1 + Draw(kPlaces - 1)) % kPlaces);
    const auto step = [&] { return Bind(0, places_[wanted.from]->get(), id); };
    if (Try(step)) bound_[id] = wanted;
  }
  void ReplayThere(int id) {
    if (bound_[id].from < 0) return;
    Prepare(bound_[id]);
    if (Try([&] { return Replay(manager_, id, true); })) ExpectRan(id, bound_[id]);
  }
  void Step() {
    const int id = static_cast<int>(Draw(kIds));
    switch (Draw(8)) {
      case 0: Try([&] { return gcap_graph_manager_recapture(manager_, id); }); break;
      case 1: Try([&] { return gcap_graph_manager_release(manager_, id); }); break;
      case 2: BindAnywhere(id); break;
      case 3: ReplayThere(id); break;
      default: RunAnywhere(id);
    }
    if (!gcap_graph_manager_is_captured(manager_, id)) bound_[id] = {};
    for (int other = 0; other < kIds; ++other) {  // evicted
      if (!gcap_graph_manager_is_captured(manager_, other)) bound_[other] = {};
    }
  }
  void Play(unsigned seed, bool has_faults) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed << (has_faults ? ", with faults" : ""));
    random_.seed(seed);
    gcap_sim_set_seed(seed);
    has_faults_ = has_faults;
    CreateWith([&](auto* options) {
      options->min_num_runs_before_capture = static_cast<uint32_t>(Draw(2));
      options->max_graphs = Draw(3);
    });
    for (int i = 0; i < kPlaces; ++i) places_.push_back(std::make_unique<Floats>(0.0f));
    for (Bound& bound : bound_) bound = {};
    for (int i = 0; i < kSteps && !HasFailure(); ++i) Step();
    (void)Outcome(gcap_graph_manager_release_all(manager_));
    places_.clear();
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<Floats>> places_;
  Bound bound_[kIds];
  bool has_faults_ = false;
  int num_ok_ = 0;
};

TEST_F(GraphMovingRandom, WhatSucceedsIsRight) {
  const Handles before = LiveHandles();
  for (unsigned seed = 0; seed < kSeeds && !HasFailure(); ++seed) Play(seed, false);
  EXPECT_EQ(LiveHandles(), before);
  EXPECT_GT(num_ok_, static_cast<int>(kSeeds) * kSteps / 2);
}

TEST_F(GraphMovingRandom, WhatSucceedsBetweenFailuresIsRight) {
  const Handles before = LiveHandles();
  for (unsigned seed = 0; seed < kSeeds && !HasFailure(); ++seed) Play(seed, true);
  EXPECT_EQ(LiveHandles(), before);
  EXPECT_GT(num_ok_, static_cast<int>(kSeeds) * kSteps / 4);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
