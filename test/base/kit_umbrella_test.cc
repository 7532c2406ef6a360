// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One include and one target give every module of the kit, and the core.

#include "gcap/kit/kit.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace {

TEST(KitUmbrella, DeclaresAndLinksEveryModule) {
  gcap_run_options_t run;
  gcap_run_options_init(&run);
  EXPECT_TRUE(run.synchronize);
  const gcap_node_t node = {};
  EXPECT_EQ(gcap_node_int(&node, "axis", 1), 1);
  gcap_ep_t* ep = nullptr;
  GCAP_EXPECT_OK(gcap_cpu_ep_create(&ep));
  GCAP_EXPECT_OK(gcap_ep_destroy(ep));
  EXPECT_EQ(gcap_version(), GCAP_VERSION);
}

}  // namespace
