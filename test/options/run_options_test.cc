// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Run options: every key with values that it takes and values that it refuses.

#include "gcap/kit/run_options.h"

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

using Pairs = std::vector<std::pair<const char*, const char*>>;

gcap_status_t Parse(gcap_run_options_t* options, const Pairs& pairs) {
  std::vector<const char*> keys, values;
  for (const auto& pair : pairs) {
    keys.push_back(pair.first);
    values.push_back(pair.second);
  }
  return gcap_run_options_parse(options, keys.data(), values.data(), pairs.size());
}

gcap_run_options_t Defaults() {
  gcap_run_options_t options;
  std::memset(&options, 0xa5, sizeof(options));  // whatever init forgets stays visible
  gcap_run_options_init(&options);
  return options;
}

struct Key {
  const char* name;
  std::function<int64_t(const gcap_run_options_t&)> get;
  int64_t by_default;
  std::vector<std::pair<const char*, int64_t>> good;
  std::vector<const char*> bad;
};

const std::vector<std::pair<const char*, int64_t>> kGoodBools = {{"1", 1},     {"0", 0},    {"true", 1},
                                                                 {"false", 0}, {"True", 1}, {"False", 0}};
const std::vector<const char*> kBadBools = {"", "2", "01", "-1", "yes", "TRUE", "1 ", " 1"};

#define GET(expression) [](const gcap_run_options_t& o) -> int64_t { return static_cast<int64_t>(expression); }

const std::vector<Key>& Keys() {
  static const auto* const keys = new std::vector<Key>{
      {"gpu_graph_id",
       GET(o.graph_id),
       0,
       {{"0", 0}, {"-1", -1}, {"7", 7}, {"2147483647", 2147483647}},
       {"", "-2", "--1", "-01", "-1 ", "+1", " 1", "1x", "abc", "1.5", "0x1", "2147483648", "-2147483649",
        "18446744073709551616"}},
      {"disable_synchronize_execution_providers",
       GET(o.synchronize),
       1,
       {{"1", 0}, {"0", 1}},
       {"", "2", "true", "-1", "01", "1 ", "yes"}},
      {"memory.enable_memory_arena_shrinkage",
       GET(o.trimmed_devices),
       0,
       {{"", 0},
        {"gpu:0", 1},
        {"gpu:1", 2},
        {"gpu:0;gpu:2", 5},
        {"gpu:0;gpu:0", 1},
        {"gpu:63", std::numeric_limits<int64_t>::min()}},
       {"gpu", "gpu:", "gpu:x", "gpu:-1", "gpu:64", "gpu:100", "GPU:0", "cpu:0", "cpu:0;gpu:0", "gpu:0;", ";", ";gpu:0",
        "gpu:0; gpu:1", " gpu:0", "gpu:0 ", "gpu:0,gpu:1", "0"}},
      {"user_compute_stream",
       GET(reinterpret_cast<uintptr_t>(o.user_stream)),
       0,
       {{"0", 0}, {"4096", 4096}, {"0x1000", 4096}, {"0XfF", 255}},
       {"", "-1", "0x", "ff", "0x10g", " 1", "1 ", "18446744073709551616"}},
      {"rerun_failed_capture", GET(o.rerun_failed_capture), 1, kGoodBools, kBadBools},
      {"check_bindings", GET(o.check_bindings), 0, kGoodBools, kBadBools},
      {"capture_in_run", GET(o.capture_in_run), 0, kGoodBools, kBadBools},
      {"capture_only", GET(o.capture_only), 0, kGoodBools, kBadBools},
      {"pinned", GET(o.pinned), 0, kGoodBools, kBadBools},
      {"verify", GET(reinterpret_cast<uintptr_t>(o.verify)), 0, {{"0", 0}, {"0x1000", 4096}}, {"", "-1", "ff", "1 "}},
      {"bindings",
       GET(o.bindings),
       0,
       {{"fixed", GCAP_BINDINGS_FIXED}, {"copy", GCAP_BINDINGS_COPY}, {"relocate", GCAP_BINDINGS_RELOCATE}},
       {"", "0", "1", "Copy", "relocate ", "moved"}},
  };
  return *keys;
}

void ExpectEqual(const gcap_run_options_t& a, const gcap_run_options_t& b) {
  for (const Key& key : Keys()) EXPECT_EQ(key.get(a), key.get(b)) << key.name;
}

TEST(RunOptions, InitGivesTheDocumentedDefaults) {
  const gcap_run_options_t options = Defaults();
  EXPECT_EQ(options.struct_size, sizeof(options));
  for (const Key& key : Keys()) EXPECT_EQ(key.get(options), key.by_default) << key.name;
}

TEST(RunOptions, EachKeyTakesItsValuesAndSetsNothingElse) {
  for (const Key& key : Keys()) {
    for (const auto& good : key.good) {
      SCOPED_TRACE(std::string(key.name) + " = '" + good.first + "'");
      gcap_run_options_t options = Defaults();
      GCAP_EXPECT_OK(Parse(&options, {{key.name, good.first}}));
      for (const Key& other : Keys()) {
        EXPECT_EQ(other.get(options), &other == &key ? good.second : other.by_default) << other.name;
      }
    }
  }
}

TEST(RunOptions, EachKeyRefusesOtherValuesAndNamesThem) {
  for (const Key& key : Keys()) {
    for (const char* bad : key.bad) {
      SCOPED_TRACE(std::string(key.name) + " = '" + bad + "'");
      gcap_run_options_t options = Defaults();
      GCAP_EXPECT_FAILS(Parse(&options, {{"gpu_graph_id", "5"}, {key.name, bad}}), GCAP_INVALID_ARGUMENT,
                        std::string("run option ") + key.name + " is '" + bad + "', allowed is ");
      ExpectEqual(options, Defaults());
    }
  }
}

TEST(RunOptions, MessagesAreSentences) {
  gcap_run_options_t options = Defaults();
  GCAP_EXPECT_FAILS(
      Parse(&options, {{"gpu_graph_id", "abc"}}), GCAP_INVALID_ARGUMENT,
      "run option gpu_graph_id is 'abc', allowed is a whole number from -1 (never capture) to 2147483647");
  GCAP_EXPECT_FAILS(Parse(&options, {{"disable_synchronize_execution_providers", "yes"}}), GCAP_INVALID_ARGUMENT,
                    "run option disable_synchronize_execution_providers is 'yes', allowed is 0 or 1");
  GCAP_EXPECT_FAILS(Parse(&options, {{"memory.enable_memory_arena_shrinkage", "cpu:0"}}), GCAP_INVALID_ARGUMENT,
                    "allowed is nothing, or arenas of devices 0 to 63, as gpu:0;gpu:1");
}

// Keys of ONNX Runtime's that gcap has no use for.
TEST(RunOptions, OtherKeysOfOnnxRuntimeAreAcceptedOrRefusedByName) {
  gcap_run_options_t options = Defaults();
  for (const char* key :
       {"qnn.htp_perf_mode", "qnn.htp_perf_mode_post_run", "qnn.rpc_control_latency", "qnn.lora_config"}) {
    for (const char* value : {"", "burst", "100", "/a/file"}) GCAP_EXPECT_OK(Parse(&options, {{key, value}}));
  }
  GCAP_EXPECT_OK(Parse(&options, {{"external_device_graph_capture", "0"}}));
  ExpectEqual(options, Defaults());
  for (const char* value : {"1", "2", ""}) {
    GCAP_EXPECT_FAILS(Parse(&options, {{"external_device_graph_capture", value}}), GCAP_INVALID_ARGUMENT,
                      "external_device_graph_capture is '");
  }
}

TEST(RunOptions, UnknownKeysAreToldTheNearestOne) {
  const Pairs rows = {{"gpu_graphid", "gpu_graph_id"},
                      {"gpu_graph_ids", "gpu_graph_id"},
                      {"enable_memory_arena_shrinkage", "memory.enable_memory_arena_shrinkage"},
                      {"disable_synchronise_execution_providers", "disable_synchronize_execution_providers"}};
  for (const auto& row : rows) {
    gcap_run_options_t options = Defaults();
    const std::string said =
        std::string("unknown run option '") + row.first + "', did you mean " + row.second + "?; docs/options.md";
    GCAP_EXPECT_FAILS(Parse(&options, {{row.first, "1"}}), GCAP_INVALID_ARGUMENT, said);
  }
  // Run options are for all EPs: they have no prefix.
  for (const char* key : {"ep.cuda.gpu_graph_id", "", "device_id"}) {
    gcap_run_options_t options = Defaults();
    GCAP_EXPECT_FAILS(Parse(&options, {{key, "1"}}), GCAP_INVALID_ARGUMENT,
                      std::string("unknown run option '") + key + "'");
  }
}

TEST(RunOptions, NullKeysAndValuesAreNamedByTheirIndex) {
  gcap_run_options_t options = Defaults();
  GCAP_EXPECT_FAILS(Parse(&options, {{"gpu_graph_id", "0"}, {nullptr, "1"}}), GCAP_INVALID_ARGUMENT,
                    "gcap_run_options_parse: keys[1] is NULL");
  GCAP_EXPECT_FAILS(Parse(&options, {{"gpu_graph_id", nullptr}}), GCAP_INVALID_ARGUMENT,
                    "values[0] is NULL, the value of run option 'gpu_graph_id'");
}

TEST(RunOptions, ParseKeepsWhatItIsNotToldAndTheLastValueCounts) {
  gcap_run_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"gpu_graph_id", "3"}, {"check_bindings", "1"}}));
  GCAP_EXPECT_OK(Parse(&options, {{"gpu_graph_id", "4"}, {"gpu_graph_id", "-1"}}));
  EXPECT_EQ(options.graph_id, GCAP_GRAPH_ID_NONE);
  EXPECT_TRUE(options.check_bindings);
  GCAP_EXPECT_OK(gcap_run_options_parse(&options, nullptr, nullptr, 0));
  EXPECT_TRUE(options.check_bindings);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
