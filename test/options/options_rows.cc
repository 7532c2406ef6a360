// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "test/options/options_rows.h"

namespace gcap {
namespace testing {
namespace {

using Good = std::vector<std::pair<const char*, uint64_t>>;
using Bad = std::vector<const char*>;

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

const Good kGoodBools = {{"1", 1}, {"0", 0}, {"true", 1}, {"false", 0}, {"True", 1}, {"False", 0}};
const Bad kBadBools = {"", "2", "01", "-1", "yes", "TRUE", "1 ", " 1"};
const Good kGoodCounts = {{"0", 0}, {"7", 7}, {"2147483647", 2147483647}};
const Bad kBadCounts = {"", "-1", "+1", " 1", "1 ", "1x", "0x1", "1.5", "one", "2147483648", "18446744073709551616"};
const Good kGoodAddresses = {{"4096", 4096},
                             {"0x1000", 4096},
                             {"0XfF", 255},
                             {"0", 0},
                             {"0x0", 0},
                             {"0777", 777},
                             {"18446744073709551615", kMax},
                             {"0xffffffffffffffff", kMax}};
const Bad kBadAddresses = {
    "", "-1", "0x", "x10", "ff", "0x10g", " 4096", "4096 ", "0x-10", "18446744073709551616", "0x1 ", "0b1010", "1e3"};
const Good kGoodBytes = {{"0", 0}, {"65536", 65536}, {"18446744073709551615", kMax}};
const Bad kBadBytes = {"", "-1", "1k", "1 MiB", "0x100", "1.0", "18446744073709551616"};
const Good kGoodStrategies = {{"0", 0}, {"1", 1}, {"kNextPowerOfTwo", 0}, {"kSameAsRequested", 1}};
const Bad kBadStrategies = {"", "2", "-1", "01", "true", "ksameasrequested", "SameAsRequested"};
const Good kGoodSearches = {{"EXHAUSTIVE", 0}, {"HEURISTIC", 1}, {"DEFAULT", 2}, {"0", 0}, {"1", 1}, {"2", 2}};
const Bad kBadSearches = {"", "3", "-1", "exhaustive", "GRAPH", "DEFAULT "};

uint64_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
template <typename Result, typename... Arguments>
uint64_t Address(Result (*function)(Arguments...)) {
  return reinterpret_cast<uintptr_t>(function);
}

#define GET(expression) [](const gcap_options_t& o) -> uint64_t { return static_cast<uint64_t>(expression); }

void AddGraphsAndStreams(std::vector<Key>* all) {
  *all = {
      {"device_id", GET(o.device_id), 0, kGoodCounts, kBadCounts},
      {"enable_cuda_graph", GET(o.enable_cuda_graph), 0, kGoodBools, kBadBools},
      {"min_num_runs_before_cuda_graph_capture", GET(o.graph.min_num_runs_before_capture), 2, kGoodCounts, kBadCounts},
      {"graph.scope",
       GET(o.graph_scope),
       0,
       {{"thread", 0}, {"session", 1}},
       {"", "0", "1", "Thread", "session ", "sessions"}},
      {"graph.policy",
       GET(o.graph.policy),
       0,
       {{"stable", 1}, {"min_runs", 0}},
       {"", "0", "1", "Stable", "stable ", "min_run"}},
      {"graph.max_runs_before_capture", GET(o.graph.max_runs_before_capture), 6, kGoodCounts, kBadCounts},
      {"graph.backoff_runs", GET(o.graph.backoff_runs), 1, kGoodCounts, kBadCounts},
      {"graph.rerun_failed_capture", GET(o.graph.rerun_failed_capture), 1, kGoodBools, kBadBools},
      {"graph.upload", GET(o.graph.upload), 0, kGoodBools, kBadBools},
      {"graph.keep_source", GET(o.graph.keep_source), 0, kGoodBools, kBadBools},
      {"graph.max_graphs", GET(o.graph.max_graphs), 0, kGoodBytes, kBadBytes},
      {"graph.max_bytes", GET(o.graph.max_bytes), 0, kGoodBytes, kBadBytes},
      {"graph.max_ids_without_graph", GET(o.graph.max_ids_without_graph), 16384, kGoodBytes, kBadBytes},
      {"graph.max_variants", GET(o.graph.max_variants), 4, kGoodBytes, kBadBytes},
      {"graph.ledger_calls",
       GET(o.graph.capture.ledger_calls),
       64,
       {{"0", 0}, {"7", 7}, {"65536", 65536}},
       {"", "-1", "65537", "2147483647", "64k"}},
      {"graph.audit",
       GET(o.graph.audit),
       0,
       {{"on_demand", 1}, {"each_replay", 2}, {"off", 0}},
       {"", "0", "1", "Off", "each replay", "each_replay "}},
      {"has_user_compute_stream", GET(o.has_user_stream), 0, kGoodBools, kBadBools},
      {"user_compute_stream", GET(Address(o.user_stream)), 0, kGoodAddresses, kBadAddresses},
      {"use_ep_level_unified_stream", GET(o.use_unified_stream), 0, kGoodBools, kBadBools},
      {"do_copy_in_default_stream", GET(o.do_copy_in_default_stream), 1, kGoodBools, kBadBools},
  };
}

void AddMemory(std::vector<Key>* all) {
  const std::vector<Key> keys = {
      {"gpu_external_alloc", GET(Address(o.external_alloc)), 0, kGoodAddresses, kBadAddresses},
      {"gpu_external_free", GET(Address(o.external_free)), 0, kGoodAddresses, kBadAddresses},
      {"gpu_external_empty_cache", GET(Address(o.external_empty_cache)), 0, kGoodAddresses, kBadAddresses},
      {"arena.extend_strategy", GET(o.arena.extend_as_requested), 0, kGoodStrategies, kBadStrategies},
      {"arena_extend_strategy", GET(o.arena.extend_as_requested), 0, kGoodStrategies, kBadStrategies},
      {"arena.initial_chunk_size_bytes", GET(o.arena.initial_chunk_bytes), 1048576, kGoodBytes, kBadBytes},
      {"arena.max_power_of_two_extend_bytes", GET(o.arena.max_extend_bytes), 1073741824, kGoodBytes, kBadBytes},
      {"arena.initial_growth_chunk_size_bytes", GET(o.arena.initial_growth_chunk_bytes), 2097152, kGoodBytes,
       kBadBytes},
      {"arena.max_dead_bytes_per_chunk", GET(o.arena.max_dead_bytes_per_chunk), 134217728, kGoodBytes, kBadBytes},
      {"arena.max_mem", GET(o.arena.memory_limit_bytes), 0, kGoodBytes, kBadBytes},
      {"gpu_mem_limit", GET(o.arena.memory_limit_bytes), 0, kGoodBytes, kBadBytes},
      {"cuda_mem_limit", GET(o.arena.memory_limit_bytes), 0, kGoodBytes, kBadBytes},
      {"arena.use_cuda_mempool", GET(o.use_mempool), 0, kGoodBools, kBadBools},
      {"arena.cuda_mempool_release_threshold", GET(o.mempool.release_threshold_bytes), kMax, kGoodBytes, kBadBytes},
      {"arena.cuda_mempool_bytes_to_keep_on_shrink", GET(o.mempool.bytes_kept_on_trim), 0, kGoodBytes, kBadBytes},
      {"arena.bypass", GET(o.arena.bypass), 0, kGoodBools, kBadBools},
      {"arena.share_graph_memory", GET(o.share_graph_memory), 0, kGoodBools, kBadBools},
      {"arena.red_zones", GET(o.arena.red_zones), 0, kGoodBools, kBadBools},
      {"arena.poison_on_free", GET(o.arena.poison_on_free), 0, kGoodBools, kBadBools},
      {"arena.recorded_operations", GET(o.arena.recorded_operations), 0, kGoodBytes, kBadBytes},
  };
  all->insert(all->end(), keys.begin(), keys.end());
}

// Defaults as in ONNX Runtime's OrtCUDAProviderOptionsV2 and the configuration of its CUDA plugin.
void AddKernels(std::vector<Key>* all) {
  const std::vector<Key> keys = {
      {"cudnn_conv_algo_search", GET(o.kernels.conv_search), 0, kGoodSearches, kBadSearches},
      {"cudnn_conv_algo", GET(o.kernels.conv_search), 0, kGoodSearches, kBadSearches},
      {"cudnn_conv_use_max_workspace", GET(o.kernels.conv_use_max_workspace), 1, kGoodBools, kBadBools},
      {"cudnn_conv1d_pad_to_nc1d", GET(o.kernels.conv1d_pad_to_nc1d), 0, kGoodBools, kBadBools},
      {"fuse_conv_bias", GET(o.kernels.fuse_conv_bias), 0, kGoodBools, kBadBools},
      {"use_tf32", GET(o.kernels.use_tf32), 1, kGoodBools, kBadBools},
      {"prefer_nhwc", GET(o.kernels.prefer_nhwc), 0, kGoodBools, kBadBools},
      {"prefer_nhwc_layout", GET(o.kernels.prefer_nhwc), 0, kGoodBools, kBadBools},
      {"enable_cudnn", GET(o.kernels.use_cudnn), 1, kGoodBools, kBadBools},
  };
  all->insert(all->end(), keys.begin(), keys.end());
}

}  // namespace

const std::vector<Key>& Keys() {
  static const auto* const keys = [] {
    auto* all = new std::vector<Key>;
    AddGraphsAndStreams(all);
    AddMemory(all);
    AddKernels(all);
    return all;
  }();
  return *keys;
}

}  // namespace testing
}  // namespace gcap
