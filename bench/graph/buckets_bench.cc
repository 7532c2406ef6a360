// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The choice of buckets, on the CPU alone:
//   BM_Choose        the time of one choice, by the number of sizes and of buckets, with a required size in each ten
//   BM_EqualPadding  how few buckets pad no more than a list as engines have it: 1, 2, 4, each 8th size up to 256, each
//                    16th up to 512. The histogram is drawn: batches around one size, around two, or of any size
//   BM_Find          the bucket of a size, among as many buckets

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "bench/graph/paired.h"
#include "gcap/buckets.h"

namespace {

using gcap::bench::Check;
using Histogram = std::vector<gcap_size_count_t>;
using Sizes = std::vector<size_t>;

constexpr size_t kLargest = 512;
constexpr int kDraws = 100000;

gcap_buckets_choice_t Choose(const Histogram& sizes, const Sizes& required, size_t max_buckets, Sizes* buckets) {
  gcap_buckets_options_t options;
  gcap_buckets_options_init(&options);
  options.required = required.data();
  options.num_required = required.size();
  buckets->assign(max_buckets, 0);
  gcap_buckets_choice_t choice;
  gcap_buckets_choice_init(&choice);
  Check(gcap_buckets_choose(sizes.data(), sizes.size(), &options, max_buckets, buckets->data(), &choice));
  return choice;
}

void BM_Choose(benchmark::State& state) {
  std::mt19937 random(1);
  Histogram sizes;
  Sizes required, buckets;
  const size_t count = static_cast<size_t>(state.range(0)), max_buckets = static_cast<size_t>(state.range(1));
  for (size_t i = 0; i < count; ++i) sizes.push_back({i + 1, 1 + random() % 1000});
  for (size_t i = 0; i < max_buckets / 10; ++i) required.push_back(1 + random() % count);
  double padding = 0;
  for (auto _ : state) padding = Choose(sizes, required, max_buckets, &buckets).padding_cost;
  state.counters["padding"] = padding;
}

// Batches of one to kLargest.
Histogram Draw(int num_peaks) {
  std::mt19937 random(2);
  std::lognormal_distribution<double> small(std::log(24.0), 0.4), large(std::log(200.0), 0.2);
  Histogram sizes;
  for (size_t size = 1; size <= kLargest; ++size) sizes.push_back({size, 0});
  for (int i = 0; i < kDraws; ++i) {
    const double drawn = num_peaks == 0                        ? 1 + static_cast<double>(random() % kLargest)
                         : num_peaks == 2 && random() % 3 == 0 ? large(random)
                                                               : small(random);
    ++sizes[static_cast<size_t>(std::clamp(drawn, 1.0, static_cast<double>(kLargest))) - 1].count;
  }
  ++sizes.back().count;  // the largest batch is served by both
  return sizes;
}

void BM_EqualPadding(benchmark::State& state) {
  const Histogram sizes = Draw(static_cast<int>(state.range(0)));
  Sizes list = {1, 2, 4}, buckets;
  for (size_t size = 8; size < 256; size += 8) list.push_back(size);
  for (size_t size = 256; size <= kLargest; size += 16) list.push_back(size);
  const gcap_buckets_choice_t of_list = Choose(sizes, list, list.size(), &buckets);
  gcap_buckets_choice_t chosen = of_list;
  for (auto _ : state) {
    size_t count = 0;
    do {
      chosen = Choose(sizes, {}, ++count, &buckets);
    } while (chosen.padding_cost > of_list.padding_cost);
  }
  state.counters["list"] = static_cast<double>(of_list.num_buckets);
  state.counters["chosen"] = static_cast<double>(chosen.num_buckets);
  state.counters["padding_percent"] = 100 * of_list.padding_cost / of_list.cost;
  state.counters["chosen_percent"] = 100 * chosen.padding_cost / chosen.cost;
  const gcap_buckets_choice_t as_many = Choose(sizes, {}, list.size(), &buckets);
  state.counters["as_many_percent"] = 100 * as_many.padding_cost / as_many.cost;
}

void BM_Find(benchmark::State& state) {
  Sizes buckets;
  for (int64_t i = 1; i <= state.range(0); ++i) buckets.push_back(static_cast<size_t>(8 * i));
  size_t size = 0;
  for (auto _ : state) {
    size = (size + 37) % buckets.back();
    benchmark::DoNotOptimize(gcap_buckets_find(buckets.data(), buckets.size(), size));
  }
}

BENCHMARK(BM_Choose)->ArgNames({"sizes", "buckets"})->ArgsProduct({{512, 4096}, {16, 64}})->Iterations(2);
BENCHMARK(BM_EqualPadding)->ArgName("peaks")->Arg(0)->Arg(1)->Arg(2)->Iterations(1);
BENCHMARK(BM_Find)->ArgName("buckets")->Arg(8)->Arg(64)->Iterations(100000);

}  // namespace

int main(int argc, char** argv) { return gcap::bench::Main(argc, argv); }
