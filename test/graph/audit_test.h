// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// audit_test.h: what the tests of audits share: captures of small works, what an audit tells, and an allocator that
// keeps memory for its next request, as frameworks' do.
#ifndef GCAP_TEST_GRAPH_AUDIT_TEST_H_
#define GCAP_TEST_GRAPH_AUDIT_TEST_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/kernels/plain_kernels.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {

constexpr int64_t kAuditFloats = 64;
constexpr size_t kAuditBytes = kAuditFloats * sizeof(float);

// Memory of kAuditBytes zeros, from the driver.
class DeviceMemory {
 public:
  enum Kind { kDevice, kPinned };
  explicit DeviceMemory(Kind kind = kDevice) : kind_(kind) { Alloc(); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { Free(); }

  void Alloc(size_t bytes = kAuditBytes) {
    GCAP_EXPECT_CUDA(kind_ == kPinned ? cudaMallocHost(&memory_, bytes) : cudaMalloc(&memory_, bytes));
    GCAP_EXPECT_CUDA(cudaMemset(memory_, 0, bytes));
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
  }
  void Free() {
    GCAP_EXPECT_CUDA(kind_ == kPinned ? cudaFreeHost(memory_) : cudaFree(memory_));
    memory_ = nullptr;
  }
  void* get() const { return memory_; }

 private:
  const Kind kind_;
  void* memory_ = nullptr;
};

// An allocator as frameworks have: blocks of kAuditBytes of one allocation of the driver, reused as soon as they are
// free.
class CachingAllocator {
 public:
  explicit CachingAllocator(DeviceMemory::Kind kind = DeviceMemory::kDevice) : pool_(kind) {
    pool_.Free();
    pool_.Alloc(kBlocks * kAuditBytes);
  }

  // The first block that is free.
  void* Alloc() {
    for (size_t i = 0; i < kBlocks; ++i) {
      if (numbers_[i] != 0) continue;
      numbers_[i] = ++last_number_;
      return At(i);
    }
    ADD_FAILURE() << "no block is left";
    return nullptr;
  }
  void Free(void* block) { numbers_[IndexOf(block)] = 0; }
  // Gives all back to the driver, as a flush does.
  void Flush() { pool_.Free(); }

  static bool Find(void* self, const void* address, gcap_graph_block_t* out_block) {
    const auto* allocator = static_cast<const CachingAllocator*>(self);
    const size_t index = allocator->IndexOf(address);
    if (allocator->pool_.get() == nullptr || index >= kBlocks) return false;
    out_block->address = allocator->At(index);
    out_block->bytes = kAuditBytes;
    out_block->number = allocator->numbers_[index];
    return true;
  }

 private:
  static constexpr size_t kBlocks = 8;
  char* At(size_t index) const { return static_cast<char*>(pool_.get()) + index * kAuditBytes; }
  size_t IndexOf(const void* address) const {
    return (reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(pool_.get())) / kAuditBytes;
  }

  DeviceMemory pool_;
  uint64_t numbers_[kBlocks] = {};
  uint64_t last_number_ = 0;
};

// A pointer as an audit told it.
struct Pointer {
  std::string node, place, owner, memory, now;
  const void* address;
  bool is_finding;
};

class AuditTest : public ManagerTest {
 protected:
  using Work = std::function<gcap_status_t(cudaStream_t)>;

  // Captures the first run of each id.
  void Create(gcap_graph_audit_level_t level, CachingAllocator* allocator = nullptr) {
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = 0;
    options.audit = level;
    if (allocator != nullptr) {
      options.find_block = CachingAllocator::Find;
      options.find_block_user = allocator;
    }
    GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &manager_));
  }

  // out = relu(in).
  static gcap_status_t Relu(cudaStream_t stream, void* in, void* out) {
    int64_t count = kAuditFloats;
    void* args[] = {&in, &out, &count};
    return GCAP_CUDA(
        cudaLaunchKernel(reinterpret_cast<const void*>(gcap_kernel_relu_f32), dim3(1), dim3(64), args, 0, stream));
  }
  static gcap_status_t Copy(cudaStream_t stream, void* to, const void* from) {
    return GCAP_CUDA(cudaMemcpyAsync(to, from, kAuditBytes, cudaMemcpyDefault, stream));
  }

  using Bindings = std::vector<gcap_graph_binding_t>;

  Outcome CaptureOnce(int id, const Work& work, const Bindings& bindings = {}) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_EXPECT_OK(BeginBound(manager_, id, stream_->get(), bindings.data(), bindings.size(), &kind));
    EXPECT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
    return End(work(stream_->get()));
  }
  void Capture(int id, const Work& work, const Bindings& bindings = {}) {
    const Outcome outcome = CaptureOnce(id, work, bindings);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
  }
  // The capture fails by its audit, and leaves no graph.
  Outcome CaptureFails(int id, const Work& work) {
    const Outcome outcome = CaptureOnce(id, work);
    EXPECT_EQ(outcome.code, GCAP_CAPTURE_INVALIDATED) << outcome.message;
    EXPECT_EQ(State(id), "COOLING");
    return outcome;
  }
  // The same with input and output that may move.
  void CaptureOn(int id, void* input, void* output) {
    const gcap_graph_buffer_t items[] = {{"input", input, kAuditBytes, 0}, {"output", output, kAuditBytes, 0}};
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = items;
    buffers.count = 2;
    const auto work = [](void*, cudaStream_t stream, void* const* addresses) {
      return Relu(stream, addresses[0], addresses[1]);
    };
    GCAP_EXPECT_OK(RunPlainOn(manager_, id, stream_->get(), &buffers, work, nullptr, /*synchronize=*/true));
  }

  Outcome ReplayAs(const gcap_run_t& run) { return Outcome(gcap_graph_manager_replay(manager_, &run, nullptr)); }
  Outcome Replay(int id) { return ReplayAs(RunOf(id, GCAP_RUN_OWN_STREAM, /*synchronize=*/true)); }
  Outcome ReplayOn(int id, cudaStream_t stream) { return ReplayAs(RunOf(id, stream)); }

  std::vector<Pointer> Audit(int id) {
    std::vector<Pointer> pointers;
    const auto add = [](void* user, const gcap_graph_pointer_t* p) {
      static_cast<std::vector<Pointer>*>(user)->push_back({p->node_text, p->place, gcap_graph_owner_name(p->owner),
                                                           p->memory, p->now != nullptr ? p->now : "", p->address,
                                                           p->is_finding});
    };
    GCAP_EXPECT_OK(gcap_graph_manager_audit(manager_, id, add, &pointers, nullptr));
    return pointers;
  }
  size_t Findings(int id) {
    size_t findings = 99;
    GCAP_EXPECT_OK(gcap_graph_manager_audit(manager_, id, nullptr, nullptr, &findings));
    return findings;
  }
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_AUDIT_TEST_H_
