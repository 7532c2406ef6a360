// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks of frameworks' allocators, as doctor/python tells the recorder of them.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdint.h>
#include <string.h>

#include <string>

#include "test/doctor/record/fake_driver.h"
#include "test/doctor/record/program.h"

namespace {

enum { kPyTorch = 7, kCuPy = 8 };
constexpr uint64_t kSegment = 0x7f1200000000, kBlock = kSegment + 0x2000;

template <typename Function>
Function* Exported(const char* name) {
  return reinterpret_cast<Function*>(dlsym(dlopen(RecorderPath().c_str(), RTLD_NOW | RTLD_NOLOAD), name));
}

void Made(uint64_t address, uint64_t bytes) {
  Exported<void(uint64_t, uint64_t, int, const char*)>("gcap_doctor_block_made")(address, bytes, kCuPy,
                                                                                 "MemoryPool.malloc");
}

void Seen(uint64_t address, uint64_t bytes, const char* place) {
  Exported<void(uint64_t, uint64_t, int, const char*)>("gcap_doctor_block_seen")(address, bytes, kPyTorch, place);
}

void Freed(uint64_t address) {
  Exported<void(uint64_t, const char*)>("gcap_doctor_block_freed")(address, "CUDACachingAllocator.free");
}

void Alloc(uint64_t address, uint64_t bytes) {
  const struct {
    uint64_t* address;
    uint64_t bytes;
  } arguments = {&address, bytes};
  fake.call(243, "cuMemAlloc_v2", &arguments, 0);
}

// A graph whose one kernel has a pointer into the block, and its launch.
void* const kExec = Handle(0x4000);
uint64_t pointer = kBlock + 16;
void* arguments[] = {&pointer};
fake_driver_function_t function = {"fill", 1, {0}, {8}};
fake_driver_node_t node = {0x100000000, 0, {}, nullptr};
fake_driver_node_t* nodes[] = {&node};
fake_driver_graph_t graph = {nodes, 1};

void InstantiateIt() {
  const void *function_at = &function, *arguments_at = arguments;
  memcpy(node.about, &function_at, 8);
  memcpy(node.about + 40, &arguments_at, 8);
  Instantiate(kExec, &graph, {});
}

Recorded Audit(const std::function<void()>& program) {
  return Record(program, {{"GCAP_DOCTOR_AUDIT", "1"}, {"FAKE_DRIVER", "1"}});
}

TEST(Follow, ABlockThatPyTorchTookBackIsToldWithItsPlaces) {
  Recorded recorded = Audit([] {
    Alloc(kSegment, 0x200000);
    Seen(kBlock, 0x1000, "12\t/app/serve.py\tload\n40\t/app/main.py\tmain\n");
    InstantiateIt();
    Replay(kExec, Handle(0x1000));
    Freed(kBlock);
    Replay(kExec, Handle(0x1000));
  });
  const gcap_doctor_recording_t& events = *recorded.events;
  ASSERT_EQ(events.num_stales, 1u) << recorded.text;
  const gcap_doctor_event_stale_t& stale = events.stales[0];
  EXPECT_STREQ(stale.what, "pytorch");
  EXPECT_EQ(stale.bytes, 0x1000u);
  EXPECT_EQ(stale.taken, GCAP_DOCTOR_NONE);  // the segment around it is no other owner
  ASSERT_NE(stale.made, GCAP_DOCTOR_NONE);
  ASSERT_NE(stale.freed, GCAP_DOCTOR_NONE);
  const uint32_t frame = gcap_doctor_recording_python_frame(&events, events.calls[stale.made].stack);
  ASSERT_NE(frame, GCAP_DOCTOR_NONE);
  EXPECT_STREQ(events.frames[frame].file, "/app/serve.py");
  EXPECT_EQ(events.frames[frame].line, 12u);
  EXPECT_STREQ(events.calls[stale.freed].function, "CUDACachingAllocator.free");
}

// A snapshot of a later capture tells the same blocks again.
TEST(Follow, ABlockThatIsSeenAgainIsTheSame) {
  Recorded recorded = Audit([] {
    Alloc(kSegment, 0x200000);
    Seen(kBlock, 0x1000, nullptr);
    InstantiateIt();
    Seen(kBlock, 0x1000, nullptr);
    Replay(kExec, Handle(0x1000));
  });
  EXPECT_EQ(recorded.events->num_stales, 0u) << recorded.text;
  EXPECT_EQ(recorded.said, "");
}

TEST(Follow, ABlockOfAnotherSizeAtTheAddressIsAnother) {
  Recorded recorded = Audit([] {
    Alloc(kSegment, 0x200000);
    Seen(kBlock, 0x1000, nullptr);
    InstantiateIt();
    Seen(kBlock, 0x800, nullptr);
    Replay(kExec, Handle(0x1000));
  });
  EXPECT_EQ(recorded.events->num_stales, 1u) << recorded.text;
}

TEST(Follow, ABlockOfCuPyThatIsHandedOutAgainNamesItsOwner) {
  Recorded recorded = Audit([] {
    Alloc(kSegment, 0x200000);
    Made(kBlock, 0x1000);
    InstantiateIt();
    Freed(kBlock);
    Made(kBlock, 0x1000);
    Replay(kExec, Handle(0x1000));
  });
  ASSERT_EQ(recorded.events->num_stales, 1u) << recorded.text;
  const gcap_doctor_event_stale_t& stale = recorded.events->stales[0];
  EXPECT_STREQ(stale.what, "cupy");
  ASSERT_NE(stale.taken, GCAP_DOCTOR_NONE);
  EXPECT_STREQ(recorded.events->calls[stale.taken].function, "MemoryPool.malloc");
}

TEST(Follow, WhatIsUnknownOrMalformedIsNoBlock) {
  Recorded recorded = Audit([] {
    Alloc(kSegment, 0x200000);
    Exported<void(uint64_t, uint64_t, int, const char*)>("gcap_doctor_block_seen")(kBlock, 64, 99, nullptr);
    Exported<void(uint64_t, uint64_t, int, const char*)>("gcap_doctor_block_made")(kBlock, 64, -1, "x");
    Seen(kBlock, 0, nullptr);
    Freed(0x1234);
    InstantiateIt();
    Seen(kBlock, 0x1000, "no number\nx\ty\n\n7\t\t\n");
    Replay(kExec, Handle(0x1000));
  });
  EXPECT_EQ(recorded.events->num_stales, 0u) << recorded.text;
}

TEST(Follow, WithoutAnAuditNothingIsTaken) {
  Recorded recorded = Record([] {
    Made(kBlock, 0x1000);
    Freed(kBlock);
    Exported<void(const char*)>("gcap_doctor_blocks_note")("lost");
  });
  EXPECT_EQ(recorded.text.find("lost"), std::string::npos);
}

}  // namespace
