// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Signatures: a replay on other tensors than the capture's is refused with a sentence.

#include <cstdint>
#include <string>
#include <vector>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/plain_runs.h"

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

  gcap_graph_run_kind_t BeginWith(int id, const Bindings& bindings) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_EXPECT_OK(BeginBound(manager_, id, stream_->get(), bindings.data(), bindings.size(), &kind));
    return kind;
  }
  void Capture(int id, const CopyJob& job, const Bindings& bindings) {
    ASSERT_EQ(BeginWith(id, bindings), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
    EXPECT_TRUE(End().ok());
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
  const Outcome outcome(ReplayWith(5, moved));
  EXPECT_STREQ(gcap_code_name(outcome.code), "FAILED_PRECONDITION");
  for (const char* part : {"graph id 5", "tensor 1 ('logits')", "0x3000", "0x2000"}) {
    EXPECT_TRUE(outcome.Names(part)) << part << ": " << outcome.message;
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
  const int64_t first[] = {4, 3};
  GCAP_EXPECT_FAILS(ReplayWith(0, {{"x", At(0x1000), 2, first}}), GCAP_FAILED_PRECONDITION, "has shape [4, 3]");
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
  const gcap_graph_binding_t x = {"x", At(0x1000), 0, nullptr};
  Capture(0, job, {x});
  GCAP_EXPECT_FAILS(ReplayWith(0, {x, x}), GCAP_FAILED_PRECONDITION, "2 tensors are bound, it was captured with 1");
}

TEST_F(GraphSignature, NamesAreForMessagesOnlyAndMayBeMissing) {
  CopyJob job;
  Capture(0, job, {{nullptr, At(0x1000), 0, nullptr}});
  GCAP_EXPECT_OK(ReplayWith(0, {{"x", At(0x1000), 0, nullptr}}));
  GCAP_EXPECT_FAILS(ReplayWith(0, {{"x", At(0x2000), 0, nullptr}}), GCAP_FAILED_PRECONDITION, "tensor 0 ('x')");
}

TEST_F(GraphSignature, OfARunWithoutBindingsIsRefused) {
  CopyJob job;
  Run(0, job);
  GCAP_EXPECT_FAILS(ReplayWith(0, {{"x", At(0x1000), 0, nullptr}}), GCAP_FAILED_PRECONDITION, "had no bindings");
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
}

TEST_F(GraphSignature, OfAnUnknownIdIsNotFound) {
  GCAP_EXPECT_FAILS(ReplayWith(7, {{"x", At(0x1000), 0, nullptr}}), GCAP_NOT_FOUND, "graph id 7");
}

TEST_F(GraphSignature, OfANewCaptureIsItsOwn) {
  CopyJob job;
  const Bindings first = {{"x", At(0x1000), 0, nullptr}};
  const Bindings second = {{"x", At(0x2000), 0, nullptr}};
  Capture(0, job, second);
  GCAP_EXPECT_OK(ReplayWith(0, second));
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  Capture(0, job, first);
  GCAP_EXPECT_OK(ReplayWith(0, first));
  GCAP_EXPECT_FAILS(ReplayWith(0, second), GCAP_FAILED_PRECONDITION, "0x2000");
}

TEST_F(GraphSignature, OfAnEagerRunIsNotKept) {
  const Bindings bindings = {{"x", At(0x1000), 0, nullptr}};
  EXPECT_EQ(BeginWith(GCAP_GRAPH_ID_NONE, bindings), GCAP_GRAPH_RUN_EAGER);
  EXPECT_TRUE(End().ok());
}

TEST_F(GraphSignature, OfARunThatFailedOrWasAbandonedIsForgotten) {
  const Bindings bindings = {{"x", At(0x1000), 0, nullptr}};
  CopyJob job;
  ASSERT_EQ(BeginWith(0, bindings), GCAP_GRAPH_RUN_CAPTURE);
  EXPECT_FALSE(End(GCAP_STATUS(GCAP_INTERNAL, "no")).ok());
  EXPECT_EQ(Run(0, job), GCAP_GRAPH_RUN_EAGER);
  ASSERT_EQ(BeginWith(0, bindings), GCAP_GRAPH_RUN_CAPTURE);
  EXPECT_EQ(Run(0, job), GCAP_GRAPH_RUN_CAPTURE) << "the run before was abandoned";
  GCAP_EXPECT_FAILS(ReplayWith(0, bindings), GCAP_FAILED_PRECONDITION, "had no bindings");
}

TEST_F(GraphSignature, BadBindingsAreInvalidArgument) {
  const Bindings negative = {{"x", At(0x1000), -1, nullptr}};
  const Bindings no_shape = {{"x", At(0x1000), 2, nullptr}};
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  for (const Bindings& bad : {negative, no_shape}) {
    GCAP_EXPECT_FAILS(BeginBound(manager_, 0, stream_->get(), bad.data(), 1, &kind), GCAP_INVALID_ARGUMENT,
                      "binding 0 ('x')");
    GCAP_EXPECT_FAILS(ReplayWith(0, bad), GCAP_INVALID_ARGUMENT, "binding 0 ('x')");
  }
  GCAP_EXPECT_FAILS(BeginBound(manager_, 0, stream_->get(), nullptr, 2, &kind), GCAP_INVALID_ARGUMENT,
                    "bindings is NULL and n is 2");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
