// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Buckets by examples that were worked out by hand, and by what a caller may get wrong.

#include "gcap/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

using Sizes = std::vector<size_t>;

class Buckets : public ::testing::Test {
 protected:
  Buckets() { gcap_buckets_options_init(&options_); }

  void Require(Sizes sizes) {
    required_ = std::move(sizes);
    options_.required = required_.data();
    options_.num_required = required_.size();
  }
  void SetCost(std::function<double(size_t)> cost) {
    cost_ = std::move(cost);
    options_.user = &cost_;
    options_.cost = [](void* user, size_t size) { return (*static_cast<std::function<double(size_t)>*>(user))(size); };
  }

  gcap_status_t Choose(const std::vector<gcap_size_count_t>& sizes, size_t max_buckets) {
    out_.assign(max_buckets, 77);
    gcap_buckets_choice_init(&choice_);
    choice_.num_buckets = 77;
    return gcap_buckets_choose(sizes.data(), sizes.size(), &options_, max_buckets, out_.data(), &choice_);
  }
  Sizes Chosen(const std::vector<gcap_size_count_t>& sizes, size_t max_buckets) {
    GCAP_EXPECT_OK(Choose(sizes, max_buckets));
    EXPECT_LE(choice_.num_buckets, max_buckets);
    for (size_t i = choice_.num_buckets; i < max_buckets; ++i) EXPECT_EQ(out_[i], 0u) << "behind the buckets";
    return Sizes(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(choice_.num_buckets));
  }
  // A refusal leaves nothing but zeros.
  void ExpectRefused(const std::vector<gcap_size_count_t>& sizes, size_t max_buckets, const std::string& message) {
    GCAP_EXPECT_FAILS(Choose(sizes, max_buckets), GCAP_INVALID_ARGUMENT, message);
    EXPECT_EQ(out_, Sizes(max_buckets));
    EXPECT_EQ(choice_.num_buckets, 0u);
    EXPECT_EQ(choice_.struct_size, sizeof(choice_));
  }

  gcap_buckets_options_t options_;
  gcap_buckets_choice_t choice_;
  Sizes out_, required_;
  std::function<double(size_t)> cost_;
};

// --- Choices --------------------------------------------------------------------------------------------------------

// {1, 8}: 1 * 6 + 2 * 5. {2, 8}: 10 * 1 + 2 * 5. {3, 8}: 10 * 2 + 1 * 1.
TEST_F(Buckets, ArePlacedWherePaddingCostsLeast) {
  const std::vector<gcap_size_count_t> sizes = {{1, 10}, {2, 1}, {3, 2}, {8, 1}};
  EXPECT_EQ(Chosen(sizes, 2), (Sizes{1, 8}));
  EXPECT_EQ(choice_.padding_cost, 16);
  EXPECT_EQ(choice_.cost, 10 * 1 + 4 * 8);
  EXPECT_EQ(choice_.runs, 14u);
  EXPECT_EQ(choice_.other_runs, 0u);
  EXPECT_EQ(Chosen(sizes, 1), (Sizes{8}));
  EXPECT_EQ(Chosen(sizes, 3), (Sizes{1, 3, 8}));
  EXPECT_EQ(choice_.padding_cost, 1);
}

TEST_F(Buckets, OfFewSizesAreAllOfThem) {
  EXPECT_EQ(Chosen({{4, 1}, {2, 1}}, 9), (Sizes{2, 4}));
  EXPECT_EQ(choice_.padding_cost, 0);
}

TEST_F(Buckets, TakeAHistogramInAnyOrderWithSizesTwiceAndZeroCounts) {
  const std::vector<gcap_size_count_t> sizes = {{8, 1}, {0, 0}, {1, 4}, {3, 2}, {99, 0}, {2, 1}, {1, 6}};
  EXPECT_EQ(Chosen(sizes, 2), (Sizes{1, 8}));
  EXPECT_EQ(choice_.padding_cost, 16);
}

// With a prefill's cost the padding of long runs weighs more than with its length alone.
TEST_F(Buckets, FollowTheCost) {
  const std::vector<gcap_size_count_t> sizes = {{100, 30}, {200, 5}, {400, 10}, {500, 20}};
  // {100, 500}: 5 * 300 + 10 * 100; {200, 500}: 30 * 100 + 10 * 100; {400, 500}: 30 * 300 + 5 * 200.
  EXPECT_EQ(Chosen(sizes, 2), (Sizes{100, 500}));
  EXPECT_EQ(choice_.padding_cost, 2500);
  SetCost([](size_t length) { return static_cast<double>(length * length); });
  // {100, 500}: 5 * 210000 + 10 * 90000 = 1950000; {200, 500}: 30 * 30000 + 10 * 90000 = 1800000.
  EXPECT_EQ(Chosen(sizes, 2), (Sizes{200, 500}));
  EXPECT_EQ(choice_.padding_cost, 1800000);
  // Only the longest runs cost more: {400, 500} pads nothing that costs.
  SetCost([](size_t length) { return length > 400 ? 2.0 : 1.0; });
  EXPECT_EQ(Chosen(sizes, 3), (Sizes{400, 500}));
  EXPECT_EQ(choice_.padding_cost, 0);
}

TEST_F(Buckets, AskForTheCostOfEachSizeOnceFromTheSmallestOn) {
  Sizes asked;
  SetCost([&](size_t size) {
    asked.push_back(size);
    return static_cast<double>(size);
  });
  options_.largest = 9;
  Require({5, 3});
  (void)Chosen({{7, 1}, {3, 1}, {12, 1}, {7, 1}, {2, 0}}, 4);
  EXPECT_EQ(asked, (Sizes{3, 5, 7, 9}));
}

TEST_F(Buckets, IncludeWhatIsRequired) {
  const std::vector<gcap_size_count_t> sizes = {{1, 10}, {2, 1}, {3, 2}, {8, 1}};
  Require({5, 5, 2});
  EXPECT_EQ(Chosen(sizes, 3), (Sizes{2, 5, 8}));
  EXPECT_EQ(choice_.padding_cost, 10 * 1 + 2 * 2);
  EXPECT_EQ(Chosen(sizes, 4), (Sizes{1, 2, 5, 8}));
  Require({16});
  EXPECT_EQ(Chosen(sizes, 2), (Sizes{3, 16}));  // 10 * 2 + 1 + 8, where {1, 16} costs 14 + 26 + 8
  EXPECT_EQ(choice_.padding_cost, 29);
}

TEST_F(Buckets, EndAtTheLargestSizeThatIsServed) {
  options_.largest = 4;
  EXPECT_EQ(Chosen({{1, 10}, {3, 2}, {8, 5}, {9, 6}}, 2), (Sizes{1, 4}));
  EXPECT_EQ(choice_.runs, 12u);
  EXPECT_EQ(choice_.other_runs, 11u);
  EXPECT_EQ(choice_.padding_cost, 2);
  options_.largest = 64;  // never seen, and served all the same
  EXPECT_EQ(Chosen({{1, 10}, {3, 2}}, 3), (Sizes{1, 3, 64}));
  EXPECT_EQ(Chosen({}, 3), (Sizes{64}));
  EXPECT_EQ(choice_.runs, 0u);
  EXPECT_EQ(choice_.cost, 0);
}

TEST_F(Buckets, KeepToTheBudget) {
  const std::vector<gcap_size_count_t> sizes = {{1, 10}, {2, 1}, {3, 2}, {8, 1}};
  options_.bytes_per_bucket = 100;
  EXPECT_EQ(Chosen(sizes, 4).size(), 4u) << "no budget";
  options_.max_bytes = 299;
  EXPECT_EQ(Chosen(sizes, 4), (Sizes{1, 8}));
  options_.max_bytes = 300;
  EXPECT_EQ(Chosen(sizes, 4), (Sizes{1, 3, 8}));
  EXPECT_EQ(Chosen(sizes, 2), (Sizes{1, 8})) << "the number is less than the budget";
}

TEST_F(Buckets, AreRightForHugeSizesAndCounts) {
  EXPECT_EQ(Chosen({{SIZE_MAX, 1}, {1, UINT64_MAX - 1}}, 2), (Sizes{1, SIZE_MAX}));
  EXPECT_EQ(choice_.runs, UINT64_MAX);
  EXPECT_EQ(choice_.padding_cost, 0);
}

TEST_F(Buckets, MayHaveNoOptions) {
  const gcap_size_count_t sizes[] = {{2, 1}, {4, 1}};
  Sizes out(1);
  gcap_buckets_choice_init(&choice_);
  GCAP_EXPECT_OK(gcap_buckets_choose(sizes, 2, nullptr, 1, out.data(), &choice_));
  EXPECT_EQ(out[0], 4u);
}

// --- Bad input ------------------------------------------------------------------------------------------------------

TEST_F(Buckets, RefuseWhatHasNoSize) {
  ExpectRefused({}, 2, "there is no size: of 0 sizes none has a count, none is required, and `largest` is 0");
  ExpectRefused({{3, 0}}, 2, "of 1 sizes none has a count");
  ExpectRefused({{3, 1}, {0, 5}}, 2, "sizes[1].size is 0 with a count of 5, allowed are sizes >= 1");
  Require({2, 0});
  ExpectRefused({{3, 1}}, 2, "required[1] is 0, allowed are sizes >= 1");
}

TEST_F(Buckets, RefuseLimitsThatDoNotFit) {
  options_.num_required = 3;
  ExpectRefused({{3, 1}}, 4, "required is NULL and num_required is 3, allowed without sizes is 0");
  Require({2, 9});
  options_.largest = 8;
  ExpectRefused({{3, 1}}, 4, "required[1] is 9, allowed are sizes up to `largest`, which is 8");
  Require({2, 4, 2});
  ExpectRefused({{3, 1}}, 2,
                "max_buckets is 2, allowed are 3 and more: so many sizes are required, with the largest, 8");
  options_.max_bytes = 1000;
  ExpectRefused({{3, 1}}, 3, "max_bytes is 1000 and bytes_per_bucket is 0, allowed with a budget are bytes >= 1");
  options_.bytes_per_bucket = 400;
  ExpectRefused({{3, 1}}, 3, "max_bytes is 1000, room for 2 buckets of 400 bytes, allowed is room for 3 and more");
}

TEST_F(Buckets, RefuseRoomForNoneOrForMoreThanAnArrayHas) {
  const gcap_size_count_t size = {3, 1};
  for (const size_t room : {size_t{0}, SIZE_MAX, SIZE_MAX / sizeof(size_t) + 1}) {
    size_t out = 77;
    gcap_buckets_choice_init(&choice_);
    GCAP_EXPECT_FAILS(gcap_buckets_choose(&size, 1, &options_, room, &out, &choice_), GCAP_INVALID_ARGUMENT,
                      "max_buckets is " + std::to_string(room) + ", allowed are 1..");
    EXPECT_EQ(out, 77u);
  }
}

TEST_F(Buckets, RefuseCostsThatAreNone) {
  for (const double wrong : {-1.0, -DBL_MIN, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    SetCost([wrong](size_t size) { return size == 4 ? wrong : 1.0; });
    ExpectRefused({{2, 1}, {4, 1}, {8, 1}}, 2, "the cost of size 4 is ");
    SetCost([wrong](size_t) { return wrong; });
    ExpectRefused({{2, 1}}, 1, "allowed are finite numbers >= 0");
  }
}

// A larger bucket would be better than the smallest one that holds a size.
TEST_F(Buckets, RefuseCostsThatFall) {
  SetCost([](size_t size) { return size == 4 ? 1.5 : 2.0; });
  ExpectRefused({{2, 1}, {4, 1}}, 2, "the cost of size 4 is 1.5, allowed is no less than that of size 2, which is 2");
  SetCost([](size_t) { return 2.0; });
  EXPECT_EQ(Chosen({{2, 1}, {4, 1}}, 2), (Sizes{4}));
}

TEST_F(Buckets, RefuseSumsThatAreNone) {
  ExpectRefused({{2, UINT64_MAX}, {4, 1}}, 2, "the counts up to size 4 add up to more than 18446744073709551615");
  SetCost([](size_t) { return DBL_MAX / 2; });
  EXPECT_EQ(Chosen({{2, 1}}, 2), (Sizes{2}));
  ExpectRefused({{2, 1}, {4, 1}}, 2, "2 runs that cost 8.98847e+307 each, as size 4 does: allowed is a sum up to ");
}

TEST_F(Buckets, RefuseStructsThatWereNotInitialized) {
  const gcap_size_count_t size = {3, 1};
  size_t out = 77;
  gcap_buckets_choice_init(&choice_);
  options_.struct_size = 0;
  GCAP_EXPECT_FAILS(gcap_buckets_choose(&size, 1, &options_, 1, &out, &choice_), GCAP_INVALID_ARGUMENT,
                    "fill the struct with gcap_buckets_options_init");
  gcap_buckets_options_init(&options_);
  choice_.struct_size = 0;
  GCAP_EXPECT_FAILS(gcap_buckets_choose(&size, 1, &options_, 1, &out, &choice_), GCAP_INVALID_ARGUMENT,
                    "fill the struct with gcap_buckets_choice_init");
}

// --- Search ---------------------------------------------------------------------------------------------------------

TEST(BucketsFind, GivesTheSmallestBucketThatHoldsTheSize) {
  const Sizes buckets = {1, 2, 4, 7, 16};
  const Sizes expected = {1, 1, 2, 4, 4, 7, 7, 7, 16, 16, 16, 16, 16, 16, 16, 16, 16, 0, 0};
  for (size_t size = 0; size < expected.size(); ++size) {
    EXPECT_EQ(gcap_buckets_find(buckets.data(), buckets.size(), size), expected[size]) << size;
  }
  EXPECT_EQ(gcap_buckets_find(buckets.data(), buckets.size(), SIZE_MAX), 0u);
  EXPECT_EQ(gcap_buckets_find(buckets.data(), 1, 1), 1u);
  EXPECT_EQ(gcap_buckets_find(nullptr, 0, 1), 0u);
}

// A list in another order is the caller's mistake, which costs padding or an eager run, and nothing else.
TEST(BucketsFind, NeverGivesABucketThatIsTooSmall) {
  Sizes buckets = {1, 2, 4, 7};
  do {
    for (size_t size = 1; size <= 8; ++size) {
      const size_t found = gcap_buckets_find(buckets.data(), buckets.size(), size);
      EXPECT_TRUE(found == 0 || found >= size) << found << " for " << size;
    }
  } while (std::next_permutation(buckets.begin(), buckets.end()));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
