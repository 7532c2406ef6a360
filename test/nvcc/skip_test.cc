// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A program with twelve kernels and no twin: its capture logic runs, and its mistakes are told. The kernels are nvcc's
// where there is one (--config=nvcc_on_sim), or registered by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gcap_sim.h"
#include "test/nvcc/engine/engine.h"

namespace {

using engine::Engine;
using engine::Mistake;

constexpr int kKernels = 12;
constexpr int kReplays = 2;
constexpr uint64_t kSeeds = 8;

class Skip : public testing::Test {
 protected:
  void SetUp() override {
    gcap_sim_set_missing_twin(GCAP_SIM_MISSING_TWIN_SKIP);
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_RECORD);
  }
  void TearDown() override {
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_DEFAULT);
    gcap_sim_set_missing_twin(GCAP_SIM_MISSING_TWIN_STOP);
  }

  // The reports of one run; `*out_worked`: no call failed.
  static std::vector<std::string> RunOnce(Mistake mistake, bool* out_worked) {
    testing::internal::CaptureStderr();
    {
      Engine engine(mistake);
      *out_worked = engine.Run(kReplays);
    }
    std::vector<std::string> reports(gcap_sim_check());
    for (size_t i = 0; i < reports.size(); ++i) reports[i] = gcap_sim_report(i);
    testing::internal::GetCapturedStderr();
    return reports;
  }

  // Under each seed the mistake is told, and nothing but it: all reports are of these kinds, each kind is there, and
  // the first one has the texts.
  static void Expect(Mistake mistake, bool works, const std::vector<std::string>& kinds,
                     const std::vector<std::string>& texts) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      gcap_sim_set_seed(seed);
      bool worked = false;
      const std::vector<std::string> reports = RunOnce(mistake, &worked);
      EXPECT_EQ(works, worked) << "seed " << seed;
      ASSERT_EQ(kinds.empty(), reports.empty()) << "seed " << seed << reports[0];
      std::set<std::string> found;
      for (const std::string& report : reports) {
        EXPECT_EQ(std::string::npos, report.find("_stub_")) << "nvcc's part of the launch is shown in\n" << report;
        for (const std::string& kind : kinds) {
          if (report.find("gcap sim: " + kind) == 0) found.insert(kind);
        }
        ASSERT_TRUE(std::any_of(kinds.begin(), kinds.end(),
                                [&](const std::string& kind) { return report.find("gcap sim: " + kind) == 0; }))
            << "seed " << seed << ": another report:\n"
            << report;
      }
      EXPECT_EQ(kinds.size(), found.size()) << "seed " << seed;
      for (const std::string& text : texts) {
        ASSERT_NE(std::string::npos, reports[0].find(text)) << "seed " << seed << ": no '" << text << "' in\n"
                                                            << reports[0];
      }
    }
  }
};

TEST_F(Skip, ARightEngineRuns) {
  const uint64_t before = gcap_sim_skipped(nullptr), before_add = gcap_sim_skipped("engine::add<float>");
  Expect(Mistake::kNone, true, {}, {});
  EXPECT_EQ(kSeeds * kReplays * kKernels, gcap_sim_skipped(nullptr) - before);
  EXPECT_EQ(kSeeds * kReplays, gcap_sim_skipped("engine::add<float>") - before_add);
  EXPECT_EQ(0u, gcap_sim_skipped("engine::subtract"));
}

TEST_F(Skip, CallsThatBreakACaptureAreTold) {
  const struct {
    Mistake mistake;
    const char* call;
  } rows[] = {{Mistake::kMallocInCapture, "cudaMalloc"},
              {Mistake::kSyncInCapture, "cudaStreamSynchronize"},
              {Mistake::kDeviceSyncInCapture, "cudaDeviceSynchronize"},
              {Mistake::kLegacyStream, "cudaLaunchKernel"},
              {Mistake::kForkNotJoined, "cudaStreamEndCapture"},
              {Mistake::kQueryByOtherThread, "cudaEventQuery"}};
  for (const auto& row : rows) {
    Expect(row.mistake, false, {"broken capture"},
           {std::string("broken by ") + row.call, "begun by cudaStreamBeginCapture", "engine::Engine::", "Remedy"});
  }
}

TEST_F(Skip, WorkThatTheGraphLacksIsTold) {
  // It races with the graph, where it should be a node.
  Expect(Mistake::kLegacyStreamUnseen, true, {"escaped work", "race"}, {"cudaLaunchKernel", "legacy stream"});
  Expect(Mistake::kCopyBeside, true, {"escaped work", "race"}, {"cudaMemcpyAsync", "engine::Engine::MistakeInCapture"});
}

TEST_F(Skip, DeadMemoryInAGraphIsTold) {
  Expect(Mistake::kStagingFreed, true, {"a graph uses memory that was freed"},
         {"pinned memory", "cudaFreeHost", "cudaGraphLaunch"});
  Expect(Mistake::kBufferFreed, true, {"a graph uses memory that was freed"},
         {"freed by cudaFree", "kernel `engine::embed`", "cudaGraphLaunch"});
}

TEST_F(Skip, RacesAreTold) {
  Expect(Mistake::kJoinTooLate, true, {"race"},
         {"skipped kernel `engine::append`", "engine::Engine::Branch()", "a dependency between the two nodes"});
  Expect(Mistake::kInputNotWaitedFor, true, {"race"}, {"cudaMemsetAsync", "kernel `engine::", "cudaGraphLaunch"});
}

TEST_F(Skip, WhatIsLeftAndWhatIsRefusedIsTold) {
  Expect(Mistake::kGraphKept, true, {"leak of 1 of the kind \"exec\"", "leak of 1 of the kind \"graph\""},
         {"cudaGraphInstantiate"});
  Expect(Mistake::kTemporaryNeverFreed, false, {"refused call", "leak"}, {"cudaGraphLaunch", "cudaMallocAsync"});
  Expect(Mistake::kFreedTwice, false, {"refused call"}, {"cudaFree", "engine::Engine::MistakeAfterCapture"});
}

TEST(SkipDeathTest, StopsAtTheFirstKernelByDefault) {
  EXPECT_DEATH(Engine(Mistake::kNone).Run(1),
               "kernel `engine::embed\\(int const\\*, float const\\*, float\\*, int\\)` has no twin");
}

}  // namespace
