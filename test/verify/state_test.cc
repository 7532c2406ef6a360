// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Slots of what blocks of memory have: kept, put back and compared, in all kinds of memory and beyond one chunk.

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

extern "C" {
#include "lib/verify/inner.h"
}

namespace gcap {
namespace testing {
namespace {

// --- Areas ----------------------------------------------------------------------------------------------------------

TEST(VerifyAreas, ThoseThatShareBytesAreOne) {
  char memory[100];
  gcap_area_t areas[] = {{memory + 50, 10, 0}, {memory + 10, 10, 1}, {memory + 15, 20, 2},
                         {memory + 12, 2, 3},  {memory + 60, 5, 4},  {memory + 35, 1, 5}};
  ASSERT_EQ(gcap_areas_merge(areas, 6), 4u) << "those that only touch stay two";
  const gcap_area_t merged[] = {{memory + 10, 25, 1}, {memory + 35, 1, 5}, {memory + 50, 10, 0}, {memory + 60, 5, 4}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(areas[i].begin, merged[i].begin);
    EXPECT_EQ(areas[i].bytes, merged[i].bytes);
    EXPECT_EQ(areas[i].owner, merged[i].owner);
  }
  EXPECT_EQ(gcap_areas_find(areas, memory + 34), 0u);
  EXPECT_EQ(gcap_areas_find(areas, memory + 35), 1u);
  EXPECT_EQ(gcap_areas_find(areas, memory + 64), 3u);
  EXPECT_EQ(gcap_areas_merge(areas, 0), 0u);
}

// --- States ---------------------------------------------------------------------------------------------------------

class VerifyState : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    stream_ = std::make_unique<RawStream>();
  }
  void TearDown() override {
    if (IsSkipped()) return;
    GCAP_EXPECT_OK(gcap_verify_state_destroy(state_));
    for (void* block : device_) GCAP_EXPECT_CUDA(cudaFree(block));
    for (void* block : pinned_) GCAP_EXPECT_CUDA(cudaFreeHost(block));
    stream_.reset();
  }
  void* Device(size_t bytes) {
    device_.push_back(nullptr);
    GCAP_EXPECT_CUDA(cudaMalloc(&device_.back(), bytes));
    GCAP_EXPECT_CUDA(cudaMemset(device_.back(), 0, bytes));
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
    return device_.back();
  }
  void* Pinned(size_t bytes) {
    pinned_.push_back(nullptr);
    GCAP_EXPECT_CUDA(cudaMallocHost(&pinned_.back(), bytes));
    return pinned_.back();
  }
  template <typename T>
  void Write(void* base, size_t index, T value) {
    GCAP_EXPECT_CUDA(cudaMemcpy(static_cast<T*>(base) + index, &value, sizeof(value), cudaMemcpyDefault));
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
  }
  template <typename T>
  T Read(const void* base, size_t index) {
    T value = {};
    GCAP_EXPECT_CUDA(cudaMemcpy(&value, static_cast<const T*>(base) + index, sizeof(value), cudaMemcpyDefault));
    return value;
  }
  void Create(const std::vector<gcap_verify_block_t>& blocks, size_t num_slots = 2) {
    GCAP_ASSERT_OK(gcap_verify_state_create(blocks.data(), blocks.size(), num_slots, stream_->get(), &state_));
  }
  void Save(size_t slot) { GCAP_EXPECT_OK(gcap_verify_state_save(state_, slot, stream_->get())); }
  void Restore(size_t slot) {
    GCAP_EXPECT_OK(gcap_verify_state_restore(state_, slot, stream_->get()));
    stream_->Synchronize();
  }
  gcap_verify_difference_t Compare(size_t expected, size_t actual) {
    gcap_verify_difference_t difference = {};
    GCAP_EXPECT_OK(gcap_verify_state_compare(state_, expected, actual, stream_->get(), &difference));
    return difference;
  }
  std::string Words(const gcap_verify_difference_t& difference) {
    char chars[512];
    gcap_text_t text;
    gcap_text_init(&text, chars, sizeof(chars));
    gcap_verify_write_difference(state_, &difference, &text);
    return chars;
  }
  static gcap_verify_block_t Block(const char* name, void* address, size_t bytes, gcap_dtype_t type = GCAP_DTYPE_F32,
                                   double absolute = 0) {
    return {name, address, bytes, type, absolute, 0, true, false};
  }

  std::unique_ptr<RawStream> stream_;
  gcap_verify_state_t* state_ = nullptr;
  std::vector<void*> device_, pinned_;
};

TEST_F(VerifyState, ASlotIsPutBackAndCompared) {
  void *x = Device(400), *y = Pinned(80);
  Write(x, 3, 1.0f);
  Write(y, 0, 7.0f);
  Create({Block("x", x, 400), Block("y", y, 80)}, 3);
  Save(0);
  stream_->Synchronize();
  Write(x, 3, 2.0f);
  Write(y, 0, 8.0f);
  Save(1);
  stream_->Synchronize();
  Write(x, 3, 3.0f);
  EXPECT_EQ(Compare(0, 0).block, SIZE_MAX);
  EXPECT_EQ(Compare(0, 1).different, 2u);
  EXPECT_EQ(Compare(GCAP_VERIFY_NOW, 1).different, 1u);
  const gcap_verify_difference_t difference = Compare(0, GCAP_VERIFY_NOW);
  EXPECT_EQ(difference.block, 0u);
  EXPECT_EQ(difference.element, 3u);
  EXPECT_EQ(difference.actual, 3);
  EXPECT_EQ(difference.expected, 1);
  EXPECT_EQ(difference.largest_difference, 2);
  EXPECT_EQ(difference.compared_bytes, 480u);
  EXPECT_EQ(
      Words(difference),
      "buffer 0 'x' differs first in element 3 (f32): the replay has 3, the work 1; 2 of all elements differ, by 2 "
      "at most");
  Restore(0);
  EXPECT_EQ(Read<float>(x, 3), 1);
  EXPECT_EQ(Read<float>(y, 0), 7);
  Restore(1);
  EXPECT_EQ(Read<float>(x, 3), 2);
  EXPECT_EQ(Compare(GCAP_VERIFY_NOW, 1).block, SIZE_MAX);
}

TEST_F(VerifyState, BlocksOfSeveralChunksAreComparedToTheLastElement) {
  const size_t count = (size_t{3} << 18) + 5;  // of 4 bytes: three chunks and a bit
  void* x = Device(count * 4);
  Create({Block(nullptr, x, count * 4)}, 1);
  Save(0);
  stream_->Synchronize();
  EXPECT_EQ(Compare(0, GCAP_VERIFY_NOW).compared_bytes, count * 4);
  for (const size_t at : {count - 1, size_t{1} << 18, (size_t{1} << 18) - 1}) {
    Write(x, at, 5.0f);
    EXPECT_EQ(Compare(0, GCAP_VERIFY_NOW).element, at);
  }
  EXPECT_EQ(Compare(0, GCAP_VERIFY_NOW).different, 3u);
}

TEST_F(VerifyState, EachTypeIsComparedAsItsOwn) {
  const gcap_dtype_t types[] = {GCAP_DTYPE_F32, GCAP_DTYPE_F16,  GCAP_DTYPE_BF16, GCAP_DTYPE_I64,
                                GCAP_DTYPE_I32, GCAP_DTYPE_BOOL, GCAP_DTYPE_I8,   GCAP_DTYPE_U8};
  // 1 and 2 of each type.
  const uint64_t one[] = {0x3F800000, 0x3C00, 0x3F80, 1, 1, 1, 1, 1},
                 two[] = {0x40000000, 0x4000, 0x4000, 2, 2, 2, 2, 2};
  for (size_t i = 0; i < 8; ++i) {
    SCOPED_TRACE(gcap_dtype_name(types[i]));
    const size_t bytes = gcap_dtype_bytes(types[i]);
    char* x = static_cast<char*>(Device(64));
    const auto write = [&](uint64_t bits) {
      GCAP_EXPECT_CUDA(cudaMemcpy(x + 5 * bytes, &bits, bytes, cudaMemcpyHostToDevice));
      GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
    };
    for (const double absolute : {0.0, 0.5, 1.0}) {
      write(one[i]);
      Create({Block("x", x, 64, types[i], absolute)}, 1);
      Save(0);
      stream_->Synchronize();
      write(two[i]);
      const gcap_verify_difference_t difference = Compare(0, GCAP_VERIFY_NOW);
      EXPECT_EQ(difference.block, absolute < 1 ? 0 : SIZE_MAX);
      if (absolute < 1) {
        EXPECT_EQ(difference.element, 5u);
        EXPECT_EQ(difference.actual, 2);
        EXPECT_EQ(difference.expected, 1);
        EXPECT_EQ(difference.largest_difference, 1);
      }
      GCAP_EXPECT_OK(gcap_verify_state_destroy(state_));
      state_ = nullptr;
    }
  }
}

TEST_F(VerifyState, TheFirstNaNIsToldAndWhatBothHaveIsNone) {
  void *x = Device(64), *y = Device(64);
  Write(x, 1, NAN);
  Create({Block("x", x, 64, GCAP_DTYPE_F32, 10), Block("y", y, 64, GCAP_DTYPE_F32, 10)}, 1);
  Save(0);
  stream_->Synchronize();
  Write(x, 2, 5.0f);  // within the tolerance
  Write(y, 9, NAN);
  Write(y, 11, NAN);
  const gcap_verify_difference_t difference = Compare(0, GCAP_VERIFY_NOW);
  EXPECT_EQ(difference.block, 1u);
  EXPECT_EQ(difference.nan_block, 1u);
  EXPECT_EQ(difference.nan_element, 9u);
  EXPECT_EQ(difference.different, 2u);
  EXPECT_EQ(difference.largest_difference, 0) << "of two numbers there is none";
  EXPECT_NE(Words(difference).find("; the first NaN that the work has not is element 9 of buffer 1 'y'"),
            std::string::npos);
}

TEST_F(VerifyState, WhatIsNotComparedIsPutBackAllTheSame) {
  void* x = Device(64);
  gcap_verify_block_t block = Block("x", x, 64);
  block.is_compared = false;
  Create({block}, 1);
  Save(0);
  stream_->Synchronize();
  Write(x, 1, 5.0f);
  const gcap_verify_difference_t difference = Compare(0, GCAP_VERIFY_NOW);
  EXPECT_EQ(difference.block, SIZE_MAX);
  EXPECT_EQ(difference.compared_bytes, 0u);
  Restore(0);
  EXPECT_EQ(Read<float>(x, 1), 0);
}

TEST_F(VerifyState, OfNothingNothingDiffers) {
  Create({}, 2);
  Save(0);
  Restore(0);
  EXPECT_EQ(Compare(0, 1).block, SIZE_MAX);
}

TEST_F(VerifyState, ABlockAtTheEndOfItsAllocationIsInIt) {
  char* x = static_cast<char*>(Device(1 << 20));
  gcap_verify_block_t block = Block("x", x + (1 << 20) - 64, 64);
  Create({block}, 1);
  GCAP_EXPECT_OK(gcap_verify_state_destroy(state_));
  block.bytes = size_t{8} << 20;
  GCAP_EXPECT_FAILS(gcap_verify_state_create(&block, 1, 1, stream_->get(), &state_), GCAP_INVALID_ARGUMENT,
                    "buffer 0 'x' (8388608 bytes at ");
  EXPECT_EQ(state_, nullptr);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
