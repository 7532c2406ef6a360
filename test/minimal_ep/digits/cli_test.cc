// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The command line: defaults, both spellings of a value, and the exact sentence for each way to be wrong.
#include "examples/minimal_ep/digits/cli.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace {

// Runs `write` on a stream and returns what it wrote.
template <typename Write>
std::string Written(Write write) {
  char* text = nullptr;
  size_t bytes = 0;
  FILE* stream = open_memstream(&text, &bytes);
  write(stream);
  fclose(stream);
  const std::string result(text, bytes);
  free(text);
  return result;
}

struct Parsed {
  int code;
  std::string message;
  cli_options_t options;
};

// `arguments` must outlive the result, whose data_dir points into it.
Parsed Parse(const std::vector<std::string>& arguments) {
  std::vector<char*> argv = {const_cast<char*>("digits")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  Parsed parsed;
  parsed.message = Written([&](FILE* stream) {
    parsed.code = cli_parse(static_cast<int>(argv.size()), argv.data(), stream, &parsed.options);
  });
  return parsed;
}

void ExpectDefaults(const cli_options_t& options) {
  EXPECT_FALSE(options.help);
  EXPECT_FALSE(options.json);
  EXPECT_EQ(options.data_dir, nullptr);
  EXPECT_EQ(options.trace_file, nullptr);
  EXPECT_EQ(options.batch, 32u);
  EXPECT_EQ(options.runs, 200u);
  EXPECT_EQ(options.threads, 1u);
  EXPECT_EQ(options.device, 0u);
  EXPECT_FALSE(options.no_graph);
  EXPECT_FALSE(options.async);
  EXPECT_FALSE(options.user_stream);
  EXPECT_FALSE(options.external_allocator);
  EXPECT_EQ(options.seed, 0u);
  EXPECT_EQ(options.inject_fault, 0u);
}

TEST(Cli, NoArgumentsGiveTheDefaults) {
  const Parsed parsed = Parse({});
  EXPECT_EQ(parsed.code, 0);
  EXPECT_EQ(parsed.message, "");
  ExpectDefaults(parsed.options);
}

TEST(Cli, AnEmptyArgvIsFine) {
  cli_options_t options;
  EXPECT_EQ(cli_parse(0, nullptr, stderr, &options), 0);
  ExpectDefaults(options);
}

TEST(Cli, EveryFlagReachesItsField) {
  const std::vector<std::string> arguments = {"--help",         "--json", "--data",        "/some/dir",
                                              "--batch",        "7",      "--runs",        "11",
                                              "--threads",      "13",     "--no-graph",    "--async",
                                              "--seed",         "17",     "--user-stream", "--external-allocator",
                                              "--inject-fault", "19",     "--trace-file",  "some/file",
                                              "--device",       "3",      "--holes"};
  const Parsed parsed = Parse(arguments);
  ASSERT_EQ(parsed.code, 0) << parsed.message;
  EXPECT_TRUE(parsed.options.help);
  EXPECT_TRUE(parsed.options.json);
  EXPECT_STREQ(parsed.options.data_dir, "/some/dir");
  EXPECT_EQ(parsed.options.batch, 7u);
  EXPECT_EQ(parsed.options.runs, 11u);
  EXPECT_EQ(parsed.options.threads, 13u);
  EXPECT_TRUE(parsed.options.no_graph);
  EXPECT_TRUE(parsed.options.holes);
  EXPECT_TRUE(parsed.options.async);
  EXPECT_TRUE(parsed.options.user_stream);
  EXPECT_TRUE(parsed.options.external_allocator);
  EXPECT_EQ(parsed.options.seed, 17u);
  EXPECT_EQ(parsed.options.inject_fault, 19u);
  EXPECT_EQ(parsed.options.device, 3u);
  EXPECT_STREQ(parsed.options.trace_file, "some/file");
}

TEST(Cli, ASwitchSetsItsOwnFieldOnly) {
  bool cli_options_t::*const fields[] = {&cli_options_t::help,        &cli_options_t::json,
                                         &cli_options_t::no_graph,    &cli_options_t::async,
                                         &cli_options_t::user_stream, &cli_options_t::external_allocator,
                                         &cli_options_t::holes};
  const char* const names[] = {"--help", "--json", "--no-graph", "--async", "--user-stream", "--external-allocator",
                               "--holes"};
  for (int i = 0; i < 7; ++i) {
    Parsed parsed = Parse({names[i]});
    ASSERT_EQ(parsed.code, 0) << parsed.message;
    EXPECT_TRUE(parsed.options.*fields[i]) << names[i];
    parsed.options.*fields[i] = false;
    ExpectDefaults(parsed.options);
  }
}

TEST(Cli, AValueMayFollowAnEqualsSign) {
  const std::vector<std::string> arguments = {"--data=--odd=name", "--batch=4096", "--seed=18446744073709551615"};
  const Parsed parsed = Parse(arguments);
  ASSERT_EQ(parsed.code, 0) << parsed.message;
  EXPECT_STREQ(parsed.options.data_dir, "--odd=name");
  EXPECT_EQ(parsed.options.batch, 4096u);
  EXPECT_EQ(parsed.options.seed, UINT64_MAX);
}

TEST(Cli, TheLastOfARepeatedFlagCounts) { EXPECT_EQ(Parse({"--runs", "5", "--runs=6"}).options.runs, 6u); }

TEST(Cli, LimitsAreInclusive) {
  EXPECT_EQ(Parse({"--batch", "1", "--runs", "1", "--threads", "1", "--seed", "0"}).code, 0);
  EXPECT_EQ(Parse({"--batch", "4096", "--runs", "1000000", "--threads", "64"}).code, 0);
}

TEST(Cli, EachMistakeHasItsSentence) {
  const std::string batch = ", allowed are whole numbers from 1 to 4096.\n";
  const std::string flags = ", allowed are the flags that --help lists.\n";
  const std::string max_seed = "18446744073709551615";
  const struct {
    std::vector<std::string> arguments;
    std::string sentence;
  } cases[] = {
      {{"--batch", "0"}, "--batch is '0'" + batch},
      {{"--batch", "4097"}, "--batch is '4097'" + batch},
      {{"--batch=-1"}, "--batch is '-1'" + batch},
      {{"--batch", "-1"}, "--batch is '-1'" + batch},
      {{"--batch", "+1"}, "--batch is '+1'" + batch},
      {{"--batch", " 1"}, "--batch is ' 1'" + batch},
      {{"--batch", "1 "}, "--batch is '1 '" + batch},
      {{"--batch", "8x"}, "--batch is '8x'" + batch},
      {{"--batch", "0x8"}, "--batch is '0x8'" + batch},
      {{"--batch", "1e2"}, "--batch is '1e2'" + batch},
      {{"--batch", ""}, "--batch is ''" + batch},
      {{"--batch="}, "--batch is ''" + batch},
      // 2^64 + 32 would be 32 if it wrapped.
      {{"--batch", "18446744073709551648"}, "--batch is '18446744073709551648'" + batch},
      {{"--batch"}, "--batch has no value" + batch},
      {{"--batch", "--json"}, "--batch has no value" + batch},
      {{"--runs", "0"}, "--runs is '0', allowed are whole numbers from 1 to 1000000.\n"},
      {{"--runs", "1000001"}, "--runs is '1000001', allowed are whole numbers from 1 to 1000000.\n"},
      {{"--threads", "0"}, "--threads is '0', allowed are whole numbers from 1 to 64.\n"},
      {{"--threads", "65"}, "--threads is '65', allowed are whole numbers from 1 to 64.\n"},
      {{"--seed", "18446744073709551616"},
       "--seed is '18446744073709551616', allowed are whole numbers from 0 to " + max_seed + ".\n"},
      {{"--inject-fault=-1"}, "--inject-fault is '-1', allowed are whole numbers from 0 to " + max_seed + ".\n"},
      {{"--data"}, "--data has no value, allowed is a directory.\n"},
      {{"--data="}, "--data is '', allowed is a directory.\n"},
      {{"--trace-file="}, "--trace-file is '', allowed is a file.\n"},
      {{"--json=1"}, "--json is '1', allowed is the flag alone.\n"},
      {{"--json="}, "--json is '', allowed is the flag alone.\n"},
      {{"--bogus"}, "unknown flag '--bogus'" + flags},
      {{"--bogus=3"}, "unknown flag '--bogus=3'" + flags},
      {{"--bat", "3"}, "unknown flag '--bat'" + flags},
      {{"--batches", "3"}, "unknown flag '--batches'" + flags},
      {{"--"}, "unknown flag '--'" + flags},
      {{"-h"}, "unknown flag '-h'" + flags},
      {{"--json", "stray"}, "stray argument 'stray'" + flags},
      {{""}, "stray argument ''" + flags},
      {{"=", "--json"}, "stray argument '='" + flags},
  };
  for (const auto& test : cases) {
    const Parsed parsed = Parse(test.arguments);
    EXPECT_EQ(parsed.code, 2) << test.sentence;
    EXPECT_EQ(parsed.message, test.sentence);
    ExpectDefaults(parsed.options);
  }
}

TEST(Cli, WhatCameBeforeAMistakeIsForgotten) {
  const Parsed parsed = Parse({"--json", "--batch", "7", "--data", "x", "--threads", "none"});
  EXPECT_EQ(parsed.code, 2);
  ExpectDefaults(parsed.options);
}

TEST(Cli, HelpExplainsEachFlagOnOneLine) {
  const std::string help = Written([](FILE* stream) { cli_print_help(stream); });
  const char* const names[] = {"help",           "json",
                               "data DIR",       "batch N",
                               "runs N",         "threads N",
                               "device N",       "seed N",
                               "no-graph",       "async",
                               "user-stream",    "external-allocator",
                               "inject-fault N", "trace-file FILE",
                               "holes"};
  for (const std::string name : names) {
    std::istringstream lines(help);
    int found = 0;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 120u) << line;
      const std::string start = "  --" + name + " ";
      if (line.compare(0, start.size(), start) != 0) continue;
      ++found;
      EXPECT_GT(line.size(), start.size() + 20) << line;
    }
    EXPECT_EQ(found, 1) << name << " in\n" << help;
  }
  EXPECT_NE(help.find("(1..4096, default 32)"), std::string::npos) << help;
}

}  // namespace
