// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// examples/decoder on the simulator, where the rows of a product do not depend on one another: a sequence has the same
// tokens in any company.

#include "test/decoder/decode.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

class ServeSim : public DeviceTest {};

// Eight threads have three sequences each, at other times, in other rows and other pages.
TEST_F(ServeSim, ASequenceHasItsTokensInOtherCompany) {
  serve_options_t options = DecodeOptions();
  const Decoded crowded(options);
  options.num_threads = 8;
  options.steps_between_moves = 0;
  options.is_eager = true;
  const Decoded apart(options);
  EXPECT_EQ(crowded.tokens, apart.tokens);
  EXPECT_EQ(apart.report.cache.pool_moves, 0);
}

// 256 KiB of pages, as much again while a pool of half the size grows, and no room for a second pool.
TEST_F(ServeSim, APoolThatCannotMoveStays) {
  serve_options_t options = DecodeOptions();
  const Decoded roomy(options);
  options.max_graphs = 1;
  options.memory_limit_bytes = size_t{508} << 10;
  const Decoded tight(options);
  EXPECT_EQ(tight.tokens, roomy.tokens);
  EXPECT_LT(tight.report.cache.pool_moves, roomy.report.cache.pool_moves);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
