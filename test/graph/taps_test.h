// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// taps_test.h: runs whose work makes taps, and which read them.
#ifndef GCAP_TEST_GRAPH_TAPS_TEST_H_
#define GCAP_TEST_GRAPH_TAPS_TEST_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gcap/graph_taps.h"
#include "test/graph/holes_test.h"

namespace gcap {
namespace testing {

class TapsTest : public HolesTest {
 protected:
  static gcap_status_t Tap(const gcap_run_resources_t* resources, const char* label, const void* x,
                           size_t bytes = kFloatsBytes) {
    return gcap_graph_tap_issue(resources->cuda_stream, label, x, bytes);
  }
  // x += 1, a tap, x += 10, a tap.
  static gcap_status_t TwoTaps(const gcap_run_resources_t* resources, const void* x) {
    GCAP_RETURN_IF_ERROR(Add(resources, x, 1));
    GCAP_RETURN_IF_ERROR(Tap(resources, "one", x));
    GCAP_RETURN_IF_ERROR(Add(resources, x, 10));
    return Tap(resources, "two", x);
  }
  // A run that reads these, and what it had of each: the value of all floats, NaN if they differ.
  std::vector<float> ReadBy(gcap_run_t run, const WorkWith& work, const std::vector<const char*>& labels) {
    std::vector<std::array<float, kFloats>> values(labels.size());
    std::vector<gcap_graph_tap_t> taps;
    for (size_t i = 0; i < labels.size(); ++i) {
      values[i].fill(-1);
      taps.push_back({labels[i], values[i].data(), kFloatsBytes, 77});
    }
    run.taps = taps.data();
    run.num_taps = taps.size();
    const Outcome outcome = RunHoled(run, work);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    std::vector<float> all;
    for (size_t i = 0; i < labels.size(); ++i) {
      EXPECT_EQ(taps[i].tapped_bytes, kFloatsBytes) << labels[i];
      const bool is_one = std::count(values[i].begin(), values[i].end(), values[i][0]) == kFloats;
      all.push_back(is_one ? values[i][0] : NAN);
    }
    return all;
  }
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_TAPS_TEST_H_
