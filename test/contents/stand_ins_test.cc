// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Second addresses of buffers: where they lie, how they are aligned, and sizes that nobody has.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

extern "C" {
#include "lib/contents/stand_ins.h"
}

namespace gcap {
namespace testing {
namespace {

class StandIns : public DeviceTest {
 protected:
  // Expects each stand-in in the range, apart from all others, aligned as promised and no better, at a distance of its
  // own.
  static void ExpectPlaced(const gcap_stand_ins_t& range, const std::vector<gcap_moving_buffer_t>& buffers) {
    std::set<uintptr_t> distances = {0};
    std::vector<std::pair<uintptr_t, uintptr_t>> spans;
    for (const gcap_moving_buffer_t& buffer : buffers) {
      EXPECT_EQ(buffer.stand_in % buffer.alignment, 0u);
      EXPECT_NE(buffer.stand_in % (2 * buffer.alignment), 0u) << "of a better alignment than promised";
      EXPECT_TRUE(distances.insert(buffer.stand_in - buffer.address).second) << "not a distance of its own";
      EXPECT_GT(buffer.stand_in, range.base);
      EXPECT_LT(buffer.stand_in + buffer.bytes, range.base + range.bytes);
      spans.push_back({buffer.stand_in, buffer.stand_in + buffer.bytes});
    }
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) EXPECT_LT(spans[i - 1].second, spans[i].first) << "not apart";
  }
};

TEST_F(StandIns, OfRandomBuffersAreApartAlignedAndUnlike) {
  std::mt19937 random(1);
  const auto draw = [&](unsigned low, unsigned high) { return low + random() % (high - low + 1); };
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    std::vector<gcap_moving_buffer_t> buffers;
    const unsigned count = draw(0, 60), most = trial % 10 == 0 ? 21 : 9;
    for (unsigned i = 0; i < count; ++i) {
      const size_t alignment = size_t{1} << draw(0, most);
      const uintptr_t page = uintptr_t{0x7f0000000000} + uintptr_t{0x200000} * draw(0, 3);
      const size_t bytes = draw(0, 2) == 0 ? 1 : draw(1, 100000);
      buffers.push_back({"", page + alignment * draw(0, 3), bytes, alignment, 0});
    }
    for (const bool is_memory : {false, true}) {
      gcap_stand_ins_t range = {};
      GCAP_ASSERT_OK(gcap_stand_ins_create(buffers.data(), buffers.size(), -1, is_memory, &range));
      EXPECT_EQ(range.is_memory, is_memory);
      EXPECT_NE(range.base, 0u);
      ExpectPlaced(range, buffers);
      GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));
      EXPECT_EQ(range.base, 0u);
      GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));  // none
    }
  }
}

// Buffers that lie as the stand-ins would: the same gaps, sizes and alignments.
TEST_F(StandIns, ADistanceIsNeverTakenTwice) {
  constexpr size_t kCount = 40;
  std::vector<gcap_moving_buffer_t> buffers(kCount, {"", 256, 1, 256, 0});
  gcap_stand_ins_t range = {};
  GCAP_ASSERT_OK(gcap_stand_ins_create(buffers.data(), kCount, -1, false, &range));
  for (gcap_moving_buffer_t& buffer : buffers) buffer.address = buffer.stand_in;
  GCAP_ASSERT_OK(gcap_stand_ins_destroy(&range));
  GCAP_ASSERT_OK(gcap_stand_ins_create(buffers.data(), kCount, -1, false, &range));
  ExpectPlaced(range, buffers);
  GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));
}

TEST_F(StandIns, AreMemoryOnlyIfAsked) {
  for (const bool is_memory : {false, true}) {
    gcap_moving_buffer_t buffer = {"", 4096, 4096, 256, 0};
    gcap_stand_ins_t range = {};
    GCAP_ASSERT_OK(gcap_stand_ins_create(&buffer, 1, -1, is_memory, &range));
    cudaPointerAttributes attributes = {};
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(buffer.stand_in)), cudaSuccess);
    EXPECT_EQ(attributes.type, is_memory ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered);
    GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));
  }
}

TEST_F(StandIns, OfSizesThatNobodyHasAreRefused) {
  const auto refuse = [](std::vector<gcap_moving_buffer_t> buffers, bool is_memory, gcap_code_t code,
                         const char* culprit) {
    gcap_stand_ins_t range = {};
    GCAP_EXPECT_FAILS(gcap_stand_ins_create(buffers.data(), buffers.size(), -1, is_memory, &range), code, culprit);
    EXPECT_EQ(range.base, 0u);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  };
  const gcap_moving_buffer_t half = {"", 256, SIZE_MAX / 2, 256, 0}, most = {"", 256, SIZE_MAX - 300, 256, 0};
  refuse({half, half, half}, false, GCAP_RESOURCE_EXHAUSTED, "the 3 buffers of the graph are too large");
  refuse({most}, false, GCAP_RESOURCE_EXHAUSTED, "the 1 buffers of the graph are too large");
  refuse({half}, false, GCAP_CUDA_ERROR, "no second addresses for the buffers of a graph");
  refuse({{"", 256, size_t{1} << 45, 256, 0}}, true, GCAP_CUDA_ERROR, "cudaMalloc");
}

TEST_F(StandIns, MemoryIsTakenWhileAnotherStreamCaptures) {
  const RawStream stream;
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), cudaSuccess);
  gcap_moving_buffer_t buffer = {"", 4096, 4096, 256, 0};
  for (const bool is_memory : {false, true}) {
    gcap_stand_ins_t range = {};
    GCAP_EXPECT_OK(gcap_stand_ins_create(&buffer, 1, -1, is_memory, &range));
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
