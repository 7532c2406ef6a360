// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// chain_graph.h: a real graph that copies its input to its output by way of two blocks of scratch, so that whatever
// else is written to them while it runs is seen in the output. Copies alone: it runs on the simulator and on a GPU.
#ifndef GCAP_TEST_SCRATCH_CHAIN_GRAPH_H_
#define GCAP_TEST_SCRATCH_CHAIN_GRAPH_H_

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <mutex>
#include <vector>

#include "gcap/capture.h"
#include "gcap/scratch.h"
#include "gtest/gtest.h"
#include "test/support/device_floats.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

// Stops a graph in its middle while it is armed. Outlives the graph.
class Pause {
 public:
  void Arm() { Set(kArmed); }
  // Returns when the graph has come to its middle.
  void AwaitArrival() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return state_ == kArrived; });
  }
  void GoOn() { Set(kOff); }

  static void OnDevice(void* self) { static_cast<Pause*>(self)->Pass(); }

 private:
  enum State { kOff, kArmed, kArrived };

  void Set(State state) {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_ = state;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (state_ == kOff) return;
    state_ = kArrived;
    changed_.notify_all();
    changed_.wait(lock, [this] { return state_ == kOff; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = kOff;
};

class ChainGraph {
 public:
  // Captures into `shared`, which is opened again, or with nullptr into a reservation of its own. The scratch has the
  // memory: two blocks of `count` floats.
  ChainGraph(gcap_scratch_t* scratch, gcap_stream_t* stream, size_t count, gcap_scratch_reservation_t* shared,
             Pause* pause = nullptr)
      : stream_(stream), reservation_(shared), x_(std::vector<float>(count)), y_(std::vector<float>(count)) {
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(Handle(), nullptr, &capture));
    if (shared == nullptr) {
      GCAP_EXPECT_OK(gcap_scratch_reservation_open(scratch, stream, &reservation_));
    } else {
      GCAP_EXPECT_OK(gcap_scratch_reservation_reopen(shared));
    }
    Issue(scratch, pause);
    gcap_scratch_reservation_close(reservation_);
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_OK(gcap_capture_end(capture, &graph_, &retained));
    EXPECT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
  }
  ChainGraph(const ChainGraph&) = delete;
  ChainGraph& operator=(const ChainGraph&) = delete;
  // After a synchronisation.
  ~ChainGraph() {
    EXPECT_EQ(cudaGraphExecDestroy(exec_), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    gcap_scratch_reservation_release(reservation_);
  }

  gcap_scratch_reservation_t* reservation() const { return reservation_; }

  // While no replay of it runs.
  void Launch(float seed) {
    std::vector<float> content(x_.Bytes() / sizeof(float));
    for (size_t i = 0; i < content.size(); ++i) content[i] = seed + static_cast<float>(i % 1000);
    x_.Set(content);
    y_.Set(std::vector<float>(content.size(), -1.0f));
    EXPECT_EQ(cudaGraphLaunch(exec_, Handle()), cudaSuccess);
  }
  // After a synchronisation.
  bool OutputIsInput() const { return y_.Get() == x_.Get(); }

 private:
  cudaStream_t Handle() const { return gcap_stream_handle(stream_); }
  void Copy(void* to, const void* from) {
    EXPECT_EQ(cudaMemcpyAsync(to, from, x_.Bytes(), cudaMemcpyDeviceToDevice, Handle()), cudaSuccess);
  }
  void Issue(gcap_scratch_t* scratch, Pause* pause) {
    void* first = nullptr;
    void* second = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, x_.Bytes(), stream_, &first));
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, x_.Bytes(), stream_, &second));
    Copy(first, x_.get());
    if (pause != nullptr) {
      EXPECT_EQ(cudaLaunchHostFunc(Handle(), Pause::OnDevice, pause), cudaSuccess);
    }
    Copy(second, first);
    Copy(y_.get(), second);
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, first));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, second));
  }

  gcap_stream_t* stream_;
  gcap_scratch_reservation_t* reservation_;
  DeviceFloats x_, y_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SCRATCH_CHAIN_GRAPH_H_
