// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The callbacks know neither gcap's streams nor when its work runs, while the framework's pool lives by the order of
// streams. Two things make them fit:
// - gcap gives a block back only when no stream uses it any more, so a free needs no order.
// - What gcap gets must be free for any stream at once, while a pool's block is free for the stream that asked, after
//   what that was given before, or waits for. So that stream is waited for. It is one to which nothing else is ever
//   given, so that the wait is not for the framework's work.
//
// Thread: gcap calls from whichever thread needs memory, several at once. The framework locks; the counts are atomic.

#include "examples/external_allocator/callbacks.h"

#include <atomic>

#include "gcap/capture.h"

namespace {

Framework* pool;
cudaStream_t gcap_blocks;  // what gcap holds is of this stream
std::atomic<int> allocs, frees, empty_caches, in_captures;

void Count(std::atomic<int>* calls) {
  ++*calls;
  if (gcap_thread_is_capturing()) ++in_captures;
}

// No exception may reach gcap, which is written in C: out of memory is NULL.
void* Alloc(size_t bytes) {
  Count(&allocs);
  try {
    void* const ptr = pool->Alloc(bytes, gcap_blocks);
    if (ptr == nullptr || cudaStreamSynchronize(gcap_blocks) == cudaSuccess) return ptr;
    pool->Free(ptr, gcap_blocks);
  } catch (...) {
  }
  return nullptr;
}

void Free(void* ptr) {
  Count(&frees);
  try {
    pool->Free(ptr, gcap_blocks);
  } catch (...) {  // nobody could do anything about it: the block is the pool's
  }
}

void EmptyCache() {
  Count(&empty_caches);
  try {
    pool->EmptyCache();
  } catch (...) {  // the cache stays as it is
  }
}

}  // namespace

bool SetCallbacks(Framework* framework, gcap_options_t* options) {
  pool = framework;
  // Strings hold the same as decimal numbers: gpu_external_alloc, gpu_external_free, gpu_external_empty_cache.
  options->external_alloc = Alloc;
  options->external_free = Free;
  options->external_empty_cache = EmptyCache;
  return cudaStreamCreateWithFlags(&gcap_blocks, cudaStreamNonBlocking) == cudaSuccess;
}

CallbackCounts GetCallbackCounts() { return {allocs, frees, empty_caches, in_captures}; }

void EndCallbacks() {
  (void)cudaStreamDestroy(gcap_blocks);  // nothing runs on it
  pool = nullptr;
}
