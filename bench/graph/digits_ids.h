// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// digits_ids.h: the digits network of examples/minimal_ep under many graph ids, a batch size each: what the captures
// take of the device, beside what gcap says.
#ifndef GCAP_BENCH_GRAPH_DIGITS_IDS_H_
#define GCAP_BENCH_GRAPH_DIGITS_IDS_H_

#include <cstddef>
#include <vector>

namespace gcap {
namespace bench {

// What is free on the current device.
size_t FreeBytes();

struct DigitsCase {
  int ids;
  int first_batch, more_batch;  // id i has a batch of first_batch + i * more_batch
  bool share_graph_memory, extend_as_requested;
  int copies;  // of each executable, to see what one takes of the device
};

std::vector<DigitsCase> DigitsCases(bool is_small);

// Prints one line for each figure.
void RunDigits(const DigitsCase& digits_case);

}  // namespace bench
}  // namespace gcap

#endif  // GCAP_BENCH_GRAPH_DIGITS_IDS_H_
