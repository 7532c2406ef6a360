// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap.hpp where the compiler has no exceptions: owners, results and work are there; what throws is not.

#include <cuda_runtime_api.h>

#include <utility>

#include "gcap/gcap.hpp"
#include "gtest/gtest.h"
#include "test/support/device_test.h"

#if defined(__cpp_exceptions)
#error "this test is to be compiled with -fno-exceptions"
#endif

namespace gcap {
namespace testing {
namespace {

result<graph_manager> MakeManager() {
  auto options = filled_by<gcap_graph_manager_options_init>();
  options.min_num_runs_before_capture = 1;
  return own<gcap_graph_manager_create>(&options);
}

status RunThrice(gcap_graph_manager_t* graphs, int* out_calls) {
  auto on = own<gcap_stream_create>(0);
  if (!on) return std::move(on).failure();
  auto device = own<gcap_device_allocator_create>(0);
  if (!device) return std::move(device).failure();
  auto byte = own<gcap_allocator_alloc>(device->get(), size_t{1});
  if (!byte) return std::move(byte).failure();
  for (int i = 0; i < 3; ++i) {
    status outcome = run(graphs, {0, gcap_stream_handle(on->get())}, [&](cudaStream_t stream) {
      ++*out_calls;
      return GCAP_CUDA(cudaMemsetAsync(byte->get(), 1, 1, stream));
    });
    if (!outcome.ok()) return outcome;
  }
  return gcap_graph_manager_release_all(graphs);  // before its stream ends
}

using NoExceptions = DeviceTest;

TEST_F(NoExceptions, RunsCapturesAndReplays) {
  auto graphs = MakeManager();
  ASSERT_TRUE(graphs) << graphs.failure().message();
  int calls = 0;
  const status outcome = RunThrice(graphs->get(), &calls);
  EXPECT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(calls, 2);
}

TEST_F(NoExceptions, AHoleIsACallable) {
  auto graphs = MakeManager();
  ASSERT_TRUE(graphs) << graphs.failure().message();
  auto on = own<gcap_stream_create>(0);
  ASSERT_TRUE(on) << on.failure().message();
  int calls = 0;
  for (int i = 1; i <= 3; ++i) {
    const status outcome = run(graphs->get(), {0, gcap_stream_handle(on->get())}, [&](const gcap_run_resources_t& at) {
      return hole(at, "count", [&calls] { ++calls; });
    });
    EXPECT_TRUE(outcome.ok()) << outcome.message();
    EXPECT_EQ(calls, i);
  }
  EXPECT_TRUE(status(gcap_graph_manager_release_all(graphs->get())).ok());  // before its stream ends
}

TEST_F(NoExceptions, AFailureIsAResult) {
  EXPECT_EQ(own<gcap_stream_create>(-1).failure().code(), GCAP_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
