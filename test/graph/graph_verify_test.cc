// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Replays compared with their work: what is found, what is left alone, and when one is due.

#include <pthread.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph_guards.h"
#include "gcap/graph_values.h"
#include "gtest/gtest.h"
#include "test/graph/verify_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphVerify : public VerifyTest {
 protected:
  // y = x + addend_, which a graph keeps as it was.
  WorkWith Frozen() {
    return [this](const gcap_run_resources_t* resources) {
      ++calls_;
      return AddTo(resources->cuda_stream, x_.get(), y_.get(), addend_);
    };
  }
  void CaptureFrozen() {
    CreateManager();
    named_ = {Named("x", x_), Named("y", y_)};
    const Outcome run = RunVerified(Frozen());
    ASSERT_TRUE(run.ok()) << run.message;
    ASSERT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
    EXPECT_FALSE(report_.is_verified) << "nothing was replayed";
  }

  const Floats x_{1}, y_;
  uint64_t addend_ = 1;
  int calls_ = 0;
};

TEST_F(GraphVerify, AReplayThatDoesWhatItsWorkDoesIsSound) {
  CaptureFrozen();
  calls_ = 0;
  ExpectSound(Frozen());
  EXPECT_EQ(calls_, 1) << "the work was issued once, eagerly";
  EXPECT_EQ(report_.compared_bytes, 2 * kFloatsBytes);
  EXPECT_EQ(y_.value(), 2);
  EXPECT_EQ(Info(kId).replays, 2u);
  EXPECT_EQ(Info(kId).failures, 0u);
}

TEST_F(GraphVerify, AFrozenScalarIsTold) {
  CaptureFrozen();
  addend_ = 5;
  const LogCatcher log;
  GCAP_EXPECT_FAILS(RunRaw(Frozen()), GCAP_REPLAY_DIFFERS,
                    "graph id 3: its replay differs from its work: buffer 1 'y' differs first in element 0 (f32): the "
                    "replay has 2, the work 6; 64 of all elements differ, by 4 at most");
  EXPECT_EQ(result_.outcome, GCAP_RUN_NOT_DONE);
  EXPECT_TRUE(result_.was_issued);
  EXPECT_EQ(result_.id, kId);
  EXPECT_TRUE(report_.is_verified);
  EXPECT_EQ(report_.buffer, 1u);
  EXPECT_EQ(report_.element, 0u);
  EXPECT_EQ(report_.replayed, 2);
  EXPECT_EQ(report_.eager, 6);
  EXPECT_EQ(report_.different, kFloats);
  EXPECT_EQ(report_.largest_difference, 4);
  EXPECT_EQ(report_.nan_buffer, SIZE_MAX);
  EXPECT_EQ(y_.value(), 6) << "the buffers have what the work left";
  EXPECT_NE(log.text().find("its replay differs from its work"), std::string::npos) << log.text();
}

TEST_F(GraphVerify, AGraphThatWasFoundWrongIsLaunchedNoMore) {
  options_.backoff_runs = 2;
  CaptureFrozen();
  addend_ = 5;
  ExpectWrong(Frozen(), "graph id 3");
  EXPECT_EQ(State(kId), "COOLING");
  EXPECT_EQ(Info(kId).failures, 1u);
  GCAP_EXPECT_FAILS(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_CAPTURE_FAILED), GCAP_REPLAY_DIFFERS,
                    "buffer 1 'y'");
  bool replayed = true;
  GCAP_EXPECT_OK(TryReplay(manager_, kId, true, &replayed));
  EXPECT_FALSE(replayed);
  for (int i = 0; i < 3; ++i) {  // cools down, and is captured anew, with the scalar of now
    GCAP_EXPECT_OK(RunRaw(Frozen()));
    EXPECT_EQ(y_.value(), 6);
  }
  EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
  ExpectSound(Frozen());
}

// --- Which bytes ----------------------------------------------------------------------------------------------------

TEST_F(GraphVerify, WorkInPlaceIsDoneOnce) {
  CreateManager();
  named_ = {Named("x", x_)};
  const WorkWith work = [this](const gcap_run_resources_t* r) { return Add(r, x_.get(), 1); };
  for (int i = 0; i < 4; ++i) {
    GCAP_EXPECT_OK(RunRaw(work));
    EXPECT_EQ(x_.value(), 2 + i);
  }
  EXPECT_TRUE(report_.is_verified);
}

TEST_F(GraphVerify, BuffersThatShareBytesAreCopiedOnce) {
  CreateManager();
  gcap_graph_verify_buffer_t all = Named("all", x_), half = Named("half", x_), last = Named("last", x_);
  half.bytes = kFloatsBytes / 2;
  last.address = x_.get() + kFloats / 4;
  last.bytes = kFloatsBytes / 4;
  named_ = {half, all, last};
  const WorkWith work = [this](const gcap_run_resources_t* r) { return Add(r, x_.get(), addend_); };
  GCAP_EXPECT_OK(RunRaw(work));
  ExpectSound(work);
  EXPECT_EQ(report_.compared_bytes, kFloatsBytes / 2 + kFloatsBytes + kFloatsBytes / 4);
  EXPECT_EQ(x_.value(), 3);
  addend_ = 2;
  ExpectWrong(work, "buffer 0 'half'");
  EXPECT_EQ(report_.different, kFloats / 2 + kFloats + kFloats / 4) << "each as it says";
  EXPECT_EQ(x_.value(), 5);
}

TEST_F(GraphVerify, BuffersOfTheRunNeedNoList) {
  CreateManager();
  const std::vector<gcap_graph_buffer_t> items = {{"x", x_.get(), kFloatsBytes, 0}, {"y", y_.get(), kFloatsBytes, 0}};
  const gcap_graph_buffers_t buffers = BuffersOf(items);
  const WorkWith work = [this](const gcap_run_resources_t* r) {
    return AddTo(r->cuda_stream, r->addresses[0], r->addresses[1], addend_);
  };
  const auto run_on = [&]() {
    gcap_run_t run = VerifiedRun();
    run.buffers = &buffers;
    return RunHoled(run, work);
  };
  EXPECT_TRUE(run_on().ok());
  const Outcome sound = run_on();
  EXPECT_TRUE(sound.ok()) << sound.message;
  EXPECT_TRUE(report_.is_verified);
  EXPECT_EQ(report_.compared_bytes, 2 * kFloatsBytes);
  addend_ = 3;
  // Of no type: byte by byte. 2.0f is 00 00 00 40, and 4.0f is 00 00 80 40.
  const Outcome wrong = run_on();
  EXPECT_TRUE(
      wrong.Names("buffer 1 'y' differs first in element 2 (a byte): the replay has 0, the work 128; 64 of all "
                  "elements differ"))
      << wrong.message;
}

// The second half of the one buffer is the first half of the other, and the work adds to both, in place.
TEST_F(GraphVerify, AnOutputOfTheRunMayOverlapAnInput) {
  CreateManager();
  verify_.bisect = true;
  float* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), 2 * kFloatsBytes));
  GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 0, 2 * kFloatsBytes, stream_->get()));
  const std::vector<gcap_graph_buffer_t> items = {{"input", memory, kFloatsBytes, 0},
                                                  {"output", memory + kFloats / 2, kFloatsBytes, 0}};
  const gcap_graph_buffers_t buffers = BuffersOf(items);
  for (const gcap_graph_buffer_t& item : items) {
    named_.push_back({item.name, item.address, item.bytes, GCAP_DTYPE_F32, 0, 0, false});
  }
  const WorkWith work = [this](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(r, r->addresses[0], 1));
    return Add(r, r->addresses[1], addend_);
  };
  const auto run = [&] {
    gcap_run_t overlapping = VerifiedRun();
    overlapping.buffers = &buffers;
    return RunHoled(overlapping, work);
  };
  const auto expect_thirds = [&](float first, float both, float last) {
    float values[3] = {};
    for (size_t i = 0; i < 3; ++i) {
      GCAP_EXPECT_CUDA(cudaMemcpy(&values[i], memory + i * kFloats / 2, sizeof(float), cudaMemcpyDeviceToHost));
    }
    EXPECT_EQ(values[0], first);
    EXPECT_EQ(values[1], both);
    EXPECT_EQ(values[2], last);
  };
  for (int i = 1; i <= 3; ++i) {
    const Outcome sound = run();
    EXPECT_TRUE(sound.ok()) << sound.message;
    EXPECT_EQ(report_.is_verified, i > 1);
    EXPECT_EQ(report_.different, 0u);
    expect_thirds(1.0f * i, 2.0f * i, 1.0f * i);
  }
  EXPECT_EQ(report_.compared_bytes, 2 * kFloatsBytes) << "each as a buffer of its own";
  addend_ = 5;
  const Outcome wrong = run();
  EXPECT_STREQ(gcap_code_name(wrong.code), "REPLAY_DIFFERS") << wrong.message;
  EXPECT_EQ(report_.buffer, 0u) << "the half that both have";
  EXPECT_EQ(report_.element, kFloats / 2);
  EXPECT_EQ(report_.different, kFloats + kFloats / 2);
  EXPECT_EQ(report_.step, 1u) << wrong.message;
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_FROZEN_VALUE) << wrong.message;
  expect_thirds(4, 3 * 2 + 1 + 5, 3 + 5);
  DestroyManager();
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

TEST_F(GraphVerify, AListedBufferSaysHowThatOfTheRunIsCompared) {
  CreateManager();
  const std::vector<gcap_graph_buffer_t> items = {{"x", x_.get(), kFloatsBytes, 0}, {"y", y_.get(), kFloatsBytes, 0}};
  const gcap_graph_buffers_t buffers = BuffersOf(items);
  const WorkWith work = [this](const gcap_run_resources_t* r) {
    return AddTo(r->cuda_stream, r->addresses[0], r->addresses[1], addend_);
  };
  const auto run_on = [&]() {
    gcap_run_t run = VerifiedRun();
    run.buffers = &buffers;
    return RunHoled(run, work);
  };
  named_ = {Named(nullptr, y_, /*absolute=*/2)};
  EXPECT_TRUE(run_on().ok());
  addend_ = 3;
  const Outcome near = run_on();
  EXPECT_TRUE(near.ok()) << near.message;
  EXPECT_EQ(y_.value(), 4) << "what the work left";
  named_[0].absolute = 1.5;
  const Outcome far = run_on();
  EXPECT_TRUE(far.Names("buffer 1 'y' differs first in element 0 (f32)")) << far.message;
}

TEST_F(GraphVerify, StateIsPutBackAndNotCompared) {
  CreateManager();
  const Floats state(10);
  named_ = {Named("y", y_), Named("state", state)};
  named_[1].is_state = true;
  // y = x + 1; state += addend_.
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_.get(), y_.get(), 1));
    return Add(r, state.get(), addend_);
  };
  GCAP_EXPECT_OK(RunRaw(work));
  addend_ = 5;
  ExpectSound(work);
  EXPECT_EQ(report_.compared_bytes, kFloatsBytes);
  EXPECT_EQ(state.value(), 16);
}

TEST_F(GraphVerify, WhatNaNCameInIsTold) {
  CreateManager();
  named_ = {Named("x", x_), Named("y", y_)};
  float* pinned = nullptr;
  GCAP_EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&pinned), kFloatsBytes));
  float eager[kFloats] = {}, captured[kFloats] = {};
  captured[7] = NAN;
  // The eager run copies from elsewhere.
  bool is_eager = false;
  const WorkWith work = [&](const gcap_run_resources_t* r) {
    return GCAP_CUDA(cudaMemcpyAsync(y_.get(), is_eager ? static_cast<void*>(eager) : pinned, kFloatsBytes,
                                     cudaMemcpyHostToDevice, r->cuda_stream));
  };
  std::memcpy(pinned, captured, kFloatsBytes);
  GCAP_EXPECT_OK(RunRaw(work));
  is_eager = true;
  ExpectWrong(work, "; the first NaN that the work has not is element 7 of buffer 1 'y'");
  EXPECT_EQ(report_.nan_buffer, 1u);
  EXPECT_EQ(report_.nan_element, 7u);
  EXPECT_EQ(report_.different, 1u);
  EXPECT_TRUE(std::isnan(report_.replayed));
  GCAP_EXPECT_CUDA(cudaFreeHost(pinned));
}

TEST_F(GraphVerify, BadBuffersAreRefusedBeforeAnythingIsIssued) {
  CaptureFrozen();
  float on_host[kFloats] = {};
  const gcap_graph_verify_buffer_t good = Named("bad", y_);
  std::vector<std::pair<gcap_graph_verify_buffer_t, const char*>> rows(7, {good, ""});
  rows[0].first.address = nullptr;
  rows[0].second = "buffer 0 'bad' (256 bytes at (nil)) cannot be verified: it has no address, or no bytes";
  rows[1].first.bytes = 0;
  rows[1].second = "no address, or no bytes";
  rows[2].first.bytes = 6;
  rows[2].second = "its bytes are no multiple of an element's";
  rows[3].first.type = static_cast<gcap_dtype_t>(99);
  rows[3].second = "its type is none of gcap_dtype_t";
  rows[4].first.relative = NAN;
  rows[4].second = "a tolerance is a number of at least 0";
  rows[5].first.address = on_host;
  rows[5].second = "the address is in no memory that CUDA knows";
  rows[6].first.bytes = size_t{1} << 40;
  rows[6].second = "it goes beyond the end of its allocation";
  for (const auto& row : rows) {
    named_ = {row.first};
    y_.Fill(-7);
    GCAP_EXPECT_FAILS(RunRaw(Frozen()), GCAP_INVALID_ARGUMENT, row.second);
    EXPECT_FALSE(result_.was_issued);
    EXPECT_FALSE(report_.is_verified);
    EXPECT_EQ(y_.value(), -7);
  }
  named_ = {good};
  ExpectSound(Frozen());
}

TEST_F(GraphVerify, BadStructsAreRefused) {
  CaptureFrozen();
  verify_.struct_size = 3;
  GCAP_EXPECT_FAILS(RunRaw(Frozen()), GCAP_INVALID_ARGUMENT, "gcap_graph_verify");
  verify_.struct_size = sizeof(verify_);
  report_.struct_size = 1;
  GCAP_EXPECT_FAILS(RunRaw(Frozen()), GCAP_INVALID_ARGUMENT, "gcap_graph_verify_report_init");
  gcap_graph_verify_report_init(&report_);
  gcap_run_t run = VerifiedRun();
  verify_.buffers = nullptr;
  EXPECT_STREQ(gcap_code_name(RunHoled(run, Frozen()).code), "INVALID_ARGUMENT");
}

TEST_F(GraphVerify, CallsWithoutWorkRefuse) {
  CaptureFrozen();
  gcap_run_t run = VerifiedRun();
  bool replayed = true;
  GCAP_EXPECT_FAILS(gcap_graph_manager_replay(manager_, &run, &replayed), GCAP_INVALID_ARGUMENT,
                    "graph id 3: the run has `verify`, and a replay alone has no work");
  EXPECT_FALSE(replayed);
  run.result = nullptr;  // a run of an id alone, which replays by a shorter way
  GCAP_EXPECT_FAILS(gcap_graph_manager_replay(manager_, &run, &replayed), GCAP_INVALID_ARGUMENT, "a replay alone");
  gcap_graph_run_kind_t kind;
  GCAP_EXPECT_FAILS(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr), GCAP_INVALID_ARGUMENT,
                    "a begin has no work");
}

TEST_F(GraphVerify, AThreadThatCapturesIsRefused) {
  CaptureFrozen();
  const RawStream other;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(other.get(), nullptr, &capture));
  GCAP_EXPECT_FAILS(RunRaw(Frozen()), GCAP_FAILED_PRECONDITION, "gcap_graph_manager_run");
  gcap_capture_abort(capture);
  ExpectSound(Frozen());
}

// The replay would be allowed there, and the work would not.
TEST_F(GraphVerify, InTheWorkOfARunItIsRefusedBeforeTheReplay) {
  CaptureFrozen();
  y_.Fill(-7);
  std::string refused;
  const WorkWith outer = [&](const gcap_run_resources_t*) -> gcap_status_t {
    gcap_run_result_t result;
    gcap_run_result_init(&result);
    gcap_run_t run = VerifiedRun();
    run.result = &result;
    const WorkWith inner = Frozen();
    const Outcome outcome = RunHoled(run, inner);
    refused = gcap_code_name(outcome.code);
    EXPECT_FALSE(result.was_issued);
    return nullptr;
  };
  EXPECT_TRUE(RunHoled(RunBy(GCAP_GRAPH_ID_NONE), outer).ok());
  EXPECT_EQ(refused, "FAILED_PRECONDITION");
  EXPECT_EQ(y_.value(), -7);
  ExpectSound(Frozen());
}

// --- When -----------------------------------------------------------------------------------------------------------

TEST_F(GraphVerify, WithoutAGraphARunIsWhatItWouldBe) {
  options_.min_num_runs_before_capture = 2;
  CreateManager();
  named_ = {Named("y", y_)};
  const gcap_run_outcome_t outcomes[] = {GCAP_RUN_EAGER, GCAP_RUN_EAGER, GCAP_RUN_CAPTURED};
  for (const gcap_run_outcome_t outcome : outcomes) {
    GCAP_EXPECT_OK(RunRaw(Frozen()));
    EXPECT_EQ(result_.outcome, outcome);
    EXPECT_FALSE(report_.is_verified);
  }
  GCAP_EXPECT_OK(RunRaw(Frozen(), GCAP_GRAPH_ID_NONE));
  EXPECT_EQ(result_.outcome, GCAP_RUN_EAGER);
  EXPECT_FALSE(report_.is_verified);
}

TEST_F(GraphVerify, ARunThatLaunchesNothingVerifiesNothing) {
  CaptureFrozen();
  gcap_run_t run = VerifiedRun();
  run.capture_only = true;
  EXPECT_TRUE(RunHoled(run, Frozen()).ok());
  EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
  EXPECT_FALSE(report_.is_verified);
}

TEST_F(GraphVerify, EachNthReplayIsDue) {
  verify_.each = 3;
  CaptureFrozen();
  for (int i = 1; i <= 9; ++i) ExpectSound(Frozen(), i % 3 == 0);
  verify_.each = 0;
  for (int i = 0; i < 3; ++i) ExpectSound(Frozen(), false);
}

TEST_F(GraphVerify, TheFirstReplaysAfterACaptureAreDue) {
  verify_.each = 0;
  verify_.first = 2;
  CaptureFrozen();
  for (int i = 0; i < 4; ++i) ExpectSound(Frozen(), i < 2);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, kId));
  GCAP_EXPECT_OK(RunRaw(Frozen()));
  for (int i = 0; i < 4; ++i) ExpectSound(Frozen(), i < 2);
}

TEST_F(GraphVerify, TheFirstReplaysAfterAMoveAreDue) {
  verify_.each = 0;
  verify_.first = 1;
  CreateManager();
  const Floats z;
  const WorkWith work = [](const gcap_run_resources_t* r) {
    return AddTo(r->cuda_stream, r->addresses[0], r->addresses[1], 1);
  };
  const auto run_to = [&](const Floats& output) {
    const std::vector<gcap_graph_buffer_t> items = {{"x", x_.get(), kFloatsBytes, 0},
                                                    {"y", output.get(), kFloatsBytes, 0}};
    const gcap_graph_buffers_t buffers = BuffersOf(items);
    gcap_run_t run = VerifiedRun();
    run.buffers = &buffers;
    const Outcome outcome = RunHoled(run, work);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(output.value(), 2);
    return report_.is_verified;
  };
  EXPECT_FALSE(run_to(y_)) << "the capture";
  EXPECT_TRUE(run_to(y_)) << "the first since the capture";
  EXPECT_FALSE(run_to(y_));
  EXPECT_TRUE(run_to(z)) << "moved";
  EXPECT_FALSE(run_to(z));
  GCAP_EXPECT_OK(gcap_graph_manager_bind(manager_, kId, 1, y_.get()));
  EXPECT_TRUE(run_to(y_)) << "moved by a bind";
  EXPECT_FALSE(run_to(y_));
}

TEST_F(GraphVerify, OfAKeyTheMessageHasItsName) {
  CreateManager();
  named_ = {Named("y", y_)};
  const char bytes[] = "step";
  const gcap_graph_key_t key = {bytes, sizeof(bytes), "a step"};
  const auto run_key = [&]() {
    gcap_run_t run = VerifiedRun(GCAP_GRAPH_ID_NONE);
    run.key = &key;
    return RunHoled(run, Frozen());
  };
  EXPECT_TRUE(run_key().ok());
  EXPECT_TRUE(run_key().ok());
  EXPECT_TRUE(report_.is_verified);
  EXPECT_LT(result_.id, GCAP_GRAPH_ID_NONE);
  addend_ = 9;
  const Outcome wrong = run_key();
  EXPECT_TRUE(wrong.Names("graph key 'a step'")) << wrong.message;
  EXPECT_EQ(Info(result_.id).failures, 1u);
}

// A guard that chooses among the graphs of an id chooses what is compared, and a wrong variant goes alone.
TEST_F(GraphVerify, OfSeveralVariantsTheOneThatReplaysIsCompared) {
  CreateManager();
  named_ = {Named("y", y_)};
  static int32_t decision;
  decision = 0;
  const WorkWith work = [this](const gcap_run_resources_t* r) -> gcap_status_t {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.name = "decision";
    guard.address = &decision;
    guard.bytes = sizeof(decision);
    guard.low = guard.high = decision;
    GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    return AddTo(r->cuda_stream, x_.get(), y_.get(), addend_ + 10 * static_cast<uint64_t>(decision));
  };
  for (decision = 0; decision < 2; ++decision) {
    GCAP_EXPECT_OK(RunRaw(work));
    EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
    ExpectSound(work);
  }
  addend_ = 2;
  decision = 0;
  ExpectWrong(work, "buffer 0 'y'");
  EXPECT_EQ(y_.value(), 3);
  addend_ = 1;
  decision = 1;
  ExpectSound(work);
  EXPECT_EQ(y_.value(), 12);
}

TEST_F(GraphVerify, ValuesAreThoseOfTheRun) {
  CreateManager();
  uint64_t addend = 1;
  gcap_graph_value_t value = {"addend", &addend, sizeof(addend), GCAP_GRAPH_VALUE_UNSIGNED,
                              nullptr,  nullptr, false,          false};
  const uint64_t low = 0, high = 100;
  value.low = &low;
  value.high = &high;
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.values = &value;
  buffers.num_values = 1;
  named_ = {Named("y", y_)};
  const WorkWith work = [this](const gcap_run_resources_t* r) {
    return AddTo(r->cuda_stream, x_.get(), y_.get(), *static_cast<const uint64_t*>(r->values[0]));
  };
  for (addend = 1; addend < 6; ++addend) {
    gcap_run_t run = VerifiedRun();
    run.buffers = &buffers;
    const Outcome outcome = RunHoled(run, work);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(report_.is_verified, addend > 1) << addend;
    EXPECT_EQ(y_.value(), static_cast<float>(1 + addend));
  }
}

TEST_F(GraphVerify, AReplayOnAnotherStreamIsCompared) {
  CaptureFrozen();
  const RawStream other;
  GCAP_EXPECT_OK(Replay(manager_, kId, /*synchronize=*/false));  // the copies come behind it
  gcap_run_t run = VerifiedRun();
  run.stream = other.get();
  const Outcome sound = RunHoled(run, Frozen());
  EXPECT_TRUE(sound.ok()) << sound.message;
  EXPECT_TRUE(report_.is_verified);
  addend_ = 3;
  const Outcome wrong = RunHoled(run, Frozen());
  EXPECT_STREQ(gcap_code_name(wrong.code), "REPLAY_DIFFERS");
  EXPECT_EQ(y_.value(), 4);
}

// --- Holes ----------------------------------------------------------------------------------------------------------

TEST_F(GraphVerify, FunctionsOfHolesAreCalledByBoth) {
  CreateManager();
  named_ = {Named("x", x_)};
  Hole hole;
  hole.function = [this](const gcap_run_resources_t* r) { return Add(r, x_.get(), 10); };
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(r, x_.get(), addend_));
    GCAP_RETURN_IF_ERROR(hole.Issue(r));
    return Add(r, x_.get(), 100);
  };
  GCAP_EXPECT_OK(RunRaw(work));
  EXPECT_EQ(x_.value(), 112);
  EXPECT_EQ(hole.calls, 1);
  ExpectSound(work);
  EXPECT_EQ(x_.value(), 223);
  EXPECT_EQ(hole.calls, 3) << "the replay's and the eager run's";
  addend_ = 2;
  ExpectWrong(work, "buffer 0 'x'");
  EXPECT_EQ(x_.value(), 335);
}

// --- Callbacks ------------------------------------------------------------------------------------------------------

// A state of the host, which the work counts up and uses.
class GraphVerifyCallbacks : public GraphVerify {
 protected:
  WorkWith Counting() {
    return [this](const gcap_run_resources_t* r) -> gcap_status_t {
      Hole* hole = &hole_;
      hole->function = [this](const gcap_run_resources_t* resources) {
        return AddTo(resources->cuda_stream, x_.get(), y_.get(), ++counter_);
      };
      return hole->Issue(r);
    };
  }
  static GraphVerifyCallbacks* Self(void* user) {
    return static_cast<GraphVerifyCallbacks*>(static_cast<VerifyTest*>(user));
  }
  void Keep() {
    CreateManager();
    named_ = {Named("y", y_)};
    verify_.user = static_cast<VerifyTest*>(this);
    verify_.save = [](void* user, cudaStream_t stream) -> gcap_status_t {
      GraphVerifyCallbacks* self = Self(user);
      EXPECT_EQ(stream, self->stream_->get());
      self->saved_ = self->counter_;
      ++self->saves_;
      return self->save_ ? self->save_() : nullptr;
    };
    verify_.restore = [](void* user, cudaStream_t stream) -> gcap_status_t {
      GraphVerifyCallbacks* self = Self(user);
      EXPECT_EQ(stream, self->stream_->get());
      self->counter_ = self->saved_;
      ++self->restores_;
      return self->restore_ ? self->restore_() : nullptr;
    };
  }

  Hole hole_;
  uint64_t counter_ = 0, saved_ = 0;
  int saves_ = 0, restores_ = 0;
  std::function<gcap_status_t()> save_, restore_;
};

TEST_F(GraphVerifyCallbacks, StateOfTheHostIsTheCallersToPutBack) {
  Keep();
  GCAP_EXPECT_OK(RunRaw(Counting()));
  EXPECT_EQ(saves_, 0) << "nothing was replayed";
  ExpectSound(Counting());
  EXPECT_EQ(counter_, 2u);
  EXPECT_EQ(y_.value(), 3);
  EXPECT_EQ(saves_, 1);
  EXPECT_EQ(restores_, 1);
  verify_.restore = nullptr;
  ExpectWrong(Counting(), "the replay has 4, the work 5");
}

TEST_F(GraphVerifyCallbacks, AFailureOfSaveIsTheRunsAndNothingWasIssued) {
  Keep();
  GCAP_EXPECT_OK(RunRaw(Counting()));
  y_.Fill(-7);
  save_ = [] { return GCAP_STATUS(GCAP_UNAVAILABLE, "no room for a state"); };
  GCAP_EXPECT_FAILS(RunRaw(Counting()), GCAP_UNAVAILABLE, "graph id 3, verified: save: no room for a state");
  EXPECT_FALSE(result_.was_issued);
  EXPECT_EQ(counter_, 1u);
  EXPECT_EQ(y_.value(), -7);
  save_ = nullptr;
  ExpectSound(Counting());
}

TEST_F(GraphVerifyCallbacks, AFailureOfRestoreIsTheRunsAndTheBuffersAreAsBefore) {
  Keep();
  GCAP_EXPECT_OK(RunRaw(Counting()));
  y_.Fill(-7);
  restore_ = [] { return GCAP_STATUS(GCAP_UNAVAILABLE, "the state is gone"); };
  GCAP_EXPECT_FAILS(RunRaw(Counting()), GCAP_UNAVAILABLE, "graph id 3, verified: restore: the state is gone");
  EXPECT_TRUE(result_.was_issued);
  EXPECT_EQ(result_.outcome, GCAP_RUN_NOT_DONE);
  EXPECT_FALSE(report_.is_verified);
  EXPECT_EQ(y_.value(), -7);
  EXPECT_EQ(State(kId), "CAPTURED") << "nothing is known against the graph";
  restore_ = nullptr;
  ExpectSound(Counting());
}

TEST_F(GraphVerifyCallbacks, AFailureOfTheWorkIsTheRuns) {
  CaptureFrozen();
  const WorkWith failing = [](const gcap_run_resources_t*) {
    return GCAP_STATUS(GCAP_LIBRARY_ERROR, "the kernel failed");
  };
  GCAP_EXPECT_FAILS(RunRaw(failing), GCAP_LIBRARY_ERROR, "graph id 3, verified: the kernel failed");
  EXPECT_TRUE(result_.was_issued);
  EXPECT_FALSE(report_.is_verified);
  ExpectSound(Frozen());
}

TEST_F(GraphVerifyCallbacks, AnExceptionReachesWhoRuns) {
  Keep();
  GCAP_EXPECT_OK(RunRaw(Counting()));
  const auto throws = []() -> gcap_status_t { throw std::runtime_error("out of the callback"); };
  for (const bool is_save : {true, false}) {
    (is_save ? save_ : restore_) = throws;
    EXPECT_THROW(gcap_status_free(RunRaw(Counting())), std::runtime_error);
    save_ = restore_ = nullptr;
    ExpectSound(Counting());
  }
  const WorkWith throwing = [](const gcap_run_resources_t*) -> gcap_status_t { throw std::runtime_error("work"); };
  EXPECT_THROW(gcap_status_free(RunRaw(throwing)), std::runtime_error);
  ExpectSound(Counting());
}

TEST_F(GraphVerifyCallbacks, AThreadMayBeCancelledInACallback) {
  Keep();
  GCAP_EXPECT_OK(RunRaw(Counting()));
  const auto cancels = []() -> gcap_status_t {
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return nullptr;
  };
  for (const bool is_save : {true, false}) {
    (is_save ? save_ : restore_) = cancels;
    const WorkWith work = Counting();
    std::thread cancelled([&] { gcap_status_free(RunRaw(work)); });
    cancelled.join();
    save_ = restore_ = nullptr;
    ExpectSound(Counting());
  }
}

// A callback has the manager's other calls, as the work has; what it takes away is not replayed.
TEST_F(GraphVerifyCallbacks, SaveMayReleaseTheGraph) {
  Keep();
  GCAP_EXPECT_OK(RunRaw(Counting()));
  save_ = [this] { return gcap_graph_manager_release(manager_, kId); };
  GCAP_EXPECT_OK(RunRaw(Counting()));
  EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
  EXPECT_FALSE(report_.is_verified);
  EXPECT_EQ(y_.value(), 3);
}

TEST_F(GraphVerifyCallbacks, AGraphThatIsAnotherByThenIsLeftAlone) {
  Keep();
  GCAP_EXPECT_OK(RunRaw(Counting()));
  restore_ = [this]() -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_release(manager_, kId));
    verify_.each = 0;
    restore_ = nullptr;
    gcap_status_t status = RunRaw(Counting());  // captures it anew, and counts
    verify_.each = 1;
    return status;
  };
  GCAP_EXPECT_FAILS(RunRaw(Counting()), GCAP_REPLAY_DIFFERS, "buffer 0 'y'");
  EXPECT_EQ(State(kId), "CAPTURED") << "the graph that differed is gone";
  EXPECT_EQ(Info(kId).failures, 0u);
}

TEST_F(GraphVerifyCallbacks, NobodyDestroysTheManagerMeanwhile) {
  Keep();
  GCAP_EXPECT_OK(RunRaw(Counting()));
  std::string refused;
  save_ = restore_ = [&]() -> gcap_status_t {
    refused += gcap_code_name(Outcome(gcap_graph_manager_destroy(manager_)).code);
    return nullptr;
  };
  ExpectSound(Counting());
  EXPECT_EQ(refused, "FAILED_PRECONDITIONFAILED_PRECONDITION");
}

// --- Threads --------------------------------------------------------------------------------------------------------

// Each thread has an id, buffers and a stream of its own; runs take turns at the manager, as runs do.
TEST_F(GraphVerify, SeveralThreadsVerifyOnManagersOfTheirOwn) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      gcap_graph_manager_t* manager = nullptr;
      gcap_graph_manager_options_t options;
      gcap_graph_manager_options_init(&options);
      options.min_num_runs_before_capture = 0;
      GCAP_EXPECT_OK(gcap_graph_manager_create(&options, &manager));
      {
        const RawStream stream;
        const Floats x(static_cast<float>(t)), y;
        const gcap_graph_verify_buffer_t named = Named("y", y);
        gcap_graph_verify_report_t report;
        gcap_graph_verify_report_init(&report);
        gcap_graph_verify_t verify;
        gcap_graph_verify_init(&verify);
        verify.buffers = &named;
        verify.num_buffers = 1;
        verify.each = 2;
        verify.report = &report;
        WorkWith work = [&](const gcap_run_resources_t* r) { return AddTo(r->cuda_stream, x.get(), y.get(), 1); };
        gcap_run_t run = RunOf(t, stream.get());
        run.work = IssueWith;
        run.user = &work;
        run.verify = &verify;
        int verified = 0;
        for (int i = 0; i < 9; ++i) {
          GCAP_EXPECT_OK(gcap_graph_manager_run(manager, &run));
          verified += report.is_verified;
        }
        GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream.get()));
        EXPECT_EQ(verified, 4);
        EXPECT_EQ(y.value(), static_cast<float>(t + 1));
        GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Two verifications of one graph would put back one another's memory: the second one is refused by name, and the first
// one is whole.
TEST_F(GraphVerify, OfOneGraphOneRunAtATimeIsVerified) {
  CaptureFrozen();
  Outcome second(nullptr);
  gcap_graph_verify_report_t report;
  gcap_graph_verify_report_init(&report);
  gcap_graph_verify_t verify = verify_;
  verify.buffers = named_.data();
  verify.num_buffers = named_.size();
  verify.report = &report;
  const WorkWith work = Frozen();
  std::function<void()> meanwhile = [&] {
    std::thread([&] {
      gcap_run_t run = RunOf(kId, stream_->get(), /*synchronize=*/true);
      run.verify = &verify;
      run.work = IssueWith;
      run.user = const_cast<WorkWith*>(&work);
      second = Outcome(gcap_graph_manager_run(manager_, &run));
    }).join();
  };
  verify_.user = &meanwhile;
  verify_.save = [](void* user, cudaStream_t) -> gcap_status_t {
    (*static_cast<std::function<void()>*>(user))();
    return nullptr;
  };
  ExpectSound(work);
  EXPECT_EQ(second.code, GCAP_FAILED_PRECONDITION) << second.message;
  EXPECT_TRUE(second.Names("graph id 3 is being verified by another run")) << second.message;
  EXPECT_FALSE(report.is_verified);
  verify_.save = nullptr;
  ExpectSound(work);
}

// While one thread's run is verified, others replay other graphs of the manager.
TEST_F(GraphVerify, OthersReplayMeanwhile) {
  CaptureFrozen();
  const Floats z;
  const WorkWith other = [&](const gcap_run_resources_t* r) { return AddTo(r->cuda_stream, z.get(), z.get(), 1); };
  const Outcome captured = RunHoled(RunBy(kId + 1), other);
  ASSERT_TRUE(captured.ok()) << captured.message;
  std::thread replays([this] {
    for (int i = 0; i < 20; ++i) {
      bool replayed = false;
      gcap_run_t run = ReplayOf(kId + 1, /*synchronize=*/false);
      gcap_status_free(gcap_graph_manager_replay(manager_, &run, &replayed));
    }
  });
  for (int i = 0; i < 20; ++i) ExpectSound(Frozen());
  replays.join();
  GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream_->get()));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
