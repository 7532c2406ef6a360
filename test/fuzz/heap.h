// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// heap.h: makes gcap's own heap calls fail, and not those that the simulator makes while it serves gcap: the simulator
// stops the program when it has no memory.
#ifndef GCAP_TEST_FUZZ_HEAP_H_
#define GCAP_TEST_FUZZ_HEAP_H_

// After `skip` heap calls of this thread, the next `count` fail. 0 calls fail from then on: fuzz_heap_fail(0, 0).
void fuzz_heap_fail(unsigned skip, unsigned count);

#endif  // GCAP_TEST_FUZZ_HEAP_H_
