// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Taps in runs of a runtime: scratch on the way, a stream of the caller's, and calls that cannot read.

#include <string>
#include <vector>

#include "gcap/graph_taps.h"
#include "gcap/graph_verify.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/runtime/runtime_fixture.h"
#include "test/support/log_catcher.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);

// y = x, by way of scratch, which is tapped.
struct TappedJob {
  DeviceFloats x{Floats(kCount, 1)}, y{Floats(kCount)};

  static gcap_status_t Issue(void* self, const gcap_run_resources_t* run) {
    const TappedJob* job = static_cast<const TappedJob*>(self);
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, kBytes, run->stream, &block));
    gcap_status_t status = Move(block, job->x.get(), run->cuda_stream);
    if (status == nullptr) status = gcap_graph_tap_issue(run->cuda_stream, "scratch", block, kBytes);
    if (status == nullptr) status = Move(job->y.get(), block, run->cuda_stream);
    return gcap_status_join(status, gcap_scratch_free(run->scratch, block));
  }
  static gcap_status_t Move(void* to, const void* from, cudaStream_t stream) {
    return GCAP_CUDA(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, stream));
  }
};

class RuntimeTaps : public RuntimeTest {
 protected:
  Outcome Run(TappedJob* job, float* out_value, gcap_run_outcome_t* out_outcome,
              cudaStream_t stream = GCAP_RUN_OWN_STREAM) {
    Floats values(kCount, -1);
    gcap_graph_tap_t tap = {"scratch", values.data(), kBytes, 0};
    gcap_run_result_t result;
    gcap_run_result_init(&result);
    gcap_run_t run = RunOf(/*id=*/0, /*synchronize=*/false);
    run.stream = stream;
    run.work = TappedJob::Issue;
    run.user = job;
    run.result = &result;
    run.taps = &tap;
    run.num_taps = 1;
    run.verify = verify_;
    const Outcome outcome(gcap_runtime_run(runtime_, &run));
    *out_value = values == Floats(kCount, values[0]) ? values[0] : -2;
    *out_outcome = result.outcome;
    EXPECT_EQ(tap.tapped_bytes, outcome.ok() ? kBytes : 0u);
    return outcome;
  }

  const gcap_graph_verify_t* verify_ = nullptr;
};

TEST_F(RuntimeTaps, OfScratchAreReadByEagerRunsCapturesAndReplays) {
  const LogCatcher log;
  Create(GraphOptions(1));
  TappedJob job;
  const RawStream other;
  const gcap_run_outcome_t expected[] = {GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED, GCAP_RUN_REPLAYED};
  for (int i = 0; i < 4; ++i) {
    job.x.Set(Floats(kCount, 10.0f * i));
    float value = 0;
    gcap_run_outcome_t outcome;
    const Outcome run = Run(&job, &value, &outcome, i == 3 ? other.get() : GCAP_RUN_OWN_STREAM);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(value, 10.0f * i);
    EXPECT_EQ(outcome, expected[i]);
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(job.y.Get(), Floats(kCount, 10.0f * i));
  }
  Floats values(kCount);
  gcap_graph_tap_t tap = {"scratch", values.data(), kBytes, 0};
  gcap_run_t replay = RunOf(/*id=*/0, /*synchronize=*/false);
  replay.taps = &tap;
  replay.num_taps = 1;
  bool replayed = false;
  GCAP_EXPECT_OK(gcap_runtime_replay(runtime_, &replay, &replayed));
  EXPECT_TRUE(replayed);
  EXPECT_EQ(values, Floats(kCount, 30));
  gcap_graph_run_kind_t kind;
  GCAP_EXPECT_FAILS(gcap_runtime_begin_run(runtime_, &replay, &kind, nullptr), GCAP_INVALID_ARGUMENT,
                    "a begin does not end it");
}

// The replay leaves the tap of memory that changed since, and the work that of now.
TEST_F(RuntimeTaps, OfAVerifiedRunAreTheWorksAndOfOneThatDiffersNone) {
  const LogCatcher log;
  Create(GraphOptions(1));
  TappedJob job, later;
  later.x.Set(Floats(kCount, 3));
  gcap_graph_verify_buffer_t scratch = {"scratch", job.y.get(), kBytes, GCAP_DTYPE_F32, 5, 0, false};
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.buffers = &scratch;
  verify.num_buffers = 1;
  verify.each = 1;
  float value = 0;
  gcap_run_outcome_t outcome;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Run(&job, &value, &outcome).ok());
  ASSERT_EQ(outcome, GCAP_RUN_CAPTURED);
  verify_ = &verify;
  EXPECT_TRUE(Run(&later, &value, &outcome).ok());
  EXPECT_EQ(outcome, GCAP_RUN_REPLAYED);
  EXPECT_EQ(value, 3) << "within the tolerance, and of the work";
  scratch.absolute = 1;
  EXPECT_EQ(Run(&later, &value, &outcome).code, GCAP_REPLAY_DIFFERS);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
