// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Drawn programs under keys. The arguments, grids and branches of their kernels follow decisions of the host, which are
// drawn before each run: some are stated as guards, some are values of the run, as arguments or in memory, and one is
// not stated at all. The buffers of a run are drawn as well. The oracle is the program on the host, with the decisions
// and values of now.
//
// What is not stated is what it was when the graph was captured, and that alone: the caller's affair. Where it changes
// from one capture of a run to the next, the graph is not adjusted.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <set>

#include "test/graph/guarded_test.h"
#include "test/graph/values_rig.h"
#include "test/support/environment.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kMost = 5000, kBucket = 4, kLengths = 16;
constexpr size_t kPlaces = 5, kPrograms = 3;
constexpr unsigned long kRunsOfAWorld = 25;

// What a program follows.
enum Source { kConstant = 0, kLength, kTable, kFlags, kAnswer, kUnstated, kPosition, kOffset, kComputed, kSources };

// All that a program depends on.
struct Seen {
  uint64_t of[kSources];
  uint32_t count;
};

struct Launch {
  bool is_of_table;  // by the table in memory, not on the buffers
  uint64_t addend;
  unsigned grid;
  uint32_t count;

  bool operator==(const Launch& other) const {
    return is_of_table == other.is_of_table && addend == other.addend && grid == other.grid && count == other.count;
  }
};

struct Step {
  Source term, branch, grid;
  unsigned constant;
  bool counts, is_of_table;
};

struct Program {
  std::vector<Step> steps;
  bool is_plain;                // each argument is a value, or no value decides anything
  bool drifts;                  // what is not stated is another one each time that the work is issued
  std::set<uint64_t> captured;  // what was not stated, in captures

  bool Follows(Source source) const {
    return std::any_of(steps.begin(), steps.end(), [source](const Step& step) {
      return step.term == source || step.branch == source || step.grid == source;
    });
  }
  std::vector<Launch> Launches(Seen seen) const {
    std::vector<Launch> launches;
    for (const Step& step : steps) {
      seen.of[kConstant] = step.constant;
      if (Skips(step, seen)) continue;
      const uint64_t addend = step.is_of_table ? 1 : seen.of[step.term];
      launches.push_back({step.is_of_table, addend, GridOf(step, seen), step.counts ? seen.count : kFloats});
    }
    return launches;
  }

 private:
  // Of a value: whether it is odd, or above a number, as a capture with other values sees.
  static bool Skips(const Step& step, const Seen& seen) {
    if (step.branch == kConstant) return false;
    if (step.branch <= kPosition) return seen.of[step.branch] % 2 == 1;
    return seen.of[step.branch] > step.constant * uint64_t{20};
  }
  static unsigned GridOf(const Step& step, const Seen& seen) {
    if (step.grid == kConstant) return 1;
    return 1 + static_cast<unsigned>(step.grid < kPosition ? seen.of[step.grid] % 3 : seen.of[step.grid] / 1000);
  }
};

Program DrawProgram(std::mt19937* random) {
  const auto draw = [random](unsigned end) { return static_cast<unsigned>((*random)() % end); };
  Program program;
  program.is_plain = draw(2) == 0;
  // What a plain program follows: all but the values, or but what is not stated, too.
  // Others decide by one value, not by what is computed of two: whether both are large is more than captures see.
  const Source end = !program.is_plain ? kComputed : draw(2) == 0 ? kPosition : kUnstated;
  program.drifts = end != kUnstated && draw(2) == 0;
  const auto draw_decision = [&] { return draw(4) != 0 ? kConstant : static_cast<Source>(draw(end)); };
  for (unsigned i = 1 + draw(4); i > 0; --i) {
    Source term = static_cast<Source>(draw(program.is_plain ? kComputed : kSources));
    if (term == kUnstated && end == kUnstated) term = kConstant;
    const Source branch = draw_decision(), grid = draw_decision();
    program.steps.push_back({term, branch, grid, draw(120), draw(3) == 0, draw(4) == 0});
  }
  return program;
}

// The values of a run. The table comes by memory.
struct Values {
  Number<int32_t> position;
  Number<uint64_t> offset;
  Number<uint32_t> count;
  size_t from, to;
  float* table[2];
};

class GraphStepsDrawn : public GraphValues {
 protected:
  // Of all programs. Graphs have guards that look at these.
  struct Decisions {
    int32_t length = 0;
    const void* table = nullptr;
    char flags[3] = {};
    Asked asked;
    uint64_t unstated = 0;
  };

  unsigned Draw(unsigned end) { return static_cast<unsigned>(random_() % end); }

  void ChangeDecision() {
    switch (Draw(6)) {
      case 0: now_.length = static_cast<int32_t>(Draw(kLengths)); break;
      case 1: now_.table = Draw(3) == 0 ? nullptr : &tables_[Draw(2)]; break;
      case 2: now_.flags[Draw(sizeof(now_.flags))] ^= 1; break;
      case 3: now_.asked.answer = static_cast<int64_t>(Draw(3)); break;
      case 4: now_.unstated = Draw(3); break;
      default: break;
    }
  }
  // Of the decisions; the values are those of the caller.
  Seen See(int32_t position, uint64_t offset, uint32_t count) const {
    const uint64_t place = now_.table == nullptr ? 2 : now_.table == &tables_[1] ? 1 : 0;
    const int flags = now_.flags[0] + 2 * now_.flags[1] + 4 * now_.flags[2];
    const uint64_t wide = static_cast<uint64_t>(position);
    return {{0, static_cast<uint64_t>(now_.length / kBucket), place, static_cast<uint64_t>(flags),
             static_cast<uint64_t>(now_.asked.answer), now_.unstated, wide, offset, std::min(wide, offset) / 2},
            count};
  }

  static gcap_status_t State(const char* name, gcap_graph_guard_kind_t kind, const void* at, size_t bytes) {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.name = name;
    guard.kind = kind;
    guard.address = at;
    guard.bytes = bytes;
    return GCAP_GRAPH_GUARD(&guard);
  }
  gcap_status_t StateLength() const {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.name = "length";
    guard.address = &now_.length;
    guard.bytes = sizeof(now_.length);
    guard.low = now_.length / kBucket * kBucket;
    guard.high = guard.low + kBucket - 1;
    return GCAP_GRAPH_GUARD(&guard);
  }
  gcap_status_t StateAnswer() {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.name = "answer";
    guard.kind = GCAP_GRAPH_GUARD_ANSWER;
    guard.ask = Asked::Ask;
    guard.user = &now_.asked;
    return GCAP_GRAPH_GUARD(&guard);
  }
  gcap_status_t StateAll(const Program& program) {
    if (program.Follows(kLength)) GCAP_RETURN_IF_ERROR(StateLength());
    if (program.Follows(kTable)) GCAP_RETURN_IF_ERROR(State("table", GCAP_GRAPH_GUARD_POINTER, &now_.table, 0));
    if (program.Follows(kFlags)) {
      GCAP_RETURN_IF_ERROR(State("flags", GCAP_GRAPH_GUARD_BYTES, now_.flags, sizeof(now_.flags)));
    }
    return program.Follows(kAnswer) ? StateAnswer() : nullptr;
  }

  gcap_status_t Issue(Program* program, const gcap_run_resources_t* r) {
    ++issues_;
    if (program->drifts) now_.unstated = (now_.unstated + 1) % 3;
    GCAP_RETURN_IF_ERROR(StateAll(*program));
    issued_ = See(Read<int32_t>(r, 0), Read<uint64_t>(r, 1), Read<uint32_t>(r, 2));
    const void* from = r->addresses[0];
    for (const Launch& launch : program->Launches(issued_)) {
      const void *to = r->addresses[1], *table = r->values[3];
      uint64_t addend = launch.addend;
      uint32_t count = launch.count;
      void* of_table[] = {&table, &count};
      void* of_buffers[] = {&from, &to, &addend, &count};
      const void* kernel = launch.is_of_table ? reinterpret_cast<const void*>(gcap_kernel_add_table)
                                              : reinterpret_cast<const void*>(gcap_kernel_add_scalar);
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaLaunchKernel(kernel, dim3(launch.grid), dim3(32),
                                                      launch.is_of_table ? of_table : of_buffers, 0, r->cuda_stream)));
      if (!launch.is_of_table) from = to;
    }
    return nullptr;
  }
  // The same on the host.
  using Contents = std::vector<std::vector<float>>;
  static void Apply(const std::vector<Launch>& launches, size_t in, size_t out, const Values& values, Contents* all) {
    size_t from = in;
    for (const Launch& launch : launches) {
      const std::vector<float>& x = (*all)[launch.is_of_table ? values.from : from];
      std::vector<float>& y = (*all)[launch.is_of_table ? values.to : out];
      const float addend = static_cast<float>(launch.addend & 0xff);
      for (uint32_t i = 0; i < launch.count; ++i) y[i] = x[i] + addend;
      if (!launch.is_of_table) from = out;
    }
  }
  Contents ReadAll() const {
    Contents all;
    for (const auto& place : places_) all.push_back(place->Read());
    return all;
  }

  Values DrawValues() {
    Values values = {{static_cast<int32_t>(Draw(kMost + 1)), 0, kMost},
                     {Draw(kMost + 1), 0, kMost},
                     {1 + Draw(kFloats), 1, kFloats},
                     Draw(kPlaces),
                     Draw(kPlaces),
                     {}};
    values.table[0] = places_[values.from]->get();
    values.table[1] = places_[values.to]->get();
    return values;
  }

  // What a run left: that of its own step, in which only what is not stated may be as it was in a capture.
  void ExpectRight(Program* program, size_t in, size_t out, const Values& values) {
    const Contents seen = ReadAll();
    Seen own = See(values.position.now, values.offset.now, values.count.now);
    if (result_.outcome != GCAP_RUN_REPLAYED) own.of[kUnstated] = issued_.of[kUnstated];
    Contents wanted = contents_;
    if (result_.was_issued) Apply(program->Launches(own), in, out, values, &wanted);
    if (seen != wanted && result_.outcome == GCAP_RUN_REPLAYED && program->Follows(kUnstated)) {
      for (const uint64_t captured : program->captured) {
        if (seen == wanted) break;
        own.of[kUnstated] = captured;
        wanted = contents_;
        Apply(program->Launches(own), in, out, values, &wanted);
      }
      ++others_unstated_;
    }
    ASSERT_EQ(seen, wanted);
    contents_ = seen;
  }

  // What is not stated and changes from one capture of a run to the next is found.
  void ExpectFound(const Program& program, int id) {
    Seen other = issued_;
    other.of[kUnstated] = (other.of[kUnstated] + 1) % 3;
    const bool differs = !(program.Launches(other) == program.Launches(issued_));
    if (!program.drifts || !program.is_plain || !differs) return;
    ++found_;
    EXPECT_FALSE(WhyNotMovable(id).ok()) << "what is not stated changed, and the graph is adjusted";
  }

  void RunOne(size_t which, bool is_replay) {
    Program* program = &programs_[which];
    const Values values = DrawValues();
    const std::vector<gcap_graph_value_t> list = {
        Unused(values.position.As("position")),
        Unused(values.offset.As("offset")),
        Unused(values.count.As("count")),
        {"table", values.table, sizeof(values.table), GCAP_GRAPH_VALUE_BYTES, nullptr, nullptr, true, true}};
    const size_t in = Draw(kPlaces), out = may_share_ ? Draw(kPlaces) : (in + 1 + Draw(kPlaces - 1)) % kPlaces;
    const std::vector<gcap_graph_buffer_t> items = Items(*places_[in], *places_[out]);
    gcap_graph_buffers_t buffers = With(list, items);
    const bool unused[] = {true, true};
    buffers.may_be_unused = unused;
    WorkWith work = [&](const gcap_run_resources_t* r) { return Issue(program, r); };
    const int64_t name[] = {static_cast<int64_t>(which), 4711};
    const gcap_graph_key_t key = {name, sizeof(name), "a program"};
    gcap_run_result_init(&result_);
    gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, stream_->get(), /*synchronize=*/true);
    run.key = &key;
    run.work = IssueWith;
    run.user = &work;
    run.buffers = &buffers;
    run.result = &result_;
    run.capture_only = !is_replay && Draw(12) == 0;
    run.pinned = Draw(12) == 0;
    issues_ = 0;
    bool replayed = false;
    const Outcome outcome(is_replay ? gcap_graph_manager_replay(manager_, &run, &replayed)
                                    : gcap_graph_manager_run(manager_, &run));
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    const bool is_new = result_.outcome == GCAP_RUN_CAPTURED || (result_.outcome == GCAP_RUN_RECORDED && issues_ > 0);
    if (is_new) program->captured.insert(issued_.of[kUnstated]);
    Count(*program);
    ExpectRight(program, in, out, values);
    if (result_.outcome == GCAP_RUN_CAPTURED) ExpectFound(*program, result_.id);
  }
  static gcap_graph_value_t Unused(gcap_graph_value_t value) {
    value.may_be_unused = true;
    return value;
  }

  void Count(const Program& program) {
    ++steps_;
    replays_ += result_.outcome == GCAP_RUN_REPLAYED;
    captures_ += result_.outcome == GCAP_RUN_CAPTURED;
    const bool may_be_adjusted = program.is_plain && !may_share_ && !(program.drifts && program.Follows(kUnstated));
    plain_eager_ += may_be_adjusted && result_.outcome == GCAP_RUN_EAGER;
  }
  // Programs that are drawn, under keys of a manager that is drawn, and runs of them.
  void Play(unsigned long seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(static_cast<uint32_t>(seed));
    const bool is_limited = Draw(2) == 0;
    CreateWith([&](gcap_graph_manager_options_t* options) {
      options->max_variants = is_limited ? 1 + Draw(3) : 0;
      options->max_graphs = is_limited && Draw(2) == 0 ? 4 : 0;
    });
    may_share_ = Draw(2) == 0;
    now_.length = 0;
    now_.table = nullptr;
    std::memset(now_.flags, 0, sizeof(now_.flags));
    now_.asked.answer = 0;
    now_.unstated = 0;
    programs_.clear();
    for (size_t i = 0; i < kPrograms; ++i) programs_.push_back(DrawProgram(&random_));
    for (const auto& place : places_) place->Fill(static_cast<float>(Draw(100)));
    contents_ = ReadAll();
    const LogCatcher log;
    for (unsigned long run = 0; run < kRunsOfAWorld && !HasFailure(); ++run) {
      for (unsigned changes = Draw(3); changes > 0; --changes) ChangeDecision();
      RunOne(Draw(kPrograms), Draw(4) == 0);
      if (is_limited && Draw(8) == 0) Forget();
    }
    const gcap_graph_info_t info = Info(GCAP_GRAPH_ID_NONE);
    EXPECT_TRUE(is_limited || info.captures == info.graphs) << "a graph was captured again whose guards held";
  }
  // A key goes, or is captured again.
  void Forget() {
    int ids[kPrograms];
    const size_t count = gcap_graph_manager_list_ids(manager_, ids, kPrograms);
    if (count == 0) return;
    const int id = ids[Draw(static_cast<unsigned>(count))];
    if (Draw(2) == 0) {
      GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, id));
    } else {
      gcap_status_free(gcap_graph_manager_recapture(manager_, id));
    }
  }

  unsigned long steps_ = 0, replays_ = 0, captures_ = 0, plain_eager_ = 0, others_unstated_ = 0, found_ = 0;
  int issues_ = 0;          // calls of the work of a run
  bool may_share_ = false;  // the buffers of a run may be one, so that they lie otherwise in another run
  Decisions now_;
  const char tables_[2] = {};
  std::mt19937 random_;
  std::vector<Program> programs_;
  std::vector<std::unique_ptr<Floats>> places_;
  Contents contents_;
  Seen issued_ = {};  // by the last call of the work
};

// GCAP_SIM_SEED is the first seed, GCAP_TEST_ROUNDS how many runs there are.
TEST_F(GraphStepsDrawn, EachRunIsThatOfItsOwnStep) {
  constexpr unsigned long kRounds = 3000;
  const unsigned long first = NumberOr("GCAP_SIM_SEED", 1), rounds = NumberOr("GCAP_TEST_ROUNDS", kRounds);
  for (size_t i = 0; i < kPlaces; ++i) places_.push_back(std::make_unique<Floats>(0.0f));
  for (unsigned long seed = first; steps_ < rounds && !HasFailure(); ++seed) Play(seed);
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
  manager_ = nullptr;
  places_.clear();
  std::printf("%lu steps, %lu replays, %lu captures, %lu replays of what was not stated, %lu times that was found\n",
              steps_, replays_, captures_, others_unstated_, found_);
  EXPECT_EQ(plain_eager_, 0u) << "what carries a value is found";
  if (rounds < kRounds) return;
  EXPECT_GT(replays_, rounds / 4);
  EXPECT_GT(captures_, rounds / 8);
  EXPECT_GT(found_, rounds / 400);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
