// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Drawn graphs of up to 300 nodes, on one stream or three, with holes, on buffers that move, with a value and with
// scratch, with one fault each: the step that is found is the one where the fault was planted, by its number, also
// where it writes scratch alone, and so are node and fault. Sound ones have no report. The oracle for what the buffers
// have is the program on the host.
//
// GCAP_SIM_SEED is the first seed; GCAP_TEST_ROUNDS how many graphs have a fault, and twice as many and a half are
// sound.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/graph/own_scratch.h"
#include "test/graph/verify_test.h"
#include "test/support/environment.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr uint64_t kRounds = 63;  // what a gate has time for
constexpr int kBuffers = 6, kStreams = 3, kMostTries = 200;
// Behind the buffers come blocks of scratch, of which a part is never written.
constexpr int kAll = kBuffers + 3;
constexpr size_t kBlockBytes = kFloatsBytes + 512;
constexpr size_t kNone = SIZE_MAX;

enum class Plant { kStale, kFrozen, kDropped, kJoin, kOutside, kHole, kUninitialized, kNothing };
constexpr Plant kPlants[] = {Plant::kStale,   Plant::kFrozen, Plant::kDropped,      Plant::kJoin,
                             Plant::kOutside, Plant::kHole,   Plant::kUninitialized};
constexpr const char* kPlantNames[] = {"stale",   "frozen", "dropped",       "join",
                                       "outside", "hole",   "uninitialized", "nothing"};

enum class Op { kAdd, kAddValue, kCopy, kFill, kHole, kRenew };  // kRenew: y, of scratch, is another block now

struct Step {
  Op op;
  int x, y, stream;
  unsigned addend;
};

using Values = std::array<float, kAll>;

// What the program does, on the host.
void Play(const Step& step, uint64_t value, Values* values) {
  switch (step.op) {
    case Op::kAdd:
    case Op::kHole: (*values)[step.y] = (*values)[step.x] + static_cast<float>(step.addend); break;
    case Op::kAddValue: (*values)[step.y] = (*values)[step.x] + static_cast<float>(value); break;
    case Op::kCopy: (*values)[step.y] = (*values)[step.x]; break;
    case Op::kFill: (*values)[step.y] = 0; break;
    case Op::kRenew: break;
  }
}

struct Program {
  std::vector<Step> steps;
  std::vector<std::array<bool, kAll>> written;  // before each step: what was
  bool moves = false, has_branches = false, notes_events = false, has_scratch = false;
  Plant plant = Plant::kNothing;
  size_t at = kNone;       // the step with the fault
  size_t earlier = kNone;  // of a missing join: the step to wait for
  int other = 0;           // and its stream
};

// What each stream has waited for, of each stream: the number of the last step; -1: nothing.
class Order {
 public:
  Order() {
    for (auto& row : known_) row.fill(-1);
    for (auto& row : read_) row.fill(-1);
    for (auto& row : written_) row.fill(-1);
  }
  // The streams that the step has to wait for, and of each the last step in its way.
  std::array<int, kStreams> Hazards(const Step& step) const {
    std::array<int, kStreams> last;
    last.fill(-1);
    for (int t = 0; t < kStreams; ++t) {
      if (t == step.stream) continue;
      int most = written_[t][step.y];
      if (step.op != Op::kFill) most = std::max(most, written_[t][step.x]);
      most = std::max(most, read_[t][step.y]);
      if (most > known_[step.stream][t]) last[t] = most;
    }
    return last;
  }
  void Wait(int s, int t) {
    for (int u = 0; u < kStreams; ++u) known_[s][u] = std::max(known_[s][u], known_[t][u]);
    known_[s][t] = std::max(known_[s][t], issued_[t]);
  }
  void Issue(const Step& step, int number) {
    if (step.op != Op::kFill) read_[step.stream][step.x] = number;
    written_[step.stream][step.y] = number;
    issued_[step.stream] = number;
  }

 private:
  std::array<std::array<int, kStreams>, kStreams> known_;
  std::array<std::array<int, kAll>, kStreams> read_, written_;
  std::array<int, kStreams> issued_ = {-1, -1, -1};
};

class GraphBisectDrawn : public VerifyTest {
 protected:
  void SetUp() override {
    VerifyTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    verify_.bisect = true;
    for (int i = 1; i < kStreams; ++i) streams_.push_back(std::make_unique<RawStream>());
    outside_ = std::make_unique<RawStream>();
    scratch_ = std::make_unique<OwnScratch>(stream_->get());
  }
  void TearDown() override {
    for (cudaEvent_t event : events_) GCAP_EXPECT_CUDA(cudaEventDestroy(event));
    DestroyManager();
    scratch_.reset();
    streams_.clear();
    outside_.reset();
    VerifyTest::TearDown();
  }

  // --- Programs ---

  Step DrawStep(const Program& program, const std::array<bool, kAll>& written, std::mt19937_64* random) {
    const auto below = [&](uint64_t n) { return static_cast<int>((*random)() % n); };
    Step step = {};
    const int kind = below(20);
    const bool renews = program.has_scratch && !program.has_branches && below(8) == 0;
    step.op = kind < 12   ? Op::kAdd
              : kind < 14 ? Op::kAddValue
              : kind < 17 ? Op::kCopy
              : kind < 19 ? Op::kFill
                          : Op::kHole;
    if (step.op == Op::kAddValue && !program.moves) step.op = Op::kAdd;
    if (renews) step.op = Op::kRenew;
    const int count = program.has_scratch && step.op != Op::kHole ? kAll : kBuffers;
    do {
      step.x = below(count);
    } while (!written[step.x]);
    step.y = renews ? kBuffers + below(kAll - kBuffers) : (step.x + 1 + below(count - 1)) % count;
    step.stream = program.has_branches && step.op != Op::kHole ? below(kStreams) : 0;
    step.addend = static_cast<unsigned>(1 + below(200));
    return step;
  }
  // What the buffers have at the end, or before step `end`. `is_replay`: with the fault.
  Values Trace(const Program& program, bool is_replay, size_t end = kNone) const {
    Values values = first_;
    for (size_t i = 0; i < program.steps.size() && i < end; ++i) {
      const Step& step = program.steps[i];
      if (step.op == Op::kRenew) continue;
      const float before = values[step.y], addend = static_cast<float>(step.addend);
      Play(step, value_, &values);
      if (i != program.at) continue;
      if (program.plant == Plant::kStale) values[step.y] = (is_replay ? kOldValue : kFreshValue) + addend;
      if (program.plant == Plant::kUninitialized) values[step.y] = (is_replay ? kOfGraphValue : kOfWorkValue) + addend;
      if (program.plant == Plant::kFrozen && is_replay) values[step.y] += 1;
      const bool is_missing =
          program.plant == Plant::kDropped || program.plant == Plant::kOutside || program.plant == Plant::kHole;
      if (is_missing && is_replay) values[step.y] = before;
    }
    return values;
  }
  // Whether a buffer has something else at the end.
  bool Shows(const Program& program) const {
    const Values sound = Trace(program, false), wrong = Trace(program, true);
    return !std::equal(sound.begin(), sound.begin() + kBuffers, wrong.begin());
  }
  // Gives the step a hazard to forget; false: it has none.
  static bool FindJoin(Program* program) {
    Order order;
    std::vector<size_t> candidates;
    for (size_t i = 0; i < program->steps.size(); ++i) {
      const Step& step = program->steps[i];
      if (step.op == Op::kHole) {
        JoinAll(&order);
        continue;
      }
      if (step.op == Op::kRenew) continue;
      const auto hazards = order.Hazards(step);
      for (int t = 0; t < kStreams; ++t) {
        if (hazards[t] < 0) continue;
        if (i == program->at) {
          program->other = t;
          program->earlier = static_cast<size_t>(hazards[t]);
          return true;
        }
        order.Wait(step.stream, t);
      }
      order.Issue(step, static_cast<int>(i));
    }
    return false;
  }
  // What a step waits for, directly: the steps before it on its stream, and on those that its stream waits for.
  static std::vector<std::vector<size_t>> FindWaits(const Program& program) {
    Order order;
    std::array<size_t, kStreams> last;
    last.fill(kNone);
    std::vector<std::vector<size_t>> waits(program.steps.size());
    const auto wait = [&](size_t i, int t) {
      if (last[t] != kNone) waits[i].push_back(last[t]);
    };
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      if (step.op == Op::kRenew) continue;
      if (step.op == Op::kHole) {
        for (int t = 0; t < kStreams; ++t) wait(i, t);
        JoinAll(&order);
        last.fill(i);
        continue;
      }
      wait(i, step.stream);
      const auto hazards = order.Hazards(step);
      for (int t = 0; t < kStreams; ++t) {
        if (hazards[t] < 0 || (i == program.at && t == program.other)) continue;
        wait(i, t);
        order.Wait(step.stream, t);
      }
      order.Issue(step, static_cast<int>(i));
      last[step.stream] = i;
    }
    return waits;
  }
  // Whether a buffer has something else at the end if the step with the forgotten join runs as early as it may. What
  // scratch then has before it is written, an earlier replay may have left there, and so be right.
  bool ShowsEarly(const Program& program) const {
    const auto waits = FindWaits(program);
    std::vector<bool> is_first(program.steps.size(), false);
    std::vector<size_t> open = {program.at};
    while (!open.empty()) {
      const size_t i = open.back();
      open.pop_back();
      is_first[i] = true;
      for (const size_t before : waits[i]) {
        if (!is_first[before]) open.push_back(before);
      }
    }
    if (is_first[program.earlier]) return false;
    Values values = first_;
    std::array<bool, kAll> written = program.written[0];
    for (const bool turn : {true, false}) {
      for (size_t i = 0; i < program.steps.size(); ++i) {
        const Step& step = program.steps[i];
        if (is_first[i] != turn) continue;
        if (step.op != Op::kFill && !written[step.x]) return false;
        written[step.y] = true;
        Play(step, value_, &values);
      }
    }
    const Values sound = Trace(program, false);
    return !std::equal(sound.begin(), sound.begin() + kBuffers, values.begin());
  }
  static void JoinAll(Order* order) {
    for (int t = 1; t < kStreams; ++t) order->Wait(0, t);
    for (int t = 1; t < kStreams; ++t) order->Wait(t, 0);
  }

  // A program in which the fault shows right behind its step.
  bool DrawProgram(Plant plant, std::mt19937_64* random, Program* program) {
    *program = Program();
    program->plant = plant;
    program->has_branches = plant == Plant::kJoin || (*random)() % 2 == 0;
    program->moves = plant != Plant::kOutside && (*random)() % 2 == 0;
    program->notes_events = (*random)() % 2 == 0;
    const size_t count = 2 + (*random)() % ((*random)() % 4 == 0 ? 298 : 40);
    program->has_scratch = (*random)() % 2 == 0;
    std::array<bool, kAll> written = {};
    std::fill_n(written.begin(), kBuffers, true);
    for (size_t i = 0; i < count; ++i) {
      const Step step = DrawStep(*program, written, random);
      program->steps.push_back(step);
      program->written.push_back(written);
      written[step.y] = step.op != Op::kRenew;
    }
    value_ = (*random)() % 200;
    for (float& value : first_) value = static_cast<float>((*random)() % 1000);
    if (plant == Plant::kNothing) return true;
    for (int i = 0; i < 20; ++i) {
      Program drawn = *program;
      drawn.at = (*random)() % count;
      Step& step = drawn.steps[drawn.at];
      // What a block had before is known once it was written; a hole gets no scratch of the graph.
      if (step.op == Op::kRenew || !drawn.written[drawn.at][step.y]) continue;
      if (plant == Plant::kHole && std::max(step.x, step.y) >= kBuffers) continue;
      step.op = plant == Plant::kHole ? Op::kHole : Op::kAdd;
      if (plant == Plant::kHole) step.stream = 0;
      const Values before = Trace(drawn, false, drawn.at);
      while (before[step.x] + static_cast<float>(step.addend) == before[step.y]) ++step.addend;
      const bool shows = plant == Plant::kJoin ? FindJoin(&drawn) && ShowsEarly(drawn) : Shows(drawn);
      if (!shows) continue;
      *program = drawn;
      return true;
    }
    return false;
  }

  // --- The work ---

  cudaStream_t StreamOf(int s) const { return s == 0 ? stream_->get() : streams_[s - 1]->get(); }

  cudaEvent_t NextEvent() {
    if (num_events_ == events_.size()) {
      events_.push_back(nullptr);
      GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&events_.back(), cudaEventDisableTiming));
    }
    return events_[num_events_++];
  }
  // s waits for t.
  gcap_status_t Wait(int s, int t) {
    const cudaEvent_t event = NextEvent();
    if (program_.notes_events) {
      noted_ += 2;
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(event, StreamOf(t))));
      return GCAP_CUDA(cudaStreamWaitEvent(StreamOf(s), event, 0));
    }
    GCAP_EXPECT_CUDA(cudaEventRecord(event, StreamOf(t)));
    GCAP_EXPECT_CUDA(cudaStreamWaitEvent(StreamOf(s), event, 0));
    return nullptr;
  }
  gcap_status_t JoinStreams() {
    for (int t = 1; program_.has_branches && t < kStreams; ++t) GCAP_RETURN_IF_ERROR(Wait(0, t));
    return nullptr;
  }
  gcap_status_t ForkStreams() {
    for (int t = 1; program_.has_branches && t < kStreams; ++t) GCAP_RETURN_IF_ERROR(Wait(t, 0));
    return nullptr;
  }

  gcap_status_t IssueHole(size_t i, const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(JoinStreams());
    const Step& step = program_.steps[i];
    Hole& hole = holes_[i];
    const bool forgets = i == program_.at;
    hole.function = [this, step, forgets](const gcap_run_resources_t* at) -> gcap_status_t {
      void* const* places = at->addresses != nullptr ? at->addresses : places_.data();
      void* to = forgets && is_replay_ ? elsewhere_.get() : places[step.y];
      return AddTo(at->cuda_stream, places[step.x], to, step.addend);
    };
    if (i == program_.at) planted_step_ = noted_;
    ++noted_;
    GCAP_RETURN_IF_ERROR(hole.Issue(r));
    return ForkStreams();
  }

  gcap_status_t IssueStep(const Step& step, cudaStream_t stream, void* const* places, uint64_t value) {
    void *x = places[step.x], *y = places[step.y];
    ++noted_;
    switch (step.op) {
      case Op::kAdd: return AddTo(stream, x, y, step.addend);
      case Op::kAddValue: return AddTo(stream, x, y, value);
      case Op::kCopy: return GCAP_CUDA(cudaMemcpyAsync(y, x, kFloatsBytes, cudaMemcpyDeviceToDevice, stream));
      case Op::kFill: return GCAP_CUDA(cudaMemsetAsync(y, 0, kFloatsBytes, stream));
      case Op::kHole:
      case Op::kRenew: break;
    }
    return nullptr;
  }

  // Blocks are handed out before the branches begin, and go back when all were joined.
  gcap_status_t AllocBlocks() {
    for (int i = kBuffers; program_.has_scratch && i < kAll; ++i) {
      GCAP_RETURN_IF_ERROR(scratch_->Alloc(kBlockBytes, &all_[i]));
    }
    return nullptr;
  }
  gcap_status_t FreeBlocks() {
    for (int i = kBuffers; i < kAll; ++i) {
      if (all_[i] != nullptr) GCAP_RETURN_IF_ERROR(scratch_->Free(all_[i]));
      all_[i] = nullptr;
    }
    return nullptr;
  }
  gcap_status_t Renew(int i) {
    GCAP_RETURN_IF_ERROR(scratch_->Free(all_[i]));
    all_[i] = nullptr;
    return scratch_->Alloc(kBlockBytes + 256 * static_cast<size_t>(i % 2), &all_[i]);
  }

  // The step with the fault.
  gcap_status_t IssuePlanted(const Step& step, cudaStream_t stream, void* const* places) {
    const bool captures = gcap_thread_is_capturing();
    void *x = places[step.x], *y = places[step.y];
    planted_step_ = noted_;
    switch (program_.plant) {
      case Plant::kStale: ++noted_; return AddTo(stream, is_later_ ? fresh_.get() : old_.get(), y, step.addend);
      case Plant::kFrozen: ++noted_; return AddTo(stream, x, y, step.addend + (is_later_ ? 0 : 1));
      case Plant::kDropped:
        if (captures) return nullptr;
        break;
      case Plant::kOutside:
        ++noted_;
        if (!captures) {
          GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream));
        }
        GCAP_RETURN_IF_ERROR(AddTo(outside_->get(), x, y, step.addend));
        if (!captures) {
          GCAP_EXPECT_CUDA(cudaStreamSynchronize(outside_->get()));
        }
        return nullptr;
      case Plant::kUninitialized:
        ++noted_;
        return AddTo(stream, captures ? of_graph_.get() : of_work_.get(), y, step.addend);
      default: break;
    }
    return IssueStep(step, stream, places, 0);
  }

  gcap_status_t Issue(const gcap_run_resources_t* r) {
    void* const* named = r->addresses != nullptr ? r->addresses : places_.data();
    std::copy_n(named, kBuffers, all_.begin());
    GCAP_RETURN_IF_ERROR(AllocBlocks());
    GCAP_RETURN_IF_ERROR(IssueSteps(r, all_.data()));
    return FreeBlocks();
  }
  gcap_status_t IssueSteps(const gcap_run_resources_t* r, void* const* places) {
    uint64_t value = 0;
    if (r->num_values != 0) std::memcpy(&value, r->values[0], sizeof(value));
    num_events_ = 0;
    noted_ = 0;
    nodes_of_.assign(program_.steps.size(), kNone);
    size_t nodes = 0;
    Order order;
    GCAP_RETURN_IF_ERROR(ForkStreams());
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      if (step.op == Op::kHole) {
        GCAP_RETURN_IF_ERROR(IssueHole(i, r));
        JoinAll(&order);
        continue;
      }
      if (step.op == Op::kRenew) {
        GCAP_RETURN_IF_ERROR(Renew(step.y));
        continue;
      }
      const auto hazards = order.Hazards(step);
      for (int t = 0; t < kStreams; ++t) {
        if (hazards[t] < 0) continue;
        if (program_.plant == Plant::kJoin && i == program_.at && t == program_.other) {
          if (!gcap_thread_is_capturing()) {
            GCAP_EXPECT_CUDA(cudaStreamSynchronize(StreamOf(t)));
          }
          continue;  // who issues does not know that the two are in order now
        }
        GCAP_RETURN_IF_ERROR(Wait(step.stream, t));
        order.Wait(step.stream, t);
      }
      order.Issue(step, static_cast<int>(i));
      nodes_of_[i] = nodes++;
      const cudaStream_t stream = StreamOf(step.stream);
      GCAP_RETURN_IF_ERROR(i == program_.at ? IssuePlanted(step, stream, places)
                                            : IssueStep(step, stream, places, value));
    }
    return JoinStreams();
  }

  // --- Runs ---

  // Gives the buffers of a set the first values, and names them.
  void Place(int set) {
    named_.clear();
    items_.clear();
    places_.clear();
    static const char* const kNames[kBuffers] = {"a", "b", "c", "d", "e", "f"};
    for (int i = 0; i < kBuffers; ++i) {
      const Floats& floats = sets_[set][i];
      floats.Fill(first_[i]);
      places_.push_back(floats.get());
      named_.push_back(Named(kNames[i], floats));
      items_.push_back({kNames[i], floats.get(), kFloatsBytes, 0});
    }
  }
  Outcome RunProgram() {
    gcap_run_t run = VerifiedRun();
    gcap_graph_value_t value = {};
    gcap_graph_buffers_t buffers = UnusedBuffersOf(items_);
    const uint64_t low = 0, high = 199;
    value.name = "position";
    value.data = &value_;
    value.bytes = sizeof(value_);
    value.type = GCAP_GRAPH_VALUE_UNSIGNED;
    value.low = &low;
    value.high = &high;
    value.may_be_unused = true;
    buffers.stand_ins = GCAP_GRAPH_STAND_INS_MEMORY;
    buffers.values = &value;
    buffers.num_values = 1;
    if (program_.moves) run.buffers = &buffers;
    const WorkWith work = [this](const gcap_run_resources_t* r) {
      is_replay_ = false;
      const gcap_status_t status = Issue(r);
      is_replay_ = true;  // until the work is issued again, functions of holes are called by replays
      return status;
    };
    return RunHoled(run, work);
  }
  void ExpectBuffers(int set, const Values& expected, const std::string& what) {
    for (int i = 0; i < kBuffers; ++i) EXPECT_EQ(sets_[set][i].value(), expected[i]) << what << ", buffer " << i;
  }
  Values Expected() const { return Trace(program_, /*is_replay=*/false); }

  // Captures the program, and has it run with its fault.
  void BeginRound(const std::string& what) {
    is_later_ = is_replay_ = false;
    holes_.clear();
    holes_.resize(program_.steps.size());
    for (Hole& hole : holes_) hole.name = "hole";
    CreateManager();
    Place(0);
    const Outcome captured = RunProgram();
    ASSERT_TRUE(captured.ok()) << what << ": " << captured.message;
    ASSERT_EQ(result_.outcome, GCAP_RUN_CAPTURED) << what;
    outside_->Synchronize();  // or what the capture sent there writes to the buffers of the next run
    is_later_ = true;
    value_ = value_ == 0 ? 1 : value_ - 1;
    Place(program_.moves ? 1 : 0);
  }

  gcap_graph_fault_t FaultOf(Plant plant) const {
    switch (plant) {
      case Plant::kStale: return GCAP_GRAPH_FAULT_STALE_POINTER;
      case Plant::kFrozen: return GCAP_GRAPH_FAULT_FROZEN_VALUE;
      case Plant::kDropped: return GCAP_GRAPH_FAULT_DROPPED_CALL;
      case Plant::kJoin: return GCAP_GRAPH_FAULT_MISSING_JOIN;
      case Plant::kOutside: return GCAP_GRAPH_FAULT_OUTSIDE_OF_CAPTURE;
      case Plant::kHole: return GCAP_GRAPH_FAULT_HOLE;
      case Plant::kUninitialized: return GCAP_GRAPH_FAULT_UNINITIALIZED;
      case Plant::kNothing: break;
    }
    return GCAP_GRAPH_FAULT_UNKNOWN;
  }
  void ExpectReport(const std::string& what, const Outcome& run) {
    EXPECT_EQ(report_.step, planted_step_) << what << ": " << run.message;
    EXPECT_EQ(report_.fault, FaultOf(program_.plant)) << what << ": " << run.message;
    EXPECT_FALSE(report_.is_linear && program_.plant != Plant::kUninitialized) << what << ": " << run.message;
    const bool has_node =
        program_.plant != Plant::kDropped && program_.plant != Plant::kOutside && program_.plant != Plant::kHole;
    EXPECT_EQ(report_.node, has_node ? nodes_of_[program_.at] : SIZE_MAX) << what << ": " << run.message;
    const bool has_earlier = program_.plant == Plant::kJoin;
    EXPECT_EQ(report_.earlier, has_earlier ? nodes_of_[program_.earlier] : SIZE_MAX) << what << ": " << run.message;
    size_t most = 2;
    while ((size_t{1} << (most - 2)) < noted_) ++most;
    if (!report_.is_linear) {
      if (program_.plant == Plant::kJoin) most += 8;  // a race comes and goes
      // What has no cause in scratch alone is looked for again without scratch.
      if (program_.plant == Plant::kUninitialized && program_.has_scratch) most *= 2;
      EXPECT_LE(report_.replays, most) << what << ", of " << noted_;
    }
    EXPECT_TRUE(run.Names("graph id 3")) << run.message;
  }

  // False: the fault did not show, as a missing join need not at a replay.
  bool PlayRound(const std::string& what) {
    BeginRound(what);
    if (HasFatalFailure()) return false;
    bool has_shown = false;
    const Values expected = Expected();
    for (int i = 0; i < kMostTries && !has_shown; ++i) {
      Place(program_.moves ? 1 : 0);
      const Outcome run = RunProgram();
      has_shown = !run.ok();
      ExpectBuffers(program_.moves ? 1 : 0, expected, what);
      if (program_.plant != Plant::kJoin || has_shown) {
        EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << what << ": " << run.message;
        ExpectReport(what, run);
        EXPECT_EQ(State(kId), "COOLING") << what;
        break;
      }
    }
    DestroyManager();
    return has_shown;
  }

  static constexpr float kOldValue = 4000, kFreshValue = 5000, kOfGraphValue = 6000, kOfWorkValue = 7000;
  Program program_;
  Values first_ = {};
  uint64_t value_ = 0;
  std::array<Floats, kBuffers> sets_[2];
  const Floats old_{kOldValue}, fresh_{kFreshValue}, of_graph_{kOfGraphValue}, of_work_{kOfWorkValue}, elsewhere_;
  std::vector<std::unique_ptr<RawStream>> streams_;
  std::unique_ptr<RawStream> outside_;
  std::vector<cudaEvent_t> events_;
  size_t num_events_ = 0;
  std::vector<void*> places_;
  std::unique_ptr<OwnScratch> scratch_;
  std::array<void*, kAll> all_ = {};  // the buffers, and the blocks that the work has now
  std::vector<gcap_graph_buffer_t> items_;
  std::vector<Hole> holes_;
  bool is_later_ = false;   // behind the capture
  bool is_replay_ = false;  // who calls a hole
  // Of the last time that the work was issued.
  size_t noted_ = 0, planted_step_ = kNone;
  std::vector<size_t> nodes_of_;  // by step of the program
};

TEST_F(GraphBisectDrawn, ThePlantedStepIsFound) {
  const uint64_t first = NumberOr("GCAP_SIM_SEED", 1), rounds = NumberOr("GCAP_TEST_ROUNDS", kRounds);
  const LogCatcher log;
  // The simulator draws in which order branches run, so a race shows in time, but for a few; a GPU may never show one.
  const bool runs_as_it_likes = std::getenv("GCAP_REQUIRE_GPU") != nullptr;
  uint64_t num_hidden = 0;
  uint64_t num_shown = 0;
  for (uint64_t seed = first; num_shown < rounds; ++seed) {
    ASSERT_LT(seed, first + 20 * rounds + 100) << "too few faults show";
    std::mt19937_64 random(seed);
    const Plant plant = kPlants[seed % 7];
    if (!DrawProgram(plant, &random, &program_)) continue;
    const std::string what = std::string(kPlantNames[static_cast<int>(plant)]) + " at " + std::to_string(program_.at) +
                             " of " + std::to_string(program_.steps.size()) + (program_.moves ? ", moved" : "") +
                             (program_.has_branches ? ", branches" : "") + (program_.has_scratch ? ", scratch" : "") +
                             ", GCAP_SIM_SEED=" + std::to_string(seed) + " GCAP_TEST_ROUNDS=1";
    const bool has_shown = PlayRound(what);
    num_shown += has_shown;
    num_hidden += !has_shown;
    ASSERT_FALSE(HasFailure()) << what;
  }
  if (!runs_as_it_likes) {
    EXPECT_LE(num_hidden, rounds / 50) << "joins whose race did not show in " << kMostTries << " replays";
  }
}

TEST_F(GraphBisectDrawn, ASoundGraphHasNoReport) {
  const uint64_t first = NumberOr("GCAP_SIM_SEED", 1), rounds = NumberOr("GCAP_TEST_ROUNDS", kRounds) * 5 / 2;
  const LogCatcher log;
  for (uint64_t seed = first; seed < first + rounds; ++seed) {
    std::mt19937_64 random(seed);
    ASSERT_TRUE(DrawProgram(Plant::kNothing, &random, &program_));
    const std::string what = "sound, GCAP_SIM_SEED=" + std::to_string(seed) + " GCAP_TEST_ROUNDS=1";
    BeginRound(what);
    ASSERT_FALSE(HasFailure()) << what;
    for (int i = 0; i < 2; ++i) {
      Place(program_.moves ? 1 : 0);
      const Outcome run = RunProgram();
      ASSERT_TRUE(run.ok()) << what << ": " << run.message;
      ASSERT_EQ(result_.outcome, GCAP_RUN_REPLAYED) << what;
      ASSERT_TRUE(report_.is_verified) << what;
      EXPECT_EQ(report_.step, SIZE_MAX) << what;
      ExpectBuffers(program_.moves ? 1 : 0, Expected(), what);
    }
    DestroyManager();
    ASSERT_FALSE(HasFailure()) << what;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
