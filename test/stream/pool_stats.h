// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pool_stats.h: a pool's counters as a value.
#ifndef GCAP_TEST_STREAM_POOL_STATS_H_
#define GCAP_TEST_STREAM_POOL_STATS_H_

#include "lib/stream/inner.h"

namespace gcap {
namespace testing {

inline gcap_stream_pool_stats_t StatsOf(gcap_stream_pool_t* pool) {
  gcap_stream_pool_stats_t stats;
  gcap_stream_pool_get_stats(pool, &stats);
  return stats;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_STREAM_POOL_STATS_H_
