// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A library that knows version 2 of its structs, and callers that were compiled with version 1, 2 and 3.

#include "lib/internal/sized.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace {

struct InnerV1 {
  size_t struct_size;
  size_t a;
};
struct InnerV2 {
  size_t struct_size;
  size_t a;
  size_t b;
};
struct OuterV1 {
  size_t struct_size;
  int x;
  InnerV1 first;
  InnerV1 second;
};
struct OuterV2 {
  size_t struct_size;
  int x;
  InnerV2 first;
  InnerV2 second;
  size_t y;
};
struct OuterV3 {
  size_t struct_size;
  int x;
  InnerV2 first;
  InnerV2 second;
  size_t y;
  size_t z;
};

const gcap_sized_type_t kInner = {"inner", sizeof(InnerV2), nullptr, 0};
const gcap_sized_part_t kParts[] = {{offsetof(OuterV2, first), &kInner}, {offsetof(OuterV2, second), &kInner}};
const gcap_sized_type_t kOuter = {"outer", sizeof(OuterV2), kParts, 2};

OuterV2 Defaults() { return {sizeof(OuterV2), -1, {sizeof(InnerV2), 10, 20}, {sizeof(InnerV2), 30, 40}, 50}; }

template <typename Outer>
Outer Sized() {
  Outer outer;
  memset(&outer, 0, sizeof(outer));
  outer.struct_size = sizeof(outer);
  outer.first.struct_size = sizeof(outer.first);
  outer.second.struct_size = sizeof(outer.second);
  return outer;
}

std::string ReadFailure(const void* given, OuterV2* known) {
  gcap_status_t status = gcap_sized_read(&kOuter, given, known);
  std::string message = status == nullptr ? "" : gcap_status_message(status);
  EXPECT_EQ(gcap_status_code(status), status == nullptr ? GCAP_OK : GCAP_INVALID_ARGUMENT);
  gcap_status_free(status);
  return message;
}

TEST(Sized, OfAnOlderCallerWhatItDoesNotHaveKeepsTheDefault) {
  OuterV1 given = Sized<OuterV1>();
  given.x = 7;
  given.first.a = 8;
  given.second.a = 9;
  OuterV2 known = Defaults();
  EXPECT_EQ(ReadFailure(&given, &known), "");
  EXPECT_EQ(known.struct_size, sizeof(OuterV2));
  EXPECT_EQ(known.x, 7);
  EXPECT_EQ(known.first.struct_size, sizeof(InnerV2));
  EXPECT_EQ(known.first.a, 8u);
  EXPECT_EQ(known.first.b, 20u);
  EXPECT_EQ(known.second.a, 9u);
  EXPECT_EQ(known.second.b, 40u);
  EXPECT_EQ(known.y, 50u);
}

TEST(Sized, OfTheSameVersionEverythingIsRead) {
  OuterV2 given = {sizeof(OuterV2), 1, {sizeof(InnerV2), 2, 3}, {sizeof(InnerV2), 4, 5}, 6};
  OuterV2 known = Defaults();
  EXPECT_EQ(ReadFailure(&given, &known), "");
  EXPECT_EQ(known.x, 1);
  EXPECT_EQ(known.first.b, 3u);
  EXPECT_EQ(known.second.a, 4u);
  EXPECT_EQ(known.second.b, 5u);
  EXPECT_EQ(known.y, 6u);
}

TEST(Sized, ANewerCallerIsUnderstoodAsLongAsItSetsNothingNew) {
  OuterV3 given = Sized<OuterV3>();
  given.y = 6;
  OuterV2 known = Defaults();
  EXPECT_EQ(ReadFailure(&given, &known), "");
  EXPECT_EQ(known.y, 6u);
  given.z = 1;
  EXPECT_EQ(ReadFailure(&given, &known),
            "outer_t: struct_size is 80, this gcap knows 72 bytes, and what lies beyond is not zero");
}

TEST(Sized, DefaultsAreWrittenIntoTheCallersLayout) {
  OuterV1 old = Sized<OuterV1>();
  const OuterV2 known = Defaults();
  gcap_sized_write(&kOuter, &known, &old);
  EXPECT_EQ(old.struct_size, sizeof(OuterV1));
  EXPECT_EQ(old.x, -1);
  EXPECT_EQ(old.first.struct_size, sizeof(InnerV1));
  EXPECT_EQ(old.first.a, 10u);
  EXPECT_EQ(old.second.struct_size, sizeof(InnerV1));
  EXPECT_EQ(old.second.a, 30u);
  OuterV3 young = Sized<OuterV3>();
  young.z = 99;
  gcap_sized_write(&kOuter, &known, &young);
  EXPECT_EQ(young.struct_size, sizeof(OuterV3));
  EXPECT_EQ(young.second.b, 40u);
  EXPECT_EQ(young.y, 50u);
  EXPECT_EQ(young.z, 0u);
}

TEST(Sized, AStructThatNobodyFilledIsRefusedByName) {
  OuterV2 known = Defaults();
  OuterV2 given = {};
  EXPECT_EQ(ReadFailure(&given, &known),
            "outer_t: struct_size is 0, which is no version's: fill the struct with outer_init");
  given = Defaults();
  given.second.struct_size = 0;
  EXPECT_EQ(ReadFailure(&given, &known),
            "inner_t: struct_size is 0, which is no version's: fill the struct with inner_init");
  given = Defaults();
  given.first.struct_size = 1 << 20;
  EXPECT_EQ(ReadFailure(&given, &known),
            "inner_t: struct_size is 1048576, which is no version's: fill the struct with inner_init");
  EXPECT_EQ(ReadFailure(nullptr, &known), "outer_t is NULL");
  gcap_sized_write(&kOuter, &known, nullptr);
}

}  // namespace
