// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// heap_failure.h: makes the next heap allocations of this thread fail, for what the headers promise when memory is
// short; and counts blocks, for what must not grow. Only allocations of C code that is linked statically are seen:
// gcap's own, and those of the CUDA runtime.
#ifndef GCAP_TEST_BASE_HEAP_FAILURE_H_
#define GCAP_TEST_BASE_HEAP_FAILURE_H_

namespace gcap {
namespace testing {

// While it lives, the first `count` calls of malloc, calloc and realloc by this thread, after `skip` that do not fail,
// give NULL.
class HeapFailure {
 public:
  explicit HeapFailure(int count = 1, int skip = 0);
  HeapFailure(const HeapFailure&) = delete;
  HeapFailure& operator=(const HeapFailure&) = delete;
  ~HeapFailure();

  // How many of them have failed.
  int hits() const;

 private:
  const int count_;
};

// How many blocks C code that is linked statically has now: those that it took from the heap, less those that it gave
// back. Of use as a difference.
long LiveBlocks();

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_BASE_HEAP_FAILURE_H_
