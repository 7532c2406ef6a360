// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Guards: decisions of the host that the work states, which replays ask. max_variants is 1 here, so that a decision
// that changed is captured anew in place; graph_variants_test.cc has several graphs of an id.

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph_buffers.h"
#include "gcap/graph_guards.h"
#include "gcap/graph_plan.h"
#include "gtest/gtest.h"
#include "test/graph/guarded_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphGuards : public GuardedTest {
 protected:
  void SetUp() override {
    GuardedTest::SetUp();
    options_.max_variants = 1;
  }
};

template <class Integer>
class GraphGuardsOf : public GraphGuards {};

// The test's own reading of an integer is C++'s.
using Integers = ::testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(GraphGuardsOf, Integers);

TYPED_TEST(GraphGuardsOf, AnIntegerHoldsWithinItsBounds) {
  this->CreateKeyed();
  TypeParam value = 60;
  const gcap_graph_guard_t guard = this->Integer("size", value, 50, 70);
  const auto run = [&](int fill) { return this->RunGuarded(0, {guard}, fill); };
  EXPECT_EQ(run(1), GCAP_RUN_CAPTURED);
  for (const int within : {50, 51, 69, 70}) {
    value = static_cast<TypeParam>(within);
    EXPECT_EQ(run(1), GCAP_RUN_REPLAYED) << within;
  }
  const TypeParam outside[] = {49, 71, 0, std::numeric_limits<TypeParam>::max(), std::numeric_limits<TypeParam>::min()};
  for (const TypeParam other : outside) {
    value = other;
    EXPECT_FALSE(this->Replays(0)) << static_cast<int64_t>(other);
  }
  value = 55;
  EXPECT_TRUE(this->Replays(0));
}

TYPED_TEST(GraphGuardsOf, AnIntegerHoldsUpToTheEndOfItsType) {
  using Limits = std::numeric_limits<TypeParam>;
  this->CreateKeyed();
  const int64_t low = static_cast<int64_t>(Limits::min());
  const int64_t high = sizeof(TypeParam) == 8 ? INT64_MAX : static_cast<int64_t>(Limits::max());
  TypeParam value = 3;
  EXPECT_EQ(this->RunGuarded(0, {this->Integer("any", value, low, high)}, 1), GCAP_RUN_CAPTURED);
  for (const TypeParam any : {Limits::min(), TypeParam{0}, static_cast<TypeParam>(high)}) {
    value = any;
    EXPECT_TRUE(this->Replays(0)) << static_cast<int64_t>(any);
  }
}

TEST_F(GraphGuards, AnUnsignedIntegerAboveAllBoundsFlips) {
  CreateKeyed();
  uint64_t value = 1;
  EXPECT_EQ(RunGuarded(0, {Integer("count", value, 0, INT64_MAX)}, 1), GCAP_RUN_CAPTURED);
  value = UINT64_MAX;
  EXPECT_FALSE(Replays(0));
}

TEST_F(GraphGuards, APointerHoldsByItsIdentity) {
  CreateKeyed();
  int tables[2] = {7, 7};
  const int* table = &tables[0];
  const gcap_graph_guard_t guard = Guard("table", GCAP_GRAPH_GUARD_POINTER, &table);
  EXPECT_EQ(RunGuarded(0, {guard}, 1), GCAP_RUN_CAPTURED);
  EXPECT_EQ(RunGuarded(0, {guard}, 1), GCAP_RUN_REPLAYED);
  table = &tables[1];  // equal content
  EXPECT_EQ(RunGuarded(0, {guard}, 2), GCAP_RUN_CAPTURED);
  EXPECT_TRUE(Explain(0, GCAP_GRAPH_WHY_OTHER_VARIANT).Names("guard 'table'"));
  EXPECT_EQ(RunGuarded(0, {guard}, 2), GCAP_RUN_REPLAYED);
}

TEST_F(GraphGuards, BytesHoldToTheLast) {
  CreateKeyed();
  std::array<unsigned char, 100> choices{};
  gcap_graph_guard_t guard = Guard("choices", GCAP_GRAPH_GUARD_BYTES, choices.data());
  for (const size_t bytes : {size_t{1}, size_t{3}, size_t{8}, size_t{100}}) {
    guard.bytes = bytes;
    choices.fill(0);
    const int id = static_cast<int>(bytes);
    EXPECT_EQ(RunGuarded(id, {guard}, 1), GCAP_RUN_CAPTURED);
    choices[bytes - 1] = 9;
    EXPECT_FALSE(Replays(id)) << bytes;
    EXPECT_TRUE(Explain(id, GCAP_GRAPH_WHY_OTHER_VARIANT)
                    .Names("differs at byte " + std::to_string(bytes - 1) + " of " + std::to_string(bytes) +
                           ": is 9, and was 0"));
    choices[bytes - 1] = 0;
    if (bytes < choices.size()) choices[bytes] = 9;  // beyond
    EXPECT_TRUE(Replays(id)) << bytes;
  }
}

TEST_F(GraphGuards, AnAnswerHoldsWhileTheFunctionGivesIt) {
  CreateKeyed();
  Asked asked;
  asked.answer = 5;
  const gcap_graph_guard_t guard = Answer("device", &asked);
  EXPECT_EQ(RunGuarded(0, {guard}, 1), GCAP_RUN_CAPTURED);
  EXPECT_EQ(asked.calls, 2) << "when it is stated, and when the work has returned";
  EXPECT_EQ(RunGuarded(0, {guard}, 1), GCAP_RUN_REPLAYED);
  EXPECT_EQ(asked.calls, 3);
  asked.answer = 6;
  EXPECT_EQ(RunGuarded(0, {guard}, 2), GCAP_RUN_CAPTURED);
  EXPECT_TRUE(Explain(0, GCAP_GRAPH_WHY_OTHER_VARIANT).Names("answers 6, and answered 5"));
  EXPECT_EQ(RunGuarded(0, {guard}, 2), GCAP_RUN_REPLAYED);
}

// A position that leaves its bucket: the graph is captured anew in place, and says why.
TEST_F(GraphGuards, ADecisionThatChangedIsCapturedAnewAndNamed) {
  CreateKeyed();
  int position = 3;
  const auto guard = [&](int bucket) { return Integer("position", position, 8 * bucket, 8 * bucket + 7); };
  EXPECT_EQ(RunGuarded(0, {guard(0)}, 1), GCAP_RUN_CAPTURED);
  EXPECT_TRUE(Explain(0, GCAP_GRAPH_WHY_OTHER_VARIANT).ok());
  position = 8;
  EXPECT_FALSE(Replays(0));
  const Outcome replay(Replay(manager_, 0, true));
  EXPECT_EQ(replay.code, GCAP_FAILED_PRECONDITION);
  const std::string why = "graph id 0: guard 'position' (";
  const std::string values = ") is 8, was 3, and the graph is for 0 to 7";
  EXPECT_TRUE(replay.Names(why) && replay.Names("guarded_test.h:") && replay.Names(values)) << replay.message;
  EXPECT_EQ(RunGuarded(0, {guard(1)}, 2), GCAP_RUN_CAPTURED);
  EXPECT_TRUE(Explain(0, GCAP_GRAPH_WHY_OTHER_VARIANT).Names(values));
  EXPECT_EQ(Info(0).captures, 2u);
  EXPECT_EQ(Info(0).updates, 1u);
  EXPECT_EQ(Info(0).graphs, 1u);
}

TEST_F(GraphGuards, AllOfAGraphAreLookedAt) {
  CreateKeyed();
  int values[8] = {};
  std::vector<gcap_graph_guard_t> guards;
  for (int& value : values) guards.push_back(Integer("value", value, 0, 0));
  EXPECT_EQ(RunGuarded(0, guards, 1), GCAP_RUN_CAPTURED);
  for (int& value : values) {
    value = 1;
    EXPECT_FALSE(Replays(0));
    value = 0;
    EXPECT_TRUE(Replays(0));
  }
}

// Kinds in any order: bytes and functions are looked at behind the integers, and each is explained as itself.
TEST_F(GraphGuards, OfAllKindsInOneGraph) {
  CreateKeyed();
  Asked asked;
  std::array<char, 20> bytes{};
  int integer = 0;
  const int* pointer = &integer;
  gcap_graph_guard_t of_bytes = Guard("bytes", GCAP_GRAPH_GUARD_BYTES, bytes.data());
  of_bytes.bytes = bytes.size();
  const std::vector<gcap_graph_guard_t> guards = {Answer("answer", &asked), of_bytes, Integer("integer", integer, 0, 0),
                                                  Guard("pointer", GCAP_GRAPH_GUARD_POINTER, &pointer)};
  EXPECT_EQ(RunGuarded(0, guards, 1), GCAP_RUN_CAPTURED);
  const auto expect_named = [&](const char* name) {
    EXPECT_FALSE(Replays(0));
    const Outcome why = Explain(0, GCAP_GRAPH_WHY_OTHER_VARIANT);
    EXPECT_TRUE(why.Names(std::string("guard '") + name + "'")) << why.message;
  };
  asked.answer = 1;
  expect_named("answer");
  bytes[19] = 1;
  expect_named("bytes");
  pointer = nullptr;
  expect_named("pointer");
  asked.answer = 0;
  bytes[19] = 0;
  pointer = &integer;
  EXPECT_TRUE(Replays(0));
}

// --- Where a guard is stated ----------------------------------------------------------------------------------------

TEST_F(GraphGuards, InAnEagerRunIsCheckedAndNotKept) {
  options_.min_num_runs_before_capture = 1;
  CreateKeyed();
  int decision = 1;
  const gcap_graph_guard_t guard = Integer("decision", decision, 0, 9);
  EXPECT_EQ(RunGuarded(0, {guard}, 1), GCAP_RUN_EAGER);
  EXPECT_EQ(RunGuarded(GCAP_GRAPH_ID_NONE, {guard}, 1), GCAP_RUN_EAGER);
  EXPECT_EQ(RunGuarded(0, {guard}, 1), GCAP_RUN_CAPTURED);
  decision = 10;
  const Outcome outcome = RunWork(RunBy(nullptr), [&](cudaStream_t) { return GCAP_GRAPH_GUARD(&guard); });
  EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
  EXPECT_TRUE(outcome.Names("'decision' is 10 when it is stated, and its bounds are 0 to 9")) << outcome.message;
}

TEST_F(GraphGuards, OutsideOfARunIsRefused) {
  CreateKeyed();
  int decision = 1;
  const gcap_graph_guard_t guard = Integer("decision", decision, 0, 9);
  const auto expect_refused = [&](const char* where) {
    const Outcome refused(GCAP_GRAPH_GUARD(&guard));
    EXPECT_EQ(refused.code, GCAP_FAILED_PRECONDITION);
    EXPECT_TRUE(refused.Names("guard 'decision' (") && refused.Names(where)) << refused.message;
  };
  expect_refused("outside of the runs");
  EXPECT_EQ(RunGuarded(0, {guard}, 1), GCAP_RUN_CAPTURED);
  EXPECT_EQ(RunGuarded(GCAP_GRAPH_ID_NONE, {guard}, 1), GCAP_RUN_EAGER);
  expect_refused("outside of the runs");
  std::thread other;
  EXPECT_TRUE(RunWork(RunBy(nullptr), [&](cudaStream_t) {
                other = std::thread([&] { expect_refused("outside of the runs"); });
                other.join();
                return gcap_status_t(nullptr);
              }).ok());
  // A run that is left open, and aborted by the thread's next one.
  EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
  GCAP_EXPECT_OK(GCAP_GRAPH_GUARD(&guard));
  EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
  EXPECT_TRUE(End().ok());
  expect_refused("outside of the runs");
  gcap_capture_t* scope = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream_->get(), nullptr, &scope));
  expect_refused("no run of a graph manager");
  gcap_capture_abort(scope);
}

TEST_F(GraphGuards, ThatAreNoneAreRefusedByName) {
  CreateKeyed();
  const int64_t value = 5;
  gcap_graph_guard_t good = Guard("decision", GCAP_GRAPH_GUARD_INTEGER, &value);
  good.bytes = 8;
  good.high = 9;
  std::vector<std::pair<gcap_graph_guard_t, std::string>> bad(11, {good, "decision"});
  bad[0].first.bytes = 3;
  bad[0].second = "looks at 3 bytes at 0x";
  bad[1].first.address = nullptr;
  bad[1].second = "looks at 8 bytes at (nil), allowed are 1, 2, 4 or 8 at an address";
  bad[2].first.low = 10;
  bad[2].second = "10 to 9";
  bad[3].first.low = -1;
  bad[3].first.is_unsigned = true;
  bad[3].second = "nor below 0";
  bad[4].first.low = 6;
  bad[4].second = "is 5 when it is stated";
  bad[5].first.kind = static_cast<gcap_graph_guard_kind_t>(4);
  bad[5].second = "kind 4, allowed are";
  bad[6].first.kind = GCAP_GRAPH_GUARD_ANSWER;
  bad[6].second = "set ask";
  bad[7].first.kind = GCAP_GRAPH_GUARD_BYTES;
  bad[7].first.bytes = 0;
  bad[7].second = "looks at 0 bytes at 0x";
  bad[8].first.kind = GCAP_GRAPH_GUARD_BYTES;
  bad[8].first.bytes = GCAP_GRAPH_GUARD_MAX_BYTES + 1;
  bad[8].second = ", allowed are 1 to 4096 at an address";
  bad[9].first.kind = GCAP_GRAPH_GUARD_POINTER;
  bad[9].first.address = nullptr;
  bad[9].second = "at (nil), allowed are those of a pointer at an address";
  bad[10].first.struct_size = 4;
  bad[10].second = "gcap_graph_guard";
  int id = 0;
  for (const auto& row : bad) {
    // Dropped by the work, and all the same no graph.
    Outcome stated(nullptr);
    LogCatcher log;
    const Outcome outcome = RunWork(RunBy(nullptr, ++id), [&](cudaStream_t stream) {
      const Outcome this_one(GCAP_GRAPH_GUARD(&row.first));
      if (stated.ok()) stated = this_one;
      return Fill(stream, 1);
    });
    EXPECT_EQ(stated.code, GCAP_INVALID_ARGUMENT) << id;
    EXPECT_TRUE(stated.Names(row.second)) << stated.message;
    EXPECT_TRUE(stated.Names("guard 'decision'") || row.first.struct_size == 4) << stated.message;
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(Seen(), 1);
    EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
    EXPECT_EQ(Info(id).captures, 0u);
  }
}

// Its own variables are gone when it has returned; those of who calls the run are not.
TEST_F(GraphGuards, OfAVariableOfTheWorkIsRefused) {
  CreateKeyed();
  LogCatcher log;
  Outcome stated(nullptr);
  char address[32] = "";
  EXPECT_TRUE(RunWork(RunBy(nullptr, 0), [&](cudaStream_t stream) {
                volatile int local = 1;
                const gcap_graph_guard_t guard = Integer("local", local, 0, 9);
                std::snprintf(address, sizeof(address), "looks at %p", guard.address);
                stated = Outcome(GCAP_GRAPH_GUARD(&guard));
                return Fill(stream, local);
              }).ok());
  EXPECT_EQ(stated.code, GCAP_INVALID_ARGUMENT);
  EXPECT_TRUE(stated.Names("'local'") && stated.Names(address)) << stated.message;
  EXPECT_TRUE(stated.Names("a variable of the work") && stated.Names("lives as long as the graph")) << stated.message;
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
  volatile int callers = 1;
  EXPECT_EQ(RunGuarded(1, {Integer("callers", callers, 0, 9)}, 1), GCAP_RUN_CAPTURED);
}

TEST_F(GraphGuards, StatedTwiceCountOnce) {
  CreateKeyed();
  Asked asked;
  const gcap_graph_guard_t guard = Answer("device", &asked);
  EXPECT_EQ(RunGuarded(0, {guard, guard, guard}, 1), GCAP_RUN_CAPTURED);
  asked.calls = 0;
  EXPECT_TRUE(Replays(0));
  EXPECT_EQ(asked.calls, 1);
}

TEST_F(GraphGuards, ADecisionThatChangesWhileItIsCapturedMakesNoGraph) {
  CreateKeyed();
  LogCatcher log;
  int decision = 1;
  const gcap_graph_guard_t guard = Integer("decision", decision, 0, 1);
  EXPECT_TRUE(RunWork(RunBy(nullptr, 0), [&](cudaStream_t stream) {
                gcap_status_free(GCAP_GRAPH_GUARD(&guard));
                ++decision;
                return Fill(stream, decision);
              }).ok());
  EXPECT_EQ(result_.outcome, GCAP_RUN_EAGER);
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
  const Outcome why = Explain(0, GCAP_GRAPH_WHY_EAGER);
  EXPECT_TRUE(why.Names("a decision changed while it was captured") && why.Names("'decision'")) << why.message;
}

// --- Rehearsals -----------------------------------------------------------------------------------------------------

TEST_F(GraphGuards, OfARunOnBuffersAreThoseOfItsRehearsals) {
  CreateKeyed();
  int decision = 1;
  const gcap_graph_guard_t guard = Integer("decision", decision, 0, 1);
  for (int calls_to_differ : {0, 1, 2}) {  // never; in the rehearsal alone; in the capture
    LogCatcher log;
    int calls = 0;
    const int id = calls_to_differ;
    EXPECT_TRUE(RunOnBuffer(id, [&](cudaStream_t stream, void* at) -> gcap_status_t {
                  const bool states = ++calls != calls_to_differ;
                  if (states) GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
                  return GCAP_CUDA(cudaMemsetAsync(at, 1, 1, stream));
                }).ok());
    EXPECT_EQ(result_.outcome, calls_to_differ == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_EAGER);
    if (calls_to_differ == 0) continue;
    const Outcome why = Explain(id, GCAP_GRAPH_WHY_EAGER);
    EXPECT_TRUE(why.Names("guard 'decision'") && why.Names("in one capture of the run")) << why.message;
  }
  decision = 2;
  EXPECT_FALSE(Replays(0));
}

TEST_F(GraphGuards, InAPlanAreChecked) {
  CreateKeyed();
  int decision = 1;
  const gcap_graph_guard_t guard = Integer("decision", decision, 0, 1);
  Work work = [&](cudaStream_t stream) {
    GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    return Fill(stream, 1);
  };
  gcap_run_t run = RunBy(nullptr, 0);
  run.work = [](void* user, const gcap_run_resources_t* resources) {
    return (*static_cast<Work*>(user))(resources->cuda_stream);
  };
  run.user = &work;
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_OK(gcap_graph_manager_plan(manager_, &run, 1, &plan));
  EXPECT_EQ(plan.nodes, 2u);
  decision = 2;
  GCAP_EXPECT_FAILS(gcap_graph_manager_plan(manager_, &run, 1, &plan), GCAP_CAPTURE_INVALIDATED, "'decision'");
}

// --- Functions ------------------------------------------------------------------------------------------------------

TEST_F(GraphGuards, AFunctionThatFailsLaunchesNothing) {
  CreateKeyed();
  Asked asked;
  const gcap_graph_guard_t guard = Answer("device", &asked);
  EXPECT_EQ(RunGuarded(0, {guard}, 1), GCAP_RUN_CAPTURED);
  asked.fails = true;
  EXPECT_FALSE(Replays(0));
  GCAP_EXPECT_FAILS(Replay(manager_, 0, true), GCAP_UNAVAILABLE, "guard 'device'");
  EXPECT_TRUE(RunWork(RunBy(nullptr, 0), [this](cudaStream_t stream) { return Fill(stream, 3); }).ok());
  EXPECT_EQ(Seen(), 3);
  EXPECT_EQ(result_.outcome, GCAP_RUN_EAGER);
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "GUARD");
  EXPECT_TRUE(Explain(0, GCAP_GRAPH_WHY_EAGER).Names("gave no answer: as told"));
  asked.fails = false;
  EXPECT_TRUE(Replays(0)) << "the graph is still there";
  // In a capture: there is no graph.
  LogCatcher log;
  asked.fails = true;
  EXPECT_TRUE(RunWork(RunBy(nullptr, 1), [&](cudaStream_t stream) {
                gcap_status_free(GCAP_GRAPH_GUARD(&guard));
                return Fill(stream, 1);
              }).ok());
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
  EXPECT_TRUE(Explain(1, GCAP_GRAPH_WHY_EAGER).Names("guard 'device'"));
}

TEST_F(GraphGuards, AFunctionMayCallTheManagerButRunsNothing) {
  CreateKeyed();
  Asked asked;
  EXPECT_EQ(RunGuarded(0, {Answer("device", &asked)}, 1), GCAP_RUN_CAPTURED);
  asked.calls = 0;
  int decision = 0;
  const gcap_graph_guard_t other = Integer("decision", decision, 0, 0);
  asked.also = [&] {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_EXPECT_FAILS(BeginPlain(manager_, 1, stream_->get(), &kind), GCAP_FAILED_PRECONDITION, "function of a guard");
    GCAP_EXPECT_FAILS(Replay(manager_, 0, true), GCAP_FAILED_PRECONDITION, "function of a guard");
    GCAP_EXPECT_FAILS(GCAP_GRAPH_GUARD(&other), GCAP_FAILED_PRECONDITION, "function of a guard");
    GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_FAILED_PRECONDITION, "has not returned yet");
    EXPECT_EQ(Info(0).captures, 1u);
  };
  EXPECT_TRUE(Replays(0));
  EXPECT_EQ(asked.calls, 1);
}

// Whoever asks about an id may be a thread that knows nothing of the memory.
TEST_F(GraphGuards, QuestionsDoNotLookAtTheMemory) {
  CreateKeyed();
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto protect = [&](int access) { EXPECT_EQ(mprotect(memory, page, access), 0); };
  unsigned char* const bytes = static_cast<unsigned char*>(memory);
  gcap_graph_guard_t guard = Guard("bytes", GCAP_GRAPH_GUARD_BYTES, memory);
  guard.bytes = 16;
  EXPECT_EQ(RunGuarded(0, {guard, Integer("first", *bytes, 0, 9)}, 1), GCAP_RUN_CAPTURED);
  protect(PROT_NONE);
  EXPECT_FALSE(Info(0).captures_next);
  protect(PROT_READ | PROT_WRITE);
  bytes[5] = 77;
  EXPECT_FALSE(Replays(0));
  protect(PROT_NONE);
  EXPECT_TRUE(Info(0).captures_next);
  EXPECT_TRUE(gcap_graph_manager_is_captured(manager_, 0));
  const Outcome why = Explain(0, GCAP_GRAPH_WHY_OTHER_VARIANT);
  EXPECT_TRUE(why.Names("guard 'bytes'") && why.Names("byte 5 of 16: is 77, and was 0")) << why.message;
  protect(PROT_READ | PROT_WRITE);
  EXPECT_EQ(munmap(memory, page), 0);
}

// An exception passes, and leaves nothing behind: no run, no lock, no thread that asks.
TEST_F(GraphGuards, AFunctionMayThrow) {
  CreateKeyed();
  LogCatcher log;
  Asked asked;
  const std::vector<gcap_graph_guard_t> guards = {Answer("device", &asked)};
  int until = 0;  // calls that return
  asked.also = [&] {
    if (until-- == 0) throw std::runtime_error("thrown");
  };
  for (const int first : {0, 1}) {  // when it is stated, and when the work has returned
    SCOPED_TRACE(first);
    until = first;
    EXPECT_THROW((void)RunGuarded(first, guards, 1), std::runtime_error);
    EXPECT_FALSE(gcap_thread_is_capturing());
    EXPECT_EQ(State(first), "COOLING");
    EXPECT_EQ(Info(first).failures, 1u);
    until = -1;
    EXPECT_EQ(RunGuarded(first, guards, 1), GCAP_RUN_EAGER);
    EXPECT_EQ(RunGuarded(first, guards, 1), GCAP_RUN_CAPTURED);
  }
  until = 0;
  EXPECT_THROW((void)Replays(0), std::runtime_error);
  EXPECT_TRUE(Replays(0));
  asked.answer = 1;
  until = 1;  // the replay asks, and then the begin
  EXPECT_THROW((void)RunGuarded(0, guards, 2), std::runtime_error);
  EXPECT_EQ(RunGuarded(0, guards, 2), GCAP_RUN_CAPTURED);
  gcap_run_t run = RunBy(nullptr, 0);
  run.capture_only = true;
  until = 0;
  EXPECT_THROW((void)RunWork(run, [](cudaStream_t) -> gcap_status_t { return nullptr; }), std::runtime_error);
  EXPECT_TRUE(Replays(0));
  EXPECT_EQ(Info(0).captures, 2u);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
}

// The run's buffers go too, also where the function is asked while the run is begun.
TEST_F(GraphGuards, AFunctionOfARunOnBuffersMayThrow) {
  CreateKeyed();
  LogCatcher log;
  Asked asked;
  const gcap_graph_guard_t guard = Answer("device", &asked);
  const auto run = [&] {
    return RunOnBuffer(0, [&](cudaStream_t stream, void* at) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
      return GCAP_CUDA(cudaMemsetAsync(at, static_cast<int>(asked.answer), 1, stream));
    });
  };
  EXPECT_TRUE(run().ok());
  asked.calls = 0;
  asked.answer = 1;
  EXPECT_TRUE(run().ok());
  const int calls = asked.calls;  // of a replay, a begin, rehearsals and a capture
  EXPECT_GT(calls, 4);
  for (int nth = 0; nth < calls; ++nth) {
    SCOPED_TRACE(nth);
    asked.answer = 2 + nth;
    int until = nth;
    asked.also = [&] {
      if (until-- == 0) throw std::runtime_error("thrown");
    };
    EXPECT_THROW((void)run(), std::runtime_error);
    for (int i = 0; i < 3 && result_.outcome != GCAP_RUN_CAPTURED; ++i) EXPECT_TRUE(run().ok());
    EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
    EXPECT_TRUE(run().ok());
    EXPECT_EQ(result_.outcome, GCAP_RUN_REPLAYED);
  }
}

TEST_F(GraphGuards, AFunctionMayReleaseItsGraph) {
  CreateKeyed();
  Asked asked;
  EXPECT_EQ(RunGuarded(0, {Answer("device", &asked)}, 1), GCAP_RUN_CAPTURED);
  asked.also = [&] { GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0)); };
  EXPECT_FALSE(Replays(0));
  asked.also = nullptr;
  EXPECT_EQ(RunGuarded(0, {Answer("device", &asked)}, 2), GCAP_RUN_CAPTURED);
  // Also while a run is begun.
  asked.answer = 1;
  int releases = 0;
  asked.also = [&] {
    if (++releases == 2) GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  };
  EXPECT_TRUE(RunWork(RunBy(nullptr, 0), [this](cudaStream_t stream) { return Fill(stream, 3); }).ok());
  EXPECT_EQ(Seen(), 3);
}

TEST_F(GraphGuards, AFunctionThatLeavesACaptureOpenIsRefused) {
  CreateKeyed();
  Asked asked;
  EXPECT_EQ(RunGuarded(0, {Answer("device", &asked)}, 1), GCAP_RUN_CAPTURED);
  const RawStream other;
  gcap_capture_t* scope = nullptr;
  asked.also = [&] { GCAP_EXPECT_OK(gcap_capture_begin(other.get(), nullptr, &scope)); };
  GCAP_EXPECT_FAILS(Replay(manager_, 0, true), GCAP_FAILED_PRECONDITION, "guard");
  gcap_capture_abort(scope);
  // One that captures and ends it is a function as any.
  asked.also = [&] {
    GCAP_EXPECT_OK(gcap_capture_begin(other.get(), nullptr, &scope));
    gcap_capture_abort(scope);
  };
  EXPECT_TRUE(Replays(0));
}

// What it changes is looked at behind it: when a graph is replayed, and when one is made.
TEST_F(GraphGuards, AFunctionMayChangeWhatAnotherGuardLooksAt) {
  CreateKeyed();
  Asked asked;
  int decision = 1;
  const gcap_graph_guard_t answer = Answer("device", &asked);
  EXPECT_EQ(RunGuarded(0, {Integer("decision", decision, 1, 1), answer}, 1), GCAP_RUN_CAPTURED);
  asked.also = [&] { decision = 2; };
  EXPECT_FALSE(Replays(0));
  EXPECT_EQ(RunGuarded(0, {Integer("decision", decision, 2, 2), answer}, 2), GCAP_RUN_CAPTURED);
  int calls = 0;
  asked.also = [&] { decision = ++calls == 1 ? 3 : 4; };  // when it is stated, and when the work has returned
  decision = 3;
  LogCatcher log;
  EXPECT_TRUE(RunWork(RunBy(nullptr, 1), [&](cudaStream_t stream) {
                const gcap_graph_guard_t now = Integer("decision", decision, decision, decision);
                GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&now));
                GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&answer));
                return Fill(stream, decision);
              }).ok());
  EXPECT_EQ(Seen(), 4);
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
}

TEST_F(GraphGuards, AFunctionThatReleasesItsGraphAndLeavesACaptureOpenIsRefused) {
  CreateKeyed();
  Asked asked;
  EXPECT_EQ(RunGuarded(0, {Answer("device", &asked)}, 1), GCAP_RUN_CAPTURED);
  const RawStream other;
  gcap_capture_t* scope = nullptr;
  asked.also = [&] {
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
    GCAP_EXPECT_OK(gcap_capture_begin(other.get(), nullptr, &scope));
  };
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_EXPECT_FAILS(BeginPlain(manager_, 0, stream_->get(), &kind), GCAP_FAILED_PRECONDITION, "guard");
  gcap_capture_abort(scope);
  EXPECT_STREQ(gcap_graph_state_name(Info(0).state), "COLD");
}

// Nobody knows for which decision the graph would be.
TEST_F(GraphGuards, AFunctionThatFailsFailsARunThatIsCapturedOnly) {
  CreateKeyed();
  Asked asked;
  EXPECT_EQ(RunGuarded(0, {Answer("device", &asked)}, 1), GCAP_RUN_CAPTURED);
  asked.fails = true;
  gcap_run_t run = RunBy(nullptr, 0);
  run.capture_only = true;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_CAPTURE;
  GCAP_EXPECT_FAILS(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr), GCAP_UNAVAILABLE, "'device'");
  GCAP_EXPECT_FAILS(gcap_graph_manager_end_run(manager_, &run, nullptr), GCAP_FAILED_PRECONDITION, "no run is open");
}

// Whether there is a graph for a run that is captured only depends on the functions too.
TEST_F(GraphGuards, AnotherAnswerIsAGraphMoreForARunThatIsCapturedOnly) {
  options_.max_variants = 2;
  CreateKeyed();
  Asked asked;
  const gcap_graph_guard_t answer = Answer("device", &asked);
  gcap_run_t run = RunBy(nullptr, 0);
  run.capture_only = true;
  for (const int device : {1, 2, 1}) {
    asked.answer = device;
    EXPECT_TRUE(RunWork(run, [&](cudaStream_t stream) {
                  GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&answer));
                  return Fill(stream, device);
                }).ok());
    EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
  }
  EXPECT_EQ(Info(0).graphs, 2u);
  asked.fails = true;
  EXPECT_EQ(RunWork(run, [this](cudaStream_t stream) { return Fill(stream, 3); }).code, GCAP_UNAVAILABLE);
  EXPECT_EQ(Info(0).graphs, 2u);
}

TEST_F(GraphGuards, ThreadsAskWhileOthersCaptureAndRelease) {
  CreateKeyed();
  Asked asked;
  EXPECT_EQ(RunGuarded(0, {Answer("device", &asked)}, 1), GCAP_RUN_CAPTURED);
  const gcap_run_t replay = RunOf(0, stream_->get());
  const auto replay_often = [&] {
    for (int i = 0; i < 200; ++i) {
      bool replayed = false;
      GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &replay, &replayed));
    }
  };
  std::thread threads[2] = {std::thread(replay_often), std::thread(replay_often)};
  for (int i = 0; i < 20; ++i) {
    const RawStream* other = &other_;
    gcap_run_t run = RunBy(nullptr, 0);
    run.stream = other->get();
    run.synchronize = false;
    const gcap_graph_guard_t guard = Answer("device", &asked);
    const Outcome outcome = RunWork(run, [&](cudaStream_t) { return GCAP_GRAPH_GUARD(&guard); });
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    if (i % 3 == 0) GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  }
  for (std::thread& thread : threads) thread.join();
  DestroyManager();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
