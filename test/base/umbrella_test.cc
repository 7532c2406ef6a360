// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One include and one target give every module of the core.

#include "gcap/gcap.h"
#include "gtest/gtest.h"

namespace {

TEST(Umbrella, DeclaresAndLinksEveryModule) {
  gcap_options_t options;
  gcap_options_init(&options);
  EXPECT_EQ(options.graph.min_num_runs_before_capture, 2u);
  gcap_scratch_options_t scratch;
  gcap_scratch_options_init(&scratch);
  EXPECT_EQ(scratch.initial_chunk_bytes, size_t{1} << 20);
  EXPECT_EQ(gcap_version(), GCAP_VERSION);
}

}  // namespace
