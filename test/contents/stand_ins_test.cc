// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Second addresses of buffers: where they lie, how they are aligned, and sizes that nobody has.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

extern "C" {
#include "lib/contents/inner.h"
}

namespace gcap {
namespace testing {
namespace {

constexpr uintptr_t kVaried = 0x10000;  // bits of addresses are varied below

// --- Layouts --------------------------------------------------------------------------------------------------------

// Buffers that were apart at the capture may lie anywhere, apart. One that moves and several are checked otherwise.
TEST(Layout, BuffersThatWereApartStayApart) {
  const std::vector<gcap_moving_buffer_t> buffers = {
      {"a", 0x10000, 0x100, 256, {}}, {"b", 0x20000, 0x100, 256, {}}, {"c", 0x30000, 0x100, 256, {}}};
  gcap_layout_t layout = {};
  GCAP_ASSERT_OK(gcap_layout_create(buffers.data(), buffers.size(), &layout));
  const auto said = [&](const std::vector<uintptr_t>& addresses) -> std::string {
    gcap_layout_conflict_t conflict = {};
    if (gcap_layout_holds(&layout, buffers.data(), addresses.data(), &conflict)) return "";
    return std::to_string(conflict.a) + " and " + std::to_string(conflict.b) + " " + conflict.what;
  };
  EXPECT_EQ(said({0, 0, 0}), "");
  EXPECT_EQ(said({0x40000, 0, 0}), "");
  EXPECT_EQ(said({0x40000, 0x50000, 0}), "");
  for (const uintptr_t moved : {0, 0x40000}) {
    EXPECT_EQ(said({moved, 0x300ff, 0}), "2 and 1 share bytes here, and do not in the capture");
    EXPECT_EQ(said({moved, 0x30100, 0}), "2 and 1 touch here, and do not in the capture");
    EXPECT_EQ(said({moved, 0x30101, 0}), "");
  }
  gcap_layout_free(&layout);
}

using Addresses = std::vector<uintptr_t>;

// What the headers say of layouts, buffer by buffer.
class PlainLayout {
 public:
  explicit PlainLayout(std::vector<gcap_moving_buffer_t> buffers) : at_(std::move(buffers)), group_(at_.size()) {
    std::iota(group_.begin(), group_.end(), 0);
    for (size_t round = 0; round < at_.size(); ++round) {
      for (size_t i = 0; i < at_.size(); ++i) {
        for (size_t j = 0; j < at_.size(); ++j) {
          if (ShareBytes(i, j)) group_[i] = group_[j] = std::min(group_[i], group_[j]);
        }
      }
    }
  }

  bool AreTogether(size_t i, size_t j) const { return group_[i] == group_[j]; }
  // Where the group of the buffer begins and ends, with each at `to`.
  std::pair<uintptr_t, uintptr_t> Span(size_t buffer, const Addresses& to) const {
    std::pair<uintptr_t, uintptr_t> span = {UINTPTR_MAX, 0};
    for (size_t i = 0; i < at_.size(); ++i) {
      if (!AreTogether(i, buffer)) continue;
      span = {std::min(span.first, to[i]), std::max(span.second, to[i] + at_[i].bytes)};
    }
    return span;
  }
  bool Touch(size_t i, size_t j, const Addresses& to) const { return Span(i, to).second == Span(j, to).first; }
  Addresses Here() const {
    Addresses here;
    for (const auto& buffer : at_) here.push_back(buffer.address);
    return here;
  }

  // As the header of layouts says, buffer by buffer.
  bool LieAsHere(const Addresses& to) const {
    if (to == Here()) return true;
    for (size_t i = 0; i < at_.size(); ++i) {
      for (size_t j = 0; j < at_.size(); ++j) {
        if (AreTogether(i, j)) {
          if (to[j] - to[i] != at_[j].address - at_[i].address) return false;
        } else if (Span(i, to).second > Span(j, to).first && Span(j, to).second > Span(i, to).first) {
          return false;
        } else if (Touch(i, j, to) && !Touch(i, j, Here())) {
          return false;
        }
      }
    }
    return true;
  }
  bool TouchAsHere(const Addresses& to) const {
    for (size_t i = 0; i < at_.size(); ++i) {
      for (size_t j = 0; j < at_.size(); ++j) {
        if (!AreTogether(i, j) && Touch(i, j, Here()) && !Touch(i, j, to)) return false;
      }
    }
    return true;
  }
  bool HasTheGroupsOf(const PlainLayout& other) const {
    for (size_t i = 0; i < at_.size(); ++i) {
      for (size_t j = 0; j < at_.size(); ++j) {
        if (AreTogether(i, j) != other.AreTogether(i, j)) return false;
        if (!AreTogether(i, j)) continue;
        if (at_[j].address - at_[i].address != other.at_[j].address - other.at_[i].address) return false;
      }
    }
    return true;
  }
  size_t group(size_t buffer) const { return group_[buffer]; }

 private:
  bool ShareBytes(size_t i, size_t j) const {
    return at_[i].address < at_[j].address + at_[j].bytes && at_[j].address < at_[i].address + at_[i].bytes;
  }

  std::vector<gcap_moving_buffer_t> at_;
  std::vector<size_t> group_;
};

// On a small grid, so that buffers overlap and touch often.
TEST(Layout, OfRandomBuffersIsToldAsTheirBytesLie) {
  constexpr uintptr_t kStep = 16;
  std::mt19937 random(4711);
  const auto draw = [&](size_t end) { return random() % end; };
  size_t num_held = 0, num_same = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    SCOPED_TRACE(trial);
    std::vector<gcap_moving_buffer_t> buffers(1 + draw(4));
    for (auto& each : buffers) each = {"x", 0x10000 + kStep * draw(20), kStep * (1 + draw(3)), kStep, {}};
    const PlainLayout plain(buffers);
    // Groups move, and now and then one buffer alone. 0 is where it was.
    Addresses distances(buffers.size()), to = plain.Here();
    for (uintptr_t& each : distances) each = draw(2) == 0 ? 0 : kStep * draw(24);
    for (size_t i = 0; i < to.size(); ++i) to[i] += distances[plain.group(i)];
    if (draw(8) == 0) to[draw(to.size())] += kStep;
    std::vector<gcap_moving_buffer_t> elsewhere = buffers;
    for (size_t i = 0; i < to.size(); ++i) elsewhere[i].address = to[i];
    Addresses given = to;
    for (size_t i = 0; i < to.size(); ++i) given[i] = to[i] == buffers[i].address && draw(2) == 0 ? 0 : to[i];

    gcap_layout_t layout = {}, other = {};
    gcap_layout_conflict_t conflict = {};
    GCAP_ASSERT_OK(gcap_layout_create(buffers.data(), buffers.size(), &layout));
    GCAP_ASSERT_OK(gcap_layout_create(elsewhere.data(), elsewhere.size(), &other));
    const bool holds = gcap_layout_holds(&layout, buffers.data(), given.data(), &conflict);
    EXPECT_EQ(holds, plain.LieAsHere(to));
    EXPECT_EQ(holds, conflict.what == nullptr);
    if (holds) {
      EXPECT_EQ(gcap_layout_still_touches(&layout, buffers.data(), given.data(), &conflict), plain.TouchAsHere(to));
    }
    const bool is_same = gcap_layout_is_same(&layout, buffers.data(), &other, elsewhere.data());
    EXPECT_EQ(is_same, plain.HasTheGroupsOf(PlainLayout(elsewhere)));
    num_held += holds;
    num_same += is_same;
    gcap_layout_free(&layout);
    gcap_layout_free(&other);
  }
  EXPECT_GT(num_held, 500u);
  EXPECT_GT(num_same, 500u);
}

// --- Stand-ins ------------------------------------------------------------------------------------------------------

class StandIns : public DeviceTest {
 protected:
  void Create(std::vector<gcap_moving_buffer_t>* buffers, size_t set, bool is_memory, gcap_stand_ins_t* range) {
    gcap_layout_t layout = {};
    GCAP_ASSERT_OK(gcap_layout_create(buffers->data(), buffers->size(), &layout));
    GCAP_EXPECT_OK(gcap_stand_ins_create(buffers->data(), &layout, set, -1, is_memory, range));
    gcap_layout_free(&layout);
  }
  static bool NeedsSecond(const std::vector<gcap_moving_buffer_t>& buffers) {
    gcap_layout_t layout = {};
    GCAP_EXPECT_OK(gcap_layout_create(buffers.data(), buffers.size(), &layout));
    const bool needs = gcap_stand_ins_need_second(buffers.data(), &layout);
    gcap_layout_free(&layout);
    return needs;
  }
  static bool Overlap(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
  }

  // Expects each stand-in of the set in the range, aligned as promised, and to each other one as the buffers lie: at
  // the same distance where they share a byte, apart where they do not.
  static void ExpectPlaced(const gcap_stand_ins_t& range, const std::vector<gcap_moving_buffer_t>& buffers,
                           size_t set) {
    for (const gcap_moving_buffer_t& a : buffers) {
      const uintptr_t at = a.stand_ins[set];
      EXPECT_EQ(at % a.alignment, 0u);
      EXPECT_NE(at, a.address);
      EXPECT_GT(at, range.base);
      EXPECT_LT(at + a.bytes, range.base + range.bytes);
      for (const gcap_moving_buffer_t& b : buffers) {
        const bool is_together = b.stand_ins[set] - at == b.address - a.address;
        if (Overlap(a.address, a.bytes, b.address, b.bytes)) {
          EXPECT_TRUE(is_together);
        } else if (!is_together) {  // not of one group, through others
          EXPECT_FALSE(Overlap(at, a.bytes + 1, b.stand_ins[set], b.bytes + 1)) << "they share bytes, or touch";
        }
      }
    }
  }
};

TEST_F(StandIns, OfRandomBuffersLieAsTheBuffersDo) {
  std::mt19937 random(1);
  const auto draw = [&](unsigned low, unsigned high) { return low + random() % (high - low + 1); };
  for (int trial = 0; trial < 40; ++trial) {
    SCOPED_TRACE(trial);
    std::vector<gcap_moving_buffer_t> buffers;
    const unsigned count = draw(0, 40), most = trial % 10 == 0 ? 21 : 9;
    for (unsigned i = 0; i < count; ++i) {
      const size_t alignment = size_t{1} << draw(0, most);
      const uintptr_t page = uintptr_t{0x7f0000000000} + uintptr_t{0x200000} * draw(0, 30);
      const size_t bytes = draw(0, 2) == 0 ? 1 : draw(1, 100000);
      buffers.push_back({"", page + alignment * draw(0, 3), bytes, alignment, {}});
    }
    for (const bool is_memory : {false, true}) {
      for (size_t set = 0; set < GCAP_STAND_IN_SETS; ++set) {
        gcap_stand_ins_t range = {};
        ASSERT_NO_FATAL_FAILURE(Create(&buffers, set, is_memory, &range));
        EXPECT_EQ(range.is_memory, is_memory);
        EXPECT_NE(range.base, 0u);
        ExpectPlaced(range, buffers, set);
        GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));
        EXPECT_EQ(range.base, 0u);
        GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));  // none
      }
    }
  }
}

// What the header promises of buffers that share no byte: each bit between the promise and 64 KiB, the order, and the
// upper half.
TEST_F(StandIns, WhatACaptureMightTakeFromAnAddressIsAnotherAtOneOfThem) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    std::vector<gcap_moving_buffer_t> buffers;
    const bool is_aligned = trial % 3 == 0;
    for (unsigned i = 0; i < 2 + random() % 6; ++i) {
      const size_t alignment = size_t{4} << random() % 7;
      const uintptr_t page = uintptr_t{0x7f0000000000} + uintptr_t{0x1000000} * (2 * i + random() % 2);
      buffers.push_back(
          {"", page + (is_aligned ? 0 : alignment * (random() % 100)), 1 + random() % 9999, alignment, {}});
    }
    for (size_t set = 0; set < GCAP_STAND_IN_SETS; ++set) {
      gcap_stand_ins_t range = {};
      ASSERT_NO_FATAL_FAILURE(Create(&buffers, set, /*is_memory=*/false, &range));
      GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));
    }
    for (const gcap_moving_buffer_t& a : buffers) {
      const uintptr_t here = a.address, first = a.stand_ins[0], second = a.stand_ins[1];
      EXPECT_EQ(((here ^ first) | (here ^ second)) & (kVaried - a.alignment), kVaried - a.alignment);
      for (size_t power = 2 * a.alignment; power <= kVaried; power *= 2) {
        const int num_multiples = (here % power == 0) + (first % power == 0) + (second % power == 0);
        EXPECT_TRUE(num_multiples == 1 || num_multiples == 2) << power;
      }
      EXPECT_NE(here >> 32, first >> 32);
      EXPECT_NE(here >> 32, second >> 32);
      for (const gcap_moving_buffer_t& b : buffers) {
        EXPECT_NE(first >> 32, b.stand_ins[1] >> 32);
        if (&a == &b) continue;
        EXPECT_NE(first < b.stand_ins[0], second < b.stand_ins[1]) << "in the same order";
        const auto differ = static_cast<int64_t>((first - b.stand_ins[0]) - (second - b.stand_ins[1]));
        EXPECT_GE(std::abs(differ), 2 * static_cast<int64_t>(kVaried));
      }
    }
  }
}

// What lies right before the reserved range has the upper half of the range's first addresses, unless the range begins
// with a whole one.
TEST_F(StandIns, AStandInSharesItsUpperHalfWithNothingBesideTheRange) {
  std::vector<gcap_moving_buffer_t> buffers = {{"", kVaried, 4096, 256, {}}};
  for (size_t set = 0; set < GCAP_STAND_IN_SETS; ++set) {
    gcap_stand_ins_t range = {};
    ASSERT_NO_FATAL_FAILURE(Create(&buffers, set, /*is_memory=*/false, &range));
    const uintptr_t before = range.base - 1, behind = range.base + range.bytes;
    EXPECT_NE(buffers[0].stand_ins[set] >> 32, before >> 32);
    EXPECT_NE((buffers[0].stand_ins[set] + buffers[0].bytes) >> 32, behind >> 32);
    GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));
  }
  EXPECT_NE(buffers[0].stand_ins[0] >> 32, buffers[0].stand_ins[1] >> 32);
}

// A second set is left out only where one group has all that it would show.
TEST_F(StandIns, ASecondSetIsNeededUnlessTheFirstShowsAll) {
  const auto needs = [&](std::vector<gcap_moving_buffer_t> buffers) {
    gcap_stand_ins_t range = {};
    Create(&buffers, 0, /*is_memory=*/false, &range);
    GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));
    return NeedsSecond(buffers);
  };
  const uintptr_t page = 0x7f0000000000;
  EXPECT_FALSE(needs({}));
  EXPECT_FALSE(needs({{"", page, 4096, 256, {}}}));
  EXPECT_FALSE(needs({{"", page, 4096, 256, {}}, {"", page + 256, 64, 256, {}}})) << "one group";
  EXPECT_FALSE(needs({{"", page + kVaried - 256, 4096, 256, {}}})) << "each bit is 1";
  EXPECT_TRUE(needs({{"", page + 256, 4096, 256, {}}})) << "512 bytes are no multiple, here and there";
  EXPECT_TRUE(needs({{"", page, 4096, 256, {}}, {"", page + 8192, 64, 256, {}}})) << "two groups";
  std::vector<gcap_moving_buffer_t> moved = {{"", page, 4096, 256, {page + 8 * kVaried}}};
  EXPECT_TRUE(NeedsSecond(moved)) << "the stand-in is that of another address";
}

// Those of the same buffers elsewhere, where nothing is another one that a kernel could be chosen by.
TEST_F(StandIns, OfEarlierAddressesServeWhereTheVariedBitsAreTheSame) {
  const uintptr_t page = 0x7f0000000000;
  const std::vector<gcap_moving_buffer_t> earlier = {{"", page, 64, 256, {}}, {"", page + 0x8000, 64, 512, {}}};
  const auto serve = [&](uintptr_t first, uintptr_t second) {
    std::vector<gcap_moving_buffer_t> buffers = earlier;
    buffers[0].address = first;
    buffers[1].address = second;
    gcap_layout_t layout = {}, earlier_layout = {};
    GCAP_EXPECT_OK(gcap_layout_create(buffers.data(), buffers.size(), &layout));
    GCAP_EXPECT_OK(gcap_layout_create(earlier.data(), earlier.size(), &earlier_layout));
    const bool served = gcap_stand_ins_serve(buffers.data(), &layout, earlier.data(), &earlier_layout);
    gcap_layout_free(&layout);
    gcap_layout_free(&earlier_layout);
    return served;
  };
  EXPECT_TRUE(serve(page, page + 0x8000));
  EXPECT_TRUE(serve(page + 5 * kVaried, page + 7 * kVaried + 0x8000));
  EXPECT_FALSE(serve(page + 7 * kVaried, page + 5 * kVaried + 0x8000)) << "in the other order";
  for (uintptr_t bit = 256; bit < 4 * kVaried; bit *= 2) {
    EXPECT_EQ(serve(page + bit, page + 5 * kVaried + 0x8000), bit >= kVaried) << bit;
    if (bit < 512) continue;  // of the second one's alignment
    EXPECT_EQ(serve(page, page + 8 * kVaried + (0x8000 ^ bit)), bit >= kVaried) << bit;
  }
}

TEST_F(StandIns, AreMemoryOnlyIfAsked) {
  for (const bool is_memory : {false, true}) {
    std::vector<gcap_moving_buffer_t> buffers = {{"", 4096, 4096, 256, {}}};
    gcap_stand_ins_t range = {};
    ASSERT_NO_FATAL_FAILURE(Create(&buffers, 0, is_memory, &range));
    cudaPointerAttributes attributes = {};
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(buffers[0].stand_ins[0])), cudaSuccess);
    EXPECT_EQ(attributes.type, is_memory ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered);
    GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));
  }
}

TEST_F(StandIns, OfSizesThatNobodyHasAreRefused) {
  const auto refuse = [](std::vector<gcap_moving_buffer_t> buffers, bool is_memory, gcap_code_t code,
                         const char* culprit) {
    gcap_stand_ins_t range = {};
    gcap_layout_t layout = {};
    GCAP_ASSERT_OK(gcap_layout_create(buffers.data(), buffers.size(), &layout));
    GCAP_EXPECT_FAILS(gcap_stand_ins_create(buffers.data(), &layout, 0, -1, is_memory, &range), code, culprit);
    gcap_layout_free(&layout);
    EXPECT_EQ(range.base, 0u);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  };
  const gcap_moving_buffer_t most = {"", 256, SIZE_MAX - 300, 256, {}}, half = {"", 256, SIZE_MAX / 2, 256, {}};
  gcap_moving_buffer_t other = half;
  other.address = SIZE_MAX / 2 + 512;
  refuse({half, other, {"", SIZE_MAX - 100, 1, 1, {}}}, false, GCAP_RESOURCE_EXHAUSTED,
         "the 3 buffers of the graph are too large");
  refuse({most}, false, GCAP_RESOURCE_EXHAUSTED, "the 1 buffers of the graph are too large");
  refuse({half}, false, GCAP_CUDA_ERROR, "no second addresses for the buffers of a graph");
  refuse({{"", 256, size_t{1} << 45, 256, {}}}, true, GCAP_CUDA_ERROR, "cudaMalloc");
}

TEST_F(StandIns, MemoryIsTakenWhileAnotherStreamCaptures) {
  const RawStream stream;
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), cudaSuccess);
  std::vector<gcap_moving_buffer_t> buffers = {{"", 4096, 4096, 256, {}}};
  for (const bool is_memory : {false, true}) {
    gcap_stand_ins_t range = {};
    Create(&buffers, 0, is_memory, &range);
    if (!is_memory) {
      GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));
    }
    if (!is_memory) continue;
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
    GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
