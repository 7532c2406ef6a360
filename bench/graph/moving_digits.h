// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// moving_digits.h: the digits network of examples/minimal_ep on other tensors in each run, by each way of doing that.
#ifndef GCAP_BENCH_GRAPH_MOVING_DIGITS_H_
#define GCAP_BENCH_GRAPH_MOVING_DIGITS_H_

#include <cstdint>

namespace gcap {
namespace bench {

// Runs each way in turn, and prints a table.
void RunMovingDigits(int64_t batch, int rounds);

}  // namespace bench
}  // namespace gcap

#endif  // GCAP_BENCH_GRAPH_MOVING_DIGITS_H_
