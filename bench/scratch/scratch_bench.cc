// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What scratch costs on the CPU, by the workloads that bench/peers gives to others. Upstream hands out address space
// that nobody touches and makes no CUDA call, so the time is scratch's own on any machine; with --device_memory it is
// the device allocator, as the others have it.
//
// "harness" is an allocator that does nothing: what the loops cost by themselves. It is not subtracted from anything.
// "gcap_each" is a scratch for each thread: what the machine leaves of a thread when others run, sharing aside.
// "gcap_pool" is the pool allocator, which may stand in the place of scratch where nothing is captured: its pairs
// alone, since what it costs is the driver's (bench/peers has bare cudaMallocAsync).

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "bench/scratch/workload.h"
#include "gcap/allocator_ops.h"
#include "gcap/scratch.h"

namespace {

using gcap::bench::Trace;

bool use_device_memory = false;

void Check(gcap_status_t status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "scratch_bench: %s\n", gcap_status_message(status));
  std::exit(1);
}

// Address space without memory behind it, or the device allocator.
class Upstream {
 public:
  Upstream() {
    if (use_device_memory) {
      Check(gcap_device_allocator_create(0, &allocator_));
      return;
    }
    gcap_allocator_ops_t ops = {};
    ops.struct_version = GCAP_ALLOCATOR_OPS_VERSION;
    ops.alignment = 256;
    ops.self = this;
    ops.alloc = [](void* self, size_t bytes, void** out) { return static_cast<Upstream*>(self)->Alloc(bytes, out); };
    ops.free = [](void* self, void* ptr) { return static_cast<Upstream*>(self)->Free(ptr); };
    Check(gcap_allocator_create(&ops, &allocator_));
  }
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;
  ~Upstream() { gcap_allocator_destroy(allocator_); }
  gcap_allocator_t* get() const { return allocator_; }

 private:
  gcap_status_t Alloc(size_t bytes, void** out_ptr) {
    void* base = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no address space for %zu bytes", bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    sizes_[base] = bytes;
    *out_ptr = base;
    return nullptr;
  }
  gcap_status_t Free(void* ptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    munmap(ptr, sizes_[ptr]);
    sizes_.erase(ptr);
    return nullptr;
  }

  gcap_allocator_t* allocator_ = nullptr;
  std::mutex mutex_;
  std::map<void*, size_t> sizes_;
};

class Scratch {
 public:
  Scratch() { Check(gcap_scratch_create(upstream_.get(), nullptr, &scratch_)); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { Check(gcap_scratch_destroy(scratch_)); }

  class Stream {
   public:
    explicit Stream(Scratch& scratch) : scratch_(scratch.scratch_) { Check(gcap_stream_create(0, &stream_)); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() {
      Check(gcap_stream_synchronize(stream_));
      Check(gcap_scratch_forget_stream(scratch_, stream_));
      Check(gcap_stream_destroy(stream_));
    }
    gcap_stream_t* get() const { return stream_; }

   private:
    gcap_scratch_t* scratch_;
    gcap_stream_t* stream_ = nullptr;
  };

  void* Alloc(size_t bytes, Stream& stream) {
    void* ptr = nullptr;
    Check(gcap_scratch_alloc(scratch_, bytes, stream.get(), &ptr));
    return ptr;
  }
  void Free(void* ptr, size_t /*bytes*/, Stream& /*stream*/) { Check(gcap_scratch_free(scratch_, ptr)); }
  // Nothing is given back meanwhile, so what is held now is the peak.
  size_t HeldBytes() {
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(scratch_, &stats);
    return stats.total_allocated_bytes;
  }

 private:
  Upstream upstream_;
  gcap_scratch_t* scratch_ = nullptr;
};

class EachItsOwn {
 public:
  class Stream {
   public:
    explicit Stream(EachItsOwn& /*allocator*/) : stream_(scratch_) {}

   private:
    friend class EachItsOwn;
    Scratch scratch_;
    Scratch::Stream stream_;
  };
  void* Alloc(size_t bytes, Stream& stream) { return stream.scratch_.Alloc(bytes, stream.stream_); }
  void Free(void* ptr, size_t bytes, Stream& stream) { stream.scratch_.Free(ptr, bytes, stream.stream_); }
};

class Pool {
 public:
  class Stream {
   public:
    explicit Stream(Pool& /*allocator*/) { Check(gcap_stream_create(0, &stream_)); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { Check(gcap_stream_destroy(stream_)); }
    gcap_stream_t* get() const { return stream_; }

   private:
    gcap_stream_t* stream_ = nullptr;
  };

  Pool() {
    gcap_pool_allocator_options_t options;
    gcap_pool_allocator_options_init(&options);
    Check(gcap_pool_allocator_create(&options, &allocator_));
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { gcap_allocator_destroy(allocator_); }

  void* Alloc(size_t bytes, Stream& stream) {
    void* ptr = nullptr;
    Check(gcap_allocator_alloc_on_stream(allocator_, bytes, stream.get(), &ptr));
    return ptr;
  }
  void Free(void* ptr, size_t /*bytes*/, Stream& /*stream*/) { Check(gcap_allocator_free(allocator_, ptr)); }

 private:
  gcap_allocator_t* allocator_ = nullptr;
};

class Nothing {
 public:
  class Stream {
   public:
    explicit Stream(Nothing& /*allocator*/) {}
  };
  void* Alloc(size_t bytes, Stream& stream) {
    benchmark::DoNotOptimize(bytes);
    return &stream;
  }
  void Free(void* ptr, size_t /*bytes*/, Stream& /*stream*/) { benchmark::DoNotOptimize(ptr); }
  size_t HeldBytes() { return 0; }
};

void Register(const std::vector<Trace>& traces) {
  gcap::bench::RegisterAll<Scratch>("gcap", traces);
  gcap::bench::RegisterThreads<EachItsOwn>("gcap_each");
  gcap::bench::RegisterPairs<Pool>("gcap_pool");
  gcap::bench::RegisterAll<Nothing>("harness", traces);
}

}  // namespace

int main(int argc, char** argv) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
    std::fprintf(stderr, "scratch_bench: no CUDA device, so no streams\n");
    return std::getenv("GCAP_REQUIRE_GPU") != nullptr ? 1 : 0;
  }
  benchmark::AddCustomContext("device", properties.name);
  use_device_memory = gcap::bench::TakeFlag(&argc, argv, "--device_memory") != nullptr;
  return gcap::bench::Main(argc, argv, Register);
}
