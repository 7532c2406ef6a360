// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Queries under each schedule: may they be early, and does a loop of them end? The schedule is read once a process, so
// each test asks in a child, before any call of this process.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

constexpr uint64_t kSeeds = 64;

struct Bench {
  Bench(const char* schedule) {
    setenv("GCAP_SIM_SCHEDULE", schedule, 1);
    ok = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess &&
         cudaEventCreate(&event) == cudaSuccess && cudaMalloc(&memory, 64) == cudaSuccess;
  }
  // One piece of work, and an event behind it.
  void Issue(uint64_t seed) {
    gcap_sim_set_seed(seed);
    ok = ok && cudaMemsetAsync(memory, 0, 64, stream) == cudaSuccess && cudaEventRecord(event, stream) == cudaSuccess;
  }
  cudaError_t Query(bool of_event) { return of_event ? cudaEventQuery(event) : cudaStreamQuery(stream); }
  bool ok = false;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  void* memory = nullptr;
};

// Says on stderr how often the first query after one operation was early.
[[noreturn]] void CountEarly(const char* schedule, bool of_event) {
  Bench bench(schedule);
  unsigned early = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    bench.Issue(seed);
    early += bench.Query(of_event) == cudaErrorNotReady;
    bench.ok = bench.ok && cudaStreamSynchronize(bench.stream) == cudaSuccess;
  }
  fprintf(stderr, "early %s\n", early == 0 ? "never" : early == kSeeds ? "always" : "sometimes");
  exit(bench.ok ? 0 : 1);
}

// Nothing but queries: says on stderr how many a loop took at most.
[[noreturn]] void CountQueries(const char* schedule, bool of_event) {
  Bench bench(schedule);
  int most = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    bench.Issue(seed);
    int queries = 1;
    while (bench.Query(of_event) == cudaErrorNotReady && queries < 100) ++queries;
    if (queries > most) most = queries;
  }
  fprintf(stderr, "at most %d\n", most);
  exit(bench.ok ? 0 : 1);
}

class QueryDeathTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

// After one operation no query was early, under any schedule: it stepped the queue before it answered.
TEST_P(QueryDeathTest, IsAlwaysEarlyUnderTheLazySchedule) {
  EXPECT_EXIT(CountEarly("lazy", GetParam()), testing::ExitedWithCode(0), "early always");
  EXPECT_EXIT(CountQueries("lazy", GetParam()), testing::ExitedWithCode(0), "at most 2\n");
}

TEST_P(QueryDeathTest, IsSometimesEarlyUnderTheRandomSchedule) {
  EXPECT_EXIT(CountEarly("random", GetParam()), testing::ExitedWithCode(0), "early sometimes");
  EXPECT_EXIT(CountQueries("random", GetParam()), testing::ExitedWithCode(0), "at most 2\n");
}

TEST_P(QueryDeathTest, IsNeverEarlyUnderTheEagerSchedule) {
  EXPECT_EXIT(CountEarly("eager", GetParam()), testing::ExitedWithCode(0), "early never");
}

INSTANTIATE_TEST_SUITE_P(Of, QueryDeathTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Event" : "Stream"; });

}  // namespace
