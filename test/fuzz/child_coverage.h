// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// child_coverage.h: brings what a forked child covered back to the parent, where libFuzzer looks. Without libFuzzer
// there are no counters, and the functions do nothing.
#ifndef GCAP_TEST_FUZZ_CHILD_COVERAGE_H_
#define GCAP_TEST_FUZZ_CHILD_COVERAGE_H_

// In the parent, before the first child.
void fuzz_share_coverage(void);
// In the child, before it ends. Async-signal-safe.
void fuzz_send_coverage(void);
// In the parent, after the child's end.
void fuzz_receive_coverage(void);

#endif  // GCAP_TEST_FUZZ_CHILD_COVERAGE_H_
