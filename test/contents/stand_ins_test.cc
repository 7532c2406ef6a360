// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Second addresses of buffers: where they lie, how they are aligned, and sizes that nobody has.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <random>
#include <string>
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
