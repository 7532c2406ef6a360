// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions when the host's heap gives nothing: each allocation of a creation, and of a first run of new shapes, fails
// once. The outcome is a failure or a right result, nothing is lost, and the next call succeeds. On the host alone: the
// simulator stops when its own memory ends.

#include "gcap/graph_plan.h"
#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/session/host_ep.h"
#include "test/session/session_test.h"

namespace gcap {
namespace testing {
namespace {

// y = -(-x) over x [rows, 2], and Shape(x) + {0, 0}, which nobody reads.
ModelBuilder RowsModel() {
  ModelBuilder m;
  const int64_t rows = m.Symbol("rows");
  const int x = m.Value("x", {rows, 2}), a = m.Value("a", {rows, 2}), y = m.Value("y", {rows, GCAP_DIM_INFERRED});
  const int s = m.Value("s", {2}, GCAP_DTYPE_I64), t = m.Value("t", {2}, GCAP_DTYPE_I64);
  const int w = m.Integers("w", {0, 0});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Negate", "first", {x}, {a});
  m.Node("Shape", "shape", {x}, {s});
  m.Node("Add", "add", {s, w}, {t});
  m.Node("Negate", "second", {a}, {y});
  return m;
}

class Rig {
 public:
  ~Rig() { GCAP_EXPECT_OK(gcap_session_destroy(session)); }

  gcap_status_t Create() {
    const gcap_model_t model = model_.Model();
    gcap_ep_t* const eps[] = {host.get()};
    return gcap_session_create(&model, eps, 1, nullptr, &session);
  }
  gcap_status_t Run() {
    const gcap_tensor_t input = Tensor(x, {3, 2}), output = Tensor(y, {3, 2});
    return gcap_session_run(session, nullptr, &input, &output);
  }
  void ExpectRightRun() {
    for (float& element : y) element = 0;
    GCAP_ASSERT_OK(Run());
    for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], x[i]);
  }

  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {};
  HostEp host;
  gcap_session_t* session = nullptr;

 private:
  ModelBuilder model_ = RowsModel();
};

TEST(SessionHeap, CreationFailsWholeOrSucceeds) {
  int failed = 0;
  for (int skip = 0;; ++skip) {
    Rig rig;
    int hits = 0;
    const long blocks = LiveBlocks();
    {
      const HeapFailure heap(1, skip);
      gcap_status_t status = rig.Create();
      hits = heap.hits();
      EXPECT_EQ(status == nullptr, rig.session != nullptr);
      if (status != nullptr) {
        EXPECT_STREQ(gcap_code_name(gcap_status_code(status)), "RESOURCE_EXHAUSTED");
        ++failed;
      }
      EXPECT_TRUE(hits == 0 || status != nullptr) << "allocation " << skip << " failed, and nobody said so";
      gcap_status_free(status);
    }
    if (rig.session == nullptr) {
      EXPECT_EQ(rig.host.live_kernels, 0);
      EXPECT_EQ(LiveBlocks(), blocks) << "with allocation " << skip << " failing";
      GCAP_ASSERT_OK(rig.Create());
    }
    rig.ExpectRightRun();
    if (hits == 0) break;
  }
  EXPECT_GE(failed, 20);
}

TEST(SessionHeap, RunOfNewShapesFailsWholeOrIsRight) {
  int failed = 0;
  for (int skip = 0;; ++skip) {
    Rig rig;
    GCAP_ASSERT_OK(rig.Create());
    int hits = 0;
    {
      const HeapFailure heap(1, skip);
      gcap_status_t status = rig.Run();
      hits = heap.hits();
      if (status != nullptr) {
        EXPECT_STREQ(gcap_code_name(gcap_status_code(status)), "RESOURCE_EXHAUSTED");
        ++failed;
      }
      gcap_status_free(status);
    }
    EXPECT_TRUE(rig.host.live_kernels == 0 || rig.host.live_kernels == 4) << rig.host.live_kernels;
    for (int run = 0; run < 3; ++run) rig.ExpectRightRun();
    if (hits == 0) break;
  }
  EXPECT_GE(failed, 10);
}

// The lists of a warm-up and of a plan, before any run.
TEST(SessionHeap, WarmUpAndPlanWithoutMemoryForTheirListsAreRefused) {
  DeviceFloats x(Floats(6)), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
  const gcap_warm_up_run_t run = {nullptr, &input, &output};
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  const long blocks = LiveBlocks();
  for (const int skip : {0, 1}) {
    const HeapFailure heap(1, skip);
    GCAP_EXPECT_FAILS(rig.WarmUp(x, y), GCAP_RESOURCE_EXHAUSTED, "memory");
    EXPECT_EQ(heap.hits(), 1);
  }
  for (const int skip : {0, 1, 2}) {
    const HeapFailure heap(1, skip);
    GCAP_EXPECT_FAILS(gcap_session_plan(rig.session, &run, 1, &plan), GCAP_RESOURCE_EXHAUSTED, "memory");
    EXPECT_EQ(heap.hits(), 1);
  }
  EXPECT_EQ(LiveBlocks(), blocks);
  EXPECT_EQ(rig.middle.computes, 0);
}

// A constant of the model is the session's own copy.
TEST(SessionHeap, AConstantIsReadOnTheHost) {
  ModelBuilder m;
  const int x = m.Value("x", {2}, GCAP_DTYPE_I64), w = m.Integers("w", {10, 20});
  const int y = m.Value("y", {2}, GCAP_DTYPE_I64);
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Add", "add", {x, w}, {y});
  const gcap_model_t model = m.Model();
  const HostEp host;
  gcap_ep_t* const eps[] = {host.get()};
  gcap_session_t* session = nullptr;
  for (int skip = 0, hits = 1; hits > 0; ++skip) {
    const HeapFailure heap(1, skip);
    const Outcome outcome(gcap_session_create(&model, eps, 1, nullptr, &session));
    hits = heap.hits();
    EXPECT_EQ(outcome.code, hits > 0 ? GCAP_RESOURCE_EXHAUSTED : GCAP_OK) << outcome.message;
  }
  ASSERT_NE(session, nullptr);
  int64_t given[] = {1, 2}, sum[] = {0, 0};
  gcap_tensor_t input = {given, GCAP_DTYPE_I64, 1, {2}}, output = {sum, GCAP_DTYPE_I64, 1, {2}};
  GCAP_EXPECT_OK(gcap_session_run(session, nullptr, &input, &output));
  EXPECT_EQ(sum[0], 11);
  EXPECT_EQ(sum[1], 22);
  GCAP_EXPECT_OK(gcap_session_destroy(session));
}

TEST(SessionHeap, NothingIsLeftOfASession) {
  Rig rig;
  const long blocks = LiveBlocks();
  GCAP_ASSERT_OK(rig.Create());
  for (int run = 0; run < 2; ++run) rig.ExpectRightRun();
  GCAP_EXPECT_OK(gcap_session_destroy(rig.session));
  rig.session = nullptr;
  EXPECT_EQ(LiveBlocks(), blocks);
}

// Also of the refusals under other policies, which only decide what the message proposes.
TEST(SessionHeap, NothingIsLeftOfASessionThatAPolicyRefuses) {
  TestEpConfig config;
  config.ops = {"Negate"};
  config.policy = GCAP_GRAPH_ALL_NODES_ON_EP;
  std::unique_ptr<TestEp> device;
  GCAP_ASSERT_OK(TestEp::Create(GraphOptions(1), config, &device));
  HostEp host;
  gcap_ep_t* const eps[] = {device->get(), host.get()};
  const ModelBuilder m = RowsModel();
  const gcap_model_t model = m.Model();
  gcap_session_t* session = nullptr;
  long blocks = 0;
  for (const bool is_first : {true, false}) {  // the first one makes the stream of the thread
    GCAP_EXPECT_FAILS(gcap_session_create(&model, eps, 2, nullptr, &session), GCAP_FAILED_PRECONDITION,
                      "set allow_holes");
    if (is_first) blocks = LiveBlocks();
  }
  EXPECT_EQ(LiveBlocks(), blocks);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
