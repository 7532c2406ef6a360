// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The order in which a session takes and lets go of its EPs. The claim was given up first: another thread, which tried
// to destroy the EP meanwhile, freed the EP under the end of the turn.

#include <cstring>
#include <vector>

#include "gcap/kit/ep_ops.h"
#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"

namespace {

int turns_ended, sessions_gone;
std::vector<gcap_ep_t*> ended;

}  // namespace

extern "C" {

void __real_gcap_ep_end_turn(gcap_ep_t* ep);
// As another thread that tries to destroy the EP just before its turn ends.
void __wrap_gcap_ep_end_turn(gcap_ep_t* ep) {
  ++turns_ended;
  ended.push_back(ep);
  const gcap::testing::Outcome outcome(gcap_ep_destroy(ep));
  if (!outcome.Names("live session")) ++sessions_gone;
  __real_gcap_ep_end_turn(ep);
}

}  // extern "C"

namespace {

using gcap::testing::ModelBuilder;
using gcap::testing::Outcome;

// An EP that is never destroyed by the test above: its destroy says no.
struct FakeEp {
  explicit FakeEp(bool supports_concurrent_runs = false) {
    gcap_ep_ops_t ops = {};
    ops.struct_size = sizeof(gcap_ep_ops_t);
    ops.name = "fake";
    ops.self = this;
    ops.supports = [](void* self, const gcap_model_t*, const gcap_node_t* node) {
      const char* only = static_cast<FakeEp*>(self)->only_op;
      return only == nullptr || std::strcmp(only, node->op_type) == 0;
    };
    ops.create_kernel = [](void* self, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t* out_kernel) {
      if (static_cast<FakeEp*>(self)->has_no_kernels) return GCAP_STATUS(GCAP_INTERNAL, "no kernel");
      out_kernel->self = self;
      out_kernel->compute = [](void* own, const gcap_kernel_context_t*) {
        const FakeEp* fake = static_cast<FakeEp*>(own);
        GCAP_EXPECT_FAILS(gcap_session_destroy(fake->session), GCAP_FAILED_PRECONDITION, "has not returned yet");
        GCAP_EXPECT_FAILS(gcap_ep_destroy(fake->ep), GCAP_FAILED_PRECONDITION, "live session");
        return gcap_status_t(nullptr);
      };
      return gcap_status_t(nullptr);
    };
    ops.destroy = [](void* self) {
      if (static_cast<FakeEp*>(self)->may_end) return gcap_status_t(nullptr);
      return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "not yet");
    };
    gcap_options_t options;
    gcap_options_init(&options);
    if (!supports_concurrent_runs) options.graph_scope = GCAP_GRAPH_SCOPE_SESSION;
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
    ops.runtime = runtime;
    GCAP_EXPECT_OK(gcap_ep_create(&ops, &ep));
  }
  ~FakeEp() {
    may_end = true;
    GCAP_EXPECT_OK(gcap_ep_destroy(ep));
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
  }
  FakeEp(const FakeEp&) = delete;
  FakeEp& operator=(const FakeEp&) = delete;

  gcap_runtime_t* runtime = nullptr;
  gcap_ep_t* ep = nullptr;
  gcap_session_t* session = nullptr;
  const char* only_op = nullptr;
  bool has_no_kernels = false;
  bool may_end = false;
};

ModelBuilder OneNode() {
  ModelBuilder m;
  const int x = m.Value("x", {4}), y = m.Value("y", {4});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Any", "node", {x}, {y});
  return m;
}

using SessionEnd = gcap::testing::DeviceTest;

TEST_F(SessionEnd, ClaimOutlivesTheTurn) {
  FakeEp ep;
  ModelBuilder builder = OneNode();
  const gcap_model_t model = builder.Model();
  gcap_session_t* session = nullptr;
  turns_ended = sessions_gone = 0;
  GCAP_ASSERT_OK(gcap_session_create(&model, &ep.ep, 1, nullptr, &session));
  GCAP_EXPECT_OK(gcap_session_destroy(session));
  EXPECT_EQ(turns_ended, 2);
  EXPECT_EQ(sessions_gone, 0);
}

TEST_F(SessionEnd, ClaimOfASessionThatFailsOutlivesTheTurn) {
  FakeEp ep;
  ep.has_no_kernels = true;
  ModelBuilder builder = OneNode();
  const gcap_model_t model = builder.Model();
  gcap_session_t* session = nullptr;
  turns_ended = sessions_gone = 0;
  GCAP_EXPECT_FAILS(gcap_session_create(&model, &ep.ep, 1, nullptr, &session), GCAP_INTERNAL, "no kernel");
  EXPECT_EQ(turns_ended, 1);
  EXPECT_EQ(sessions_gone, 0);
}

// The destroy waited for its own turn, or freed the session under its run.
// Two sessions that took the turns of two EPs in two orders could wait for each other for ever.
TEST_F(SessionEnd, TurnsAreInOneOrderWhateverTheOrderOfTheEps) {
  FakeEp first, second;
  first.only_op = "First";
  second.only_op = "Second";
  ModelBuilder m;
  const int x = m.Value("x", {4}), y = m.Value("y", {4}), z = m.Value("z", {4}), u = m.Value("u", {4});
  m.inputs = {x, z};
  m.outputs = {y, u};
  m.Node("First", "one", {x}, {y});
  m.Node("Second", "other", {z}, {u});
  const gcap_model_t model = m.Model();
  gcap_ep_t* const eps[][2] = {{first.ep, second.ep}, {second.ep, first.ep}};
  std::vector<gcap_ep_t*> orders[2];
  for (int i = 0; i < 2; ++i) {
    gcap_session_t* session = nullptr;
    GCAP_ASSERT_OK(gcap_session_create(&model, eps[i], 2, nullptr, &session));
    ended.clear();
    GCAP_EXPECT_OK(gcap_session_destroy(session));
    orders[i] = ended;
    EXPECT_EQ(ended.size(), 2u);
  }
  EXPECT_EQ(orders[0], orders[1]);
}

TEST_F(SessionEnd, NotInAKernelOfItsOwnRun) {
  for (const bool supports_concurrent_runs : {true, false}) {
    FakeEp ep(supports_concurrent_runs);
    ModelBuilder builder = OneNode();
    const gcap_model_t model = builder.Model();
    GCAP_ASSERT_OK(gcap_session_create(&model, &ep.ep, 1, nullptr, &ep.session));
    const gcap::testing::DeviceFloats x(gcap::testing::Floats(4)), y(gcap::testing::Floats(4));
    const gcap_tensor_t input = gcap::testing::Tensor(x.get(), {4}), output = gcap::testing::Tensor(y.get(), {4});
    GCAP_EXPECT_OK(gcap_session_run(ep.session, nullptr, &input, &output));
    GCAP_EXPECT_OK(gcap_session_destroy(ep.session));
  }
}

}  // namespace
