// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The graphs in Graphviz's language. parse_test gives them to Graphviz, where it is installed.
#include <gtest/gtest.h>

#include <memory>
#include <regex>
#include <sstream>
#include <string>

#include "doctor/report/report.h"
#include "test/doctor/report/sample.h"

namespace {

using gcap_test::Sample;

std::string Dot(Sample* sample) {
  std::unique_ptr<Sample> owner(sample);
  return gcap_test::Written(gcap_doctor_report_dot, *owner);
}

TEST(DotReport, NodesHaveTheirNamePlacesAndTime) {
  const std::string dot = Dot(gcap_test::MakeHealthy());
  EXPECT_NE(dot.find("label=\"graph 1 of capture 1, 4 nodes\";"), std::string::npos) << dot;
  EXPECT_NE(dot.find("g1_2 [label=\"axpy\\napp.py:30 in head\\nrun_model (app.so)\\n3.00 us\""), std::string::npos);
  EXPECT_NE(dot.find("    g1_0 -> g1_1;\n    g1_0 -> g1_2;\n"), std::string::npos);
}

// Every line is one of the few forms, with texts that end where they should.
TEST(DotReport, NoNameLeavesItsQuotes) {
  const std::regex form(
      "digraph gcap \\{|  label=\"([^\"\\\\]|\\\\.)*\";|  node \\[.*\\];|  subgraph cluster_[0-9]+ \\{"
      "|    label=\"([^\"\\\\]|\\\\.)*\";|    g[0-9]+_[0-9]+ \\[label=\"([^\"\\\\]|\\\\.)*\", "
      "tooltip=\"([^\"\\\\]|\\\\.)*\"\\];|    g[0-9]+_[0-9]+ -> g[0-9]+_[0-9]+;|  \\}|\\}");
  for (Sample* sample : {gcap_test::MakeHostile(), gcap_test::MakeBroken(), gcap_test::MakeHealthy()}) {
    std::istringstream dot(Dot(sample));
    int lines = 0;
    for (std::string line; std::getline(dot, line); ++lines) EXPECT_TRUE(std::regex_match(line, form)) << line;
    EXPECT_GT(lines, 6);
  }
}

}  // namespace
