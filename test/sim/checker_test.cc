// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The checker without a runtime: clocks, the shadow of memory, watches and reports, driven by hand. This program links
// //sim:check and what it stands on, and nothing that knows streams or graphs.

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

extern "C" {
#include "sim/check/clock.h"
#include "sim/check/findings.h"
#include "sim/check/policy.h"
#include "sim/check/report.h"
#include "sim/check/shadow.h"
#include "sim/check/watch.h"

extern cudaError_t cudaMalloc(void** devPtr, size_t size) __attribute__((weak));
}

namespace {

constexpr uintptr_t kBase = 0x10000;
constexpr size_t kBytes = 256;

TEST(Checker, IsLinkedWithoutARuntime) { EXPECT_EQ(&cudaMalloc, nullptr); }

// --- Clocks ---------------------------------------------------------------------------------------------------------

// A timeline, for as long as the test.
struct Timeline {
  Timeline() { gcap_sim_clock_open(&clock, nullptr); }
  ~Timeline() { gcap_sim_clock_close(&clock); }
  void ComesAfter(const Timeline& other) {
    gcap_sim_stamp_t stamp = gcap_sim_clock_stamp(&other.clock);
    gcap_sim_clock_learn(&clock, &stamp);
    gcap_sim_stamp_release(&stamp);
  }
  bool Knows(const Timeline& other, uint64_t time) const {
    return gcap_sim_clock_knows(&clock, other.clock.timeline, time);
  }
  gcap_sim_clock_t clock;
};

TEST(Checker, AClockKnowsWhatItHasLearntAndNothingLater) {
  Timeline a, b;
  EXPECT_FALSE(b.Knows(a, a.clock.time));
  b.ComesAfter(a);
  EXPECT_TRUE(b.Knows(a, a.clock.time));
  gcap_sim_clock_tick(&a.clock);
  EXPECT_FALSE(b.Knows(a, a.clock.time));
  EXPECT_FALSE(a.Knows(b, b.clock.time));
}

TEST(Checker, KnowledgeIsHandedOn) {
  Timeline a, b, c;
  b.ComesAfter(a);
  c.ComesAfter(b);
  EXPECT_TRUE(c.Knows(a, a.clock.time));
}

// --- The shadow -----------------------------------------------------------------------------------------------------

// A piece of work; counted once for the test itself, so the checker never frees it.
struct Work {
  Work(const char* call, uint64_t number, const char* what, uint64_t stream) {
    origin.refs = 1;
    origin.call = call;
    origin.number = number;
    origin.thread = 1;
    site.refs = 1;
    site.what = what;
    site.stream = {true, stream, 0, 0};
    site.origin = &origin;
  }
  gcap_sim_epoch_t At(const Timeline& timeline) { return {&site, timeline.clock.time, timeline.clock.timeline, false}; }
  gcap_sim_origin_t origin = {};
  gcap_sim_site_t site = {};
};

class CheckerMemory : public ::testing::Test {
 protected:
  CheckerMemory() {
    memory_.refs = 1;
    memory_.of_device = true;
    memory_.begin = kBase;
    memory_.bytes = kBytes;
    memory_.kind = "device memory";
    memory_.allocated = &allocation_.origin;
    gcap_sim_shadow_insert(kBase, kBase + kBytes, &memory_);
  }
  ~CheckerMemory() override { gcap_sim_shadow_clear(0, UINTPTR_MAX); }

  static size_t Segments() {
    size_t count = 0;
    for (const gcap_sim_segment_t* segment = gcap_sim_shadow_first(0); segment != nullptr; ++count) {
      segment = gcap_sim_shadow_first(segment->span.begin + segment->span.bytes);
    }
    return count;
  }

  Work allocation_{"cudaMalloc", 3, "cudaMalloc", 0};
  gcap_sim_memory_t memory_ = {};
};

TEST_F(CheckerMemory, ARangeIsCutOutAndJoinedAgain) {
  EXPECT_EQ(Segments(), 1u);
  gcap_sim_shadow_cut(kBase + 64, kBase + 128);
  EXPECT_EQ(Segments(), 3u);
  const gcap_sim_segment_t* middle = gcap_sim_shadow_first(kBase + 100);
  EXPECT_EQ(middle->span.begin, kBase + 64);
  EXPECT_EQ(middle->span.bytes, 64u);
  EXPECT_EQ(middle->memory, &memory_);
  gcap_sim_shadow_join(kBase, kBase + kBytes);
  EXPECT_EQ(Segments(), 1u);
}

TEST_F(CheckerMemory, AReadIsUnorderedUntilItIsLearntOf) {
  Timeline reader, writer;
  Work read("cudaMemcpyAsync", 5, "memcpy", 1);
  gcap_sim_segment_t* segment = gcap_sim_shadow_first(kBase);
  gcap_sim_segment_add_read(segment, read.At(reader), &reader.clock);
  const gcap_sim_epoch_t* found = gcap_sim_segment_unordered(segment, &writer.clock, false);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->site, &read.site);
  writer.ComesAfter(reader);
  EXPECT_EQ(gcap_sim_segment_unordered(segment, &writer.clock, false), nullptr);
}

TEST_F(CheckerMemory, OfManyReadersTheUnorderedOneIsFound) {
  Timeline readers[20], writer;
  Work read("cudaMemcpyAsync", 5, "memcpy", 1);
  gcap_sim_segment_t* segment = gcap_sim_shadow_first(kBase);
  for (Timeline& reader : readers) gcap_sim_segment_add_read(segment, read.At(reader), &reader.clock);
  for (size_t i = 0; i < 20; ++i) {
    if (i != 7) writer.ComesAfter(readers[i]);
  }
  const gcap_sim_epoch_t* found = gcap_sim_segment_unordered(segment, &writer.clock, false);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->timeline, readers[7].clock.timeline);
}

// --- Reports --------------------------------------------------------------------------------------------------------

int g_devices_lost;

class CheckerReport : public CheckerMemory {
 protected:
  CheckerReport() {
    g_devices_lost = 0;
    gcap_sim_report_at_error([] { ++g_devices_lost; });
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_RECORD);
    gcap_sim_report_take();
  }

  void FindRace() {
    const gcap_sim_epoch_t earlier = {&write_.site, 1, 2, false};
    const gcap_sim_touch_t touch = {&read_.site, kBase + 64, 32, false};
    gcap_sim_found_race(&touch, gcap_sim_shadow_first(kBase), &earlier, "write");
  }

  Work write_{"cudaMemcpyAsync", 7, "memcpy", 1};
  Work read_{"cudaLaunchKernel", 8, "kernel", 2};
};

TEST_F(CheckerReport, NamesTheBytesBothCallsAndTheRemedy) {
  FindRace();
  ASSERT_EQ(gcap_sim_report_count(), 1u);
  const std::string text = gcap_sim_report(0);
  for (const char* part :
       {"race on 32 bytes of device memory", "+ 64 of 256 bytes", "allocated by cudaMalloc, call #3, thread 1",
        "write by memcpy on stream 1: cudaMemcpyAsync, call #7",
        "read by kernel on stream 2: cudaLaunchKernel, call #8",
        "Remedy: an event recorded after the first, on stream 1, for which stream 2 waits before the second.",
        "run with GCAP_SIM_SEED=0"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(CheckerStreamName, SaysWhichStream) {
  char text[GCAP_SIM_STREAM_NAME_BYTES];
  const gcap_sim_stream_name_t created = {true, 7, 0, 1}, legacy = {true, 0, 0, 0}, of_other = {true, 0, 0, 3},
                               own = {true, 0, 2, 0};
  EXPECT_STREQ("stream 7", gcap_sim_stream_name_text(text, &created));
  EXPECT_STREQ("stream 0 (legacy stream)", gcap_sim_stream_name_text(text, &legacy));
  EXPECT_STREQ("stream 0 (legacy stream of device 3)", gcap_sim_stream_name_text(text, &of_other));
  EXPECT_STREQ("the per-thread stream of thread 2", gcap_sim_stream_name_text(text, &own));
}

TEST_F(CheckerReport, TellsOnceOfEachPairUntilAskedToTellAgain) {
  FindRace();
  FindRace();
  EXPECT_EQ(gcap_sim_report_count(), 1u);
  gcap_sim_report_tell_again();
  FindRace();
  EXPECT_EQ(gcap_sim_report_take(), 2u);
  EXPECT_EQ(gcap_sim_report_count(), 0u);
}

TEST_F(CheckerReport, TheActionErrorCallsTheFunctionThatItWasHanded) {
  FindRace();
  EXPECT_EQ(g_devices_lost, 0);
  gcap_sim_set_action(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_ERROR);
  gcap_sim_report_tell_again();
  FindRace();
  EXPECT_EQ(g_devices_lost, 1);
}

TEST_F(CheckerReport, ACheckThatIsOffTellsNothing) {
  gcap_sim_set_action(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_OFF);
  FindRace();
  EXPECT_EQ(gcap_sim_report_count(), 0u);
}

TEST_F(CheckerReport, ASuppressedNameDropsTheReport) {
  read_.site.name = "my_histogram";
  gcap_sim_suppress(GCAP_SIM_CHECK_RACE, "my_histogram", "its twin adds with atomics");
  FindRace();
  EXPECT_EQ(gcap_sim_report_count(), 0u);
}

// --- Watches --------------------------------------------------------------------------------------------------------

TEST(CheckerWatch, SeesTheBlockThatGoesAndNoOther) {
  char block[64];
  EXPECT_FALSE(gcap_sim_watch_any());
  gcap_sim_watch_t* inside = gcap_sim_watch_begin(&block[8]);
  gcap_sim_watch_t* again = gcap_sim_watch_begin(&block[8]);
  gcap_sim_watch_t* behind = gcap_sim_watch_begin(&block[32]);
  EXPECT_TRUE(gcap_sim_watch_any());
  gcap_sim_watch_note_free(block, 32, __builtin_frame_address(0));
  EXPECT_TRUE(gcap_sim_watch_freed(inside));
  EXPECT_TRUE(gcap_sim_watch_freed(again));
  EXPECT_FALSE(gcap_sim_watch_freed(behind));
  gcap_sim_watch_end(inside);
  gcap_sim_watch_end(again);
  gcap_sim_watch_end(behind);
  EXPECT_FALSE(gcap_sim_watch_any());
}

}  // namespace
