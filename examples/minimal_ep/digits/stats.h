// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stats.h: the median and the 99th percentile of measured times.
#ifndef GCAP_EXAMPLES_MINIMAL_EP_DIGITS_STATS_H_
#define GCAP_EXAMPLES_MINIMAL_EP_DIGITS_STATS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Both by nearest rank: percentile p of n samples is the one at position ceil(p / 100 * n) of the sorted ones, counted
// from 1. So each is a time that was measured; the median of an even number is the lower of the middle two; and with
// fewer than 100 samples the 99th percentile is the largest.
typedef struct stats_summary {
  uint64_t median_ns;
  uint64_t p99_ns;
} stats_summary_t;

// Sorts `samples_ns` in place and summarises it. Both are 0 when `count` is 0. Thread-compatible.
stats_summary_t stats_summarize(uint64_t* samples_ns, size_t count);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MINIMAL_EP_DIGITS_STATS_H_
