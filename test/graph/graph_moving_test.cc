// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs whose buffers are elsewhere at each replay: runs on buffers by hand and in one call, binds, replays with
// addresses, and what recaptures, evictions and releases leave of them.

#include <algorithm>
#include <thread>

#include "gcap/graph_buffers.h"
#include "test/graph/moving_test.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

TEST_F(GraphMoving, ReplaysOnOtherBuffersWithoutACapture) {
  const Floats first_input(3), first_output(9), second_input(5), second_output(9);
  ASSERT_TRUE(RunOn(first_input, first_output).ok());
  EXPECT_EQ(calls_, 3) << "two rehearsals and the capture";
  EXPECT_EQ(first_output.value(), 4);
  EXPECT_TRUE(WhyNotMovable().ok());
  const Outcome moved = RunOn(second_input, second_output);
  EXPECT_TRUE(moved.ok()) << moved.message;
  EXPECT_EQ(calls_, 3) << "replayed";
  EXPECT_EQ(second_output.value(), 6);
  EXPECT_EQ(first_output.value(), 4) << "untouched";
  EXPECT_EQ(Info(kId).captures, 1u);
  EXPECT_EQ(Info(kId).replays, 2u);
}

// Rehearsal, capture and replay as the states tell them.
TEST_F(GraphMoving, CheckedMovesLeaveAllAsItWas) {
  const Floats input(3), output(50), other_input(7);
  GCAP_EXPECT_FAILS(gcap_graph_manager_check_moves(manager_, kId), GCAP_NOT_FOUND, "graph id 3");
  ASSERT_TRUE(RunOn(input, output).ok());
  GCAP_EXPECT_OK(Bind(0, other_input.get()));
  output.Fill(50);
  GCAP_EXPECT_OK(gcap_graph_manager_check_moves(manager_, kId));
  EXPECT_EQ(output.value(), 50) << "what the launches left is gone";
  EXPECT_EQ(other_input.value(), 7);
  EXPECT_EQ(Info(kId).replays, 3u);
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(output.value(), 8) << "where it was bound";
  EXPECT_EQ(calls_, 3);
}

// A move is checked within memory that the check allocates itself.
TEST_F(GraphMoving, MovesOfBuffersOfAnyAlignmentAreChecked) {
  const Floats input(3), output(50);
  ASSERT_TRUE(RunOn({{"input", input.get(), kFloatsBytes, 1}, {"output", output.get(), kFloatsBytes, 1}}, AddOne).ok());
  GCAP_EXPECT_OK(gcap_graph_manager_check_moves(manager_, kId));
  EXPECT_EQ(output.value(), 4) << "what the launches left is gone";
}

TEST_F(GraphMoving, ABufferOfTheLargestAlignmentMoves) {
  constexpr size_t kLargest = size_t{2} << 20;
  const Floats input(3);
  char* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), 3 * kLargest));
  char* const output = memory + (kLargest - reinterpret_cast<uintptr_t>(memory) % kLargest);
  const auto run_at = [&](char* address) {
    const Outcome outcome =
        RunOn({{"input", input.get(), kFloatsBytes, 0}, {"output", address, kFloatsBytes, kLargest}}, AddOne);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
  };
  run_at(output);
  calls_ = 0;
  run_at(output + kLargest);
  EXPECT_EQ(calls_, 0) << "a replay";
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

// Buffers that share bytes are copied together, so their copies lie as they do.
TEST_F(GraphMoving, MovesOfBuffersThatOverlapAreChecked) {
  const Floats memory(3);
  const std::vector<gcap_graph_buffer_t> items = {{"input", memory.get(), kFloatsBytes, 4},
                                                  {"output", memory.get() + 8, kFloatsBytes - 32, 4}};
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    return AddTo(stream, at[0], at[1], 1, kFloats - 8);  // each eighth float is one more than that before
  };
  ASSERT_TRUE(RunOn(items, work).ok());
  const std::vector<float> before = memory.Read();
  GCAP_EXPECT_OK(gcap_graph_manager_check_moves(manager_, kId));
  EXPECT_EQ(memory.Read(), before) << "what the launches left is gone";
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
}

TEST_F(GraphMoving, AReplayThatIsRefusedBindsNothing) {
  const Floats input(3), output(50), other(60);
  ASSERT_TRUE(RunOn(input, output).ok());
  const RawStream capturing;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(capturing.get(), cudaStreamCaptureModeRelaxed));
  const std::vector<gcap_graph_buffer_t> items = Items(input, other);
  const gcap_graph_buffers_t buffers = BuffersOf(items);
  gcap_run_t run = ReplayOf(kId, /*synchronize=*/true);
  run.stream = capturing.get();
  run.buffers = &buffers;
  std::thread([&] {
    GCAP_EXPECT_FAILS(gcap_graph_manager_replay(manager_, &run, nullptr), GCAP_FAILED_PRECONDITION, "captur");
  }).join();
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(capturing.get(), &graph));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  output.Fill(50);
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(output.value(), 4);
  EXPECT_EQ(other.value(), 60);
}

// What lies behind its buffers is not of the replay.
TEST_F(GraphMoving, AReplayLooksAtItsOwnAddressesAlone) {
  const Floats input(3), output(50);
  ASSERT_TRUE(RunOn(input, output).ok());
  std::vector<gcap_graph_buffer_t> items = Items(input, output);
  items.push_back({nullptr, reinterpret_cast<void*>(1), 0, 0});
  gcap_graph_buffers_t buffers = BuffersOf(items);
  buffers.count = 2;
  gcap_run_t run = ReplayOf(kId, /*synchronize=*/true);
  run.buffers = &buffers;
  bool replayed = false;
  GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &run, &replayed));
  EXPECT_TRUE(replayed);
}

TEST_F(GraphMoving, RunsByHandAreRehearsedFirst) {
  const Floats input(1), output(9);
  void* at[2] = {};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(BeginOn(Items(input, output), at), GCAP_GRAPH_RUN_REHEARSAL);
    EXPECT_EQ(State(kId), "CAPTURING");
    EXPECT_NE(at[0], input.get());
    EXPECT_NE(at[1], output.get());
    GCAP_EXPECT_OK(AddOne(stream_->get(), at));
    EXPECT_TRUE(End().ok());
    EXPECT_EQ(State(kId), "READY");
    EXPECT_TRUE(Info(kId).captures_next);
    EXPECT_EQ(output.value(), 9) << "nothing was executed";
  }

  EXPECT_EQ(BeginOn(Items(input, output), at), GCAP_GRAPH_RUN_CAPTURE);
  EXPECT_EQ(at[0], input.get());
  EXPECT_EQ(at[1], output.get());
  GCAP_EXPECT_OK(AddOne(stream_->get(), at));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(State(kId), "CAPTURED");
  EXPECT_EQ(output.value(), 2);
  EXPECT_EQ(Info(kId).captures, 1u);
  EXPECT_EQ(Info(kId).failures, 0u);

  const std::vector<gcap_graph_buffer_t> items = Items(input, output);
  const gcap_graph_buffers_t buffers = BuffersOf(items);
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_CAPTURE;
  GCAP_EXPECT_FAILS(BeginPlainOn(manager_, kId, stream_->get(), &buffers, &kind, at), GCAP_ALREADY_EXISTS,
                    "graph id 3");
}

TEST_F(GraphMoving, EagerRunsComeFirstOnTheBuffersThemselves) {
  CreateWith([](auto* options) { options->min_num_runs_before_capture = 2; });
  for (int i = 0; i < 4; ++i) {
    const Floats input(static_cast<float>(i)), output(9);
    ASSERT_TRUE(RunOn(input, output).ok());
    EXPECT_EQ(output.value(), i + 1);
    EXPECT_EQ(calls_, i < 2 ? i + 1 : 5) << "eager, eager, two rehearsals and a capture, a replay";
  }
  EXPECT_EQ(Info(kId).eager_runs, 2u);
  EXPECT_EQ(Info(kId).captures, 1u);
}

TEST_F(GraphMoving, RunsThatAreNeverCapturedHaveTheirOwnAddresses) {
  const Floats input(1), output(9);
  void* at[2] = {};
  EXPECT_EQ(BeginOn(Items(input, output), at, GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
  EXPECT_EQ(at[0], input.get());
  GCAP_EXPECT_OK(AddOne(stream_->get(), at));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(output.value(), 2);
}

// Work that looks at its pointers finds no memory there, and fails: it is given memory.
TEST_F(GraphMoving, WorkThatReadsAttributesOfPointersIsRehearsedWithMemory) {
  ExpectMoves(
      [](cudaStream_t stream, void* const* at) {
        cudaPointerAttributes attributes = {};
        GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaPointerGetAttributes(&attributes, at[0])));
        if (attributes.type != cudaMemoryTypeDevice) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "no device memory");
        return AddOne(stream, at);
      },
      1);
}

// What a rehearsal retains goes at its end.
// Rehearsals without memory do not count for a run that asks for it.
TEST_F(GraphMoving, ARunThatAsksForMemoryIsRehearsedWithMemory) {
  const Floats input(1), output(9);
  void* at[2] = {};
  EXPECT_EQ(BeginOn(Items(input, output), at), GCAP_GRAPH_RUN_REHEARSAL);
  GCAP_EXPECT_OK(AddOne(stream_->get(), at));
  EXPECT_TRUE(End().ok());
  const std::vector<gcap_graph_buffer_t> items = Items(input, output);
  gcap_graph_buffers_t buffers = BuffersOf(items);
  buffers.stand_ins = GCAP_GRAPH_STAND_INS_MEMORY;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  for (int i = 0; i < 2; ++i) {
    GCAP_EXPECT_OK(BeginPlainOn(manager_, kId, stream_->get(), &buffers, &kind, at));
    EXPECT_EQ(kind, GCAP_GRAPH_RUN_REHEARSAL);
    cudaPointerAttributes attributes = {};
    GCAP_EXPECT_CUDA(cudaPointerGetAttributes(&attributes, at[0]));
    EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
    GCAP_EXPECT_OK(AddOne(stream_->get(), at));
    EXPECT_TRUE(End().ok());
  }
}

TEST_F(GraphMoving, ARehearsalRetainsNothing) {
  int released = 0;
  const Floats input(1), output(9);
  const WorkOn work = [&](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, &released));
    return AddOne(stream, at);
  };
  ASSERT_TRUE(RunOn(input, output, work).ok());
  EXPECT_EQ(released, 2);
  ASSERT_TRUE(RunOn(output, input, work).ok());
  EXPECT_EQ(released, 2);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  EXPECT_EQ(released, 3);
}

// --- Binds and replays ----------------------------------------------------------------------------------------------

TEST_F(GraphMoving, BindsOneBufferAndKeepsTheOther) {
  const Floats input(1), output(9), other(20);
  ASSERT_TRUE(RunOn(input, output).ok());
  GCAP_EXPECT_OK(Bind(0, other.get()));
  EXPECT_EQ(output.value(), 2) << "a bind launches nothing";
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(output.value(), 21);
  GCAP_EXPECT_OK(Bind(0, input.get()));
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(output.value(), 2);
  GCAP_EXPECT_OK(Bind(0, input.get()));  // where it is
  EXPECT_EQ(calls_, 3);
}

TEST_F(GraphMoving, ReplaysWithAddressesOfWhichNullStays) {
  const Floats input(1), output(9), other_input(20), other_output(9);
  ASSERT_TRUE(RunOn(input, output).ok());
  GCAP_EXPECT_OK(ReplayAt({input.get(), other_output.get()}));
  EXPECT_EQ(other_output.value(), 2);
  GCAP_EXPECT_OK(ReplayAt({other_input.get(), other_output.get()}));
  EXPECT_EQ(other_output.value(), 21) << "where it was bound last";
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  GCAP_EXPECT_OK(ReplayAt({input.get(), output.get()}));
  EXPECT_EQ(output.value(), 2);
  EXPECT_EQ(Info(kId).replays, 5u);
}

// What was checked later is no reason to have moved what was checked before.
TEST_F(GraphMoving, ARefusedReplayMovesNothing) {
  const Floats input(1), output(9), other(20);
  ASSERT_TRUE(RunOn(input, output).ok());
  output.Fill(9);
  GCAP_EXPECT_FAILS(ReplayAt({other.get(), reinterpret_cast<char*>(output.get()) + 4}), GCAP_INVALID_ARGUMENT,
                    "buffer 1 'output'");
  EXPECT_EQ(output.value(), 9) << "nothing was launched";
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(output.value(), 2);
}

TEST_F(GraphMoving, LaunchesInFlightKeepTheirAddresses) {
  Gate gate;
  const Floats input(1), output(9), other_input(20), other_output(30);
  ASSERT_TRUE(RunOn(input, output).ok());
  output.Fill(9);
  gate.Hold(stream_->get());
  GCAP_EXPECT_OK(Replay(manager_, kId, false));
  GCAP_EXPECT_OK(Bind(0, other_input.get()));
  GCAP_EXPECT_OK(Bind(1, other_output.get()));
  GCAP_EXPECT_OK(Replay(manager_, kId, false));
  gate.Open();
  stream_->Synchronize();
  EXPECT_EQ(output.value(), 2);
  EXPECT_EQ(other_output.value(), 21);
}

TEST_F(GraphMoving, BindsOnAnotherThreadAndReplaysOnAnotherStream) {
  const Floats input(1), output(9), other(20);
  ASSERT_TRUE(RunOn(input, output).ok());
  std::thread([&] { GCAP_EXPECT_OK(Bind(0, other.get())); }).join();
  const RawStream second;
  GCAP_EXPECT_OK(ReplayOn(manager_, kId, second.get(), true));
  EXPECT_EQ(output.value(), 21);
}

TEST_F(GraphMoving, BindsWhileAnotherThreadCaptures) {
  const Floats input(1), output(9), other(20), third(4), fourth(9);
  ASSERT_TRUE(RunOn(input, output).ok());
  void* at[2] = {};
  EXPECT_EQ(BeginOn(Items(third, fourth), at, kId + 1), GCAP_GRAPH_RUN_REHEARSAL);
  GCAP_EXPECT_FAILS(Bind(0, other.get()), GCAP_FAILED_PRECONDITION, "gcap_graph_manager_bind");
  std::thread([&] { GCAP_EXPECT_OK(Bind(0, other.get())); }).join();
  GCAP_EXPECT_OK(AddOne(stream_->get(), at));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(BeginOn(Items(third, fourth), at, kId + 1), GCAP_GRAPH_RUN_REHEARSAL);
  GCAP_EXPECT_OK(AddOne(stream_->get(), at));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(BeginOn(Items(third, fourth), at, kId + 1), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_OK(AddOne(stream_->get(), at));
  std::thread([&] {
    GCAP_EXPECT_OK(Bind(0, input.get()));
    GCAP_EXPECT_OK(Bind(0, other.get()));
  }).join();
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(fourth.value(), 5);
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(output.value(), 21);
}

// --- Buffers --------------------------------------------------------------------------------------------------------

TEST_F(GraphMoving, OverlappingBuffersMoveTogether) {
  const Floats memory(3), other_memory(7), output(50);
  const auto items = [&](const Floats& from, ptrdiff_t second) {
    return std::vector<gcap_graph_buffer_t>{{"all", from.get(), kFloatsBytes, 4},
                                            {"part", from.get() + second, kFloatsBytes / 2, 4},
                                            {"output", output.get(), kFloatsBytes, 4}};
  };
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(AddTo(stream, at[1], at[1], 10, kFloats / 2));
    return AddTo(stream, at[0], at[2], 1);
  };
  const auto expected = [](float value, size_t second) {
    std::vector<float> values(kFloats, value + 1);
    std::fill_n(values.begin() + static_cast<ptrdiff_t>(second), kFloats / 2, value + 11);
    return values;
  };
  ASSERT_TRUE(RunOn(items(memory, 8), work).ok());
  EXPECT_EQ(output.Read(), expected(3, 8));
  EXPECT_TRUE(WhyNotMovable().ok());
  ASSERT_TRUE(RunOn(items(other_memory, 8), work).ok());
  EXPECT_EQ(calls_, 3) << "two rehearsals, the capture, a replay";
  EXPECT_EQ(output.Read(), expected(7, 8));
  other_memory.Fill(7);
  ASSERT_TRUE(RunOn(items(other_memory, 17), work).ok());
  EXPECT_EQ(calls_, 6) << "a capture: the second buffer lies otherwise in the first";
  EXPECT_EQ(output.Read(), expected(7, 17));
}

TEST_F(GraphMoving, ManyBuffersMoveAndNoneToo) {
  constexpr size_t kMany = 40;
  std::vector<std::unique_ptr<Floats>> first, second;
  std::vector<gcap_graph_buffer_t> there, elsewhere;
  for (size_t i = 0; i < kMany; ++i) {
    first.push_back(std::make_unique<Floats>(static_cast<float>(i)));
    second.push_back(std::make_unique<Floats>(static_cast<float>(2 * i)));
    there.push_back({nullptr, first.back()->get(), kFloatsBytes, 0});
    elsewhere.push_back({nullptr, second.back()->get(), kFloatsBytes, 0});
  }
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    for (size_t i = 0; i < kMany; i += 2) GCAP_RETURN_IF_ERROR(AddTo(stream, at[i], at[i + 1], i));
    return static_cast<gcap_status_t>(nullptr);
  };
  ASSERT_TRUE(RunOn(there, work).ok());
  ASSERT_TRUE(RunOn(elsewhere, work).ok());
  EXPECT_EQ(calls_, 3);
  for (size_t i = 0; i < kMany; i += 2) {
    EXPECT_EQ(first[i + 1]->value(), 2 * i);
    EXPECT_EQ(second[i + 1]->value(), 3 * i);
  }
  const std::vector<gcap_graph_buffer_t> none;
  const WorkOn fixed = [&](cudaStream_t stream, void* const*) {
    return AddTo(stream, first[0]->get(), first[1]->get(), 7);
  };
  ASSERT_TRUE(RunOn(none, fixed, kId + 1).ok());
  ASSERT_TRUE(RunOn(none, fixed, kId + 1).ok());
  EXPECT_EQ(Info(kId + 1).replays, 2u);
  EXPECT_EQ(first[1]->value(), 7);
  GCAP_EXPECT_FAILS(Bind(0, first[0]->get(), kId + 1), GCAP_INVALID_ARGUMENT, "no buffer 0, the graph has 0");
}

// --- Ids without a graph --------------------------------------------------------------------------------------------

TEST_F(GraphMoving, AnIdWithoutAGraphIsNotBound) {
  const Floats input(1), output(9), other(20);
  GCAP_EXPECT_FAILS(Bind(0, other.get()), GCAP_NOT_FOUND, "graph id 3");
  GCAP_EXPECT_FAILS(Bind(0, other.get(), -1), GCAP_NOT_FOUND, "graph id -1");
  ASSERT_TRUE(RunOn(input, output).ok());
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  GCAP_EXPECT_FAILS(Bind(0, other.get()), GCAP_NOT_FOUND, "graph id 3");
  ASSERT_TRUE(RunOn(input, output).ok());
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, kId));
  GCAP_EXPECT_FAILS(Bind(0, other.get()), GCAP_NOT_FOUND, "STALE");
  void* at[2] = {};
  EXPECT_EQ(BeginOn(Items(input, output), at), GCAP_GRAPH_RUN_REHEARSAL);
  std::thread([&] { GCAP_EXPECT_FAILS(Bind(0, other.get()), GCAP_NOT_FOUND, "CAPTURING"); }).join();
  GCAP_EXPECT_OK(AddOne(stream_->get(), at));
  EXPECT_TRUE(End().ok());
}

TEST_F(GraphMoving, AnEvictedIdIsCapturedAgainAndMoves) {
  CreateWith([](auto* options) { options->max_graphs = 1; });
  const Floats input(1), output(9), other(20);
  ASSERT_TRUE(RunOn(input, output).ok());
  ASSERT_TRUE(RunOn(input, output, AddOne, kId + 1).ok());
  EXPECT_EQ(State(kId), "READY") << "evicted";
  GCAP_EXPECT_FAILS(Bind(0, other.get()), GCAP_NOT_FOUND, "READY");
  calls_ = 0;
  ASSERT_TRUE(RunOn(input, output).ok());
  EXPECT_EQ(calls_, 3) << "rehearsed again";
  GCAP_EXPECT_OK(Bind(0, other.get()));
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(output.value(), 21);
}

TEST_F(GraphMoving, ARecaptureIsRehearsedAndMadeAnew) {
  const Floats input(1), output(9), other(20);
  ASSERT_TRUE(RunOn(input, output).ok());
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, kId));
  const WorkOn add_five = [](cudaStream_t stream, void* const* at) { return AddTo(stream, at[0], at[1], 5); };
  calls_ = 0;
  ASSERT_TRUE(RunOn(input, output, add_five).ok());
  EXPECT_EQ(calls_, 3);
  EXPECT_EQ(output.value(), 6);
  EXPECT_EQ(Info(kId).reinstantiations, 1u);
  EXPECT_EQ(Info(kId).updates, 0u);
  ASSERT_TRUE(RunOn(other, output, add_five).ok());
  EXPECT_EQ(calls_, 3) << "replayed";
  EXPECT_EQ(output.value(), 25);
}

TEST_F(GraphMoving, ARecaptureMayGainAndLoseBuffers) {
  const Floats input(1), output(9), other(20);
  void* const at[] = {input.get(), output.get()};
  const auto capture_plain = [&](uint64_t addend) {
    EXPECT_EQ(Begin(kId), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_OK(AddTo(stream_->get(), at[0], at[1], addend));
    EXPECT_TRUE(End().ok());
  };
  capture_plain(1);
  GCAP_EXPECT_FAILS(Bind(0, other.get()), GCAP_FAILED_PRECONDITION, "captured without buffers");
  GCAP_EXPECT_FAILS(ReplayAt({other.get(), other.get()}), GCAP_FAILED_PRECONDITION, "captured without buffers");
  ASSERT_TRUE(RunOn(other, output).ok()) << "eager";
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(output.value(), 21);

  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, kId));
  ASSERT_TRUE(RunOn(input, output).ok());
  ASSERT_TRUE(RunOn(other, output).ok());
  EXPECT_EQ(calls_, 4) << "eager, two rehearsals, capture, replay";
  EXPECT_EQ(output.value(), 21);

  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, kId));
  capture_plain(3);
  EXPECT_EQ(output.value(), 4) << "an update in place of an executable that was moved";
  EXPECT_EQ(Info(kId).updates, 1u);
  GCAP_EXPECT_FAILS(Bind(0, other.get()), GCAP_FAILED_PRECONDITION, "captured without buffers");
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(output.value(), 4);
}

TEST_F(GraphMoving, AGraphKeptForADumpMovesToo) {
  CreateWith([](auto* options) {
    options->keep_source = true;
    options->upload = true;
  });
  ExpectMoves(AddOne, 1);
  GCAP_EXPECT_OK(gcap_graph_manager_dump(manager_, kId, (::testing::TempDir() + "moving.dot").c_str(), 0));
}

// Bindings are the addresses at the capture, which a bind does not change.
TEST_F(GraphMoving, ASignatureIsThatOfTheCapture) {
  const Floats input(1), output(9), other(20);
  const int64_t shape[] = {kFloats};
  const gcap_graph_binding_t captured = {"input", input.get(), 1, shape}, moved = {"input", other.get(), 1, shape};
  void* at[2] = {};
  for (const gcap_graph_run_kind_t kind :
       {GCAP_GRAPH_RUN_REHEARSAL, GCAP_GRAPH_RUN_REHEARSAL, GCAP_GRAPH_RUN_CAPTURE}) {
    const std::vector<gcap_graph_buffer_t> items = Items(input, output);
    const gcap_graph_buffers_t buffers = BuffersOf(items);
    gcap_run_t run = RunOf(kId, stream_->get());
    run.buffers = &buffers;
    run.bindings = &captured;
    run.num_bindings = 1;
    gcap_graph_run_kind_t begun = GCAP_GRAPH_RUN_EAGER;
    GCAP_EXPECT_OK(gcap_graph_manager_begin_run(manager_, &run, &begun, at));
    EXPECT_EQ(begun, kind);
    GCAP_EXPECT_OK(AddOne(stream_->get(), at));
    EXPECT_TRUE(End().ok());
  }
  GCAP_EXPECT_OK(Bind(0, other.get()));
  GCAP_EXPECT_OK(ReplayBound(manager_, kId, &captured, 1, true));
  EXPECT_EQ(output.value(), 21);
  GCAP_EXPECT_FAILS(ReplayBound(manager_, kId, &moved, 1, true), GCAP_FAILED_PRECONDITION, "input");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
