// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// own_scratch.h: scratch for the work of runs on one stream.
#ifndef GCAP_TEST_GRAPH_OWN_SCRATCH_H_
#define GCAP_TEST_GRAPH_OWN_SCRATCH_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "gcap/allocator.h"
#include "gcap/scratch.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

// Ends after the graphs that keep of it.
class OwnScratch {
 public:
  static constexpr size_t kBytes = size_t{1} << 20;  // of all blocks

  explicit OwnScratch(cudaStream_t stream) {
    GCAP_EXPECT_OK(gcap_device_allocator_create(0, &allocator_));
    GCAP_EXPECT_OK(gcap_scratch_create(allocator_, nullptr, &scratch_));
    GCAP_EXPECT_OK(gcap_stream_wrap(stream, GCAP_STREAM_EXTERNAL, 0, 0, &wrapped_));
    void* all = nullptr;
    GCAP_EXPECT_OK(Alloc(kBytes, &all));  // a capture gets no more from the device
    GCAP_EXPECT_OK(Free(all));
  }
  OwnScratch(const OwnScratch&) = delete;
  OwnScratch& operator=(const OwnScratch&) = delete;
  ~OwnScratch() {
    GCAP_EXPECT_OK(gcap_stream_synchronize(wrapped_));
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    GCAP_EXPECT_OK(gcap_stream_destroy(wrapped_));
    gcap_allocator_destroy(allocator_);
  }

  gcap_status_t Alloc(size_t bytes, void** out_block) const {
    return gcap_scratch_alloc(scratch_, bytes, wrapped_, out_block);
  }
  gcap_status_t Free(void* block) const { return gcap_scratch_free(scratch_, block); }

  // What a part of the work has; NULL if it was refused.
  struct Block {
    const OwnScratch* scratch;
    void* memory = nullptr;

    Block(const OwnScratch& of, size_t bytes) : scratch(&of) { gcap_status_ignore(of.Alloc(bytes, &memory)); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() { gcap_status_ignore(scratch->Free(memory)); }
  };

 private:
  gcap_allocator_t* allocator_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
  gcap_stream_t* wrapped_ = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_OWN_SCRATCH_H_
