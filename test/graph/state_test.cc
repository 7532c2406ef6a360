// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The states of an id against the table in the public header, and what the STABLE policy remembers. No device.

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "gtest/gtest.h"

extern "C" {
#include "lib/graph/state.h"
}

namespace gcap {
namespace testing {
namespace {

constexpr int kStates = GCAP_GRAPH_STALE + 1;
constexpr const char* kSteps[] = {"first run", "warm",      "begin",  "commit", "failure",
                                  "give up",   "recapture", "cooled", "evict",  "differs"};

gcap_graph_step_t StepOf(const std::string& name) {
  const std::map<std::string, gcap_graph_step_t> steps = {
      {"first run", GCAP_GRAPH_STEP_FIRST_RUN}, {"warm", GCAP_GRAPH_STEP_WARM},
      {"begin", GCAP_GRAPH_STEP_BEGIN},         {"commit", GCAP_GRAPH_STEP_COMMIT},
      {"failure", GCAP_GRAPH_STEP_FAILURE},     {"give up", GCAP_GRAPH_STEP_GIVE_UP},
      {"cooled", GCAP_GRAPH_STEP_COOLED},       {"evict", GCAP_GRAPH_STEP_EVICT},
      {"recapture", GCAP_GRAPH_STEP_RECAPTURE}, {"differs", GCAP_GRAPH_STEP_DIFFERS}};
  const auto entry = steps.find(name);
  if (entry != steps.end()) return entry->second;
  ADD_FAILURE() << "the header names an unknown step: " << name;
  return GCAP_GRAPH_STEP_COUNT;
}

std::string NameOf(int state) { return gcap_graph_state_name(static_cast<gcap_graph_state_t>(state)); }

// The lines `//   FROM  --step-->  TO  remark` of the public header.
std::map<std::pair<std::string, std::string>, std::string> ReadHeader() {
  std::map<std::pair<std::string, std::string>, std::string> table;
  std::ifstream header("include/gcap/graph_info.h");
  for (std::string line; std::getline(header, line);) {
    const size_t arrow = line.find(" --");
    const size_t head = line.find("--> ");
    if (line.rfind("//   ", 0) != 0 || arrow == std::string::npos || head == std::string::npos) continue;
    std::string from;
    std::string to;
    std::istringstream(line.substr(5)) >> from;
    std::istringstream(line.substr(head + 4)) >> to;
    table[{from, line.substr(arrow + 3, head - arrow - 3)}] = to;
  }
  return table;
}

TEST(GraphState, IsWhatTheHeaderSays) {
  const auto table = ReadHeader();
  ASSERT_GT(table.size(), 10u) << "the header's table was not found";
  std::set<std::pair<std::string, std::string>> seen;
  for (int state = 0; state < kStates; ++state) {
    for (const char* step : kSteps) {
      const auto line = table.find({NameOf(state), step});
      const std::string expected = line == table.end() ? NameOf(state) : line->second;
      const gcap_graph_state_t after = gcap_graph_state_after(static_cast<gcap_graph_state_t>(state), StepOf(step));
      EXPECT_EQ(NameOf(after), expected) << NameOf(state) << " --" << step << "-->";
      if (line != table.end()) seen.insert(line->first);
    }
  }
  EXPECT_EQ(seen.size(), table.size()) << "the header has a line that no state and step of ours is";
}

// --- What a run did -------------------------------------------------------------------------------------------------

gcap_run_trace_t Traced(const std::initializer_list<size_t>& allocations, int initializations = 0) {
  const gcap_run_trace_t begun = gcap_graph_trace_begin();
  for (const size_t bytes : allocations) gcap_graph_note_allocation(bytes);
  for (int i = 0; i < initializations; ++i) gcap_graph_note_initialization();
  return gcap_graph_trace_end(begun);
}

TEST(RunTrace, OfEqualRunsIsEqualWhateverWasBefore) {
  const uint64_t first = Traced({64, 128}).allocations;
  gcap_graph_note_allocation(7);
  EXPECT_EQ(Traced({64, 128}).allocations, first);
  EXPECT_NE(Traced({128, 64}).allocations, first);
  EXPECT_NE(Traced({64}).allocations, first);
  EXPECT_NE(Traced({64, 128, 0}).allocations, first);
  EXPECT_EQ(Traced({}, 3).initializations, 3u);
}

TEST(RunTrace, OfARunWithinARunIsPartOfIt) {
  const auto outer = [](size_t inner) {
    const gcap_run_trace_t begun = gcap_graph_trace_begin();
    gcap_graph_note_allocation(1);
    Traced({inner}, 1);
    return gcap_graph_trace_end(begun);
  };
  EXPECT_EQ(outer(5).allocations, outer(5).allocations);
  EXPECT_NE(outer(5).allocations, outer(6).allocations);
  EXPECT_EQ(outer(5).initializations, 1u);
}

gcap_run_trace_t Trace(uint64_t allocations, uint64_t initializations) {
  gcap_run_trace_t trace = {};
  trace.allocations = allocations;
  trace.initializations = initializations;
  return trace;
}

// Runs until the history is stable, at most 10.
int RunsUntilStable(const gcap_run_trace_t* runs, int count) {
  gcap_graph_run_history_t history = {};
  for (int i = 0; i < count; ++i) {
    gcap_graph_history_add(&history, runs[i]);
    if (history.is_stable) return i + 1;
  }
  return -1;
}

TEST(RunHistory, IsStableAfterTwoQuietRunsAlike) {
  const gcap_run_trace_t alike[] = {Trace(5, 0), Trace(5, 0)};
  EXPECT_EQ(RunsUntilStable(alike, 2), 2);
  const gcap_run_trace_t nothing[] = {Trace(0, 0), Trace(0, 0)};
  EXPECT_EQ(RunsUntilStable(nothing, 2), 2) << "the first run has none before it";
  const gcap_run_trace_t other[] = {Trace(5, 0), Trace(6, 0), Trace(5, 0), Trace(5, 0)};
  EXPECT_EQ(RunsUntilStable(other, 4), 4);
  const gcap_run_trace_t loud[] = {Trace(5, 1), Trace(5, 0), Trace(5, 0)};
  EXPECT_EQ(RunsUntilStable(loud, 3), 3) << "the first one initialized something";
  const gcap_run_trace_t always_loud[] = {Trace(5, 1), Trace(5, 1), Trace(5, 1)};
  EXPECT_EQ(RunsUntilStable(always_loud, 3), -1);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
