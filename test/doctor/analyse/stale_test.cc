// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Launches on memory that is gone, as an audit tells them.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "test/doctor/analyse/sentences.h"

namespace {

using script::Diagnose;
using script::Diagnosis;
using script::Script;

// A graph with one kernel is captured (calls 3 to 5), instantiated (6), and launched (9) after its memory (1) was freed
// (7) and handed out again (8).
Script Program() {
  Script s;
  s.Place("alloc", {"app:alloc"}, {"serve.py:3:load"});
  s.Place("free", {"app:free"}, {"serve.py:9:swap"});
  s.Place("launch", {"app:launch"}, {"serve.py:20:loop"});
  s.Run({"main cuMemAlloc bytes=4096 at=alloc", "main cuMemAlloc bytes=64",
         "main cuStreamBeginCapture stream=1 mode=global",
         "main cuLaunchKernel stream=1 kernel=_ZN3app4fillEPf +kernel", "main cuStreamEndCapture stream=1",
         "main cuGraphInstantiateWithFlags graph=1 exec=5", "! exec id=5 graph=1 call=6", "main cuMemFree at=free",
         "main cuMemAlloc bytes=4096", "main cuGraphLaunch exec=5 at=launch", "! replays exec=5 count=2",
         "! end t=900"});
  return s;
}

TEST(Stale, ALaunchOnFreedMemoryHasAllItsPlaces) {
  Script s = Program();
  s.Run(
      "! stale call=9 exec=5 node=0x1 use=argument argument=2 address=0x7f00 what=device bytes=4096 pointers=3 made=1 "
      "freed=7 taken=8");
  Diagnosis d = s.Diagnose();
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  const gcap_doctor_finding_t* f = &d->findings[0];
  EXPECT_EQ(f->kind, GCAP_DOCTOR_FINDING_STALE);
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_ERROR);
  EXPECT_TRUE(f->is_certain);
  EXPECT_EQ(f->capture, 0u);
  EXPECT_EQ(d.Call(f), 9u);
  ASSERT_EQ(f->num_places, 4u);
  const struct {
    const char* what;
    uint64_t call;
  } places[] = {{"allocated", 1}, {"freed", 7}, {"taken", 8}, {"captured", 4}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_STREQ(f->places[i].what, places[i].what);
    EXPECT_EQ(d.recording()->calls[f->places[i].call].number, places[i].call);
  }
}

// A word within a larger argument may be no address.
TEST(Stale, AWordOfAStructIsProbable) {
  Script s = Program();
  s.Run(
      "! stale call=9 exec=5 node=0x1 use=word kernel=step argument=0 offset=16 address=0x7f00 what=pool bytes=64 "
      "made=1 freed=7");
  Diagnosis d = s.Diagnose();
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_STALE);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_FALSE(f->is_certain);
  EXPECT_EQ(f->num_places, 3u);
}

// A table by value has room that nobody filled, and what lay there before may look like an address.
TEST(Stale, AWordOfALargeArgumentIsAWarning) {
  const std::pair<const char*, gcap_doctor_severity_t> cases[] = {{"1024", GCAP_DOCTOR_SEVERITY_ERROR},
                                                                  {"1032", GCAP_DOCTOR_SEVERITY_WARNING}};
  for (const auto& [size, severity] : cases) {
    Script s = Program();
    s.Run(std::string("! stale call=9 exec=5 node=0x1 use=word argument=0 address=0x7f00 bytes=64 size=") + size);
    Diagnosis d = s.Diagnose();
    ASSERT_EQ(d->num_findings, 1u) << d.All();
    EXPECT_EQ(d->findings[0].severity, severity);
  }
}

TEST(Stale, EachUseAndKindOfMemoryHasItsWords) {
  const char* const cases[][2] = {{"copy_from", "managed"}, {"copy_to", "host"},    {"memset", "registered"},
                                  {"copy_from", "mapped"},  {"copy_to", "pytorch"}, {"memset", "cupy"}};
  for (const auto& [use, what] : cases) {
    Script s = Program();
    s.Run(std::string("! stale call=9 exec=5 node=0x1 use=") + use + " address=0x7f00 what=" + what +
          " bytes=64 made=1");
    EXPECT_EQ(s.Diagnose()->num_findings, 1u);
  }
}

// Of two mistakes at one launch both are told, also where the memory of each has been freed at one place.
TEST(Stale, MemoryOfTwoPlacesIsTwoFindings) {
  Script s = Program();
  s.Run({"! stale call=9 exec=5 node=0x1 use=argument argument=0 address=0x1 what=device bytes=8 made=1 freed=7",
         "! stale call=9 exec=5 node=0x1 use=argument argument=1 address=0x2 what=device bytes=8 made=2 freed=7"});
  EXPECT_EQ(s.Diagnose()->num_findings, 2u);
}

// A recording that was cut off may lack all but the line itself.
TEST(Stale, NeedsNoCall) {
  Diagnosis d =
      Diagnose({"main cuGraphLaunch", "! stale exec=77 node=0x9 use=argument address=0x1 bytes=8 made=70 freed=71"});
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d->findings[0].call, GCAP_DOCTOR_NONE);
  EXPECT_EQ(d->findings[0].num_places, 0u);
}

TEST(Stale, WithoutItsExecutableOrItsSizeItIsDamage) {
  Diagnosis d = Diagnose({"main cuGraphLaunch", "! stale call=1 bytes=8", "! stale call=1 exec=1"});
  EXPECT_EQ(d->num_findings, 0u) << d.All();
  EXPECT_EQ(d.recording()->damage.lines, 2u);
}

TEST(Stale, MemoryOfTheHostHasItsWords) {
  for (const char* what : {"stack", "pageable"}) {
    Script s = Program();
    s.Run(std::string("! stale call=9 exec=5 node=0x1 use=copy_from address=0x7f00 bytes=0 what=") + what);
    Diagnosis d = s.Diagnose();
    ASSERT_EQ(d->num_findings, 1u) << d.All();
    EXPECT_EQ(d->findings[0].num_places, 1u);  // where the node was captured
  }
}

TEST(Shared, TwoThreadsAtOnceAreAnError) {
  Script s = Program();
  s.Run({"other cuGraphLaunch exec=5", "! shared call=10 exec=5 thread=1"});
  Diagnosis d = s.Diagnose();
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d->findings[0].kind, GCAP_DOCTOR_FINDING_SHARED);
  EXPECT_EQ(d->findings[0].severity, GCAP_DOCTOR_SEVERITY_ERROR);
  EXPECT_EQ(d->findings[0].capture, 0u);
  EXPECT_EQ(d.Call(&d->findings[0]), 10u);
}

TEST(Shared, NeedsNeitherTheCallNorTheThread) {
  Diagnosis d = Diagnose({"main cuGraphLaunch", "! shared call=70 exec=5 thread=70", "! shared call=1"});
  EXPECT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d.recording()->damage.lines, 1u);
}

TEST(Growth, ManyExecutablesThatAreHardlyLaunchedAreAWarning) {
  Script s = Program();
  s.Run("! execs call=6 made=900 live=800 idle=790 bytes=4096");
  Diagnosis d = s.Diagnose();
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d->findings[0].kind, GCAP_DOCTOR_FINDING_GROWTH);
  EXPECT_EQ(d->findings[0].severity, GCAP_DOCTOR_SEVERITY_WARNING);
  EXPECT_EQ(d.Call(&d->findings[0]), 6u);
}

TEST(Growth, SaysWhatIsKnownOfThem) {
  const char* const all[] = {"nodes=40000", "nodes=1600 memory=4096", "nodes=40000 bytes=64 memory=100",
                             "bytes=64 memory=8"};
  for (const char* counts : all) {
    Script s = Program();
    s.Run(std::string("! execs call=6 made=900 live=800 idle=790 ") + counts);
    EXPECT_EQ(s.Diagnose()->num_findings, 1u) << counts;
  }
}

// A graph for each shape, and what is replaced in time.
TEST(Growth, FewOrLaunchedOnesAreNoFinding) {
  for (const char* counts : {"made=900 live=63 idle=63", "made=67 live=67 idle=50", "made=900 live=0 idle=0"}) {
    Script s = Program();
    s.Run(std::string("! execs call=6 ") + counts);
    EXPECT_EQ(s.Diagnose()->num_findings, 0u) << counts;
  }
}

}  // namespace
