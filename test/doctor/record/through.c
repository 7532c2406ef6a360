// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A library in the middle of a stack.
__attribute__((visibility("default"))) void gcap_test_through(void (*inner)(void));

void gcap_test_through(void (*inner)(void)) {
  inner();
  __asm__ volatile("");  // so that it is no tail call
}
