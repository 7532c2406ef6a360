// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// IO bindings when the heap, or the device's memory, is short.

#include "gcap/kit/io_binding.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/session/session_test.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_memory_t kHost = {GCAP_MEMORY_HOST, 0};

class IoBindingSim : public ::testing::Test {
 protected:
  void SetUp() override {
    GCAP_ASSERT_OK(rig_.Create(GraphOptions(1)));
    GCAP_ASSERT_OK(gcap_io_binding_create(rig_.session, &binding_));
  }
  void TearDown() override { GCAP_EXPECT_OK(gcap_io_binding_destroy(binding_)); }
  gcap_status_t Bind() {
    const gcap_tensor_t in = Tensor(x_.data(), {2, 3}), out = Tensor(y_.data(), {2, 3});
    GCAP_RETURN_IF_ERROR(gcap_io_binding_bind_input(binding_, "x", &in, kHost));
    return gcap_io_binding_bind_output(binding_, "y", &out, kHost);
  }
  void ExpectRightRun() {
    GCAP_ASSERT_OK(Bind());
    GCAP_ASSERT_OK(gcap_session_run_bound(rig_.session, nullptr, binding_));
    EXPECT_EQ(y_, ChainOf(x_));
  }

  ChainRig rig_;
  Floats x_ = {1, 2, 3, 4, 5, 6}, y_ = Floats(6, 77.0f);
  gcap_io_binding_t* binding_ = nullptr;
};

TEST_F(IoBindingSim, CreateAndBindSurviveAShortHeap) {
  for (int skip = 0; skip < 4; ++skip) {  // the object, its tensors by name, those of a run, and the holds
    gcap_io_binding_t* other = nullptr;
    const HeapFailure failure(1, skip);
    GCAP_EXPECT_FAILS(gcap_io_binding_create(rig_.session, &other), GCAP_RESOURCE_EXHAUSTED, "memory");
    EXPECT_EQ(other, nullptr);
    EXPECT_EQ(failure.hits(), 1);
  }
  for (int skip : {0, 1}) {  // a block and its hold
    const HeapFailure failure(1, skip);
    GCAP_EXPECT_FAILS(Bind(), GCAP_RESOURCE_EXHAUSTED, "memory");
    EXPECT_EQ(failure.hits(), 1);
  }
  ExpectRightRun();
}

TEST_F(IoBindingSim, BindWithoutDeviceMemoryIsRefused) {
  gcap_sim_fail_nth("cudaMalloc", 1, cudaErrorMemoryAllocation);
  GCAP_EXPECT_FAILS(Bind(), GCAP_RESOURCE_EXHAUSTED, "");
  gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
  ExpectRightRun();
}

// What cannot be freed is tried again.
TEST_F(IoBindingSim, StagingMemoryThatCannotBeFreedIsTriedAgain) {
  ExpectRightRun();
  LogCatcher log;
  gcap_sim_fail_nth("cudaFree", 1, cudaErrorInvalidValue);
  GCAP_EXPECT_OK(gcap_io_binding_clear(binding_));
  gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
  EXPECT_NE(log.text().find("24 bytes of staging memory cannot be freed"), std::string::npos) << log.text();
  ExpectRightRun();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
