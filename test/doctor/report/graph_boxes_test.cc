// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A graph as boxes in layers and lanes.
#include "doctor/report/graph_boxes.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "test/doctor/report/sample.h"

namespace {

using gcap_test::Sample;

class GraphBoxes : public testing::Test {
 protected:
  GraphBoxes() { gcap_doctor_heap_init(&heap_); }
  ~GraphBoxes() override {
    gcap_doctor_graph_views_destroy(views_);
    gcap_doctor_heap_deinit(&heap_);
  }
  bool Fold(Sample* sample, uint32_t most) {
    sample_.reset(sample);
    gcap_doctor_graph_views_destroy(views_);
    views_ = gcap_doctor_graph_views_create(sample_->diagnosis());
    return gcap_doctor_graph_boxes(&heap_, &views_->items[0], most, &boxes_);
  }
  gcap_doctor_heap_t heap_;
  std::unique_ptr<Sample> sample_;
  gcap_doctor_graph_views_t* views_ = nullptr;
  gcap_doctor_boxes_t boxes_;
};

TEST_F(GraphBoxes, SmallGraphHasABoxForEachNode) {
  ASSERT_TRUE(Fold(gcap_test::MakeHealthy(), 300));
  EXPECT_EQ(boxes_.folding, GCAP_DOCTOR_FOLDED_NOT);
  EXPECT_EQ(boxes_.num_boxes, 4u);
  EXPECT_EQ(boxes_.num_edges, 4u);
  EXPECT_EQ(boxes_.num_layers, 3u);
  EXPECT_EQ(boxes_.num_lanes, 2u);
}

// A node, two beside each other, a node: nothing is in a row.
TEST_F(GraphBoxes, ForkIsNotFolded) { EXPECT_FALSE(Fold(gcap_test::MakeHealthy(), 3)); }

std::string Row(int nodes, int nodes_of_a_line) {
  std::string events = std::string(gcap_test::kFirstLine) + "thread\tid=1\tos=1\n";
  for (int i = 0; i < nodes; ++i) {
    const std::string id = std::to_string(i + 1), line = std::to_string(i / nodes_of_a_line + 1);
    events += "pyframe\tid=" + id + "\tfile=a.py\tline=" + line + "\tfunction=f\nstack\tid=" + id + "\tpy=" + id + "\n";
    events += "node\tgraph=1\tid=" + id + "\ttype=kernel\tcall=" + id + "\n";
    if (i != 0) events += "edge\tgraph=1\tfrom=" + std::to_string(i) + "\tto=" + id + "\n";
    events += "call\tn=" + id + "\tthread=1\tfunction=cuLaunchKernel\tresult=0\tkernel=k\tstack=" + id + "\n";
  }
  return events;
}

TEST_F(GraphBoxes, RowIsFoldedByLineFirst) {
  ASSERT_TRUE(Fold(new Sample(Row(100, 10)), 20));
  EXPECT_EQ(boxes_.folding, GCAP_DOCTOR_FOLDED_BY_LINE);
  ASSERT_EQ(boxes_.num_boxes, 10u);
  for (uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(boxes_.boxes[i].count, 10u);
    EXPECT_EQ(boxes_.boxes[i].first, 10 * i);
    EXPECT_EQ(boxes_.boxes[i].layer, i);
    EXPECT_EQ(boxes_.boxes[i].lane, 0u);
  }
  EXPECT_EQ(boxes_.num_edges, 9u);
}

TEST_F(GraphBoxes, RowOfManyLinesIsFoldedToOneBox) {
  ASSERT_TRUE(Fold(new Sample(Row(100, 1)), 20));
  EXPECT_EQ(boxes_.folding, GCAP_DOCTOR_FOLDED_ROWS);
  ASSERT_EQ(boxes_.num_boxes, 1u);
  EXPECT_EQ(boxes_.boxes[0].count, 100u);
  EXPECT_EQ(boxes_.num_edges, 0u);
}

TEST_F(GraphBoxes, NoTwoBoxesAreInOnePlace) {
  ASSERT_TRUE(Fold(gcap_test::MakeLarge(1000), 300));
  std::set<std::pair<uint32_t, uint32_t>> places;
  uint32_t nodes = 0;
  for (uint32_t i = 0; i < boxes_.num_boxes; ++i) {
    EXPECT_TRUE(places.insert({boxes_.boxes[i].layer, boxes_.boxes[i].lane}).second);
    nodes += boxes_.boxes[i].count;
  }
  EXPECT_EQ(nodes, 1000u);
  EXPECT_EQ(boxes_.num_lanes, 3u);
  for (uint32_t i = 0; i < boxes_.num_edges; ++i) {
    EXPECT_LT(boxes_.boxes[boxes_.edges[i].from].layer, boxes_.boxes[boxes_.edges[i].to].layer);
  }
}

TEST_F(GraphBoxes, CircleEnds) {
  ASSERT_TRUE(Fold(new Sample(Row(10, 1) + "edge\tgraph=1\tfrom=10\tto=1\n"), 10));
  EXPECT_EQ(boxes_.num_boxes, 10u);
  EXPECT_FALSE(Fold(new Sample(Row(10, 1) + "edge\tgraph=1\tfrom=10\tto=1\n"), 5));
}

}  // namespace
