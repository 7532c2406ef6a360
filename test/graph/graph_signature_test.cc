// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Signatures: a replay on other tensors than the capture's is refused with a sentence.

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/replays.h"

namespace gcap {
namespace testing {
namespace {

class GraphSignature : public ManagerTest {
 protected:
  using Bindings = std::vector<gcap_graph_binding_t>;

  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Create(0);
  }

  void Capture(int id, const CopyJob& job, const Bindings& bindings) {
    ASSERT_EQ(Begin(id), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
    GCAP_EXPECT_OK(gcap_graph_manager_sign(manager_, bindings.data(), bindings.size()));
    EXPECT_TRUE(End().ok());
  }
  gcap_status_t Check(int id, const Bindings& bindings) {
    return gcap_graph_manager_check_signature(manager_, id, bindings.data(), bindings.size());
  }
  gcap_status_t ReplayWith(int id, const Bindings& bindings) {
    return ReplayBound(manager_, id, bindings.data(), bindings.size(), /*synchronize=*/true);
  }
  static const void* At(uintptr_t address) { return reinterpret_cast<const void*>(address); }
};

TEST_F(GraphSignature, OfTheSameTensorsReplays) {
  CopyJob job;
  {
    const std::string name = "input";
    const std::vector<int64_t> shape = {2, 3};
    Capture(0, job, {{name.c_str(), At(0x1000), 2, shape.data()}, {"bias", At(0x2000), 0, nullptr}});
  }
  const std::vector<int64_t> shape = {2, 3};
  const Bindings same = {{"input", At(0x1000), 2, shape.data()}, {"bias", At(0x2000), 0, nullptr}};
  GCAP_EXPECT_OK(Check(0, same));
  job.set_input(4);
  GCAP_EXPECT_OK(ReplayWith(0, same));
  EXPECT_EQ(job.output(), 4);
  EXPECT_EQ(Info(0).replays, 2u);
}

TEST_F(GraphSignature, OfAnotherAddressNamesTheTensorAndBothAddresses) {
  CopyJob job;
  const int64_t shape[] = {8};
  Capture(5, job, {{"weights", At(0x1000), 1, shape}, {"logits", At(0x2000), 1, shape}});
  const Bindings moved = {{"weights", At(0x1000), 1, shape}, {"logits", At(0x3000), 1, shape}};
  const int before = job.output();
  job.set_input(9);
  for (const bool replay : {false, true}) {
    const Outcome outcome(replay ? ReplayWith(5, moved) : Check(5, moved));
    EXPECT_STREQ(gcap_code_name(outcome.code), "FAILED_PRECONDITION");
    for (const char* part : {"graph id 5", "tensor 1 ('logits')", "0x3000", "0x2000"}) {
      EXPECT_TRUE(outcome.Names(part)) << part << ": " << outcome.message;
    }
  }
  EXPECT_EQ(job.output(), before) << "nothing was launched";
  EXPECT_EQ(Info(5).replays, 1u);
}

TEST_F(GraphSignature, OfAnotherShapeNamesBothShapes) {
  CopyJob job;
  const int64_t shape[] = {2, 3};
  const int64_t other[] = {2, 4};
  Capture(0, job, {{"x", At(0x1000), 2, shape}});
  GCAP_EXPECT_FAILS(ReplayWith(0, {{"x", At(0x1000), 2, other}}), GCAP_FAILED_PRECONDITION,
                    "tensor 0 ('x') has shape [2, 4], it was captured with [2, 3]");
  GCAP_EXPECT_FAILS(ReplayWith(0, {{"x", At(0x1000), 1, shape}}), GCAP_FAILED_PRECONDITION, "[2], it was captured");
  GCAP_EXPECT_FAILS(ReplayWith(0, {{"x", At(0x1000), 0, nullptr}}), GCAP_FAILED_PRECONDITION, "has shape []");
  GCAP_EXPECT_OK(ReplayWith(0, {{"x", At(0x1000), 2, shape}}));
}

TEST_F(GraphSignature, OfALongShapeIsCutInTheMessageOnly) {
  CopyJob job;
  const std::vector<int64_t> shape(100, 123456789);
  std::vector<int64_t> other = shape;
  other.back() = 1;
  Capture(0, job, {{"x", At(0x1000), 100, shape.data()}});
  GCAP_EXPECT_FAILS(ReplayWith(0, {{"x", At(0x1000), 100, other.data()}}), GCAP_FAILED_PRECONDITION, "123456789");
  GCAP_EXPECT_OK(ReplayWith(0, {{"x", At(0x1000), 100, shape.data()}}));
}

TEST_F(GraphSignature, OfAnotherNumberOfTensorsIsRefused) {
  CopyJob job;
  Capture(0, job, {{"x", At(0x1000), 0, nullptr}});
  GCAP_EXPECT_FAILS(ReplayWith(0, {}), GCAP_FAILED_PRECONDITION, "0 tensors are bound, it was captured with 1");
}

TEST_F(GraphSignature, NamesAreForMessagesOnlyAndMayBeMissing) {
  CopyJob job;
  Capture(0, job, {{nullptr, At(0x1000), 0, nullptr}});
  GCAP_EXPECT_OK(ReplayWith(0, {{"x", At(0x1000), 0, nullptr}}));
  GCAP_EXPECT_FAILS(ReplayWith(0, {{"x", At(0x2000), 0, nullptr}}), GCAP_FAILED_PRECONDITION, "tensor 0 ('x')");
}

TEST_F(GraphSignature, OfNothingIsASignature) {
  CopyJob job;
  Capture(0, job, {});
  GCAP_EXPECT_OK(ReplayWith(0, {}));
}

TEST_F(GraphSignature, OfARunNotSignedIsRefused) {
  CopyJob job;
  Run(0, job);
  GCAP_EXPECT_FAILS(Check(0, {}), GCAP_FAILED_PRECONDITION, "not signed");
  GCAP_EXPECT_FAILS(ReplayWith(0, {}), GCAP_FAILED_PRECONDITION, "not signed");
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
}

TEST_F(GraphSignature, OfAnUnknownIdIsNotFound) {
  GCAP_EXPECT_FAILS(Check(7, {}), GCAP_NOT_FOUND, "graph id 7");
  GCAP_EXPECT_FAILS(ReplayWith(7, {}), GCAP_NOT_FOUND, "graph id 7");
}

TEST_F(GraphSignature, TheLastOneOfARunCountsAndANewCaptureHasItsOwn) {
  CopyJob job;
  const Bindings first = {{"x", At(0x1000), 0, nullptr}};
  const Bindings second = {{"x", At(0x2000), 0, nullptr}};
  ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
  GCAP_EXPECT_OK(gcap_graph_manager_sign(manager_, first.data(), 1));
  GCAP_EXPECT_OK(gcap_graph_manager_sign(manager_, second.data(), 1));
  EXPECT_TRUE(End().ok());
  GCAP_EXPECT_OK(Check(0, second));
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  Capture(0, job, first);
  GCAP_EXPECT_OK(Check(0, first));
  GCAP_EXPECT_FAILS(Check(0, second), GCAP_FAILED_PRECONDITION, "0x2000");
}

TEST_F(GraphSignature, SignsOnlyWithinARunOfTheThread) {
  GCAP_EXPECT_FAILS(gcap_graph_manager_sign(manager_, nullptr, 0), GCAP_FAILED_PRECONDITION, "no run is open");
  EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
  GCAP_EXPECT_OK(gcap_graph_manager_sign(manager_, nullptr, 0));
  std::thread([this] {
    GCAP_EXPECT_FAILS(gcap_graph_manager_sign(manager_, nullptr, 0), GCAP_FAILED_PRECONDITION, "another thread");
  }).join();
  EXPECT_TRUE(End().ok());
}

TEST_F(GraphSignature, OfARunThatFailedOrWasAbandonedIsForgotten) {
  const Bindings bindings = {{"x", At(0x1000), 0, nullptr}};
  CopyJob job;
  ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_OK(gcap_graph_manager_sign(manager_, bindings.data(), 1));
  EXPECT_FALSE(End(GCAP_STATUS(GCAP_INTERNAL, "no")).ok());
  EXPECT_EQ(Run(0, job), GCAP_GRAPH_RUN_EAGER);
  ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_OK(gcap_graph_manager_sign(manager_, bindings.data(), 1));
  EXPECT_EQ(Run(0, job), GCAP_GRAPH_RUN_CAPTURE) << "the run before was abandoned";
  GCAP_EXPECT_FAILS(Check(0, bindings), GCAP_FAILED_PRECONDITION, "not signed");
}

TEST_F(GraphSignature, BadBindingsAreInvalidArgument) {
  const Bindings negative = {{"x", At(0x1000), -1, nullptr}};
  const Bindings no_shape = {{"x", At(0x1000), 2, nullptr}};
  for (const Bindings& bad : {negative, no_shape}) {
    GCAP_EXPECT_FAILS(gcap_graph_manager_sign(manager_, bad.data(), 1), GCAP_INVALID_ARGUMENT, "binding 0 ('x')");
    GCAP_EXPECT_FAILS(Check(0, bad), GCAP_INVALID_ARGUMENT, "binding 0 ('x')");
    GCAP_EXPECT_FAILS(ReplayWith(0, bad), GCAP_INVALID_ARGUMENT, "binding 0 ('x')");
  }
  GCAP_EXPECT_FAILS(gcap_graph_manager_sign(manager_, nullptr, 2), GCAP_INVALID_ARGUMENT,
                    "bindings is NULL and n is 2");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
