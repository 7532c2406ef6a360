// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch's debug options: what they tell of good programs and of bad ones. The memory is a device's, and the damage is
// done on it.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "gcap/allocator.h"
#include "gcap/capture.h"
#include "gcap/scratch.h"
#include "gtest/gtest.h"
#include "lib/scratch/inner.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

class ScratchDebug : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (gcap_stream_t** stream : {&a_, &b_}) GCAP_ASSERT_OK(gcap_stream_create(0, stream));
    GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device_));
    gcap_scratch_options_init(&options_);
  }
  void TearDown() override {
    for (gcap_stream_t* stream : {a_, b_}) {
      if (stream != nullptr) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    }
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    gcap_allocator_destroy(device_);
    for (gcap_stream_t* stream : {a_, b_}) GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }

  // Makes the scratch, with the options of now.
  void Create() { GCAP_ASSERT_OK(gcap_scratch_create(device_, &options_, &scratch_)); }
  char* Alloc(size_t bytes, gcap_stream_t* stream) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, bytes, stream, &ptr));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(ptr) % 256, 0u);
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
    return static_cast<char*>(ptr);
  }
  void Free(void* ptr) {
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
  }

  static void Set(void* ptr, int byte, size_t bytes, gcap_stream_t* stream) {
    EXPECT_EQ(cudaMemsetAsync(ptr, byte, bytes, gcap_stream_handle(stream)), cudaSuccess);
  }
  // Behind all that the stream was given.
  static std::vector<unsigned char> Read(const void* ptr, size_t bytes, gcap_stream_t* stream) {
    std::vector<unsigned char> image(bytes);
    const cudaStream_t handle = gcap_stream_handle(stream);
    EXPECT_EQ(cudaMemcpyAsync(image.data(), ptr, bytes, cudaMemcpyDeviceToHost, handle), cudaSuccess);
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    return image;
  }
  static std::vector<unsigned char> Bytes(size_t count, unsigned char value) {
    return std::vector<unsigned char>(count, value);
  }
  static std::string Text(const void* ptr) {
    char text[32];
    std::snprintf(text, sizeof(text), "%p", ptr);
    return text;
  }
  gcap_allocator_stats_t Stats() {
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(scratch_, &stats);
    return stats;
  }

  gcap_scratch_options_t options_;
  gcap_allocator_t* device_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
  gcap_stream_t* a_ = nullptr;
  gcap_stream_t* b_ = nullptr;
};

// --- Events ---------------------------------------------------------------------------------------------------------

class ScratchEvents : public ScratchDebug {
 protected:
  void SetUp() override {
    ScratchDebug::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    options_.on_event = [](void* user, const gcap_allocator_event_t* event) {
      static_cast<ScratchEvents*>(user)->events_.push_back(*event);
    };
    options_.user = this;
    Create();
  }
  void ExpectEvent(size_t i, const gcap_allocator_event_t& expected) {
    ASSERT_LT(i, events_.size());
    const gcap_allocator_event_t& event = events_[i];
    EXPECT_EQ(event.kind, expected.kind);
    EXPECT_EQ(event.sequence, expected.sequence);
    EXPECT_EQ(event.block, expected.block);
    EXPECT_EQ(event.bytes, expected.bytes);
    EXPECT_EQ(event.ptr, expected.ptr);
    EXPECT_EQ(event.stream, expected.stream);
  }

  std::vector<gcap_allocator_event_t> events_;
};

TEST_F(ScratchEvents, TellOfEachAllocationFreeAndTrim) {
  char* first = Alloc(300, a_);
  char* second = Alloc(5, b_);
  Free(first);
  char* third = Alloc(1000, a_);
  Free(third);
  Free(second);
  GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
  ASSERT_EQ(events_.size(), 7u);
  ExpectEvent(0, {GCAP_ALLOCATOR_EVENT_ALLOC, 1, 1, 300, first, a_});
  ExpectEvent(1, {GCAP_ALLOCATOR_EVENT_ALLOC, 2, 2, 5, second, b_});
  ExpectEvent(2, {GCAP_ALLOCATOR_EVENT_FREE, 3, 1, 300, first, nullptr});
  ExpectEvent(3, {GCAP_ALLOCATOR_EVENT_ALLOC, 4, 4, 1000, third, a_});
  ExpectEvent(4, {GCAP_ALLOCATOR_EVENT_FREE, 5, 4, 1000, third, nullptr});
  ExpectEvent(5, {GCAP_ALLOCATOR_EVENT_FREE, 6, 2, 5, second, nullptr});
  ExpectEvent(6, {GCAP_ALLOCATOR_EVENT_TRIM, 7, 0, 0, nullptr, nullptr});
}

TEST_F(ScratchEvents, AreNotMadeOfWhatFailedOrWasNothing) {
  void* ptr = nullptr;
  GCAP_EXPECT_FAILS(gcap_scratch_alloc(scratch_, 100, nullptr, &ptr), GCAP_INVALID_ARGUMENT, "stream");
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 0, a_, &ptr));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, nullptr));
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, this), GCAP_INVALID_ARGUMENT, "not allocated");
  EXPECT_TRUE(events_.empty());
  Free(Alloc(100, a_));
  EXPECT_EQ(events_.size(), 2u);
}

// The callback holds nothing, so it may use the scratch that called it.
TEST_F(ScratchDebug, EventsMayBeAnsweredByMoreCalls) {
  struct Nested {
    gcap_scratch_t* scratch = nullptr;
    gcap_stream_t* stream = nullptr;
    int events = 0;
  } nested;
  options_.on_event = [](void* user, const gcap_allocator_event_t*) {
    Nested* self = static_cast<Nested*>(user);
    if (++self->events > 1) return;
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(self->scratch, 50, self->stream, &ptr));
    GCAP_EXPECT_OK(gcap_scratch_free(self->scratch, ptr));
  };
  options_.user = &nested;
  Create();
  nested.scratch = scratch_;
  nested.stream = b_;
  Free(Alloc(100, a_));
  EXPECT_EQ(nested.events, 4);
}

TEST_F(ScratchDebug, OptionsAreOffByDefault) {
  EXPECT_FALSE(options_.red_zones);
  EXPECT_FALSE(options_.poison_on_free);
  EXPECT_EQ(options_.recorded_operations, 0u);
  EXPECT_EQ(options_.on_event, nullptr);
}

// --- Blocks of no stream --------------------------------------------------------------------------------------------

// Nobody knows in what order their memory could be written, so they have room for zones and nothing in it.
TEST_F(ScratchEvents, TellOfRequestsThatNameNoStream) {
  GCAP_ASSERT_OK(gcap_scratch_destroy(scratch_));
  options_.red_zones = options_.poison_on_free = true;
  options_.recorded_operations = 10;
  Create();
  gcap_allocator_t* view = gcap_scratch_allocator(scratch_);
  void* untagged = nullptr;
  void* reserved = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(view, 300, &untagged));
  GCAP_ASSERT_OK(gcap_allocator_reserve(view, 5000, &reserved));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(untagged) % 256 + reinterpret_cast<uintptr_t>(reserved) % 256, 0u);
  EXPECT_EQ(cudaMemset(static_cast<char*>(untagged) - 256, 0, 300 + 512), cudaSuccess);
  EXPECT_EQ(cudaMemset(static_cast<char*>(reserved) - 256, 0, 5000 + 512), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
  GCAP_EXPECT_OK(gcap_allocator_free(view, reserved));
  GCAP_EXPECT_OK(gcap_allocator_free(view, untagged));
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
  GCAP_EXPECT_FAILS(gcap_allocator_free(view, untagged), GCAP_INVALID_ARGUMENT,
                    "it was allocated as 300 bytes for no stream (call 1, ");
  ASSERT_EQ(events_.size(), 4u);
  ExpectEvent(0, {GCAP_ALLOCATOR_EVENT_ALLOC, 1, 1, 300, untagged, nullptr});
  ExpectEvent(1, {GCAP_ALLOCATOR_EVENT_RESERVE, 2, 2, 5000, reserved, nullptr});
  ExpectEvent(2, {GCAP_ALLOCATOR_EVENT_FREE, 3, 2, 5000, reserved, nullptr});
  ExpectEvent(3, {GCAP_ALLOCATOR_EVENT_FREE, 4, 1, 300, untagged, nullptr});
}

// --- Red zones ------------------------------------------------------------------------------------------------------

class ScratchRedZones : public ScratchDebug {
 protected:
  void SetUp() override {
    ScratchDebug::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    options_.red_zones = true;
    Create();
  }
  // Something wrote where it must not. The block is back all the same.
  void ExpectDamage(char* ptr, const std::vector<std::string>& culprits) {
    const Outcome found(gcap_scratch_validate(scratch_));
    const Outcome freed(gcap_scratch_free(scratch_, ptr));
    for (const Outcome* outcome : {&found, &freed}) {
      EXPECT_EQ(outcome->code, GCAP_INTERNAL) << outcome->message;
      EXPECT_TRUE(outcome->Names("outside scratch block " + Text(ptr) + " of ")) << outcome->message;
      for (const std::string& culprit : culprits) EXPECT_TRUE(outcome->Names(culprit)) << outcome->message;
    }
    EXPECT_EQ(Stats().in_use_bytes, 0u);
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
    GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr), GCAP_INVALID_ARGUMENT, "freed already");
  }
};

constexpr size_t kSizes[] = {1, 255, 256, 257, 1000, 70000};

TEST_F(ScratchRedZones, GoodWorkIsNotBlamed) {
  std::vector<char*> blocks;
  for (size_t bytes : kSizes) {
    blocks.push_back(Alloc(bytes, a_));
    Set(blocks.back(), 0, bytes, a_);
  }
  EXPECT_EQ(Stats().requested_in_use_bytes, 1u + 255 + 256 + 257 + 1000 + 70000);
  for (char* block : blocks) Free(block);
  EXPECT_EQ(Stats().requested_in_use_bytes, 0u);
}

TEST_F(ScratchRedZones, AnOverrunByOneByteIsFound) {
  for (size_t bytes : kSizes) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes");
    char* ptr = Alloc(bytes, a_);
    Set(ptr, 0x11, bytes + 1, a_);
    ExpectDamage(ptr, {std::to_string(bytes) + " bytes for stream " + Text(gcap_stream_handle(a_)),
                       "byte 1 after it is 0x11 instead of 0xA5, and 1 of "});
  }
}

TEST_F(ScratchRedZones, AnUnderrunByOneByteIsFound) {
  for (size_t bytes : kSizes) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes");
    char* ptr = Alloc(bytes, a_);
    Set(ptr - 1, 0x22, bytes + 1, a_);
    ExpectDamage(ptr, {"byte 1 before it is 0x22 instead of 0xA5, and 1 of the 256 bytes there"});
  }
}

TEST_F(ScratchRedZones, DamageIsFoundToTheirLastByte) {
  char* ptr = Alloc(300, a_);
  Set(ptr - 256, 0x33, 2, a_);
  Set(ptr + 512 + 254, 0x44, 2, a_);
  ExpectDamage(ptr, {"byte 255 before it is 0x33 instead of 0xA5, and 2 of the 256 bytes there",
                     "byte 467 after it is 0x44 instead of 0xA5, and 2 of the 468 bytes there"});
}

TEST_F(ScratchRedZones, OfNeighboursAreTheirOwn) {
  char* lower = Alloc(256, a_);
  char* upper = Alloc(256, b_);
  char* last = Alloc(256, a_);
  Set(lower, 0, 256 + 256, a_);
  Set(last - 256, 0, 256 + 256, a_);
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, upper));
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, lower), GCAP_INTERNAL, "256 of the 256 bytes there");
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, last), GCAP_INTERNAL, "byte 1 before it");
}

TEST_F(ScratchRedZones, StartNoBlock) {
  char* ptr = Alloc(300, a_);
  for (int offset : {-256, -1, 1, 256, 512}) {
    GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr + offset), GCAP_INVALID_ARGUMENT, "inside a block");
  }
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, this), GCAP_INVALID_ARGUMENT, "not allocated");
  Free(ptr);
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr), GCAP_INVALID_ARGUMENT, "freed already");
}

TEST_F(ScratchRedZones, DoNotOverflow) {
  void* ptr = this;
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX - 766}) {
    GCAP_EXPECT_FAILS(gcap_scratch_alloc(scratch_, bytes, a_, &ptr), GCAP_INVALID_ARGUMENT, std::to_string(bytes));
    EXPECT_EQ(ptr, nullptr);
  }
}

// Memory that the calling thread's capture uses is none of a thread's business that looks at zones of another stream.
TEST_F(ScratchRedZones, AreReadBesideACaptureOfAnotherThread) {
  Free(Alloc(300, a_));  // memory is there
  const cudaStream_t handle = gcap_stream_handle(b_);
  ASSERT_EQ(cudaStreamBeginCapture(handle, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::thread([this] {
    for (size_t bytes : kSizes) Free(Alloc(bytes, a_));
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(handle, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(ScratchDebug, PinnedMemoryIsWatchedToo) {
  options_.red_zones = options_.poison_on_free = true;
  gcap_allocator_t* pinned = nullptr;
  GCAP_ASSERT_OK(gcap_pinned_allocator_create(&pinned));
  GCAP_ASSERT_OK(gcap_scratch_create(pinned, &options_, &scratch_));
  char* good = Alloc(300, a_);
  char* bad = Alloc(300, a_);
  GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
  bad[300] = 0x55;
  Set(good, 0, 300, a_);
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, good));
  GCAP_EXPECT_FAILS(gcap_scratch_validate(scratch_), GCAP_INTERNAL, "byte 1 after it is 0x55");
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, bad), GCAP_INTERNAL, "byte 1 after it is 0x55");
  GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
  EXPECT_EQ(std::vector<unsigned char>(good, good + 300), Bytes(300, 0xFF));
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
  scratch_ = nullptr;
  gcap_allocator_destroy(pinned);
}

// --- Poison ---------------------------------------------------------------------------------------------------------

TEST_F(ScratchDebug, PoisonIsWhatAUseAfterTheFreeSees) {
  options_.poison_on_free = true;
  Create();
  for (size_t bytes : kSizes) {
    char* ptr = Alloc(bytes, a_);
    Set(ptr, 0x11, bytes, a_);
    EXPECT_EQ(Read(ptr, bytes, a_), Bytes(bytes, 0x11));
    Free(ptr);
    EXPECT_EQ(Read(ptr, bytes, a_), Bytes(bytes, 0xFF));
  }
}

TEST_F(ScratchDebug, PoisonLeavesTheZonesAlone) {
  options_.poison_on_free = options_.red_zones = true;
  Create();
  char* ptr = Alloc(300, a_);
  Free(ptr);
  EXPECT_EQ(Read(ptr - 256, 256, a_), Bytes(256, 0xA5));
  EXPECT_EQ(Read(ptr, 300, a_), Bytes(300, 0xFF));
  EXPECT_EQ(Read(ptr + 300, 212 + 256, a_), Bytes(468, 0xA5));
}

// --- The record -----------------------------------------------------------------------------------------------------

TEST_F(ScratchDebug, RecordNamesBothCallsOfWhatIsFreedTwice) {
  options_.recorded_operations = 1000;
  Create();
  Free(Alloc(50, b_));            // calls 1 and 2
  char* first = Alloc(300, a_);   // 3
  char* second = Alloc(400, a_);  // 4
  Free(first);                    // 5
  const std::string stream = Text(gcap_stream_handle(a_));
  const Outcome twice(gcap_scratch_free(scratch_, first));
  EXPECT_EQ(twice.code, GCAP_INVALID_ARGUMENT);
  EXPECT_TRUE(twice.Names("freed already; it was allocated as 300 bytes for stream " + stream + " (call 3, thread 0x"));
  EXPECT_TRUE(twice.Names(" and freed (call 5, thread 0x")) << twice.message;
  EXPECT_TRUE(twice.Names(" ms ago)")) << twice.message;
  const Outcome inside(gcap_scratch_free(scratch_, second + 7));
  EXPECT_TRUE(inside.Names("; it is byte 7 of block " + Text(second) +
                           ", which was allocated as 400 bytes for stream " + stream + " (call 4, "))
      << inside.message;
  EXPECT_FALSE(inside.Names("and freed")) << inside.message;
  const Outcome foreign(gcap_scratch_free(scratch_, this));
  EXPECT_TRUE(foreign.Names("not allocated from this scratch; none of the last 1000 calls was about it"))
      << foreign.message;
  Free(second);
}

// Nothing named a block that no node was set for, nor any block's call, although the record had it.
TEST_F(ScratchDebug, ALeakedBlockIsNamedWithItsNodeAndCall) {
  options_.recorded_operations = 1000;
  options_.red_zones = true;
  Create();
  char* nameless = Alloc(100, b_);
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, a_));
  gcap_scratch_set_node(scratch_, a_, "conv1");
  char* named = Alloc(3000, a_);
  GCAP_EXPECT_OK(gcap_scratch_keep(scratch_, named));
  GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, a_));
  const std::string of_a = "stream " + Text(gcap_stream_handle(a_)), of_b = "stream " + Text(gcap_stream_handle(b_));
  const std::string first = "block " + Text(nameless) + " of 100 bytes for " + of_b +
                            "; it was allocated as 100 bytes for " + of_b + " (call 1, thread ";
  const std::string second = "block " + Text(named) + " of 3000 bytes for " + of_a +
                             ", node 'conv1'; it was allocated as 3000 bytes for " + of_a + " (call 2, thread ";
  const Outcome refused(gcap_scratch_destroy(scratch_));
  EXPECT_EQ(refused.code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(refused.Names("; " + first)) << refused.message;
  EXPECT_TRUE(refused.Names("; " + second)) << refused.message;
  const Outcome of_stream(gcap_scratch_forget_stream(scratch_, a_));
  EXPECT_FALSE(of_stream.Names(first)) << of_stream.message;
  EXPECT_TRUE(of_stream.Names(second)) << of_stream.message;
  std::vector<char> text(4096);
  gcap_scratch_describe(scratch_, text.data(), text.size());
  EXPECT_NE(std::string(text.data()).find("\n" + first), std::string::npos) << text.data();
  EXPECT_NE(std::string(text.data()).find("\n" + second), std::string::npos) << text.data();
  Free(named);
  Free(nameless);
}

TEST_F(ScratchDebug, OfManyLeakedBlocksTheFirstAreNamed) {
  Create();
  std::vector<char*> blocks;
  for (int i = 0; i < 7; ++i) blocks.push_back(Alloc(100, a_));
  const Outcome refused(gcap_scratch_destroy(scratch_));
  EXPECT_TRUE(refused.Names("block " + Text(blocks[3]))) << refused.message;
  EXPECT_FALSE(refused.Names("block " + Text(blocks[4]))) << refused.message;
  EXPECT_TRUE(refused.Names("; and 3 more live blocks")) << refused.message;
  for (char* block : blocks) Free(block);
}

TEST_F(ScratchDebug, RecordForgetsTheOldestCalls) {
  options_.recorded_operations = 2;
  Create();
  char* ptr = Alloc(300, a_);    // 1
  char* other = Alloc(300, a_);  // 2
  Free(ptr);                     // 3: 1 is forgotten
  const Outcome half(gcap_scratch_free(scratch_, ptr));
  EXPECT_TRUE(
      half.Names("it was allocated as 300 bytes for stream " + Text(gcap_stream_handle(a_)) + " and freed (call 3, "))
      << half.message;
  Free(other);                  // 4
  char* again = Alloc(10, b_);  // 5: 3 is forgotten
  const Outcome none(gcap_scratch_free(scratch_, ptr));
  EXPECT_TRUE(none.Names("none of the last 2 calls was about it")) << none.message;
  Free(again);
}

TEST_F(ScratchDebug, RecordTellsWhoseBlockWasDamaged) {
  options_.recorded_operations = 10;
  options_.red_zones = true;
  Create();
  char* ptr = Alloc(300, a_);
  Set(ptr, 0, 301, a_);
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr), GCAP_INTERNAL, "wrong; it was allocated as 300 bytes");
}

TEST_F(ScratchDebug, RecordOfTooManyCallsIsRefused) {
  for (size_t count : {SIZE_MAX, size_t{1048577}}) {
    options_.recorded_operations = count;
    GCAP_EXPECT_FAILS(gcap_scratch_create(device_, &options_, &scratch_), GCAP_INVALID_ARGUMENT,
                      "recorded_operations is " + std::to_string(count) + ", allowed are 0 to 1048576");
    EXPECT_EQ(scratch_, nullptr);
  }
  options_.recorded_operations = 1048576;
  Create();
}

// --- In graphs ------------------------------------------------------------------------------------------------------

class ScratchDebugGraph : public ScratchDebug {
 protected:
  static constexpr size_t kBytes = 1000;

  void SetUp() override {
    ScratchDebug::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    options_.red_zones = options_.poison_on_free = true;
    options_.recorded_operations = 1000;
    Create();
    EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&host_), 3 * kBytes), cudaSuccess);
    void* warm = Alloc(16 * kBytes, a_);
    Free(warm);
  }
  void TearDown() override {
    if (exec_ != nullptr) {
      EXPECT_EQ(cudaGraphExecDestroy(exec_), cudaSuccess);
      EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    }
    if (reservation_ != nullptr) gcap_scratch_reservation_release(reservation_);
    EXPECT_EQ(cudaFreeHost(host_), cudaSuccess);
    ScratchDebug::TearDown();
  }
  template <typename Work>
  void Capture(Work work) {
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(a_), nullptr, &capture));
    GCAP_EXPECT_OK(gcap_scratch_reservation_open(scratch_, a_, &reservation_));
    work();
    gcap_scratch_reservation_close(reservation_);
    gcap_retained_t* retained = nullptr;
    GCAP_ASSERT_OK(gcap_capture_end(capture, &graph_, &retained));
    ASSERT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
  }
  void Replay() { EXPECT_EQ(cudaGraphLaunch(exec_, gcap_stream_handle(a_)), cudaSuccess); }
  void Copy(void* to, const void* from, size_t bytes) {
    EXPECT_EQ(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, gcap_stream_handle(a_)), cudaSuccess);
  }

  unsigned char* host_ = nullptr;  // input, output, and what a use after the free saw
  gcap_scratch_reservation_t* reservation_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

TEST_F(ScratchDebugGraph, GoodWorkIsRightInEachReplay) {
  Capture([this] {
    char* first = Alloc(kBytes, a_);
    Copy(first, host_, kBytes);
    char* second = Alloc(kBytes, a_);
    Copy(second, first, kBytes);
    Free(first);
    Copy(host_ + kBytes, second, kBytes);
    Free(second);
    char* third = Alloc(2 * kBytes, a_);  // over both
    Set(third, 0, 2 * kBytes, a_);
    Free(third);
  });
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));  // no replay yet
  for (unsigned char round = 1; round <= 3; ++round) {
    std::fill(host_, host_ + kBytes, round);
    Replay();
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
    GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
    EXPECT_EQ(std::vector<unsigned char>(host_ + kBytes, host_ + 2 * kBytes), Bytes(kBytes, round));
  }
}

TEST_F(ScratchDebugGraph, UseAfterTheFreeSeesPoisonInEachReplay) {
  Capture([this] {
    char* ptr = Alloc(kBytes, a_);
    Copy(ptr, host_, kBytes);
    Copy(host_ + kBytes, ptr, kBytes);
    Free(ptr);
    Copy(host_ + 2 * kBytes, ptr, kBytes);
  });
  for (unsigned char round = 1; round <= 3; ++round) {
    std::fill(host_, host_ + kBytes, round);
    std::fill(host_ + kBytes, host_ + 3 * kBytes, 0);
    Replay();
    GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
    EXPECT_EQ(std::vector<unsigned char>(host_ + kBytes, host_ + 2 * kBytes), Bytes(kBytes, round));
    EXPECT_EQ(std::vector<unsigned char>(host_ + 2 * kBytes, host_ + 3 * kBytes), Bytes(kBytes, 0xFF));
  }
}

// The graph reads its zones where it freed the block: what happened to them since is not its fault.
TEST_F(ScratchDebugGraph, DamageIsFoundAfterAReplay) {
  char* ptr = nullptr;
  Capture([this, &ptr] {
    ptr = Alloc(kBytes, a_);
    Copy(ptr, host_, kBytes + 1);
    Free(ptr);
  });
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
  host_[kBytes] = 0xA5;  // by chance what should be there
  Replay();
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
  host_[kBytes] = 0x77;
  Replay();
  const std::string culprit =
      "outside scratch block " + Text(ptr) + " of 1000 bytes for stream " + Text(gcap_stream_handle(a_));
  GCAP_EXPECT_FAILS(gcap_scratch_validate(scratch_), GCAP_INTERNAL, culprit + " (a graph)");
  gcap_scratch_reservation_set_label(reservation_, "graph 7");
  GCAP_EXPECT_FAILS(gcap_scratch_validate(scratch_), GCAP_INTERNAL, culprit + " (graph 7)");
  GCAP_EXPECT_FAILS(gcap_scratch_validate(scratch_), GCAP_INTERNAL, "byte 1 after it is 0x77 instead of 0xA5");
  host_[kBytes] = 0xA5;
  Replay();
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
}

// Written on one side of a capture and freed on the other: the zones are not looked at, the block is poisoned.
TEST_F(ScratchDebugGraph, BlocksMayCrossItsEnds) {
  char* older = Alloc(kBytes, a_);
  char* younger = nullptr;
  Capture([&] {
    younger = Alloc(kBytes, a_);
    Free(older);
  });
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
  Free(younger);
  Replay();
  EXPECT_EQ(Read(younger, kBytes, a_), Bytes(kBytes, 0xFF));
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
}

// --- Threads --------------------------------------------------------------------------------------------------------

TEST_F(ScratchDebug, AllOptionsServeSeveralThreads) {
  options_.red_zones = options_.poison_on_free = true;
  options_.recorded_operations = 50;
  Create();
  std::vector<std::thread> threads;
  for (gcap_stream_t* stream : {a_, b_}) {
    threads.emplace_back([this, stream] {
      for (int i = 0; i < 100; ++i) {
        void* ptr = nullptr;
        const size_t bytes = 1 + 37 * static_cast<size_t>(i);
        GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, bytes, stream, &ptr));
        Set(ptr, 0, bytes, stream);
        if (i % 10 == 0) GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
        GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
        GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, this), GCAP_INVALID_ARGUMENT, "none of the last 50 calls");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Stats().num_allocs, 200u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
