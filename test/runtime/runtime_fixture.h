// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// runtime_fixture.h: an EP runtime without an EP: runs as a host and its kernels make them, in one call each.
#ifndef GCAP_TEST_RUNTIME_RUNTIME_FIXTURE_H_
#define GCAP_TEST_RUNTIME_RUNTIME_FIXTURE_H_

#include <atomic>
#include <functional>
#include <vector>

#include "gcap/capture.h"
#include "gcap/kit/ep_ops.h"
#include "gtest/gtest.h"
#include "test/ep/test_ep.h"
#include "test/support/device_floats.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/replays.h"

namespace gcap {
namespace testing {

using Floats = std::vector<float>;

// An application's memory, whose callbacks are written for one call at a time and for none in a capture.
struct Memory {
  static inline std::atomic<int> inside{0}, overlaps{0}, live{0}, calls{0}, calls_in_capture{0};

  static void* Alloc(size_t bytes) {
    if (++inside > 1) ++overlaps;
    ++calls;
    calls_in_capture += gcap_thread_is_capturing();
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) == cudaSuccess) ++live;
    --inside;
    return memory;
  }
  static void Free(void* memory) {
    if (++inside > 1) ++overlaps;
    calls_in_capture += gcap_thread_is_capturing();
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    --live;
    --inside;
  }
};

class RuntimeTest : public DeviceTest {
 protected:
  using Work = std::function<gcap_status_t(const gcap_run_resources_t&)>;

  // In the place of the one before.
  void Create(const gcap_options_t& options) {
    Destroy();
    GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime_));
  }
  void Destroy() {
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_));
    runtime_ = nullptr;
  }
  void TearDown() override { Destroy(); }

  gcap_run_resources_t Resources() {
    gcap_run_resources_t resources;
    GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime_, &resources));
    return resources;
  }

  gcap_graph_info_t Info(int id) { return GraphInfo(runtime_, id); }

  // One run as a host makes it, without a replay.
  Outcome Run(int id, const Work& work, bool synchronize = true) {
    const Outcome started(BeginRun(runtime_, id));
    if (!started.ok()) return started;
    return Outcome(EndRun(runtime_, work(Resources()), synchronize));
  }
  // One run in one call: a replay, or a run that is done once more eagerly where its capture fails.
  Outcome RunWhole(int id, Work work, bool synchronize = true) {
    const gcap_work_t call = [](void* work, const gcap_run_resources_t* run) {
      return (*static_cast<const Work*>(work))(*run);
    };
    return Outcome(RunOnRuntime(runtime_, id, call, &work, synchronize));
  }
  bool IsCaptured(int id) { return gcap_runtime_is_captured(runtime_, id); }

  static gcap_status_t Copy(const gcap_run_resources_t& run, const DeviceFloats& from, const DeviceFloats& to) {
    return GCAP_CUDA(
        cudaMemcpyAsync(to.get(), from.get(), from.Bytes(), cudaMemcpyDeviceToDevice, gcap_stream_handle(run.stream)));
  }

  // Copies by way of scratch of that size, and tells where it was.
  static gcap_status_t CopyByScratch(const gcap_run_resources_t& run, const DeviceFloats& from, const DeviceFloats& to,
                                     size_t scratch_bytes, void** out_scratch) {
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, scratch_bytes, run.stream, out_scratch));
    const cudaStream_t stream = gcap_stream_handle(run.stream);
    gcap_status_t status =
        GCAP_CUDA(cudaMemcpyAsync(*out_scratch, from.get(), from.Bytes(), cudaMemcpyDeviceToDevice, stream));
    if (status == nullptr) {
      status = GCAP_CUDA(cudaMemcpyAsync(to.get(), *out_scratch, from.Bytes(), cudaMemcpyDeviceToDevice, stream));
    }
    return gcap_status_join(status, gcap_scratch_free(run.scratch, *out_scratch));
  }

  // Writes to a block of scratch, and gives its address.
  static gcap_status_t Touch(const gcap_run_resources_t& run, size_t bytes, void** out_block = nullptr) {
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, bytes, run.stream, &block));
    if (out_block != nullptr) *out_block = block;
    gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(block, 1, bytes, gcap_stream_handle(run.stream)));
    return gcap_status_join(status, gcap_scratch_free(run.scratch, block));
  }

  // A work that copies, and a replay of which the copy has other content.
  static Work Copier(const DeviceFloats& from, const DeviceFloats& to) {
    return [&](const gcap_run_resources_t& run) { return Copy(run, from, to); };
  }
  void ExpectReplays(int id, DeviceFloats* from, const DeviceFloats& to, const Floats& content) {
    from->Set(content);
    EXPECT_TRUE(Replay(id));
    EXPECT_EQ(to.Get(), content);
  }

  bool Replay(int id, bool synchronize = true) {
    bool replayed = false;
    GCAP_EXPECT_OK(TryReplay(runtime_, id, synchronize, &replayed));
    return replayed;
  }

  gcap_allocator_stats_t ScratchStats() {
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(gcap_runtime_scratch(runtime_), &stats);
    return stats;
  }

  gcap_runtime_t* runtime_ = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_RUNTIME_RUNTIME_FIXTURE_H_
