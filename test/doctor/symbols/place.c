// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Return addresses to look up. In C, since C alone is compiled with line tables.
#include "test/doctor/symbols/place.h"

static __attribute__((noinline)) void* here(void) {
  void* address = __builtin_return_address(0);
  __asm__ volatile("" : "+r"(address));
  return address;
}

static inline __attribute__((always_inline)) void* inlined_place(void) {
  void* address = here();
  __asm__ volatile("" : "+r"(address));  // so that it is no tail call
  return address;
}
const int gcap_test_inlined_line = __LINE__ - 4;

static __attribute__((noinline)) void* outer_place(void) {
  void* address = inlined_place();
  __asm__ volatile("" : "+r"(address));
  return address;
}
const int gcap_test_outer_line = __LINE__ - 4;

void* gcap_test_place(void) {
  void* address = outer_place();
  __asm__ volatile("" : "+r"(address));
  return address;
}
