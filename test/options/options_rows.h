// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options_rows.h: every provider option with its field, its default, values that it takes and values that it refuses;
// written down here on its own, from ONNX Runtime's headers and gcap's, and not taken from the library's table.
#ifndef GCAP_TEST_OPTIONS_OPTIONS_ROWS_H_
#define GCAP_TEST_OPTIONS_OPTIONS_ROWS_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gcap/options.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// The texts of pairs as the C functions take them.
struct Texts {
  explicit Texts(const Pairs& pairs) {
    for (const auto& pair : pairs) {
      keys.push_back(pair.first.c_str());
      values.push_back(pair.second.c_str());
    }
  }
  std::vector<const char*> keys, values;
};

inline gcap_status_t Parse(gcap_options_t* options, const Pairs& pairs) {
  const Texts texts(pairs);
  return gcap_options_parse(options, texts.keys.data(), texts.values.data(), pairs.size());
}

inline gcap_options_t Defaults() {
  gcap_options_t options;
  std::memset(&options, 0xa5, sizeof(options));  // whatever init forgets stays visible
  gcap_options_init(&options);
  return options;
}

// A key, a way to read its field, its default, values that it takes with what the field is then, values that it
// refuses.
struct Key {
  const char* name;
  std::function<uint64_t(const gcap_options_t&)> get;
  uint64_t by_default;
  std::vector<std::pair<const char*, uint64_t>> good;
  std::vector<const char*> bad;
};

const std::vector<Key>& Keys();  // of all fields but paths

// The key that an alias is another name for; of any other key the key itself.
inline std::string OptionOf(const std::string& name) {
  static const auto* const keys = new std::map<std::string, std::string>{
      {"arena_extend_strategy", "arena.extend_strategy"},
      {"gpu_mem_limit", "arena.max_mem"},
      {"cuda_mem_limit", "arena.max_mem"},
      {"cudnn_conv_algo", "cudnn_conv_algo_search"},
      {"prefer_nhwc_layout", "prefer_nhwc"},
  };
  const auto found = keys->find(name);
  return found == keys->end() ? name : found->second;
}

// All fields, one by one.
inline void ExpectEqual(const gcap_options_t& a, const gcap_options_t& b) {
  for (const Key& key : Keys()) EXPECT_EQ(key.get(a), key.get(b)) << key.name;
  EXPECT_STREQ(a.trace_file, b.trace_file);
  EXPECT_EQ(a.allow_default_stream, b.allow_default_stream);
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_OPTIONS_OPTIONS_ROWS_H_
