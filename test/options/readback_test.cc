// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What is in force, read back: one key's value, and all of them as a text that is parsed again.

#include <algorithm>
#include <random>

#include "test/options/options_rows.h"

namespace gcap {
namespace testing {
namespace {

std::string Get(const gcap_options_t& options, const std::string& key) {
  char value[GCAP_OPTIONS_MAX_PATH_BYTES];
  GCAP_EXPECT_OK(gcap_options_get(&options, key.c_str(), value, sizeof(value)));
  return value;
}

std::string ToString(const gcap_options_t& options) {
  char text[GCAP_OPTIONS_MAX_TEXT_BYTES];
  GCAP_EXPECT_OK(gcap_options_get(&options, nullptr, text, sizeof(text)));
  return text;
}

Pairs Split(const std::string& text) {
  Pairs pairs;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const size_t equals = text.find('=', at), end = text.find('\n', at);
    pairs.emplace_back(text.substr(at, equals - at), text.substr(equals + 1, end - equals - 1));
  }
  return pairs;
}

// What follows from other options, derived here on its own.
gcap_options_t InForce(gcap_options_t options) {
  options.has_user_stream = options.has_user_stream || options.user_stream != nullptr;
  options.use_unified_stream =
      options.use_unified_stream || options.has_user_stream || options.external_alloc != nullptr;
  if (options.use_unified_stream) options.graph_scope = GCAP_GRAPH_SCOPE_SESSION;
  return options;
}

TEST(OptionsReadback, EachKeyIsReadBackAndParsesToTheSame) {
  for (const Key& key : Keys()) {
    for (const auto& good : key.good) {
      SCOPED_TRACE(std::string(key.name) + " = '" + good.first + "'");
      gcap_options_t options = Defaults(), again = Defaults();
      GCAP_EXPECT_OK(Parse(&options, {{key.name, good.first}}));
      const std::string value = Get(options, key.name);
      GCAP_EXPECT_OK(Parse(&again, {{key.name, value}}));
      EXPECT_EQ(key.get(again), good.second) << value;
      EXPECT_EQ(Get(options, std::string("ep.cuda.") + key.name), value);
    }
  }
}

TEST(OptionsReadback, ValuesAreSpelledInOneWay) {
  gcap_options_t options = Defaults();
  const Pairs rows = {{"device_id", "1"},
                      {"enable_cuda_graph", "1"},
                      {"cudnn_conv_algo_search", "HEURISTIC"},
                      {"arena.extend_strategy", "1"},
                      {"arena_extend_strategy", "1"},
                      {"graph.policy", "stable"},
                      {"gpu_external_alloc", "0xabc0"},
                      {"gpu_external_free", "0x1000"},
                      {"gpu_mem_limit", "4096"},
                      {"arena.max_mem", "4096"},
                      {"arena.cuda_mempool_release_threshold", "18446744073709551615"},
                      {"arena.trace_file", "/tmp/a=b c%%"},
                      {"user_compute_stream", "0"},
                      {"tunable_op_enable", "0"},
                      {"default_memory_arena_cfg", "0"}};
  GCAP_EXPECT_OK(Parse(&options, {{"ep.cuda.device_id", "0001"},
                                  {"enable_cuda_graph", "True"},
                                  {"cudnn_conv_algo_search", "1"},
                                  {"arena_extend_strategy", "kSameAsRequested"},
                                  {"graph.policy", "stable"},
                                  {"gpu_external_alloc", "0XABC0"},
                                  {"gpu_external_free", "4096"},
                                  {"gpu_mem_limit", "4096"},
                                  {"arena.trace_file", "/tmp/a=b c%%"}}));
  for (const auto& row : rows) EXPECT_EQ(Get(options, row.first), row.second) << row.first;
}

TEST(OptionsReadback, WhatFollowsFromOtherOptionsIsInForce) {
  struct Row {
    Pairs given;
    const char *has_stream, *unified, *scope;
  };
  const Row rows[] = {
      {{}, "0", "0", "thread"},
      {{{"graph.scope", "session"}}, "0", "0", "session"},
      {{{"use_ep_level_unified_stream", "1"}}, "0", "1", "session"},
      {{{"user_compute_stream", "0x40"}}, "1", "1", "session"},
      {{{"user_compute_stream", "0x40"}, {"use_ep_level_unified_stream", "0"}, {"graph.scope", "thread"}},
       "1",
       "1",
       "session"},
      {{{"has_user_compute_stream", "1"}, {"user_compute_stream", "0"}}, "1", "1", "session"},
      {{{"gpu_external_alloc", "64"}, {"gpu_external_free", "64"}}, "0", "1", "session"},
      {{{"gpu_external_alloc", "64"}, {"gpu_external_free", "64"}, {"user_compute_stream", "64"}}, "1", "1", "session"},
      {{{"arena.use_cuda_mempool", "1"}}, "0", "0", "thread"},
  };
  for (const Row& row : rows) {
    gcap_options_t options = Defaults();
    GCAP_EXPECT_OK(Parse(&options, row.given));
    SCOPED_TRACE(ToString(options));
    EXPECT_EQ(Get(options, "has_user_compute_stream"), row.has_stream);
    EXPECT_EQ(Get(options, "use_ep_level_unified_stream"), row.unified);
    EXPECT_EQ(Get(options, "graph.scope"), row.scope);
  }
  // A program that sets fields itself reads the same.
  gcap_options_t options = Defaults();
  options.user_stream = &options;
  EXPECT_EQ(Get(options, "has_user_compute_stream"), "1");
  EXPECT_EQ(Get(options, "use_ep_level_unified_stream"), "1");
  EXPECT_FALSE(options.has_user_stream) << "reading changes nothing";
}

// Taking the stream away takes away what followed from it.
TEST(OptionsReadback, WhatFollowsIsNotStored) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", "0x40"}}));
  GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", "0"}, {"has_user_compute_stream", "0"}}));
  EXPECT_EQ(Get(options, "use_ep_level_unified_stream"), "0");
  EXPECT_EQ(Get(options, "graph.scope"), "thread");
}

TEST(OptionsReadback, TheTextOfDefaultsParsesToDefaults) {
  gcap_options_t options = Defaults();
  const std::string text = ToString(options);
  EXPECT_NE(text.find("\nuse_tf32=1\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("user_compute_stream=0x"), std::string::npos) << text;
  GCAP_EXPECT_OK(Parse(&options, Split(text)));
  ExpectEqual(options, Defaults());
}

class OptionsRoundTrip : public ::testing::TestWithParam<unsigned> {};

// Options of some keys with some of their values, by some of their names.
TEST_P(OptionsRoundTrip, RandomOptionsParseToTheSameAgain) {
  std::mt19937 random(GetParam());
  const auto below = [&random](size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random); };
  for (int round = 0; round < 50; ++round) {
    Pairs pairs;
    for (const Key& key : Keys()) {
      if (below(3) == 0)
        pairs.emplace_back((below(2) == 0 ? "ep.cuda." : "") + std::string(key.name),
                           key.good[below(key.good.size())].first);
    }
    if (below(2) == 0) pairs.emplace_back("arena.trace_file", std::string(below(256), '='));
    std::shuffle(pairs.begin(), pairs.end(), random);
    gcap_options_t options = Defaults(), again = Defaults();
    GCAP_ASSERT_OK(Parse(&options, pairs));
    const std::string text = ToString(options);
    SCOPED_TRACE(text);
    GCAP_ASSERT_OK(Parse(&again, Split(text)));
    ExpectEqual(again, InForce(options));
    EXPECT_EQ(ToString(again), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, OptionsRoundTrip, ::testing::Range(1u, 11u));

TEST(OptionsReadback, ATextThatDoesNotFitIsRefused) {
  const gcap_options_t options = Defaults();
  const std::string whole = ToString(options);
  for (const size_t room : {size_t{1}, size_t{20}, whole.size()}) {
    std::string text(room + 1, '\x5a');
    GCAP_EXPECT_FAILS(gcap_options_get(&options, nullptr, &text[0], room), GCAP_RESOURCE_EXHAUSTED,
                      "all options has " + std::to_string(whole.size() + 1) + " bytes");
    EXPECT_EQ(text[room], '\x5a') << "beyond the room";
    EXPECT_STREQ(text.c_str(), "");
  }
  std::string text(whole.size() + 1, '\x5a');
  GCAP_EXPECT_OK(gcap_options_get(&options, nullptr, &text[0], text.size()));
  EXPECT_STREQ(text.c_str(), whole.c_str());
}

TEST(OptionsReadback, AValueThatDoesNotFitIsRefused) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"device_id", "123"}}));
  char value[4] = "xxx";
  GCAP_EXPECT_FAILS(gcap_options_get(&options, "device_id", value, 3), GCAP_RESOURCE_EXHAUSTED,
                    "device_id has 4 bytes, out_text has room for 3");
  EXPECT_STREQ(value, "");
  GCAP_EXPECT_FAILS(gcap_options_get(&options, "device_id", value, 0), GCAP_RESOURCE_EXHAUSTED, "room for 0");
  GCAP_EXPECT_OK(gcap_options_get(&options, "device_id", value, 4));
  EXPECT_STREQ(value, "123");
  const std::string path(255, 'x');
  GCAP_EXPECT_OK(Parse(&options, {{"arena.trace_file", path}}));
  EXPECT_EQ(Get(options, "arena.trace_file"), path);
}

TEST(OptionsReadback, AnUnknownKeyIsRefused) {
  const gcap_options_t options = Defaults();
  char value[16] = "xxx";
  GCAP_EXPECT_FAILS(gcap_options_get(&options, "use_tf23", value, sizeof(value)), GCAP_INVALID_ARGUMENT,
                    "unknown option 'use_tf23', did you mean use_tf32?");
  EXPECT_STREQ(value, "");
}

TEST(OptionsReadback, OptionsThatWereNotInitializedHaveNoText) {
  gcap_options_t options = {};
  char text[16] = "xxx";
  GCAP_EXPECT_FAILS(gcap_options_get(&options, nullptr, text, sizeof(text)), GCAP_INVALID_ARGUMENT,
                    "gcap_options_init");
  EXPECT_STREQ(text, "");
  GCAP_EXPECT_FAILS(gcap_options_get(&options, "device_id", text, sizeof(text)), GCAP_INVALID_ARGUMENT,
                    "gcap_options_init");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
