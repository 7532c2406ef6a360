// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// allocator_stats.h: what an allocator says of itself, as a value.
#ifndef GCAP_TEST_SUPPORT_ALLOCATOR_STATS_H_
#define GCAP_TEST_SUPPORT_ALLOCATOR_STATS_H_

#include "gcap/allocator.h"

namespace gcap {
namespace testing {

inline gcap_allocator_stats_t StatsOf(gcap_allocator_t* allocator) {
  gcap_allocator_stats_t stats;
  gcap_allocator_get_stats(allocator, &stats);
  return stats;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SUPPORT_ALLOCATOR_STATS_H_
