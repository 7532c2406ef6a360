// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Device times: sums over CUPTI's records of activity, by node and by launch.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "test/doctor/record/program.h"

namespace {

void* const kStream = Handle(0x1000);
void* const kGraph = Handle(0x3000);
void* const kExec = Handle(0x4000);
const Environment kWithTime = {{"GCAP_DOCTOR_TIME", "1"}};

// An executable of two nodes; its graph has the number `graph` for CUPTI.
void Make(void* exec, uint64_t graph) {
  static uint64_t from[2] = {0x100000000, 0x100000001};
  static uint64_t to[2];
  for (int i = 0; i < 2; ++i) to[i] = graph << 32 | static_cast<uint64_t>(i);
  Instantiate(exec, kGraph, {{&from[0], &to[0]}, {&from[1], &to[1]}});
}

TEST(RecordedTime, IsSummedByNodeAndByLaunch) {
  Recorded recorded = Record(
      [] {
        Make(kExec, 2);
        for (uint32_t i = 0; i < 10; ++i) {
          Replay(kExec, kStream);
          const uint64_t start = 1000 + 100 * i;
          fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 2, 0x200000000, 50 + i, start, start + 20);
          fake.record(GCAP_DOCTOR_CUPTI_KIND_MEMCPY, 2, 0x200000001, 50 + i, start + 30, start + 37);
        }
      },
      kWithTime);
  const gcap_doctor_recording_t& events = *recorded.events;
  ASSERT_EQ(events.num_times, 2u) << recorded.text;
  std::map<uint64_t, const gcap_doctor_event_time_t*> times;
  for (size_t i = 0; i < 2; ++i) times[events.times[i].node] = &events.times[i];
  ASSERT_EQ(times.count(0x200000000) + times.count(0x200000001), 2u);
  EXPECT_EQ(times[0x200000000]->count, 10u);
  EXPECT_EQ(times[0x200000000]->ns, 200u);
  EXPECT_EQ(times[0x200000001]->ns, 70u);
  EXPECT_EQ(times[0x200000001]->exec, events.execs[0].id);
  EXPECT_EQ(events.execs[0].whole_count, 10u);
  EXPECT_EQ(events.execs[0].whole_ns, 370u);
}

TEST(RecordedTime, OfMoreLaunchesThanAreKeptApartIsWhole) {
  // Launches that give way in the table are counted as they go.
  constexpr uint64_t kLaunches = 4000;
  Recorded recorded = Record(
      [] {
        Make(kExec, 2);
        for (uint64_t i = 0; i < kLaunches; ++i) {
          // Numbers that share places of the table.
          fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 2, 0x200000000, static_cast<uint32_t>(8 * i + 1), 100 * i + 1,
                      100 * i + 6);
        }
      },
      kWithTime);
  EXPECT_EQ(recorded.events->execs[0].whole_count, kLaunches);
  EXPECT_EQ(recorded.events->execs[0].whole_ns, 5 * kLaunches);
}

TEST(RecordedTime, OfExecutablesIsApart) {
  Recorded recorded = Record(
      [] {
        Make(kExec, 2);
        Make(Handle(0x4100), 3);
        // The same number of a launch, and places of the table that collide.
        fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 2, 0x200000000, 7, 10, 20);
        fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 3, 0x300000000, 8, 10, 40);
        fake.record(GCAP_DOCTOR_CUPTI_KIND_MEMSET, 3, 0x300000001, 8, 15, 50);
        // The device's end may come before another's start: the whole is from the first to the last.
        fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 2, 0x200000001, 7, 5, 9);
      },
      kWithTime);
  ASSERT_EQ(recorded.events->num_execs, 2u);
  EXPECT_EQ(recorded.events->execs[0].whole_ns, 15u);
  EXPECT_EQ(recorded.events->execs[1].whole_ns, 40u);
  EXPECT_EQ(recorded.events->execs[1].whole_count, 1u);
}

TEST(RecordedTime, SkipsWhatIsOfNoGraphOrWasNotMeasured) {
  Recorded recorded = Record(
      [] {
        Make(kExec, 2);
        fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 0, 0, 7, 10, 20);
        fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 2, 0x200000000, 7, 0, 0);
        fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 2, 0x200000000, 7, 30, 20);
        fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 99, 0x6300000000, 9, 10, 20);  // of an executable that was not seen
      },
      kWithTime);
  EXPECT_EQ(recorded.events->num_times, 0u);
  EXPECT_EQ(recorded.events->execs[0].whole_count, 0u);
}

TEST(RecordedTime, IsNotAskedForUnlessWanted) {
  Recorded recorded = Record([] {
    Make(kExec, 2);
    Replay(kExec, kStream);
    fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 2, 0x200000000, 7, 10, 20);
  });
  EXPECT_EQ(recorded.events->num_times, 0u);
  EXPECT_EQ(recorded.events->execs[0].replays, 1u);
}

TEST(RecordedTime, RefusalIsSaidAndTheRestIsRecorded) {
  Recorded recorded = Record(
      [] {
        Make(kExec, 2);
        Replay(kExec, kStream);
      },
      {{"GCAP_DOCTOR_TIME", "1"}, {"FAKE_CUPTI_ACTIVITY", "35"}});
  ASSERT_EQ(recorded.events->num_notes, 1u);
  EXPECT_NE(std::string(recorded.events->notes[0]).find("no device times are recorded"), std::string::npos);
  EXPECT_EQ(recorded.events->execs[0].replays, 1u);
}

TEST(RecordedTime, IsWrittenWhileTheProgramRuns) {
  Recorded recorded = Record(
      [] {
        Make(kExec, 2);
        for (uint32_t i = 0; i < 7; ++i) {
          Replay(kExec, kStream);
          fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 2, 0x200000000, 50 + i, 1000, 1020);
        }
        fake.flush();
        for (int i = 0; i < 2; ++i) {
          usleep(2100 * 1000);
          fake.record(GCAP_DOCTOR_CUPTI_KIND_KERNEL, 2, 0x200000000, 60, 2000, 2030);
          fake.flush();
        }
        raise(SIGKILL);
      },
      kWithTime);
  EXPECT_TRUE(WIFSIGNALED(recorded.status));
  EXPECT_FALSE(recorded.events->ended);
  uint64_t count = 0, ns = 0;
  for (size_t i = 0; i < recorded.events->num_times; ++i) {
    count += recorded.events->times[i].count;
    ns += recorded.events->times[i].ns;
  }
  EXPECT_EQ(count, 9u) << recorded.text;
  EXPECT_EQ(ns, 7u * 20 + 2 * 30);
  // The launch of late may go on.
  EXPECT_EQ(recorded.events->execs[0].whole_count, 7u);
  EXPECT_EQ(recorded.events->execs[0].whole_ns, 140u);
  EXPECT_EQ(recorded.events->execs[0].replays, 7u);  // doubling alone tells four
}

}  // namespace
