// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Provider options: every key with values that it takes and values that it refuses, and whether options fit together.

#include "test/options/options_rows.h"

#include <set>

#include "lib/options/inner.h"

namespace gcap {
namespace testing {
namespace {

TEST(Options, InitGivesTheDocumentedDefaults) {
  const gcap_options_t options = Defaults();
  for (const Key& key : Keys()) EXPECT_EQ(key.get(options), key.by_default) << key.name;
  EXPECT_STREQ(options.trace_file, "");
  EXPECT_FALSE(options.allow_default_stream);
  EXPECT_EQ(options.arena.on_event, nullptr);
  EXPECT_EQ(options.graph.on_evict, nullptr);
  EXPECT_EQ(options.graph.capture.mode, GCAP_CAPTURE_THREAD_LOCAL);
  EXPECT_EQ(options.kernels.struct_size, sizeof(gcap_kernel_options_t));
}

TEST(Options, KernelOptionsHaveTheSameDefaultsAlone) {
  gcap_kernel_options_t alone;
  std::memset(&alone, 0xa5, sizeof(alone));
  gcap_kernel_options_init(&alone);
  gcap_options_t options = Defaults();
  options.kernels = alone;
  ExpectEqual(options, Defaults());
  EXPECT_EQ(alone.struct_size, sizeof(alone));
}

// A key that the library knows and no row here tries would go untested.
TEST(Options, EveryKeyHasARow) {
  char text[GCAP_OPTIONS_MAX_TEXT_BYTES];
  const gcap_options_t options = Defaults();
  GCAP_ASSERT_OK(gcap_options_get(&options, nullptr, text, sizeof(text)));
  std::set<std::string> known = {"user_compute_stream"};  // left out where there is none
  for (const char* at = text; *at != '\0'; at = strchr(at, '\n') + 1) known.insert(std::string(at, strchr(at, '=')));
  std::set<std::string> tried = {"arena.trace_file"};
  for (const Key& key : Keys()) tried.insert(OptionOf(key.name));
  EXPECT_EQ(known, tried);
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
    for (const auto& good : key.good) {
      SCOPED_TRACE(std::string(key.name) + " = '" + good.first + "'");
      gcap_options_t options = Defaults();
      GCAP_EXPECT_OK(Parse(&options, {{key.name, good.first}}));
      const bool is_stream = key.name == std::string("user_compute_stream");
      EXPECT_EQ(options.allow_default_stream, is_stream && good.second == 0);
      for (const Key& other : Keys()) {
        const bool implied = is_stream && other.name == std::string("has_user_compute_stream");
        if (OptionOf(other.name) == OptionOf(key.name) || implied) continue;
        EXPECT_EQ(other.get(options), other.get(Defaults())) << other.name;
      }
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
      ExpectEqual(options, Defaults());
    }
  }
}

// What ONNX Runtime can switch on and gcap has not.
TEST(Options, WhatGcapLacksIsAcceptedOffAndRefusedOnWithTheReason) {
  struct Row {
    const char* key;
    std::vector<const char*> off, on;
    const char* reason;
  };
  const Row rows[] = {
      {"tunable_op_enable", {"0", "false", "False"}, {"1", "true", "2", ""}, "gcap has no tunable operators"},
      {"tunable_op_tuning_enable", {"0"}, {"1"}, "gcap has no tunable operators"},
      {"tunable_op_max_tuning_duration_ms", {"0"}, {"1", "5000", "-1"}, "gcap has no tunable operators"},
      {"gelu_disable_half2", {"0"}, {"1"}, "gcap has no half2 version of Gelu to disable"},
      {"default_memory_arena_cfg", {"0", "0x0"}, {"0x5000", "x"}, "give the keys arena.* instead"},
      {"enable_skip_layer_norm_strict_mode", {"0", "false"}, {"1", "true"}, "gcap has no SkipLayerNormalization"},
      {"sdpa_kernel", {"0"}, {"8", "2147483647", "-1"}, "gcap has no scaled dot-product attention"},
  };
  for (const Row& row : rows) {
    gcap_options_t options = Defaults();
    for (const char* off : row.off) GCAP_EXPECT_OK(Parse(&options, {{row.key, off}}));
    for (const char* on : row.on) {
      const Outcome outcome(Parse(&options, {{row.key, on}}));
      EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
      EXPECT_TRUE(outcome.Names(std::string("option ") + row.key + " is '" + on + "', allowed is 0: "))
          << outcome.message;
      EXPECT_TRUE(outcome.Names(row.reason)) << outcome.message;
    }
    ExpectEqual(options, Defaults());
  }
}

// As a host passes all that it knows.
TEST(Options, AllOfOnnxRuntimesKeysAreAcceptedAtTheirDefaults) {
  const Pairs pairs = {{"device_id", "0"},
                       {"has_user_compute_stream", "0"},
                       {"user_compute_stream", "0"},
                       {"do_copy_in_default_stream", "1"},
                       {"cudnn_conv_algo_search", "EXHAUSTIVE"},
                       {"gpu_mem_limit", "18446744073709551615"},
                       {"arena_extend_strategy", "kNextPowerOfTwo"},
                       {"gpu_external_alloc", "0"},
                       {"gpu_external_free", "0"},
                       {"gpu_external_empty_cache", "0"},
                       {"cudnn_conv_use_max_workspace", "1"},
                       {"enable_cuda_graph", "0"},
                       {"cudnn_conv1d_pad_to_nc1d", "0"},
                       {"tunable_op_enable", "0"},
                       {"tunable_op_tuning_enable", "0"},
                       {"tunable_op_max_tuning_duration_ms", "0"},
                       {"enable_skip_layer_norm_strict_mode", "0"},
                       {"prefer_nhwc", "0"},
                       {"use_ep_level_unified_stream", "0"},
                       {"use_tf32", "1"},
                       {"fuse_conv_bias", "0"},
                       {"sdpa_kernel", "0"}};
  gcap_options_t options = Defaults(), expected = Defaults();
  GCAP_EXPECT_OK(Parse(&options, pairs));
  expected.arena.memory_limit_bytes = SIZE_MAX;  // as good as none
  expected.allow_default_stream = true;
  ExpectEqual(options, expected);
  GCAP_EXPECT_OK(gcap_options_check(&options));
}

// Was: followed.
TEST(Options, NullKeysAndValuesAreNamedByTheirIndex) {
  gcap_options_t options = Defaults();
  const char* const keys[] = {"device_id", nullptr};
  const char* const values[] = {"0", "1"};
  GCAP_EXPECT_FAILS(gcap_options_parse(&options, keys, values, 2), GCAP_INVALID_ARGUMENT, "keys[1] is NULL");
  const char* const no_values[] = {nullptr};
  GCAP_EXPECT_FAILS(gcap_options_parse(&options, keys, no_values, 1), GCAP_INVALID_ARGUMENT,
                    "values[0] is NULL, the value of option 'device_id'");
}

// Was: all of it, with its newlines.
TEST(Options, LongKeysAndValuesAreCutInMessages) {
  const std::string text(100000, 'x');
  for (const Pairs& pairs : {Pairs{{text, "1"}}, Pairs{{"device_id", text}}, Pairs{{"ep.cuda." + text, "1"}}}) {
    gcap_options_t options = Defaults();
    const Outcome outcome(Parse(&options, pairs));
    EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
    EXPECT_TRUE(outcome.Names("xxx...'")) << outcome.message;
    EXPECT_LT(outcome.message.size(), 2000u);
  }
  gcap_options_t options = Defaults();
  GCAP_EXPECT_FAILS(Parse(&options, {{"device_id", "1\n2"}}), GCAP_INVALID_ARGUMENT, "option device_id is '1\\x0a2',");
}

TEST(Options, FailedParseLeavesTheOptionsUnchanged) {
  gcap_options_t before = Defaults();
  GCAP_EXPECT_OK(Parse(&before, {{"device_id", "3"}, {"arena.max_mem", "4096"}}));
  const Pairs last = {{"device_id", "x"}, {"no_such_key", "1"}, {"tunable_op_enable", "1"}};
  for (const auto& bad : last) {
    gcap_options_t options = before;
    const Pairs pairs = {{"device_id", "5"}, {"enable_cuda_graph", "1"}, {"user_compute_stream", "64"},
                         {"use_tf32", "0"},  {"graph.scope", "session"}, bad};
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
    GCAP_EXPECT_OK(Parse(&options, {{"arena.trace_file", path}}));
  }
  EXPECT_EQ(options.trace_file, std::string(255, 'x'));
  GCAP_EXPECT_FAILS(Parse(&options, {{"arena.trace_file", std::string(256, 'y')}}), GCAP_INVALID_ARGUMENT,
                    "option arena.trace_file is 'yyy");
  GCAP_EXPECT_FAILS(Parse(&options, {{"arena.trace_file", "two\nlines"}}), GCAP_INVALID_ARGUMENT, "in one line");
  EXPECT_EQ(options.trace_file, std::string(255, 'x'));
  GCAP_EXPECT_OK(Parse(&options, {{"arena.trace_file", ""}}));
  EXPECT_STREQ(options.trace_file, "");
}

// --- Whether they fit together --------------------------------------------------------------------------------------

// Was: taken, and refused by the first run.
TEST(OptionsCheck, RefusesWhatAGraphManagerWould) {
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

TEST(OptionsCheck, RefusesEnumerationsOutOfRange) {
  gcap_options_t options;
  for (const int bad : {-1, 2}) {
    options = Defaults();
    options.graph_scope = static_cast<gcap_graph_scope_t>(bad);
    GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, "graph_scope is " + std::to_string(bad));
  }
  for (const int bad : {-1, 3}) {
    options = Defaults();
    options.kernels.conv_search = static_cast<gcap_conv_search_t>(bad);
    GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT,
                      "kernels.conv_search is " + std::to_string(bad));
  }
}

TEST(OptionsCheck, RefusesASizeThatIsNoVersions) {
  gcap_options_t options = Defaults();
  options.struct_size = 1;
  GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, "struct_size is 1, which is no version's");
}

TEST(OptionsCheck, AcceptsEachEnumerator) {
  for (const auto scope : {GCAP_GRAPH_SCOPE_THREAD, GCAP_GRAPH_SCOPE_SESSION}) {
    gcap_options_t options = Defaults();
    options.graph_scope = scope;
    GCAP_EXPECT_OK(gcap_options_check(&options));
  }
  for (const auto search : {GCAP_CONV_SEARCH_EXHAUSTIVE, GCAP_CONV_SEARCH_HEURISTIC, GCAP_CONV_SEARCH_DEFAULT}) {
    gcap_options_t options = Defaults();
    options.kernels.conv_search = search;
    GCAP_EXPECT_OK(gcap_options_check(&options));
  }
}

TEST(OptionsCheck, WantsBothExternalCallbacksOrNone) {
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

TEST(OptionsCheck, RefusesTwoSourcesOfMemory) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"arena.use_cuda_mempool", "1"}}));
  GCAP_EXPECT_OK(gcap_options_check(&options));
  GCAP_EXPECT_OK(Parse(&options, {{"gpu_external_alloc", "64"}, {"gpu_external_free", "128"}}));
  GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, "arena.use_cuda_mempool is 1");
}

// Unlike ONNX Runtime's: PyTorch's stream and PyTorch's memory go together.
TEST(OptionsCheck, TakesAUserStreamWithExternalMemory) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", "0x40"},
                                  {"gpu_external_alloc", "64"},
                                  {"gpu_external_free", "128"},
                                  {"enable_cuda_graph", "1"}}));
  GCAP_EXPECT_OK(gcap_options_check(&options));
}

TEST(OptionsCheck, RefusesToCaptureTheDefaultStream) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"has_user_compute_stream", "1"}, {"user_compute_stream", "0"}}));
  GCAP_EXPECT_OK(gcap_options_check(&options));
  GCAP_EXPECT_OK(Parse(&options, {{"enable_cuda_graph", "1"}}));
  GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, "user_compute_stream is 0");
  for (const char* handle : {"1", "2"}) {  // cudaStreamLegacy, cudaStreamPerThread
    GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", handle}}));
    GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT,
                      std::string("user_compute_stream is ") + handle);
  }
  GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", "0x40"}}));
  GCAP_EXPECT_OK(gcap_options_check(&options));
}

// Was: the legacy default stream, with or without a pointer.
TEST(OptionsCheck, RefusesAUserStreamThatWasForgotten) {
  const char* const said = "has_user_compute_stream is 1 and user_compute_stream is missing";
  for (const Pairs& more : {Pairs{}, Pairs{{"enable_cuda_graph", "1"}}}) {
    gcap_options_t options = Defaults();
    GCAP_EXPECT_OK(Parse(&options, {{"has_user_compute_stream", "1"}}));
    GCAP_EXPECT_OK(Parse(&options, more));
    GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, said);
  }
  gcap_options_t options = Defaults();
  options.has_user_stream = true;
  GCAP_EXPECT_FAILS(gcap_options_check(&options), GCAP_INVALID_ARGUMENT, said);
  options.allow_default_stream = true;
  GCAP_EXPECT_OK(gcap_options_check(&options));
  options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", "0"}, {"has_user_compute_stream", "1"}}));
  GCAP_EXPECT_OK(gcap_options_check(&options));
  EXPECT_EQ(options.user_stream, nullptr);
}

TEST(OptionsCheck, AStreamThatIsTakenBackIsNotMeantAnyMore) {
  gcap_options_t options = Defaults();
  GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", "0"}}));
  EXPECT_TRUE(options.allow_default_stream);
  EXPECT_FALSE(options.has_user_stream);
  GCAP_EXPECT_OK(Parse(&options, {{"user_compute_stream", "0x40"}, {"has_user_compute_stream", "0"}}));
  EXPECT_TRUE(options.has_user_stream);
  EXPECT_FALSE(options.allow_default_stream);
  GCAP_EXPECT_OK(gcap_options_check(&options));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
