// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions where nothing runs on the device before somebody waits for it: what was waited for is seen exactly.

#include <cstdlib>
#include <string>
#include <thread>

#include "gcap/kit/session.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"

namespace {

using gcap::testing::ChainOf;
using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::RunOptions;
using gcap::testing::Tensor;

// The simulator reads it at the program's first call.
const bool is_lazy = setenv("GCAP_SIM_SCHEDULE", "lazy", /*replace=*/1) == 0;

TEST(SessionLazy, RunReturnsAtOnceOrWithItsResultAsAsked) {
  ASSERT_TRUE(is_lazy);
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  for (int run = 1; run <= 5; ++run) {  // eager, captured, three replays
    y.Set(Floats(6));
    const int executions = rig.count.executions;
    GCAP_ASSERT_OK(rig.Run(x, y, 0, /*synchronize=*/false));
    EXPECT_EQ(rig.count.executions, executions);
    gcap_sim_set_action(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_OFF);  // looks too early, to see that nothing has run
    EXPECT_EQ(y.Get(), Floats(6));
    GCAP_ASSERT_OK(gcap_runtime_synchronize(rig.ep->runtime()));  // runs what the look did not wait for
    gcap_sim_set_action(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_ABORT);
    EXPECT_EQ(rig.count.executions, executions + 1);
    EXPECT_EQ(y.Get(), ChainOf({1, 2, 3, 4, 5, 6}));
    GCAP_ASSERT_OK(rig.Run(x, y, 1, /*synchronize=*/true));
    EXPECT_EQ(rig.count.executions, executions + 2);
  }
}

// An exception tells that the run failed; the device goes on.
TEST(SessionLazy, ARunThatIsLeftByAnExceptionDoesNotWait) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  const auto waits = [] {
    return gcap_sim_calls("cudaStreamSynchronize") + gcap_sim_calls("cudaEventSynchronize") +
           gcap_sim_calls("cudaDeviceSynchronize");
  };
  const uint64_t at_first = waits();
  GCAP_ASSERT_OK(rig.Run(x, y, GCAP_GRAPH_ID_NONE, /*synchronize=*/true));
  const uint64_t before = waits();
  EXPECT_GT(before, at_first) << "what is counted is what waits";
  rig.ep->on_compute = [](const char* op, const gcap_kernel_context_t*) {
    if (std::string(op) == "Count") throw 7;
  };
  EXPECT_THROW(gcap_status_free(rig.Run(x, y, GCAP_GRAPH_ID_NONE, /*synchronize=*/true)), int);
  EXPECT_EQ(waits(), before);
  rig.ep->on_compute = nullptr;
}

// A wait of the host for that stream runs the work, and nothing did before.
TEST(SessionLazy, RunBetweenWorkOfTheUsersStreamReturnsAtOnce) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
    DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
    const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
    gcap_run_options_t options = RunOptions(0, /*synchronize=*/false);
    options.user_stream = stream;
    for (int run = 1; run <= 4; ++run) {  // eager, captured, two replays
      GCAP_ASSERT_OK(gcap_session_run(rig.session, &options, &input, &output));
      EXPECT_EQ(rig.count.executions, run - 1);
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(rig.count.executions, run);
    }
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// The constants are copied on the stream of the thread that makes the session; other threads have streams of their own.
TEST(SessionLazy, ConstantsAreThereForEveryThread) {
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  std::thread([&] { GCAP_EXPECT_OK(rig.Run(x, y)); }).join();
  EXPECT_EQ(y.Get(), ChainOf({1, 2, 3, 4, 5, 6}));
}

}  // namespace
