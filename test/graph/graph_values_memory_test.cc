// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Values that the work reads on the device: one copy brings them before each launch, and no slot of the ring is written
// while a copy from it may be on its way. The value is a table of two pointers, so that each run leaves a mark of its
// own: the memory that its table names.

#include <algorithm>
#include <chrono>
#include <thread>

#include "gcap/graph_plan.h"
#include "test/graph/values_rig.h"

namespace gcap {
namespace testing {
namespace {

struct Table {
  const float* from;
  float* to;
};

class GraphValuesMemory : public GraphValues {
 protected:
  static constexpr size_t kPlaces = 150;  // more than the ring has slots, twice

  void SetUp() override {
    GraphValues::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (size_t i = 0; i < kPlaces; ++i) places_.push_back(std::make_unique<Floats>(0.0f));
  }
  void TearDown() override {
    places_.clear();
    GraphValues::TearDown();
  }

  static gcap_graph_value_t InMemory(const char* name, const Table* table) {
    return {name, table, sizeof(*table), GCAP_GRAPH_VALUE_BYTES, nullptr, nullptr, false, true};
  }
  // to = from + 1, of the table.
  static gcap_status_t AddTable(const gcap_run_resources_t* r) {
    return LaunchKernel(r->cuda_stream, reinterpret_cast<const void*>(gcap_kernel_add_table), r->values[0], kFloats);
  }
  Table TableTo(size_t place) const { return {x_->get(), places_[place]->get()}; }
  Outcome RunTo(size_t place) {
    const Table table = TableTo(place);
    const std::vector<gcap_graph_value_t> values = {InMemory("table", &table)};
    return RunWith(With(values), AddTable);
  }
  gcap_status_t ReplayTo(size_t place, cudaStream_t stream = GCAP_RUN_OWN_STREAM, bool synchronize = true) {
    const Table table = TableTo(place);
    const std::vector<gcap_graph_value_t> values = {InMemory("table", &table)};
    const gcap_graph_buffers_t buffers = With(values);
    gcap_run_t run = ReplayOf(kId, synchronize);
    run.stream = stream;
    run.buffers = &buffers;
    return gcap_graph_manager_replay(manager_, &run, nullptr);
  }

  std::vector<std::unique_ptr<Floats>> places_;
};

TEST_F(GraphValuesMemory, EachRunHasItsOwnValues) {
  CreateWith([](gcap_graph_manager_options_t* options) { options->min_num_runs_before_capture = 2; });
  const gcap_run_outcome_t outcomes[] = {GCAP_RUN_EAGER, GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED};
  for (size_t i = 0; i < 8; ++i) {
    x_->Fill(static_cast<float>(10 * i));
    const Outcome outcome = RunTo(i);
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(result_.outcome, outcomes[std::min<size_t>(i, 3)]) << i;
    for (size_t k = 0; k < 8; ++k) EXPECT_EQ(places_[k]->value(), k <= i ? static_cast<float>(10 * k + 1) : 0) << i;
  }
  EXPECT_EQ(calls_, 3) << "nothing needs a rehearsal";
  EXPECT_EQ(Info(kId).captures, 1u);
}

TEST_F(GraphValuesMemory, ReplaysThatWaitInLineKeepTheirValues) {
  ASSERT_TRUE(RunTo(0).ok());
  // The stream is busy while all replays are issued, but for those that wait for a slot.
  GCAP_EXPECT_CUDA(cudaLaunchHostFunc(
      stream_->get(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }, nullptr));
  for (size_t i = 0; i < kPlaces; ++i) GCAP_EXPECT_OK(ReplayTo(i, GCAP_RUN_OWN_STREAM, /*synchronize=*/false));
  stream_->Synchronize();
  for (size_t i = 0; i < kPlaces; ++i) EXPECT_EQ(places_[i]->value(), 4) << i;
}

// Work that copies each value to a place of its own, by which the bytes are told.
class GraphValuesOfSizes : public GraphValues {
 protected:
  // Of a run: value `i` has bytes[i] bytes, all of them other ones than in the run before.
  struct Sized {
    std::vector<std::vector<unsigned char>> data;
    std::vector<gcap_graph_value_t> values;
    Sized(const std::vector<size_t>& bytes, size_t run) : data(bytes.size()) {
      for (size_t i = 0; i < bytes.size(); ++i) {
        for (size_t k = 0; k < bytes[i]; ++k) data[i].push_back(static_cast<unsigned char>(1 + 7 * run + 31 * i + k));
        values.push_back({"sized", data[i].data(), bytes[i], GCAP_GRAPH_VALUE_BYTES, nullptr, nullptr, false, true});
      }
    }
  };
  void SetUp() override {
    GraphValues::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&copies_), kMost));
    GCAP_EXPECT_CUDA(cudaMemset(copies_, 0, kMost));
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
  }
  void TearDown() override {
    if (copies_ != nullptr) {
      GCAP_EXPECT_CUDA(cudaFree(copies_));
    }
    GraphValues::TearDown();
  }
  WorkWith CopyAll(const std::vector<size_t>& bytes) const {
    return [this, bytes](const gcap_run_resources_t* r) {
      for (size_t i = 0; i < bytes.size(); ++i) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(r->values[i]) % 16, 0u);
        void* to = copies_ + i * kMostOfOne;
        GCAP_RETURN_IF_ERROR(
            GCAP_CUDA(cudaMemcpyAsync(to, r->values[i], bytes[i], cudaMemcpyDeviceToDevice, r->cuda_stream)));
      }
      return gcap_status_t{nullptr};
    };
  }
  // What the last run found.
  void ExpectCopies(const Sized& sized) const {
    std::vector<unsigned char> found(kMost);
    GCAP_EXPECT_CUDA(cudaMemcpy(found.data(), copies_, kMost, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < sized.data.size(); ++i) {
      EXPECT_EQ(std::memcmp(found.data() + i * kMostOfOne, sized.data[i].data(), sized.data[i].size()), 0) << i;
    }
  }

  static constexpr size_t kMostOfOne = GCAP_GRAPH_VALUE_IN_MEMORY_MAX_BYTES, kMost = 16 * kMostOfOne;
  unsigned char* copies_ = nullptr;
};

TEST_F(GraphValuesOfSizes, EachIsWholeAndAlignedAsAnyType) {
  const std::vector<size_t> bytes = {1, kMostOfOne, 17, 32, 33, 5};
  CreateWith([](gcap_graph_manager_options_t* options) { options->min_num_runs_before_capture = 1; });
  for (size_t run = 0; run < 6; ++run) {
    const Sized sized(bytes, run);
    const Outcome outcome = RunWith(With(sized.values), CopyAll(bytes));
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    ExpectCopies(sized);
  }
  EXPECT_EQ(Info(kId).captures, 1u);
}

// The ring of such a block has fewer slots.
TEST_F(GraphValuesOfSizes, LargeOnesWaitInLineToo) {
  const std::vector<size_t> bytes(16, kMostOfOne);
  ASSERT_TRUE(RunWith(With(Sized(bytes, 0).values), CopyAll(bytes)).ok());
  GCAP_EXPECT_CUDA(cudaLaunchHostFunc(
      stream_->get(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }, nullptr));
  // Behind each replay what it copied is kept.
  constexpr size_t kReplays = 30;
  unsigned char* kept = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&kept), kReplays * kMost));
  for (size_t run = 1; run <= kReplays; ++run) {
    const Sized sized(bytes, run);
    const gcap_graph_buffers_t buffers = With(sized.values);
    gcap_run_t replay = ReplayOf(kId, /*synchronize=*/false);
    replay.buffers = &buffers;
    GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &replay, nullptr));
    GCAP_EXPECT_CUDA(
        cudaMemcpyAsync(kept + (run - 1) * kMost, copies_, kMost, cudaMemcpyDeviceToDevice, stream_->get()));
  }
  stream_->Synchronize();
  for (size_t run = 1; run <= kReplays; ++run) {
    GCAP_EXPECT_CUDA(cudaMemcpy(copies_, kept + (run - 1) * kMost, kMost, cudaMemcpyDeviceToDevice));
    ExpectCopies(Sized(bytes, run));
  }
  GCAP_EXPECT_CUDA(cudaFree(kept));
}

TEST_F(GraphValuesOfSizes, TheirMemoryCountsForTheBudget) {
  const auto bytes_with = [&](const std::vector<size_t>& bytes) {
    EXPECT_TRUE(RunWith(With(Sized(bytes, 0).values), CopyAll({bytes[0]})).ok());
    const size_t found = Info(kId).bytes;
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
    return found;
  };
  // As many nodes, so executables of as many bytes.
  EXPECT_EQ(bytes_with({64, kMostOfOne, kMostOfOne}) - bytes_with({64}), 2 * kMostOfOne);
  CreateWith([](gcap_graph_manager_options_t* options) { options->max_bytes = size_t{3} * kMostOfOne; });
  const std::vector<size_t> large = {kMostOfOne, kMostOfOne, kMostOfOne};
  for (const int id : {kId, kId + 1}) {
    EXPECT_TRUE(RunWith(With(Sized(large, 0).values), CopyAll({kMostOfOne}), id).ok());
  }
  EXPECT_EQ(State(kId), "READY") << "evicted";
}

TEST_F(GraphValuesOfSizes, APlanCountsWhatTheirGraphHolds) {
  const std::vector<size_t> bytes = {17, 5};
  const Sized sized(bytes, 0);
  const gcap_graph_buffers_t buffers = With(sized.values);
  WorkWith work = CopyAll(bytes);
  gcap_run_t run = RunOf(kId, stream_->get(), /*synchronize=*/true);
  run.work = IssueWith;
  run.user = &work;
  run.buffers = &buffers;
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_ASSERT_OK(gcap_graph_manager_plan(manager_, &run, 1, &plan));
  EXPECT_EQ(plan.retained_bytes, 32u + 16u);
  ASSERT_TRUE(RunWith(buffers, work).ok());
  EXPECT_EQ(plan.bytes, Info(kId).bytes);
  const Sized bad({4097}, 0);
  const gcap_graph_buffers_t refused = With(bad.values);
  run.id = kId + 1;
  run.buffers = &refused;
  GCAP_EXPECT_FAILS(gcap_graph_manager_plan(manager_, &run, 1, &plan), GCAP_INVALID_ARGUMENT, "has 4097 bytes");
}

TEST_F(GraphValuesOfSizes, AnotherSizeIsNamed) {
  ASSERT_TRUE(RunWith(With(Sized({48}, 0).values), CopyAll({48})).ok());
  GCAP_EXPECT_FAILS(ReplayWith(With(Sized({64}, 1).values)), GCAP_INVALID_ARGUMENT,
                    "graph id 3: value 0 'sized' has 64 bytes in memory, and had 48 when captured");
}

// What was rehearsed on a device does not count for a capture on another one, nor does the memory of the values there.
TEST_F(GraphValuesMemory, ACaptureOnAnotherDeviceThanItsFirstRehearsalHasItsOwnMemory) {
  int devices = 0, can_access = 0;
  GCAP_EXPECT_CUDA(cudaGetDeviceCount(&devices));
  if (devices < 2) GTEST_SKIP() << "needs two devices, this machine has " << devices;
  GCAP_EXPECT_CUDA(cudaDeviceCanAccessPeer(&can_access, 1, 0));
  if (can_access == 0) GTEST_SKIP() << "device 1 has no access to the memory of device 0, where the buffers are";
  GCAP_EXPECT_CUDA(cudaSetDevice(1));
  const RawStream other;
  GCAP_EXPECT_CUDA(cudaDeviceEnablePeerAccess(0, 0));
  GCAP_EXPECT_CUDA(cudaSetDevice(0));
  int device_id = 0;
  const WorkWith work = [&](const gcap_run_resources_t* r) {
    cudaPointerAttributes memory = {};
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaPointerGetAttributes(&memory, r->values[0])));
    EXPECT_EQ(memory.device, device_id);
    GCAP_RETURN_IF_ERROR(AddTable(r));
    return AddTo(r->cuda_stream, x_->get(), y_->get(), Read<uint64_t>(r, 1));
  };
  const auto run_on = [&](cudaStream_t stream) {
    const Table table = TableTo(0);
    const Number<uint64_t> addend = {5, 0, 99};
    const std::vector<gcap_graph_value_t> values = {InMemory("table", &table), addend.As("addend")};
    const gcap_graph_buffers_t buffers = With(values);
    gcap_run_t run = RunOf(kId, stream, /*synchronize=*/true);
    run.work = IssueWith;
    run.user = const_cast<WorkWith*>(&work);
    run.buffers = &buffers;
    if (stream != stream_->get()) return gcap_graph_manager_run(manager_, &run);
    void* addresses[2];
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_begin_run(manager_, &run, &kind, addresses));
    EXPECT_EQ(kind, GCAP_GRAPH_RUN_REHEARSAL);
    gcap_run_resources_t resources = {};
    resources.cuda_stream = stream;
    resources.values = addresses;
    resources.num_values = 2;
    return gcap_graph_manager_end_run(manager_, &run, work(&resources));
  };
  GCAP_EXPECT_OK(run_on(stream_->get()));
  device_id = 1;
  GCAP_EXPECT_OK(run_on(other.get()));
  EXPECT_EQ(Info(kId).captures, 1u);
  EXPECT_TRUE(WhyNotMovable().ok()) << WhyNotMovable().message;
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  GCAP_EXPECT_CUDA(cudaSetDevice(1));
  GCAP_EXPECT_CUDA(cudaDeviceDisablePeerAccess(0));
  GCAP_EXPECT_CUDA(cudaSetDevice(0));
}

TEST_F(GraphValuesMemory, AReplayElsewhereHasItsValuesToo) {
  ASSERT_TRUE(RunTo(0).ok());
  const RawStream other;
  for (size_t i = 1; i < 9; ++i) {
    const bool is_elsewhere = i % 2 != 0;
    GCAP_EXPECT_OK(ReplayTo(i, is_elsewhere ? other.get() : GCAP_RUN_OWN_STREAM, /*synchronize=*/false));
  }
  stream_->Synchronize();
  other.Synchronize();
  for (size_t i = 1; i < 9; ++i) EXPECT_EQ(places_[i]->value(), 4) << i;
}

TEST_F(GraphValuesMemory, AReplayWithoutBuffersHasTheValuesOfTheLastOne) {
  ASSERT_TRUE(RunTo(0).ok());
  GCAP_EXPECT_OK(ReplayTo(5));
  x_->Fill(7);
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(places_[5]->value(), 8);
  EXPECT_EQ(places_[0]->value(), 4);
}

TEST_F(GraphValuesMemory, ValuesOfBothKindsAndBuffersAreSetTogether) {
  const WorkWith work = [](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(AddTable(r));
    return AddTo(r->cuda_stream, r->addresses[0], r->addresses[1], Read<uint64_t>(r, 1));
  };
  for (size_t i = 0; i < 8; ++i) {
    const Table table = TableTo(i);
    const Number<uint64_t> addend = {i * 3, 0, 99};
    const std::vector<gcap_graph_value_t> values = {InMemory("table", &table), addend.As("addend")};
    const std::vector<gcap_graph_buffer_t> items = Items(*x_, *places_[10 + i]);
    const Outcome outcome = RunWith(With(values, items), work);
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(places_[i]->value(), 4);
    EXPECT_EQ(places_[10 + i]->value(), 3 + static_cast<float>(addend.now));
  }
  EXPECT_EQ(calls_, 4) << "three rehearsals and the capture";
  EXPECT_TRUE(WhyNotMovable().ok());
}

// The copy needs no proof.
TEST_F(GraphValuesMemory, AGraphThatIsFixedOtherwiseTakesThem) {
  const WorkWith work = [this](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(AddTable(r));
    return AddTo(r->cuda_stream, x_->get(), y_->get(), Read<uint64_t>(r, 1) + 1);
  };
  const Number<uint64_t> addend = {5, 0, 99};
  for (size_t i = 0; i < 4; ++i) {
    const Table table = TableTo(i);
    const std::vector<gcap_graph_value_t> values = {InMemory("table", &table), addend.As("addend")};
    ASSERT_TRUE(RunWith(With(values), work).ok());
    EXPECT_EQ(places_[i]->value(), 4);
    EXPECT_EQ(result_.outcome, i == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
  }
  const Outcome why = WhyNotMovable();
  EXPECT_TRUE(why.Names("argument 2")) << why.message;
  EXPECT_TRUE(why.Names("('addend' is 5, and ")) << "only what differs: " << why.message;
}

TEST_F(GraphValuesMemory, ACheckOfMovesKeepsThem) {
  const WorkWith work = [](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(AddTable(r));
    return AddTo(r->cuda_stream, r->addresses[0], r->addresses[1], 1);
  };
  const std::vector<gcap_graph_buffer_t> items = Items(*x_, *y_);
  for (size_t i = 0; i < 2; ++i) {
    const Table table = {places_[20]->get(), places_[i]->get()};
    const std::vector<gcap_graph_value_t> values = {InMemory("table", &table)};
    ASSERT_TRUE(RunWith(With(values, items), work).ok());
  }
  GCAP_EXPECT_OK(gcap_graph_manager_check_moves(manager_, kId));
  places_[0]->Fill(-1);
  places_[1]->Fill(-1);
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(places_[0]->value(), -1);
  EXPECT_EQ(places_[1]->value(), 1);
}

TEST_F(GraphValuesMemory, AValueThatWasNotInMemoryIsNamed) {
  ASSERT_TRUE(RunTo(0).ok());
  const Table table = TableTo(1), other = TableTo(2);
  std::vector<gcap_graph_value_t> values = {InMemory("table", &table)};
  values[0].in_memory = false;
  values[0].low = values[0].high = &other;
  GCAP_EXPECT_FAILS(ReplayWith(With(values)), GCAP_INVALID_ARGUMENT,
                    "graph id 3: value 0 'table' is not in memory, and was when captured");
}

// The memory of an eager run goes in the order of its stream. Of a stream that the work left capturing it cannot go.
TEST_F(GraphValuesMemory, AnEagerRunThatLeavesItsStreamCapturingSaysWhatIsKept) {
  const Table table = TableTo(1);
  const std::vector<gcap_graph_value_t> values = {InMemory("table", &table)};
  const void* kept = nullptr;
  bool fails = false;
  const WorkWith work = [&](const gcap_run_resources_t* r) {
    kept = r->values[0];
    GCAP_RETURN_IF_ERROR(AddTable(r));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamBeginCapture(r->cuda_stream, cudaStreamCaptureModeRelaxed)));
    return fails ? GCAP_STATUS(GCAP_UNAVAILABLE, "as told") : gcap_status_t(nullptr);
  };
  for (const bool work_fails : {false, true}) {
    fails = work_fails;
    gcap_graph_buffers_t buffers = With(values);
    WorkWith issued = work;
    gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, stream_->get());
    run.work = IssueWith;
    run.user = &issued;
    run.buffers = &buffers;
    const Outcome outcome(gcap_graph_manager_run(manager_, &run));
    EXPECT_STREQ(gcap_code_name(outcome.code), work_fails ? "UNAVAILABLE" : "LEAKED");
    EXPECT_TRUE(outcome.Names("is capturing at the end of a run: the memory of the run's values is kept"))
        << outcome.message;
    cudaGraph_t graph = nullptr;
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_->get(), &graph));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    stream_->Synchronize();
    EXPECT_EQ(places_[1]->value(), 4);
    GCAP_EXPECT_CUDA(cudaFree(const_cast<void*>(kept)));
  }
}

// A copy that is recorded would read its slot again in each launch of the recorded graph.
TEST_F(GraphValuesMemory, AStreamThatCapturesIsRefused) {
  ASSERT_TRUE(RunTo(0).ok());
  const Table table = TableTo(1);
  const std::vector<gcap_graph_value_t> values = {InMemory("table", &table)};
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeRelaxed));
  Outcome eager(nullptr), replayed(nullptr), captured(nullptr);
  std::thread([&] {  // of another thread: its own is not capturing
    captured = RunWith(With(values), AddTable, kId + 1);
    eager = RunWith(With(values), AddTable, GCAP_GRAPH_ID_NONE);
    replayed = Outcome(ReplayWith(With(values)));
  })
      .join();
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_->get(), &graph));
  size_t count = 77;
  GCAP_EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(count, 0u);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_STREQ(gcap_code_name(eager.code), "FAILED_PRECONDITION") << eager.message;
  EXPECT_STREQ(gcap_code_name(replayed.code), "FAILED_PRECONDITION") << replayed.message;
  EXPECT_STREQ(gcap_code_name(captured.code), "FAILED_PRECONDITION") << captured.message;
  GCAP_EXPECT_OK(ReplayTo(1));
  EXPECT_EQ(places_[1]->value(), 4);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
