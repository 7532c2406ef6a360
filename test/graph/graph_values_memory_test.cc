// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Values that the work reads on the device: one copy brings them before each launch, and no slot of the ring is written
// while a copy from it may be on its way. The value is a table of two pointers, so that each run leaves a mark of its
// own: the memory that its table names.

#include <algorithm>
#include <chrono>
#include <thread>

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
  static constexpr size_t kPlaces = 40;  // more than the ring has slots

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
      stream_->get(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }, nullptr));
  for (size_t i = 0; i < kPlaces; ++i) GCAP_EXPECT_OK(ReplayTo(i, GCAP_RUN_OWN_STREAM, /*synchronize=*/false));
  stream_->Synchronize();
  for (size_t i = 0; i < kPlaces; ++i) EXPECT_EQ(places_[i]->value(), 4) << i;
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
  EXPECT_TRUE(WhyNotMovable().Names("argument 2"));
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
  Outcome eager(nullptr), replayed(nullptr);
  std::thread([&] {  // of another thread: its own is not capturing
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
  GCAP_EXPECT_OK(ReplayTo(1));
  EXPECT_EQ(places_[1]->value(), 4);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
