// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The names of provider options: prefixes, aliases, which of several names decides, and keys that nobody knows.

#include "test/options/options_rows.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

gcap_status_t ParseFor(gcap_options_t* options, const char* ep_name, const Pairs& pairs) {
  const Texts texts(pairs);
  return gcap_options_parse_for_ep(options, ep_name, texts.keys.data(), texts.values.data(), pairs.size());
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(OptionNames, EveryKeyMayHaveAPrefix) {
  for (const std::string prefix : {"", "ep.cuda.", "ep.minimal.", "ep.Minimal.", "ep.CUDA."}) {
    for (const Key& key : Keys()) {
      const auto& good = key.good.back();
      SCOPED_TRACE(prefix + key.name);
      gcap_options_t options = Defaults();
      GCAP_EXPECT_OK(ParseFor(&options, "Minimal", {{prefix + key.name, good.first}}));
      EXPECT_EQ(key.get(options), good.second);
    }
  }
}

TEST(OptionNames, WithoutAnEpThereIsOnePrefix) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"ep.cuda.device_id", "3"}}));
  EXPECT_EQ(options.device_id, 3);
  GCAP_EXPECT_FAILS(Parse(&options, {{"ep.minimal.device_id", "4"}}), GCAP_INVALID_ARGUMENT,
                    "unknown option 'ep.minimal.device_id'");
  EXPECT_EQ(options.device_id, 3);
}

TEST(OptionNames, TheMostSpecialNameDecidesInAnyOrder) {
  // By rising right to decide.
  const Pairs ascending = {
      {"cuda_mem_limit", "1"},         {"gpu_mem_limit", "2"},         {"arena.max_mem", "3"},
      {"ep.cuda.cuda_mem_limit", "4"}, {"ep.cuda.gpu_mem_limit", "5"}, {"ep.cuda.arena.max_mem", "6"},
      {"ep.mine.cuda_mem_limit", "7"}, {"ep.mine.gpu_mem_limit", "8"}, {"ep.mine.arena.max_mem", "9"}};
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t j = 0; j < ascending.size(); ++j) {
      if (i == j) continue;
      SCOPED_TRACE(ascending[i].first + ", " + ascending[j].first);
      gcap_options_t options = Defaults();
      GCAP_EXPECT_OK(ParseFor(&options, "mine", {ascending[i], ascending[j]}));
      EXPECT_EQ(options.arena.memory_limit_bytes, std::max(i, j) + 1);
    }
  }
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(ParseFor(&options, "mine", Pairs(ascending.rbegin(), ascending.rend())));
  EXPECT_EQ(options.arena.memory_limit_bytes, 9u);
}

TEST(OptionNames, OfOneNameTheLastValueCounts) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"device_id", "1"}, {"device_id", "2"}}));
  EXPECT_EQ(options.device_id, 2);
  GCAP_EXPECT_OK(ParseFor(&options, "a", {{"ep.a.device_id", "3"}, {"device_id", "5"}, {"ep.A.device_id", "4"}}));
  EXPECT_EQ(options.device_id, 4);
}

// What was set before this call is no name of this call.
TEST(OptionNames, ALaterCallDecides) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(ParseFor(&options, "a", {{"ep.a.device_id", "3"}}));
  GCAP_EXPECT_OK(Parse(&options, {{"device_id", "1"}}));
  EXPECT_EQ(options.device_id, 1);
}

TEST(OptionNames, AValueThatDoesNotDecideIsCheckedToo) {
  const Pairs rows = {{"device_id", "x"}, {"arena.trace_file", std::string(256, 'x')}};
  for (const auto& row : rows) {
    gcap_options_t options = Defaults();
    const Pairs pairs = {{"ep.a." + row.first, "0"}, row};
    GCAP_EXPECT_FAILS(ParseFor(&options, "a", pairs), GCAP_INVALID_ARGUMENT, "option " + row.first + " is 'x");
    ExpectEqual(options, Defaults());
  }
}

// The stream that decides says whether the default stream is meant.
TEST(OptionNames, AUserStreamThatDoesNotDecideMeansNothing) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(ParseFor(&options, "a", {{"ep.a.user_compute_stream", "0x40"}, {"user_compute_stream", "0"}}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(options.user_stream), 0x40u);
  EXPECT_FALSE(options.allow_default_stream);
  EXPECT_TRUE(options.has_user_stream);
}

TEST(OptionNames, AnotherEpsKeysAreIgnoredAndLogged) {
  LogCatcher log(GCAP_LOG_INFO);
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(ParseFor(&options, "mine",
                          {{"ep.other.device_id", "5"},
                           {"ep.other.no_such_key", "x"},
                           {"ep.minex.device_id", "6"},
                           {"ep.min.device_id", "7"},
                           {"enable_cuda_graph", "1"}}));
  EXPECT_EQ(options.device_id, 0);
  EXPECT_TRUE(options.enable_cuda_graph);
  EXPECT_EQ(Count(log.text(), "option ep.other.device_id is another EP's than 'mine', and ignored"), 1u) << log.text();
  EXPECT_EQ(Count(log.text(), "another EP's"), 4u) << log.text();
}

TEST(OptionNames, ANameMayHoldDots) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(ParseFor(&options, "My.Ep", {{"ep.my.ep.arena.max_mem", "77"}, {"ep.my.device_id", "5"}}));
  EXPECT_EQ(options.arena.memory_limit_bytes, 77u);
  EXPECT_EQ(options.device_id, 0);
}

TEST(OptionNames, AnEpNeedsAName) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_FAILS(ParseFor(&options, "", {}), GCAP_INVALID_ARGUMENT, "ep_name is empty");
  GCAP_EXPECT_FAILS(ParseFor(&options, nullptr, {}), GCAP_INVALID_ARGUMENT, "ep_name");
}

// Was: the list of all keys alone.
TEST(OptionNames, AnUnknownKeyIsToldTheNearestOne) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"enable_cuda_grap", "enable_cuda_graph"},
      {"enable_cuda_graphs", "enable_cuda_graph"},
      {"arena_extend_strateg", "arena_extend_strategy"},
      {"DEVICE_ID", "device_id"},
      {"device_id ", "device_id"},
      {"max_mem", "arena.max_mem"},
      {"graph.max_graph", "graph.max_graphs"},
      {"use_cuda_mempool", "arena.use_cuda_mempool"},
      {"cudnn_conv_algo_serch", "cudnn_conv_algo_search"},
      {"gpu_mem_limits", "gpu_mem_limit"},
      {"ep.cuda.use_tf23", "ep.cuda.use_tf32"},
      {"ep.Mine.use_tf23", "ep.Mine.use_tf32"},
      {"ep.mine.max_mem", "ep.mine.arena.max_mem"},
      {"something_else", ""},
      {"100%%", ""},
      {"xse_tx3x", "use_tf32"},
      {"use_tf32abcd", "use_tf32"},
      {"use_tf32abcde", ""},
      {"", ""},
      {"ep.", ""},
      {"ep.mine", ""},
      {"ep.mine.", ""},
      {std::string(5000, 'd'), ""},
  };
  for (const auto& row : rows) {
    gcap_options_t options = Defaults();
    const Outcome outcome(ParseFor(&options, "mine", {{row.first, "1"}}));
    EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT) << row.first;
    EXPECT_TRUE(outcome.Names("unknown option '" + row.first.substr(0, 100))) << outcome.message;
    if (row.second.empty()) {
      EXPECT_FALSE(outcome.Names("did you mean")) << outcome.message;
    } else {
      EXPECT_TRUE(outcome.Names("', did you mean " + row.second + "?")) << outcome.message;
    }
    EXPECT_TRUE(outcome.Names("docs/options.md lists all")) << outcome.message;
  }
}

// Sixty keys are no help; those of the group are.
TEST(OptionNames, AnUnknownKeyIsToldItsGroup) {
  gcap_options_t options = Defaults();
  const Outcome outcome(Parse(&options, {{"graph.zzzzzzzzzzzz", "1"}}));
  EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
  EXPECT_TRUE(outcome.Names("; known are graph.")) << outcome.message;
  for (const Key& key : Keys()) {
    const std::string name = key.name;
    EXPECT_EQ(outcome.Names(name), name.compare(0, 6, "graph.") == 0) << name << ": " << outcome.message;
  }
  const Outcome alone(Parse(&options, {{"zzzzzzzzzzzz", "1"}}));
  EXPECT_FALSE(alone.Names("known are")) << alone.message;
  for (const char* group : {"arena.zzzzzzzzzzzz", "graph.zzzzzzzzzzzz"}) {
    EXPECT_LT(Outcome(Parse(&options, {{group, "1"}})).message.size(), 1000u);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
