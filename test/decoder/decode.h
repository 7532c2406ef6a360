// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// decode.h: what a run of examples/decoder gave.
#ifndef GCAP_TEST_DECODER_DECODE_H_
#define GCAP_TEST_DECODER_DECODE_H_

#include <vector>

#include "examples/decoder/serve.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

using Tokens = std::vector<std::vector<int>>;

inline serve_options_t DecodeOptions() {
  serve_options_t options = {};
  options.num_sequences = 14;
  options.num_steps = 1000;
  options.num_threads = 1;
  options.seed = 1;
  options.steps_between_moves = 7;
  return options;
}

struct Decoded {
  explicit Decoded(const serve_options_t& options) : sequences(static_cast<size_t>(options.num_sequences)) {
    GCAP_EXPECT_OK(serve(&options, sequences.data(), &report));
    for (const sequence_t& sequence : sequences) {
      tokens.emplace_back(sequence.tokens, sequence.tokens + sequence.num_tokens);
    }
  }

  std::vector<sequence_t> sequences;
  Tokens tokens;
  serve_report_t report;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_DECODER_DECODE_H_
