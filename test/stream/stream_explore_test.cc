// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Streams under 500 schedules of the simulator, with its checks: each body fails when data is wrong, when two accesses
// meet that nothing orders, or when a handle is left.
//
// A seed that fails is printed, with how to run it again.

#include <cstdlib>
#include <cstring>
#include <random>

#include "gcap/capture.h"
#include "gcap/stream.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr uint64_t kFirstSeed = 0;
constexpr uint64_t kSeeds = 500;
constexpr size_t kBytes = 256;

class StreamExplore : public DeviceTest {};

gcap_stream_t* NewStream(int device) {
  gcap_stream_t* stream = nullptr;
  GCAP_EXPECT_OK(gcap_stream_create(device, &stream));
  return stream;
}

void Wait(gcap_stream_t* consumer, gcap_stream_t* producer) {
  gcap_notification_t* point = nullptr;
  GCAP_EXPECT_OK(gcap_notification_create(producer, &point));
  GCAP_EXPECT_OK(gcap_notification_record(point));
  GCAP_EXPECT_OK(gcap_notification_wait(point, consumer));
  gcap_notification_destroy(point);
}

// Memory of one device and pinned memory, filled by hand and by streams.
class Buffers {
 public:
  explicit Buffers(int device) {
    GCAP_EXPECT_CUDA(cudaSetDevice(device));
    GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&device_), kBytes));
    GCAP_EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&pinned_), kBytes));
    GCAP_EXPECT_CUDA(cudaSetDevice(0));
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    GCAP_EXPECT_CUDA(cudaFree(device_));
    GCAP_EXPECT_CUDA(cudaFreeHost(pinned_));
  }

  unsigned char* device() const { return device_; }
  unsigned char* pinned() const { return pinned_; }

  // As the program itself, at once.
  void Write(int value) {
    gcap_sim_host_access(pinned_, kBytes, /*is_write=*/1);
    memset(pinned_, value, kBytes);
  }
  bool Holds(int value) const {
    gcap_sim_host_access(pinned_, kBytes, /*is_write=*/0);
    for (size_t i = 0; i < kBytes; ++i) {
      if (pinned_[i] != value) return false;
    }
    return true;
  }

 private:
  unsigned char* device_ = nullptr;
  unsigned char* pinned_ = nullptr;
};

void Upload(unsigned char* to, const unsigned char* from, gcap_stream_t* stream) {
  GCAP_EXPECT_CUDA(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyHostToDevice, gcap_stream_handle(stream)));
}

void Download(unsigned char* to, const unsigned char* from, gcap_stream_t* stream) {
  GCAP_EXPECT_CUDA(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToHost, gcap_stream_handle(stream)));
}

// What a release of a staging buffer does: it is somebody else's from then on.
struct Staging {
  Buffers buffers{0};
  bool released = false;

  static void Release(void* user) {
    auto* staging = static_cast<Staging*>(user);
    staging->buffers.Write(0xEE);
    staging->released = true;
  }
};

// How often an end of run found the buffer passed, and not.
struct Outcomes {
  int passed = 0;
  int not_passed = 0;
};

// Staging buffers, given back by whatever comes first: an end of run that finds them passed, or the destroy.
int DeferredReleases(void* user) {
  auto* outcomes = static_cast<Outcomes*>(user);
  bool right = true;
  {
    Staging staging[3];
    const Buffers result(0);
    gcap_stream_t* stream = NewStream(0);
    for (int i = 0; i < 3; ++i) {
      staging[i].buffers.Write(i + 1);
      // Schedules hold a host function back, so that an end of run comes now before the buffer was read, now after.
      GCAP_EXPECT_CUDA(cudaLaunchHostFunc(
          gcap_stream_handle(stream), [](void*) {}, nullptr));
      Upload(staging[i].buffers.device(), staging[i].buffers.pinned(), stream);
      GCAP_EXPECT_OK(gcap_stream_defer(stream, Staging::Release, &staging[i]));
      Download(result.pinned(), staging[i].buffers.device(), stream);
      for (int run = 0; run < 2; ++run) {
        GCAP_EXPECT_OK(gcap_stream_end_run(stream, false));
        ++(staging[i].released ? outcomes->passed : outcomes->not_passed);
      }
    }
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    right = result.Holds(3);
    for (const Staging& each : staging) right = right && each.buffers.Holds(0xEE);
  }
  return right && !::testing::Test::HasFailure() ? 0 : 1;
}

TEST_F(StreamExplore, AReleaseComesAfterTheWorkThatReadsTheBuffer) {
  Outcomes outcomes;
  EXPECT_EQ(gcap_sim_explore(DeferredReleases, &outcomes, kFirstSeed, kSeeds, nullptr), 0);
  if (std::getenv("GCAP_SIM_EXPLORE") == nullptr) {
    EXPECT_GT(outcomes.passed, 50);
    EXPECT_GT(outcomes.not_passed, 50);
  }
}

// The first of three streams is not known to the last, which has waited for the one between; across two devices.
int TransitiveWaits(void*) {
  bool right = true;
  {
    Buffers first(0);
    const Buffers last(1);
    gcap_stream_t* streams[3] = {NewStream(0), NewStream(1), NewStream(1)};
    first.Write(42);
    Upload(first.device(), first.pinned(), streams[0]);
    Download(first.pinned(), first.device(), streams[0]);
    const uint64_t tag = gcap_stream_sync_id(streams[0]);
    Wait(streams[1], streams[0]);
    Wait(streams[2], streams[1]);
    right = gcap_stream_has_waited(streams[2], streams[0], tag);
    Upload(last.device(), first.pinned(), streams[2]);
    Download(last.pinned(), last.device(), streams[2]);
    GCAP_EXPECT_OK(gcap_stream_synchronize(streams[2]));
    right = right && last.Holds(42);
    for (gcap_stream_t* stream : streams) GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }
  return right && !::testing::Test::HasFailure() ? 0 : 1;
}

TEST_F(StreamExplore, WaitsAreTransitiveAcrossDevices) {
  EXPECT_EQ(gcap_sim_explore(TransitiveWaits, nullptr, kFirstSeed, kSeeds, nullptr), 0);
}

// A random program in which nothing but the timeline's answer decides whether a stream may take a block that another
// one was given: when the answer were wrong, two accesses would meet that nothing orders.
class Reuse {
 public:
  explicit Reuse(uint32_t seed) : random_(seed) {
    for (int i = 0; i < kStreams; ++i) streams_[i] = NewStream(i % 2);
  }
  Reuse(const Reuse&) = delete;
  Reuse& operator=(const Reuse&) = delete;
  ~Reuse() {
    for (gcap_stream_t* stream : streams_) GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }

  void Step() {
    const size_t stream = Below(kStreams);
    Block* block = &blocks_[Below(kBlocks)];
    const size_t kind = Below(8);
    if (kind == 0) {
      GCAP_EXPECT_OK(gcap_stream_synchronize(streams_[stream]));
    } else if (kind < 3) {
      Wait(streams_[stream], streams_[Below(kStreams)]);
    } else if (block->last == nullptr || gcap_stream_has_waited(streams_[stream], block->last, block->tag)) {
      Take(block, stream);
    }
  }

  int taken() const { return taken_; }

  // What each block holds is what the stream that took it last put there.
  bool IsRight() {
    for (gcap_stream_t* stream : streams_) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    for (const Block& block : blocks_) {
      if (block.last != nullptr && !block.buffers.Holds(block.value)) return false;
    }
    return true;
  }

 private:
  static constexpr int kStreams = 4;
  static constexpr int kBlocks = 2;

  struct Block {
    Buffers buffers{0};
    gcap_stream_t* last = nullptr;
    uint64_t tag = 0;
    int value = 0;
  };

  size_t Below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

  // The stream fills its own device memory and copies it to the block.
  void Take(Block* block, size_t stream) {
    block->value = ++taken_ % 200;
    GCAP_EXPECT_CUDA(cudaSetDevice(gcap_stream_device(streams_[stream])));
    GCAP_EXPECT_CUDA(
        cudaMemsetAsync(sources_[stream].device(), block->value, kBytes, gcap_stream_handle(streams_[stream])));
    GCAP_EXPECT_CUDA(cudaSetDevice(0));
    Download(block->buffers.pinned(), sources_[stream].device(), streams_[stream]);
    block->last = streams_[stream];
    block->tag = gcap_stream_sync_id(streams_[stream]);
  }

  std::mt19937 random_;
  gcap_stream_t* streams_[kStreams] = {};
  const Buffers sources_[kStreams] = {Buffers(0), Buffers(1), Buffers(0), Buffers(1)};
  Block blocks_[kBlocks];
  int taken_ = 0;
};

TEST_F(StreamExplore, WhatHasWaitedSaysIsOrderedIsOrdered) {
  // Each schedule gets a program of its own, the one of its seed.
  const char* only = std::getenv("GCAP_SIM_EXPLORE");
  struct Programs {
    uint32_t next;
    int taken;
  } programs = {only != nullptr ? static_cast<uint32_t>(std::atoi(only)) : static_cast<uint32_t>(kFirstSeed), 0};
  const auto body = [](void* user) {
    auto* programs = static_cast<Programs*>(user);
    Reuse reuse(programs->next++);
    for (int step = 0; step < 40; ++step) reuse.Step();
    programs->taken += reuse.taken();
    return reuse.IsRight() && !HasFailure() ? 0 : 1;
  };
  EXPECT_EQ(gcap_sim_explore(body, &programs, kFirstSeed, kSeeds, nullptr), 0);
  if (only == nullptr) {
    EXPECT_GT(programs.taken, 5000) << "most programs must get on";
  }
}

// A staging buffer that a captured copy reads at each replay is the graph's; the eager one beside it is the stream's.
int ReleasesOfAGraph(void*) {
  bool right = true;
  {
    Staging staging;
    const Buffers result(0);
    gcap_stream_t* stream = NewStream(0);
    staging.buffers.Write(5);
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(gcap_stream_handle(stream), nullptr, &capture));
    Upload(staging.buffers.device(), staging.buffers.pinned(), stream);
    GCAP_EXPECT_OK(gcap_stream_defer(stream, Staging::Release, &staging));
    Download(result.pinned(), staging.buffers.device(), stream);
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
    cudaGraphExec_t exec = nullptr;
    GCAP_EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int replay = 0; replay < 3; ++replay) {
      GCAP_EXPECT_CUDA(cudaGraphLaunch(exec, gcap_stream_handle(stream)));
      GCAP_EXPECT_OK(gcap_stream_end_run(stream, /*synchronize=*/replay == 1));
    }
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    right = result.Holds(5);
    GCAP_EXPECT_CUDA(cudaGraphExecDestroy(exec));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    gcap_retained_release(retained);
    right = right && staging.buffers.Holds(0xEE);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }
  return right && !::testing::Test::HasFailure() ? 0 : 1;
}

TEST_F(StreamExplore, AReleaseDeferredInAScopeComesAfterTheLastReplay) {
  EXPECT_EQ(gcap_sim_explore(ReleasesOfAGraph, nullptr, kFirstSeed, kSeeds, nullptr), 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
