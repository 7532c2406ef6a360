// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Where a thread of Python stands, of frames that the test lays out as CPython 3.12 does, which it reads from
// CPython's Include/internal/pycore_frame.h. Reads of memory by the kernel are counted.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <vector>

extern "C" {
#include "doctor/record/python_place.h"
}

namespace {

int num_kernel_reads;

// _PyInterpreterFrame
struct Frame {
  const void* code;
  const Frame* previous;
  const void* objects[5];
  const void* instruction;
  void* return_at;
};
static_assert(sizeof(Frame) == 72, "the owner is at 70, within the last word");

struct Thread {
  explicit Thread(size_t num_frames) : frames(num_frames), code(num_frames * 64) {
    for (size_t i = 0; i < num_frames; ++i) {
      frames[i] = {&code[i * 64], i + 1 < num_frames ? &frames[i + 1] : nullptr, {}, &code[i * 64 + 8], nullptr};
    }
    innermost = frames.data();
    const void* to = &innermost;
    memcpy(&state[56], &to, sizeof(to));
  }

  bool Place(uint64_t* out_place, uint32_t* out_frames) const {
    return gcap_doctor_python_place(state, out_place, out_frames);
  }

  std::vector<Frame> frames;
  std::vector<char> code;
  const Frame* innermost;
  alignas(8) char state[64] = {};
};

TEST(PythonPlace, IsReadByTheKernelUntilTheInterpreterHasShownTheFrames) {
  Thread thread(3);
  uint64_t place = 0, again = 0;
  uint32_t frames = 0;
  gcap_doctor_python_place_start("3.12.3 (main)");
  ASSERT_TRUE(thread.Place(&place, &frames));
  EXPECT_EQ(frames, 3u);

  // A pointer that leads nowhere is no place, and no fault.
  void* nowhere = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  thread.frames[1].previous = static_cast<const Frame*>(nowhere);
  EXPECT_FALSE(thread.Place(&again, &frames));
  thread.frames[1].previous = &thread.frames[2];

  // One frame alone proves nothing of how frames lead to each other.
  for (int i = 0; i < 20; ++i) gcap_doctor_python_place_shown(1);
  for (int i = 0; i < 8; ++i) {
    num_kernel_reads = 0;
    ASSERT_TRUE(thread.Place(&again, &frames));
    EXPECT_EQ(again, place);
    EXPECT_GT(num_kernel_reads, 0) << i;
    gcap_doctor_python_place_shown(3);
  }

  num_kernel_reads = 0;
  ASSERT_TRUE(thread.Place(&again, &frames));
  EXPECT_EQ(again, place);
  EXPECT_EQ(frames, 3u);
  EXPECT_EQ(num_kernel_reads, 0);

  thread.frames[2].instruction = &thread.code[2 * 64 + 10];
  ASSERT_TRUE(thread.Place(&again, &frames));
  EXPECT_NE(again, place);
  thread.frames[2].instruction = thread.code.data() - 1;
  EXPECT_FALSE(thread.Place(&again, &frames)) << "an instruction before its code";

  gcap_doctor_python_place_stop();
  thread.frames[2].instruction = &thread.code[2 * 64 + 8];
  EXPECT_FALSE(thread.Place(&again, &frames));
  munmap(nowhere, 4096);
}

}  // namespace

extern "C" ssize_t process_vm_readv(pid_t pid, const iovec* to, unsigned long num_to, const iovec* from,
                                    unsigned long num_from, unsigned long flags) {
  ++num_kernel_reads;
  return syscall(SYS_process_vm_readv, pid, to, num_to, from, num_from, flags);
}
