// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Managed memory under the checks, and beside budgets. What the calls answer is recorded in test/conformance.
#include "test/sim/check_test.h"

namespace {

using gcap_test::Check;
using gcap_test::Step;

#define OK(call) EXPECT_EQ(cudaSuccess, call)

class Managed : public Check {
 protected:
  void SetUp() override {
    Check::SetUp();
    OK(cudaMallocManaged(reinterpret_cast<void**>(&m_), kBytes));
  }
  void TearDown() override {
    OK(cudaFree(m_));
    Check::TearDown();
  }
  unsigned char* m_;
};

TEST_F(Managed, HostAndDeviceShareOneAddress) {
  m_[0] = 41;
  OK(Step(x_, m_, kBytes, a_));
  OK(Step(m_, x_, kBytes, a_));
  OK(cudaStreamSynchronize(a_));
  EXPECT_EQ(43, m_[0]);
}

TEST_F(Managed, WhatTheHostWritesIsNotSeenSoAReadIsNoMistake) {
  ExpectNone([&] { OK(Step(x_, m_, kBytes, a_)); });
}

TEST_F(Managed, UnorderedKernelsAreARace) {
  ExpectOne({"race on 256 bytes of managed memory", "cudaMallocManaged,"}, [&] {
    OK(Fill(m_, a_));
    OK(Step(x_, m_, kBytes, b_));
  });
}

TEST_F(Managed, TheHostCanTellOfItsAccesses) {
  ExpectOne({"race on 1 bytes of managed memory"}, [&] {
    OK(Fill(m_, a_));
    gcap_sim_host_access(m_, 1, 0);
  });
}

TEST_F(Managed, IsCountedAndLeaksAsItself) {
  EXPECT_EQ(1u, gcap_sim_live("managed memory"));
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_RECORD);
  std::string reports;
  const size_t count = gcap_sim_check();  // of all that the fixture has made
  for (size_t i = 0; i < count; ++i) reports += gcap_sim_report(i);
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);
  EXPECT_NE(std::string::npos, reports.find("leak of 1 of the kind \"managed memory\", 256 bytes")) << reports;
}

// --- What was said of ranges ----------------------------------------------------------------------------------------

constexpr size_t kPage = 4096;
constexpr cudaMemLocation kDevice = {cudaMemLocationTypeDevice, 0};
constexpr cudaMemLocation kHost = {cudaMemLocationTypeHost, 0};

class ManagedRange : public testing::Test {
 protected:
  void SetUp() override { OK(cudaMallocManaged(reinterpret_cast<void**>(&m_), 4 * kPage)); }
  void TearDown() override { OK(cudaFree(m_)); }
  int Get(cudaMemRangeAttribute attribute, size_t first_page = 0, size_t pages = 4) {
    int value = -99;
    OK(cudaMemRangeGetAttribute(&value, sizeof(value), attribute, Page(first_page), pages * kPage));
    return value;
  }
  // The allocation may begin within a page.
  char* Page(size_t page) { return m_ + page * kPage; }
  char* m_;
};

TEST_F(ManagedRange, OfWhichNothingWasSaid) {
  EXPECT_EQ(0, Get(cudaMemRangeAttributeReadMostly));
  EXPECT_EQ(cudaInvalidDeviceId, Get(cudaMemRangeAttributePreferredLocation));
  EXPECT_EQ(cudaInvalidDeviceId, Get(cudaMemRangeAttributeAccessedBy));
  EXPECT_EQ(cudaInvalidDeviceId, Get(cudaMemRangeAttributeLastPrefetchLocation));
  EXPECT_EQ(cudaMemLocationTypeInvalid, Get(cudaMemRangeAttributePreferredLocationType));
  EXPECT_EQ(cudaMemLocationTypeInvalid, Get(cudaMemRangeAttributeLastPrefetchLocationType));
}

TEST_F(ManagedRange, AnswersWhatAllItsPagesHaveInCommon) {
  OK(cudaMemAdvise(Page(1), kPage, cudaMemAdviseSetReadMostly, kDevice));
  EXPECT_EQ(1, Get(cudaMemRangeAttributeReadMostly, 1, 1));
  EXPECT_EQ(0, Get(cudaMemRangeAttributeReadMostly));
  OK(cudaMemAdvise(m_, 4 * kPage, cudaMemAdviseSetReadMostly, kDevice));
  EXPECT_EQ(1, Get(cudaMemRangeAttributeReadMostly));
  OK(cudaMemAdvise(Page(2), 1, cudaMemAdviseUnsetReadMostly, kDevice));
  EXPECT_EQ(1, Get(cudaMemRangeAttributeReadMostly, 0, 1));
  EXPECT_EQ(0, Get(cudaMemRangeAttributeReadMostly, 2, 1)) << "a byte stands for its page";
  EXPECT_EQ(0, Get(cudaMemRangeAttributeReadMostly));
}

TEST_F(ManagedRange, PrefersOnePlaceOrNone) {
  OK(cudaMemAdvise(m_, 4 * kPage, cudaMemAdviseSetPreferredLocation, kDevice));
  EXPECT_EQ(0, Get(cudaMemRangeAttributePreferredLocation));
  EXPECT_EQ(cudaMemLocationTypeDevice, Get(cudaMemRangeAttributePreferredLocationType));
  EXPECT_EQ(0, Get(cudaMemRangeAttributePreferredLocationId));
  OK(cudaMemAdvise(Page(2), 2 * kPage, cudaMemAdviseSetPreferredLocation, kHost));
  EXPECT_EQ(cudaCpuDeviceId, Get(cudaMemRangeAttributePreferredLocation, 3, 1));
  EXPECT_EQ(cudaMemLocationTypeHost, Get(cudaMemRangeAttributePreferredLocationType, 3, 1));
  EXPECT_EQ(cudaInvalidDeviceId, Get(cudaMemRangeAttributePreferredLocation));
  EXPECT_EQ(cudaMemLocationTypeInvalid, Get(cudaMemRangeAttributePreferredLocationType));
  OK(cudaMemAdvise(m_, 4 * kPage, cudaMemAdviseUnsetPreferredLocation, kHost));
  EXPECT_EQ(cudaInvalidDeviceId, Get(cudaMemRangeAttributePreferredLocation, 3, 1));
}

TEST_F(ManagedRange, ListsWhoAccessesAllOfIt) {
  int ids[3] = {7, 7, 7};
  OK(cudaMemAdvise(m_, 4 * kPage, cudaMemAdviseSetAccessedBy, kDevice));
  OK(cudaMemAdvise(Page(0), kPage, cudaMemAdviseSetAccessedBy, kHost));
  OK(cudaMemRangeGetAttribute(ids, sizeof(ids), cudaMemRangeAttributeAccessedBy, m_, kPage));
  EXPECT_EQ(0, ids[0]);
  EXPECT_EQ(cudaCpuDeviceId, ids[1]);
  EXPECT_EQ(cudaInvalidDeviceId, ids[2]);
  OK(cudaMemRangeGetAttribute(ids, sizeof(ids), cudaMemRangeAttributeAccessedBy, m_, 4 * kPage));
  EXPECT_EQ(0, ids[0]);
  EXPECT_EQ(cudaInvalidDeviceId, ids[1]);
  OK(cudaMemAdvise(Page(3), kPage, cudaMemAdviseUnsetAccessedBy, kDevice));
  EXPECT_EQ(cudaInvalidDeviceId, Get(cudaMemRangeAttributeAccessedBy));
}

TEST_F(ManagedRange, TellsWhereItWasPrefetchedLast) {
  OK(cudaMemPrefetchAsync(m_, 4 * kPage, kDevice, 0, nullptr));
  EXPECT_EQ(0, Get(cudaMemRangeAttributeLastPrefetchLocation));
  OK(cudaMemPrefetchAsync(m_, kPage, kHost, 0, nullptr));
  EXPECT_EQ(cudaCpuDeviceId, Get(cudaMemRangeAttributeLastPrefetchLocation, 0, 1));
  EXPECT_EQ(cudaMemLocationTypeHost, Get(cudaMemRangeAttributeLastPrefetchLocationType, 0, 1));
  EXPECT_EQ(cudaInvalidDeviceId, Get(cudaMemRangeAttributeLastPrefetchLocation));
  EXPECT_EQ(0, Get(cudaMemRangeAttributeLastPrefetchLocationId, 1, 3));
  OK(cudaMemPrefetchAsync(Page(1), 3 * kPage, {cudaMemLocationTypeHost, 5}, 0, nullptr));
  EXPECT_EQ(cudaCpuDeviceId, Get(cudaMemRangeAttributeLastPrefetchLocation)) << "the host has no number";
}

TEST_F(ManagedRange, AnswersSeveralQuestionsAtOnce) {
  OK(cudaMemAdvise(m_, 4 * kPage, cudaMemAdviseSetReadMostly, kDevice));
  int read_mostly = -1, preferred = -1;
  void* data[] = {&read_mostly, &preferred};
  size_t sizes[] = {sizeof(int), sizeof(int)};
  cudaMemRangeAttribute attributes[] = {cudaMemRangeAttributeReadMostly, cudaMemRangeAttributePreferredLocation};
  OK(cudaMemRangeGetAttributes(data, sizes, attributes, 2, m_, kPage));
  EXPECT_EQ(1, read_mostly);
  EXPECT_EQ(cudaInvalidDeviceId, preferred);
  sizes[1] = 8;
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemRangeGetAttributes(data, sizes, attributes, 2, m_, kPage));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemRangeGetAttributes(data, sizes, attributes, 0, m_, kPage));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemRangeGetAttributes(nullptr, sizes, attributes, 1, m_, kPage));
}

TEST_F(ManagedRange, RefusesOtherSizesQuestionsAndMemory) {
  int value = 5, list[2] = {5, 5};
  const auto get = [&](size_t bytes, int attribute, const void* address, size_t count) {
    return cudaMemRangeGetAttribute(&list, bytes, static_cast<cudaMemRangeAttribute>(attribute), address, count);
  };
  void* device;
  OK(cudaMalloc(&device, kPage));
  EXPECT_EQ(cudaErrorInvalidValue, get(8, cudaMemRangeAttributeReadMostly, m_, kPage));
  EXPECT_EQ(cudaErrorInvalidValue, get(0, cudaMemRangeAttributeAccessedBy, m_, kPage));
  EXPECT_EQ(cudaErrorInvalidValue, get(6, cudaMemRangeAttributeAccessedBy, m_, kPage));
  EXPECT_EQ(cudaErrorInvalidValue, get(4, 0, m_, kPage));
  EXPECT_EQ(cudaErrorInvalidValue, get(4, 9, m_, kPage));
  EXPECT_EQ(cudaErrorInvalidValue, get(4, cudaMemRangeAttributeReadMostly, m_, 0));
  EXPECT_EQ(cudaErrorInvalidValue, get(4, cudaMemRangeAttributeReadMostly, m_, 4 * kPage + 1));
  EXPECT_EQ(cudaErrorInvalidValue, get(4, cudaMemRangeAttributeReadMostly, device, kPage));
  EXPECT_EQ(cudaErrorInvalidValue, get(4, cudaMemRangeAttributeReadMostly, &value, 4));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemRangeGetAttribute(nullptr, 4, cudaMemRangeAttributeReadMostly, m_, kPage));
  EXPECT_EQ(5, list[0]);
  OK(cudaFree(device));
  cudaGetLastError();
}

// A GPU gives out more than it has.
TEST_F(Managed, DoesNotCountAsTheDevicesMemory) {
  size_t before = 0, after = 0, total = 0;
  void* more = nullptr;
  OK(cudaMemGetInfo(&before, &total));
  OK(cudaMallocManaged(&more, 2 * total));
  OK(cudaMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
  OK(cudaFree(more));
}

TEST_F(Managed, AGraphThatOutlivesItIsTold) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  void* short_lived;
  ExpectOne({"managed memory"}, [&] {
    OK(cudaMallocManaged(&short_lived, kBytes));
    OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
    OK(Fill(short_lived, a_));
    OK(cudaStreamEndCapture(a_, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaFree(short_lived));
    OK(cudaGraphLaunch(exec, a_));
    OK(cudaStreamSynchronize(a_));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
  });
}

}  // namespace
