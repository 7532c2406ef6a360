// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What becomes of the part of a hold that a stream is given and cannot take: the runtime is waited for, and where that
// fails too the bytes stay, since the device may still use what they stand for.

#include "gcap/runtime_ops.h"
#include "gtest/gtest.h"
#include "test/ep/hold_scene.h"
#include "test/support/expect_status.h"

namespace {

// A runtime without a device, which can be waited for or cannot. No stream: a part cannot be deferred.
class Hold : public testing::Test {
 protected:
  void SetUp() override {
    gcap_runtime_ops_t ops = {};
    ops.struct_size = sizeof(ops);
    ops.self = this;
    ops.get_resources = [](void*, gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
    ops.synchronize = [](void* self) -> gcap_status_t {
      ++static_cast<Hold*>(self)->waits_;
      return static_cast<Hold*>(self)->can_wait_ ? nullptr : GCAP_STATUS(GCAP_UNAVAILABLE, "nobody can be waited for");
    };
    GCAP_ASSERT_OK(gcap_runtime_create_from(&ops, &runtime_));
    hold_ = gcap_test_hold_create();
    ASSERT_NE(hold_, nullptr);
  }
  void TearDown() override { GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_)); }

  gcap_runtime_t* runtime_ = nullptr;
  gcap_hold_t* hold_ = nullptr;
  bool can_wait_ = true;
  int waits_ = 0;
};

TEST_F(Hold, APartThatCannotBeDeferredIsLetGoOnceTheRuntimeWasWaitedFor) {
  gcap_test_hold_give_to_stream(hold_, runtime_, /*stream=*/nullptr);
  EXPECT_EQ(waits_, 1);
  EXPECT_EQ(gcap_test_hold_parts(hold_), 1u);
  EXPECT_FALSE(gcap_test_hold_is_kept(hold_));
  gcap_test_hold_let_go(hold_);
}

// Each part, however many: the hold is in the list of what is kept once.
TEST_F(Hold, APartThatCanBeNeitherDeferredNorWaitedForIsNeverFreed) {
  can_wait_ = false;
  for (size_t given = 1; given <= 2; ++given) {
    gcap_test_hold_give_to_stream(hold_, runtime_, /*stream=*/nullptr);
    EXPECT_EQ(gcap_test_hold_parts(hold_), 1 + given) << "the owner takes the bytes for unused";
    EXPECT_TRUE(gcap_test_hold_is_kept(hold_)) << "nobody refers to the bytes once the owner is gone";
  }
  gcap_test_hold_let_go(hold_);
  EXPECT_EQ(gcap_test_hold_parts(hold_), 2u) << "the owner's end freed the bytes";
}

}  // namespace
