// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The idea: the linker sends every malloc, calloc, realloc, posix_memalign and free of the binary's static objects
// through the functions here (--wrap). A thread-local counter says how many of this thread's calls are still to fail,
// so that other threads go on. strdup, vasprintf, and aligned_alloc, which tests call, are only counted.

#include "test/base/heap_failure.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>

namespace {

thread_local int skips_left = 0;
thread_local int failures_left = 0;
std::atomic<long> live_blocks{0};

bool MustFail() {
  if (failures_left == 0) return false;
  if (skips_left > 0) {
    --skips_left;
    return false;
  }
  --failures_left;
  return true;
}

void* Count(void* block) {
  if (block != nullptr) ++live_blocks;
  return block;
}

}  // namespace

extern "C" {

void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* memory, size_t bytes);
int __real_posix_memalign(void** out_memory, size_t alignment, size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
int __real_vasprintf(char** out_text, const char* format, va_list args);
void __real_free(void* memory);
char* __real_strdup(const char* text);

void* __wrap_malloc(size_t bytes) { return MustFail() ? nullptr : Count(__real_malloc(bytes)); }

void* __wrap_calloc(size_t count, size_t bytes) { return MustFail() ? nullptr : Count(__real_calloc(count, bytes)); }

void* __wrap_realloc(void* memory, size_t bytes) {
  if (MustFail()) return nullptr;
  void* const block = __real_realloc(memory, bytes);
  return memory == nullptr ? Count(block) : block;
}

int __wrap_posix_memalign(void** out_memory, size_t alignment, size_t bytes) {
  if (MustFail()) return ENOMEM;
  const int error = __real_posix_memalign(out_memory, alignment, bytes);
  if (error == 0) Count(*out_memory);
  return error;
}

void* __wrap_aligned_alloc(size_t alignment, size_t bytes) { return Count(__real_aligned_alloc(alignment, bytes)); }

int __wrap_vasprintf(char** out_text, const char* format, va_list args) {
  const int length = __real_vasprintf(out_text, format, args);
  if (length >= 0) Count(*out_text);
  return length;
}

void __wrap_free(void* memory) {
  if (memory != nullptr) --live_blocks;
  __real_free(memory);
}

char* __wrap_strdup(const char* text) { return static_cast<char*>(Count(__real_strdup(text))); }

}  // extern "C"

namespace gcap {
namespace testing {

HeapFailure::HeapFailure(int count, int skip) : count_(count) {
  skips_left = skip;
  failures_left = count;
}

HeapFailure::~HeapFailure() { failures_left = 0; }

int HeapFailure::hits() const { return count_ - failures_left; }

long LiveBlocks() { return live_blocks; }

}  // namespace testing
}  // namespace gcap
