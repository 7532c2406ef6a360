// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sorting once and indexing gives exact nearest-rank percentiles; runs are few, so nothing cleverer is needed. Ranks
// are computed in integers, where a ceiling is exact. No state, no locking.
#include "examples/minimal_ep/digits/stats.h"

#include <stdlib.h>

static int compare(const void* left, const void* right) {
  const uint64_t a = *(const uint64_t*)left;
  const uint64_t b = *(const uint64_t*)right;
  return (a > b) - (a < b);
}

// ceil(percent / 100 * count) - 1, without overflow for any count.
static size_t nearest_rank(size_t percent, size_t count) {
  return count / 100 * percent + (count % 100 * percent + 99) / 100 - 1;
}

stats_summary_t stats_summarize(uint64_t* samples_ns, size_t count) {
  stats_summary_t summary = {0};
  if (count == 0) return summary;
  qsort(samples_ns, count, sizeof *samples_ns, compare);
  summary.median_ns = samples_ns[nearest_rank(50, count)];
  summary.p99_ns = samples_ns[nearest_rank(99, count)];
  return summary;
}
