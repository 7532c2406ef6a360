// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An arena for each device, made on first use. It is never ended: PyTorch frees its last tensors when the process ends.
//
// Order. PyTorch frees a tensor in the order of the stream that it was allocated for, as gcap's scratch does. What
// other streams do with it PyTorch tells by record_stream; the stream that frees then waits for them, on the device.
// Threads. PyTorch's threads may share a stream, while scratch wants one thread at a time to use it: each stream has a
// lock for its allocations. Frees need none.
// Captures. torch.cuda.graph captures without gcap, so the reservation of each graph is opened and closed here. What a
// capture needs must be there before, so the warm-up runs on the stream of the capture (`torch.cuda.graph(g,
// stream=s)`).

#include "examples/pytorch_extension/scratch_allocator.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gcap/gcap.hpp"

namespace {

constexpr size_t kMaxDevices = 64;

struct Stream {
  gcap::stream wrapper;
  std::mutex mutex;
};

class Arena {
 public:
  explicit Arena(int device) : device_(device) {}

  void* Alloc(size_t bytes, cudaStream_t handle) {
    Stream& stream = Find(handle);
    const std::lock_guard<std::mutex> lock(stream.mutex);
    return gcap::own<gcap_scratch_alloc>(scratch_.get(), bytes, stream.wrapper.get()).value_or_throw().release();
  }

  // In a capture nothing can wait for a stream outside of the capture: what such a stream uses goes when the pool ends.
  gcap::status Free(void* ptr, cudaStream_t handle) {
    if (has_users_.load(std::memory_order_relaxed)) {
      cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamIsCapturing(handle, &capture)));
      if (capture != cudaStreamCaptureStatusNone && Defer(ptr, handle)) return {};
      GCAP_RETURN_IF_ERROR(WaitForUsers(ptr, handle).release());
    }
    return gcap_scratch_free(scratch_.get(), ptr);
  }

  void RecordStream(void* ptr, cudaStream_t user) {
    const std::lock_guard<std::mutex> lock(mutex_);
    users_[ptr].push_back(user);
    has_users_ = true;
  }

  void BeginPool(const GcapTorchPool& id, cudaStream_t handle) {
    gcap_stream_t* const stream = Find(handle).wrapper.get();
    gcap::check(gcap_scratch_reservation_prepare(scratch_.get(), stream));
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto pool = pools_.find(id);
    if (pool == pools_.end()) {
      auto opened = gcap::own<gcap_scratch_reservation_open>(scratch_.get(), stream).value_or_throw();
      pools_.emplace(id, Pool{opened.release(), 1});
    } else {
      gcap::check(gcap_scratch_reservation_reopen(pool->second.reservation));
      ++pool->second.graphs;
    }
  }

  // The capture has ended.
  gcap::status EndPool(const GcapTorchPool& id) {
    std::vector<std::pair<void*, cudaStream_t>> deferred;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      gcap_scratch_reservation_close(pools_.at(id).reservation);
      deferred.swap(deferred_);
    }
    gcap_status_t outcome = nullptr;
    for (const auto& [ptr, handle] : deferred) outcome = gcap_status_join(outcome, Free(ptr, handle).release());
    return outcome;
  }

  void ReleasePool(const GcapTorchPool& id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto pool = pools_.find(id);
    if (pool == pools_.end()) return;  // of a capture whose begin failed
    gcap_scratch_reservation_release(pool->second.reservation);
    if (--pool->second.graphs == 0) pools_.erase(pool);
  }

  gcap::status Trim() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& stream : streams_) {
      const std::lock_guard<std::mutex> stream_lock(stream.second->mutex);
      GCAP_RETURN_IF_ERROR(gcap_stream_synchronize(stream.second->wrapper.get()));
    }
    return gcap_scratch_trim(scratch_.get());
  }

  gcap_scratch_t* scratch() const { return scratch_.get(); }

 private:
  struct Pool {
    gcap_scratch_reservation_t* reservation = nullptr;
    int graphs = 0;
  };

  // The last one that this thread asked for is nearly always the one.
  Stream& Find(cudaStream_t handle) {
    struct Last {
      const Arena* arena = nullptr;
      cudaStream_t handle = nullptr;
      Stream* stream = nullptr;
    };
    thread_local Last last;
    if (last.arena == this && last.handle == handle) return *last.stream;
    const std::lock_guard<std::mutex> lock(mutex_);
    auto found = streams_.find(handle);
    if (found == streams_.end()) {
      auto made = std::make_unique<Stream>();
      made->wrapper = gcap::own<gcap_stream_wrap>(handle, GCAP_STREAM_USER,
                                                  unsigned{GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM}, device_)
                          .value_or_throw();
      found = streams_.emplace(handle, std::move(made)).first;
    }
    last = {this, handle, found->second.get()};
    return *last.stream;
  }

  // Whether another stream uses the block: it is then freed later.
  bool Defer(void* ptr, cudaStream_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (users_.count(ptr) == 0) return false;
    deferred_.emplace_back(ptr, handle);
    return true;
  }

  gcap::status WaitForUsers(void* ptr, cudaStream_t handle) {
    std::vector<cudaStream_t> users;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = users_.find(ptr);
      if (found == users_.end()) return {};
      users = found->second;
    }
    for (const cudaStream_t user : users) {
      if (user != handle) GCAP_RETURN_IF_ERROR(Wait(user, handle).release());
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    users_.erase(ptr);
    has_users_ = !users_.empty();
    return {};
  }

  static gcap::status Wait(cudaStream_t user, cudaStream_t waits) {
    cudaEvent_t used;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventCreateWithFlags(&used, cudaEventDisableTiming)));
    gcap_status_t outcome = GCAP_CUDA(cudaEventRecord(used, user));
    if (outcome == nullptr) outcome = GCAP_CUDA(cudaStreamWaitEvent(waits, used, 0));
    return gcap_status_join(outcome, GCAP_CUDA(cudaEventDestroy(used)));
  }

  const int device_;
  gcap::allocator upstream_ = gcap::own<gcap_device_allocator_create>(device_).value_or_throw();
  gcap::scratch scratch_ = gcap::own<gcap_scratch_create>(upstream_.get(), nullptr).value_or_throw();
  std::mutex mutex_;
  std::unordered_map<cudaStream_t, std::unique_ptr<Stream>> streams_;
  std::unordered_map<void*, std::vector<cudaStream_t>> users_;  // of blocks that record_stream named
  std::atomic<bool> has_users_{false};
  std::vector<std::pair<void*, cudaStream_t>> deferred_;  // frees of the captures that are open
  std::map<GcapTorchPool, Pool> pools_;
};

std::array<Arena*, kMaxDevices> arenas;
std::array<std::once_flag, kMaxDevices> arenas_made;
cudaStream_t (*current_stream)(int device);

Arena& ArenaOf(int device) {
  const size_t index = static_cast<size_t>(device);
  std::call_once(arenas_made.at(index), [&] { arenas[index] = new Arena(device); });
  return *arenas[index];
}

// Of what has nobody to tell: a tensor's end cannot fail, and ctypes knows no exceptions.
void LogFailure(const gcap::status& outcome) {
  if (!outcome.ok()) gcap_log(GCAP_LOG_ERROR, "gcap's scratch under PyTorch: %s", outcome.message());
}

}  // namespace

void* gcap_torch_alloc(ssize_t size, int device, cudaStream_t stream) {
  return ArenaOf(device).Alloc(static_cast<size_t>(size), stream);
}

void gcap_torch_free(void* ptr, ssize_t, int device, cudaStream_t stream) {
  LogFailure(ArenaOf(device).Free(ptr, stream));  // a block that is not taken back stays live
}

void gcap_torch_record_stream(void* ptr, cudaStream_t stream) {
  cudaPointerAttributes attributes;
  gcap::check(GCAP_CUDA(cudaPointerGetAttributes(&attributes, ptr)));
  ArenaOf(attributes.device).RecordStream(ptr, stream);
}

void gcap_torch_set_current_stream(cudaStream_t (*current)(int device)) { current_stream = current; }

void gcap_torch_begin_pool(int device, GcapTorchPool pool, std::function<bool(cudaStream_t)>) {
  ArenaOf(device).BeginPool(pool, current_stream(device));
}

void gcap_torch_end_pool(int device, GcapTorchPool pool) { LogFailure(ArenaOf(device).EndPool(pool)); }

void gcap_torch_release_pool(int device, GcapTorchPool pool) { ArenaOf(device).ReleasePool(pool); }

void gcap_torch_get_stats(int device, GcapTorchStats* out_stats) {
  const auto stats = gcap::filled_by<gcap_scratch_get_stats>(ArenaOf(device).scratch());
  *out_stats = {stats.requested_in_use_bytes, stats.total_allocated_bytes, stats.num_allocs, stats.num_extensions};
}

int gcap_torch_describe(int device, char* out_text, size_t text_bytes) {
  return gcap_scratch_describe(ArenaOf(device).scratch(), out_text, text_bytes);
}

void gcap_torch_trim(int device) { LogFailure(ArenaOf(device).Trim()); }
