// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The counters of -fsanitize=fuzzer are bytes between two names that the linker makes. Child and parent have each their
// own, and a copy that they share. No function here has counters itself: clang would declare the same names once more
// in this source, and not find them.
#include "test/fuzz/child_coverage.h"

#include <sys/mman.h>

#include "test/fuzz/input.h"

#if defined(__clang__)
#define UNCOUNTED __attribute__((no_sanitize("coverage", "address", "undefined")))
#else
#define UNCOUNTED
#endif

extern uint8_t __start___sancov_cntrs[] __attribute__((weak, visibility("hidden")));
extern uint8_t __stop___sancov_cntrs[] __attribute__((weak, visibility("hidden")));

static uint8_t* shared;
static size_t num_counters;

UNCOUNTED void fuzz_share_coverage(void) {
  num_counters = (size_t)((uintptr_t)__stop___sancov_cntrs - (uintptr_t)__start___sancov_cntrs);
  if (shared != NULL || num_counters == 0) return;
  shared = mmap(NULL, num_counters, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  FUZZ_CHECK(shared != MAP_FAILED, "no shared memory");
}

UNCOUNTED void fuzz_send_coverage(void) {
  for (size_t i = 0; i < num_counters; ++i) shared[i] = __start___sancov_cntrs[i];
}

UNCOUNTED void fuzz_receive_coverage(void) {
  for (size_t i = 0; i < num_counters; ++i) __start___sancov_cntrs[i] = shared[i];
}
