// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Provider options: every key with values that it takes and values that it refuses, and what depends on more than one.

#include "gcap/options.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace {

using Pairs = std::vector<std::pair<const char*, const char*>>;

gcap_status_t Parse(gcap_options_t* options, const Pairs& pairs) {
  std::vector<const char*> keys, values;
  for (const auto& pair : pairs) {
    keys.push_back(pair.first);
    values.push_back(pair.second);
  }
  return gcap_options_parse(options, keys.data(), values.data(), pairs.size());
}

gcap_options_t Defaults() {
  gcap_options_t options;
  std::memset(&options, 0xa5, sizeof(options));  // whatever init forgets stays visible
  gcap_options_init(&options);
  return options;
}

uintptr_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
template <typename Result, typename... Arguments>
uintptr_t Address(Result (*function)(Arguments...)) {
  return reinterpret_cast<uintptr_t>(function);
}

void ExpectEqual(const gcap_options_t& a, const gcap_options_t& b) {
  EXPECT_EQ(a.device_id, b.device_id);
  EXPECT_EQ(a.enable_cuda_graph, b.enable_cuda_graph);
  EXPECT_EQ(a.graph.min_num_runs_before_capture, b.graph.min_num_runs_before_capture);
  EXPECT_EQ(a.has_user_stream, b.has_user_stream);
  EXPECT_EQ(a.user_stream, b.user_stream);
  EXPECT_EQ(a.external_alloc, b.external_alloc);
  EXPECT_EQ(a.external_free, b.external_free);
  EXPECT_EQ(a.external_empty_cache, b.external_empty_cache);
  EXPECT_EQ(a.arena.extend_as_requested, b.arena.extend_as_requested);
  EXPECT_EQ(a.arena.initial_chunk_bytes, b.arena.initial_chunk_bytes);
  EXPECT_EQ(a.arena.max_extend_bytes, b.arena.max_extend_bytes);
  EXPECT_EQ(a.arena.initial_growth_chunk_bytes, b.arena.initial_growth_chunk_bytes);
  EXPECT_EQ(a.arena.max_dead_bytes_per_chunk, b.arena.max_dead_bytes_per_chunk);
  EXPECT_EQ(a.arena.memory_limit_bytes, b.arena.memory_limit_bytes);
  EXPECT_EQ(a.use_mempool, b.use_mempool);
  EXPECT_EQ(a.mempool.release_threshold_bytes, b.mempool.release_threshold_bytes);
  EXPECT_EQ(a.mempool.bytes_kept_on_trim, b.mempool.bytes_kept_on_trim);
  EXPECT_EQ(a.arena.red_zones, b.arena.red_zones);
  EXPECT_EQ(a.arena.poison_on_free, b.arena.poison_on_free);
  EXPECT_EQ(a.arena.recorded_operations, b.arena.recorded_operations);
  EXPECT_STREQ(a.trace_file, b.trace_file);
  EXPECT_EQ(a.graph.policy, b.graph.policy);
  EXPECT_EQ(a.graph.max_runs_before_capture, b.graph.max_runs_before_capture);
  EXPECT_EQ(a.graph.max_graphs, b.graph.max_graphs);
  EXPECT_EQ(a.graph.max_bytes, b.graph.max_bytes);
  EXPECT_EQ(a.graph.capture.ledger_calls, b.graph.capture.ledger_calls);
}

TEST(Options, InitGivesTheDocumentedDefaults) {
  const gcap_options_t options = Defaults();
  EXPECT_EQ(options.device_id, 0);
  EXPECT_FALSE(options.enable_cuda_graph);
  EXPECT_EQ(options.graph.min_num_runs_before_capture, 2u);
  EXPECT_FALSE(options.has_user_stream);
  EXPECT_EQ(options.user_stream, nullptr);
  EXPECT_EQ(options.external_alloc, nullptr);
  EXPECT_EQ(options.external_free, nullptr);
  EXPECT_EQ(options.external_empty_cache, nullptr);
  EXPECT_FALSE(options.arena.extend_as_requested);
  EXPECT_EQ(options.arena.initial_chunk_bytes, 1048576u);
  EXPECT_EQ(options.arena.max_extend_bytes, 1073741824u);
  EXPECT_EQ(options.arena.initial_growth_chunk_bytes, 2097152u);
  EXPECT_EQ(options.arena.max_dead_bytes_per_chunk, 134217728u);
  EXPECT_EQ(options.arena.memory_limit_bytes, 0u);
  EXPECT_FALSE(options.use_mempool);
  EXPECT_EQ(options.mempool.release_threshold_bytes, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(options.mempool.bytes_kept_on_trim, 0u);
  EXPECT_FALSE(options.arena.red_zones);
  EXPECT_FALSE(options.arena.poison_on_free);
  EXPECT_EQ(options.arena.recorded_operations, 0u);
  EXPECT_STREQ(options.trace_file, "");
  EXPECT_EQ(options.graph.policy, GCAP_GRAPH_POLICY_MIN_RUNS);
  EXPECT_EQ(options.graph.max_runs_before_capture, 6u);
  EXPECT_EQ(options.graph.max_graphs, 0u);
  EXPECT_EQ(options.graph.max_bytes, 0u);
  EXPECT_EQ(options.graph.capture.ledger_calls, 64u);
}

TEST(Options, DefaultsPassTheCheck) {
  const gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(gcap_options_check(&options));
}

TEST(Options, ParseOfNothingChangesNothing) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(gcap_options_parse(&options, nullptr, nullptr, 0));
  ExpectEqual(options, Defaults());
}

// One key: a way to read what it set, texts it takes with the number expected, texts it refuses.
struct Key {
  const char* name;
  std::function<uint64_t(const gcap_options_t&)> get;
  std::vector<std::pair<const char*, uint64_t>> good;
  std::vector<const char*> bad;
};

const std::vector<std::pair<const char*, uint64_t>> kGoodBools = {{"1", 1},     {"0", 0},    {"true", 1},
                                                                  {"false", 0}, {"True", 1}, {"False", 0}};
const std::vector<const char*> kBadBools = {"", "2", "01", "-1", "yes", "TRUE", "1 ", " 1"};
const std::vector<std::pair<const char*, uint64_t>> kGoodCounts = {{"0", 0}, {"7", 7}, {"2147483647", 2147483647}};
const std::vector<const char*> kBadCounts = {
    "", "-1", "+1", " 1", "1 ", "1x", "0x1", "1.5", "one", "2147483648", "18446744073709551616"};
const std::vector<std::pair<const char*, uint64_t>> kGoodAddresses = {
    {"4096", 4096},
    {"0x1000", 4096},
    {"0XfF", 255},
    {"0", 0},
    {"0x0", 0},
    {"0777", 777},
    {"18446744073709551615", std::numeric_limits<uint64_t>::max()},
    {"0xffffffffffffffff", std::numeric_limits<uint64_t>::max()}};
const std::vector<const char*> kBadAddresses = {
    "", "-1", "0x", "x10", "ff", "0x10g", " 4096", "4096 ", "0x-10", "18446744073709551616", "0x1 ", "0b1010", "1e3"};
const std::vector<std::pair<const char*, uint64_t>> kGoodBytes = {
    {"0", 0}, {"65536", 65536}, {"18446744073709551615", std::numeric_limits<uint64_t>::max()}};
const std::vector<const char*> kBadBytes = {"", "-1", "1k", "1 MiB", "0x100", "1.0", "18446744073709551616"};

const std::vector<Key>& Keys() {
  using O = gcap_options_t;
  static const auto* const keys = new std::vector<Key>{
      {"device_id", [](const O& o) { return uint64_t(o.device_id); }, kGoodCounts, kBadCounts},
      {"enable_cuda_graph", [](const O& o) { return uint64_t(o.enable_cuda_graph); }, kGoodBools, kBadBools},
      {"min_num_runs_before_cuda_graph_capture",
       [](const O& o) { return uint64_t(o.graph.min_num_runs_before_capture); }, kGoodCounts, kBadCounts},
      {"has_user_compute_stream", [](const O& o) { return uint64_t(o.has_user_stream); }, kGoodBools, kBadBools},
      {"user_compute_stream", [](const O& o) { return Address(o.user_stream); }, kGoodAddresses, kBadAddresses},
      {"gpu_external_alloc", [](const O& o) { return Address(o.external_alloc); }, kGoodAddresses, kBadAddresses},
      {"gpu_external_free", [](const O& o) { return Address(o.external_free); }, kGoodAddresses, kBadAddresses},
      {"gpu_external_empty_cache", [](const O& o) { return Address(o.external_empty_cache); }, kGoodAddresses,
       kBadAddresses},
      {"arena.extend_strategy",
       [](const O& o) { return uint64_t(o.arena.extend_as_requested); },
       {{"0", 0}, {"1", 1}},
       {"", "2", "-1", "01", "true", "kSameAsRequested"}},
      {"arena.initial_chunk_size_bytes", [](const O& o) { return uint64_t(o.arena.initial_chunk_bytes); }, kGoodBytes,
       kBadBytes},
      {"arena.max_power_of_two_extend_bytes", [](const O& o) { return uint64_t(o.arena.max_extend_bytes); }, kGoodBytes,
       kBadBytes},
      {"arena.initial_growth_chunk_size_bytes", [](const O& o) { return uint64_t(o.arena.initial_growth_chunk_bytes); },
       kGoodBytes, kBadBytes},
      {"arena.max_dead_bytes_per_chunk", [](const O& o) { return uint64_t(o.arena.max_dead_bytes_per_chunk); },
       kGoodBytes, kBadBytes},
      {"arena.max_mem", [](const O& o) { return uint64_t(o.arena.memory_limit_bytes); }, kGoodBytes, kBadBytes},
      {"arena.use_cuda_mempool", [](const O& o) { return uint64_t(o.use_mempool); }, kGoodBools, kBadBools},
      {"arena.cuda_mempool_release_threshold", [](const O& o) { return uint64_t(o.mempool.release_threshold_bytes); },
       kGoodBytes, kBadBytes},
      {"arena.cuda_mempool_bytes_to_keep_on_shrink", [](const O& o) { return uint64_t(o.mempool.bytes_kept_on_trim); },
       kGoodBytes, kBadBytes},
      {"arena.share_graph_memory", [](const O& o) { return uint64_t(o.share_graph_memory); }, kGoodBools, kBadBools},
      {"arena.red_zones", [](const O& o) { return uint64_t(o.arena.red_zones); }, kGoodBools, kBadBools},
      {"arena.poison_on_free", [](const O& o) { return uint64_t(o.arena.poison_on_free); }, kGoodBools, kBadBools},
      {"arena.recorded_operations", [](const O& o) { return uint64_t(o.arena.recorded_operations); }, kGoodBytes,
       kBadBytes},
      {"graph.policy",
       [](const O& o) { return uint64_t(o.graph.policy); },
       {{"stable", 1}, {"min_runs", 0}},
       {"", "0", "1", "Stable", "stable ", "min_run"}},
      {"graph.max_runs_before_capture", [](const O& o) { return uint64_t(o.graph.max_runs_before_capture); },
       kGoodCounts, kBadCounts},
      {"graph.max_graphs", [](const O& o) { return uint64_t(o.graph.max_graphs); }, kGoodBytes, kBadBytes},
      {"graph.max_bytes", [](const O& o) { return uint64_t(o.graph.max_bytes); }, kGoodBytes, kBadBytes},
      {"graph.ledger_calls",
       [](const O& o) { return uint64_t(o.graph.capture.ledger_calls); },
       {{"0", 0}, {"7", 7}, {"65536", 65536}},
       {"", "-1", "65537", "2147483647", "64k"}},
  };
  return *keys;
}

TEST(Options, EachKeyTakesItsValues) {
  for (const Key& key : Keys()) {
    for (const auto& good : key.good) {
      SCOPED_TRACE(std::string(key.name) + " = '" + good.first + "'");
      gcap_options_t options = Defaults();
      GCAP_EXPECT_OK(Parse(&options, {{key.name, good.first}}));
      EXPECT_EQ(key.get(options), good.second);
    }
  }
}

TEST(Options, EachKeySetsNothingButItsOption) {
  for (const Key& key : Keys()) {
    SCOPED_TRACE(key.name);
    gcap_options_t options = Defaults();
    const bool has_words = key.name == std::string("graph.policy");
    GCAP_EXPECT_OK(Parse(&options, {{key.name, has_words ? "stable" : "1"}}));
    for (const Key& other : Keys()) {
      const bool implied =
          key.name == std::string("user_compute_stream") && other.name == std::string("has_user_compute_stream");
      if (&other == &key || implied) continue;
      EXPECT_EQ(other.get(options), other.get(Defaults())) << other.name;
    }
  }
}

TEST(Options, EachKeyRefusesOtherValuesAndNamesThem) {
  for (const Key& key : Keys()) {
    for (const char* bad : key.bad) {
      SCOPED_TRACE(std::string(key.name) + " = '" + bad + "'");
      gcap_options_t options = Defaults();
      GCAP_EXPECT_FAILS(Parse(&options, {{key.name, bad}}), GCAP_INVALID_ARGUMENT,
                        std::string("option ") + key.name + " is '" + bad + "', allowed is ");
    }
  }
}

TEST(Options, UnknownKeyIsRefusedAndTheKnownOnesAreListed) {
  for (const char* unknown : {"enable_cuda_graphs", "", "DEVICE_ID", "device_id "}) {
    gcap_options_t options = Defaults();
    const gcap::testing::Outcome outcome(Parse(&options, {{unknown, "1"}}));
    EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
    EXPECT_NE(outcome.message.find("'" + std::string(unknown) + "'"), std::string::npos) << outcome.message;
    for (const Key& key : Keys()) EXPECT_NE(outcome.message.find(key.name), std::string::npos) << outcome.message;
  }
}

// Was: the list of all keys alone.
TEST(Options, UnknownKeyIsToldTheNearestOne) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"enable_cuda_grap", "enable_cuda_graph"},
      {"enable_cuda_graphs", "enable_cuda_graph"},
      {"arena_extend_strategy", "arena.extend_strategy"},
      {"DEVICE_ID", "device_id"},
      {"device_id ", "device_id"},
      {"max_mem", "arena.max_mem"},
      {"graph.max_graph", "graph.max_graphs"},
      {"use_cuda_mempool", "arena.use_cuda_mempool"},
      {"cudnn_conv_algo_search", ""},
      {"", ""},
      {std::string(5000, 'd'), ""},
  };
  for (const auto& row : rows) {
    gcap_options_t options = Defaults();
    const gcap::testing::Outcome outcome(Parse(&options, {{row.first.c_str(), "1"}}));
    EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
    const std::string hint = row.second.empty() ? "'; known are " : "', did you mean " + row.second + "?; known are ";
    EXPECT_TRUE(outcome.Names(hint)) << outcome.message;
  }
}

// Was: followed.
TEST(Options, NullKeysAndValuesAreNamedByTheirIndex) {
  gcap_options_t options = Defaults();
  const Pairs pairs = {{"device_id", "0"}, {nullptr, "1"}};
  GCAP_EXPECT_FAILS(Parse(&options, pairs), GCAP_INVALID_ARGUMENT, "keys[1] is NULL");
  GCAP_EXPECT_FAILS(Parse(&options, {{"device_id", nullptr}}), GCAP_INVALID_ARGUMENT,
                    "values[0] is NULL, the value of option 'device_id'");
}

// Was: all of it, with its newlines.
TEST(Options, LongKeysAndValuesAreCutInMessages) {
  const std::string text(100000, 'x');
  for (const Pairs& pairs : {Pairs{{text.c_str(), "1"}}, Pairs{{"device_id", text.c_str()}}}) {
    gcap_options_t options = Defaults();
    const gcap::testing::Outcome outcome(Parse(&options, pairs));
    EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
    EXPECT_TRUE(outcome.Names("xxx...'")) << outcome.message;
    EXPECT_LT(outcome.message.size(), 2000u);
  }
  gcap_options_t options = Defaults();
  GCAP_EXPECT_FAILS(Parse(&options, {{"device_id", "1\n2"}}), GCAP_INVALID_ARGUMENT, "option device_id is '1\\x0a2',");
}

// Was: taken, and refused by the first run.
TEST(Options, CheckRefusesWhatAGraphManagerWould) {
  gcap_options_t options = Defaults();
  options.graph.capture.ledger_calls = GCAP_CAPTURE_MAX_LEDGER_CALLS + 1;
  GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, "ledger_calls is 65537, allowed are 0..65536");
  options = Defaults();
  options.graph.capture.mode = static_cast<gcap_capture_mode_t>(7);
  GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, "capture mode is 7");
  options = Defaults();
  options.graph.policy = static_cast<gcap_graph_policy_t>(-1);
  GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, "graph policy is -1");
}

TEST(Options, FailedParseLeavesTheOptionsUnchanged) {
  gcap_options_t before = Defaults();
  GCAP_EXPECT_OK(Parse(&before, {{"device_id", "3"}, {"arena.max_mem", "4096"}}));
  const std::vector<std::pair<const char*, const char*>> last = {{"device_id", "x"}, {"no_such_key", "1"}};
  for (const auto& bad : last) {
    gcap_options_t options = before;
    const Pairs pairs = {{"device_id", "5"}, {"enable_cuda_graph", "1"}, {"user_compute_stream", "64"}, bad};
    GCAP_EXPECT_FAILS(Parse(&options, pairs), GCAP_INVALID_ARGUMENT, bad.first);
    ExpectEqual(options, before);
  }
}

TEST(Options, ParseKeepsWhatItIsNotTold) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"device_id", "3"}}));
  GCAP_EXPECT_OK(Parse(&options, {{"enable_cuda_graph", "1"}, {"arena.max_mem", "4096"}}));
  EXPECT_EQ(options.device_id, 3);
  EXPECT_TRUE(options.enable_cuda_graph);
  EXPECT_EQ(options.arena.memory_limit_bytes, 4096u);
}

TEST(Options, TraceFileIsCopiedOrRefused) {
  gcap_options_t options = Defaults();
  {
    const std::string path(255, 'x');
    GCAP_EXPECT_OK(Parse(&options, {{"arena.trace_file", path.c_str()}}));
  }
  EXPECT_EQ(options.trace_file, std::string(255, 'x'));
  const std::string too_long(256, 'y');
  GCAP_EXPECT_FAILS(Parse(&options, {{"arena.trace_file", too_long.c_str()}}), GCAP_INVALID_ARGUMENT,
                    "option arena.trace_file is 'yyy");
  EXPECT_EQ(options.trace_file, std::string(255, 'x'));
  GCAP_EXPECT_OK(Parse(&options, {{"arena.trace_file", ""}}));
  EXPECT_STREQ(options.trace_file, "");
}

TEST(Options, UserStreamOtherThanZeroImpliesThatThereIsOne) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", "0x40"}, {"has_user_compute_stream", "0"}}));
  EXPECT_TRUE(options.has_user_stream);
  options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", "0"}}));
  EXPECT_FALSE(options.has_user_stream);
  GCAP_EXPECT_OK(Parse(&options, {{"has_user_compute_stream", "1"}}));
  EXPECT_TRUE(options.has_user_stream);
  EXPECT_EQ(options.user_stream, nullptr);
}

TEST(Options, CheckWantsBothExternalCallbacksOrNone) {
  struct Row {
    Pairs pairs;
    const char* named;  // in the message; NULL: the check passes
  };
  const Row rows[] = {
      {{{"gpu_external_alloc", "64"}}, "only gpu_external_alloc is set"},
      {{{"gpu_external_free", "64"}}, "only gpu_external_free is set"},
      {{{"gpu_external_alloc", "64"}, {"gpu_external_empty_cache", "64"}}, "only gpu_external_alloc is set"},
      {{{"gpu_external_free", "64"}, {"gpu_external_empty_cache", "64"}}, "only gpu_external_free is set"},
      {{{"gpu_external_empty_cache", "64"}}, "gpu_external_empty_cache is set without"},
      {{{"gpu_external_alloc", "64"}, {"gpu_external_free", "128"}}, nullptr},
      {{{"gpu_external_alloc", "64"}, {"gpu_external_free", "128"}, {"gpu_external_empty_cache", "256"}}, nullptr},
  };
  for (const Row& row : rows) {
    gcap_options_t options = Defaults();
    GCAP_EXPECT_OK(Parse(&options, row.pairs));
    if (row.named == nullptr) {
      GCAP_EXPECT_OK(gcap_options_check(&options));
    } else {
      GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, row.named);
    }
  }
}

TEST(Options, CheckRefusesTwoSourcesOfMemory) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"arena.use_cuda_mempool", "1"}}));
  GCAP_EXPECT_OK(gcap_options_check(&options));
  GCAP_EXPECT_OK(Parse(&options, {{"gpu_external_alloc", "64"}, {"gpu_external_free", "128"}}));
  GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, "arena.use_cuda_mempool is 1");
}

TEST(Options, CheckRefusesToCaptureTheDefaultStream) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"has_user_compute_stream", "1"}}));
  GCAP_EXPECT_OK(gcap_options_check(&options));
  GCAP_EXPECT_OK(Parse(&options, {{"enable_cuda_graph", "1"}}));
  GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, "user_compute_stream is 0");
  for (const char* handle : {"1", "2"}) {  // cudaStreamLegacy, cudaStreamPerThread
    GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", handle}}));
    GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT,
                      (std::string("user_compute_stream is ") + handle).c_str());
  }
  GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", "0x40"}}));
  GCAP_EXPECT_OK(gcap_options_check(&options));
}

}  // namespace
