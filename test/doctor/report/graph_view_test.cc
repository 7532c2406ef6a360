// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The graphs of a recording as reports show them.
#include "doctor/report/graph_view.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "test/doctor/report/sample.h"

namespace {

using gcap_test::Sample;

struct Destroy {
  void operator()(gcap_doctor_graph_views_t* views) const { gcap_doctor_graph_views_destroy(views); }
};
using Views = std::unique_ptr<gcap_doctor_graph_views_t, Destroy>;

TEST(GraphView, DeviceTimesComeThroughClones) {
  std::unique_ptr<Sample> sample(gcap_test::MakeHealthy());
  Views views(gcap_doctor_graph_views_create(sample->diagnosis()));
  const gcap_doctor_graph_view_t* view = gcap_doctor_graph_views_find(views.get(), 1);
  ASSERT_NE(view, nullptr);
  ASSERT_EQ(view->num_nodes, 4u);
  EXPECT_EQ(view->capture, 0u);
  EXPECT_EQ(view->nodes[0].ns, 1000u);
  EXPECT_EQ(view->nodes[1].ns, 2000u);
  EXPECT_EQ(view->nodes[2].ns, 3000u);  // 1 ms of 500 runs and 2 ms of 500 others
  EXPECT_EQ(view->nodes[2].total_runs, 1000u);
  EXPECT_EQ(view->nodes[3].ns, 4000u);
  EXPECT_EQ(view->ns, 10000u);
  EXPECT_EQ(view->whole_ns, 9000u);
  EXPECT_EQ(view->replays, 1000u);
  EXPECT_EQ(views->num_untied_times, 1u);
}

TEST(GraphView, NodesAreGroupedByKernelSiteAndLine) {
  std::unique_ptr<Sample> sample(gcap_test::MakeHealthy());
  Views views(gcap_doctor_graph_views_create(sample->diagnosis()));
  const gcap_doctor_graph_view_t* view = gcap_doctor_graph_views_find(views.get(), 1);
  ASSERT_EQ(view->num_groups[GCAP_DOCTOR_BY_KERNEL], 3u);
  const gcap_doctor_view_group_t* kernels = view->groups[GCAP_DOCTOR_BY_KERNEL];
  EXPECT_STREQ(kernels[0].name, "axpy");  // 5 us
  EXPECT_EQ(kernels[0].count, 2u);
  EXPECT_EQ(kernels[0].ns, 5000u);
  EXPECT_STREQ(kernels[1].name, "sum");
  EXPECT_STREQ(kernels[2].name, "memcpy htod");
  ASSERT_EQ(view->num_groups[GCAP_DOCTOR_BY_CALL_SITE], 1u);
  EXPECT_STREQ(view->groups[GCAP_DOCTOR_BY_CALL_SITE][0].name, "run_model (app.so)");
  ASSERT_EQ(view->num_groups[GCAP_DOCTOR_BY_PYTHON_LINE], 2u);
  EXPECT_STREQ(view->groups[GCAP_DOCTOR_BY_PYTHON_LINE][0].name, "app.py:30 in head");
  EXPECT_EQ(view->groups[GCAP_DOCTOR_BY_PYTHON_LINE][0].ns, 7000u);
  for (unsigned i = 0; i < view->num_nodes; ++i) {
    for (int grouping = 0; grouping < GCAP_DOCTOR_NUM_GROUPINGS; ++grouping) {
      EXPECT_STREQ(view->groups[grouping][view->nodes[i].groups[grouping]].name, view->nodes[i].names[grouping]);
    }
  }
}

TEST(GraphView, LayersFollowTheLongestWay) {
  std::unique_ptr<Sample> sample(gcap_test::MakeHealthy());
  Views views(gcap_doctor_graph_views_create(sample->diagnosis()));
  const gcap_doctor_graph_view_t* view = gcap_doctor_graph_views_find(views.get(), 1);
  EXPECT_EQ(view->num_layers, 3u);
  EXPECT_EQ(view->nodes[0].layer, 0u);
  EXPECT_EQ(view->nodes[1].layer, 1u);
  EXPECT_EQ(view->nodes[2].layer, 1u);
  EXPECT_EQ(view->nodes[3].layer, 2u);
}

TEST(GraphView, CircleOfADamagedFileIsDrawnSomewhere) {
  Sample sample(std::string(gcap_test::kFirstLine) +
                "node\tgraph=5\tid=0x1\ttype=kernel\n"
                "node\tgraph=5\tid=0x2\ttype=kernel\n"
                "node\tgraph=5\tid=0x3\ttype=empty\n"
                "edge\tgraph=5\tfrom=0x1\tto=0x2\n"
                "edge\tgraph=5\tfrom=0x2\tto=0x1\n"
                "edge\tgraph=5\tfrom=0x2\tto=0x2\n"
                "edge\tgraph=5\tfrom=0x2\tto=0x9\n"
                "edge\tgraph=6\tfrom=0x1\tto=0x2\n");
  Views views(gcap_doctor_graph_views_create(sample.diagnosis()));
  ASSERT_EQ(views->count, 1u);
  const gcap_doctor_graph_view_t* view = &views->items[0];
  EXPECT_EQ(view->capture, GCAP_DOCTOR_NONE);
  EXPECT_EQ(view->num_edges, 2u);
  EXPECT_EQ(view->num_layers, 1u);
  EXPECT_EQ(gcap_doctor_graph_views_find(views.get(), 6), nullptr);
  EXPECT_STREQ(view->nodes[0].names[GCAP_DOCTOR_BY_PYTHON_LINE], "(no Python stack)");
}

TEST(GraphView, GraphsAreApartAndInOrder) {
  Sample sample(std::string(gcap_test::kFirstLine) +
                "node\tgraph=9\tid=0x2\ttype=kernel\n"
                "node\tgraph=4\tid=0x2\ttype=memset\n"
                "node\tgraph=9\tid=0x1\ttype=host\n");
  sample.AddCapture().graph = 7;  // an empty one
  Views views(gcap_doctor_graph_views_create(sample.diagnosis()));
  ASSERT_EQ(views->count, 3u);
  EXPECT_EQ(views->items[0].graph, 4u);
  EXPECT_EQ(views->items[1].graph, 7u);
  EXPECT_EQ(views->items[1].num_nodes, 0u);
  EXPECT_EQ(views->items[2].num_nodes, 2u);
  EXPECT_STREQ(views->items[2].nodes[0].names[GCAP_DOCTOR_BY_KERNEL], "host");
}

}  // namespace
