// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The interpreter's fault handler writes a stack nearly letter by letter: a third of a millisecond for thirty frames.
// Calls of one line of Python, and of one loop, share their stack; so each is shown once in a capture, if it can be
// told that the thread stands where it stood.
//
// That takes the addresses of its frames' codes and instructions, which are not public. They are known for CPython 3.11
// and 3.12, and nothing hangs on them: memory is read by the kernel, which does not fault; an instruction must be
// within its code; and the number of frames must be that of the fault handler, or else there are no places any more.
// The kernel is a call for each frame, which is most of what a recorded call costs. So once the fault handler has shown
// as many frames as there are for several stacks, the frames are what the fault handler itself reads, and are read as
// the fault handler reads them. Locking: none.
#include "doctor/record/python_place.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "doctor/record/map.h"

enum {
  kMostFrames = 99,           // the fault handler stops at 100
  kMostCodeBytes = 16 << 20,  // of a function
  kFrameOfC = 3,              // an owner: a frame that stands for C code, which is not shown
  kFrameBytes = 72,
  kProofs = 8,  // stacks of two frames or more
};

// Offsets. A thread's state has a pointer at 56, which leads to one to the innermost frame.
typedef struct layout {
  const char* version;
  uint8_t innermost;  // in what the state's pointer leads to
  uint8_t code, previous, instruction, owner;
} layout_t;

static const layout_t layouts[] = {
    {"3.11.", 8, 32, 48, 56, 69},
    {"3.12.", 0, 0, 8, 56, 70},
};

enum {
  kStateToFrames = 56,
};

static const layout_t* _Atomic layout;
static _Atomic uint32_t num_proofs;

void gcap_doctor_python_place_start(const char* version) {
  for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); ++i) {
    if (strncmp(version, layouts[i].version, strlen(layouts[i].version)) == 0) atomic_store(&layout, &layouts[i]);
  }
}

void gcap_doctor_python_place_stop(void) { atomic_store(&layout, NULL); }

void gcap_doctor_python_place_shown(uint32_t frames) {
  if (frames >= 2) atomic_fetch_add_explicit(&num_proofs, 1, memory_order_relaxed);
}

// A sanitizer knows nothing of how the interpreter keeps frames.
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static void copy_words(uintptr_t address, void* out,
                                                                                      size_t bytes) {
  for (size_t i = 0; i < bytes / sizeof(uintptr_t); ++i) ((uintptr_t*)out)[i] = ((const volatile uintptr_t*)address)[i];
}

static bool read_memory(uintptr_t address, void* out, size_t bytes) {
  if (address % sizeof(uintptr_t) != 0) return false;
  if (atomic_load_explicit(&num_proofs, memory_order_relaxed) >= kProofs) {
    copy_words(address, out, bytes);
    return true;
  }
  struct iovec to = {out, bytes}, from = {(void*)address, bytes};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)bytes;
}

static uintptr_t pointer_at(const char* frame, uint8_t offset) {
  uintptr_t pointer;
  memcpy(&pointer, frame + offset, sizeof(pointer));
  return pointer;
}

bool gcap_doctor_python_place(const void* thread_state, uint64_t* out_place, uint32_t* out_frames) {
  const layout_t* known = atomic_load(&layout);
  uintptr_t frames, frame;
  if (known == NULL || !read_memory((uintptr_t)thread_state + kStateToFrames, &frames, sizeof(frames)) ||
      !read_memory(frames + known->innermost, &frame, sizeof(frame))) {
    return false;
  }
  *out_place = 0;
  *out_frames = 0;
  for (uint32_t i = 0; frame != 0; ++i) {
    alignas(uintptr_t) char bytes[kFrameBytes];
    if (i == 2 * kMostFrames || !read_memory(frame, bytes, sizeof(bytes))) return false;
    frame = pointer_at(bytes, known->previous);
    if (bytes[known->owner] == kFrameOfC) continue;
    const uintptr_t where[2] = {pointer_at(bytes, known->code), pointer_at(bytes, known->instruction)};
    if (where[1] <= where[0] || where[1] - where[0] > kMostCodeBytes) return false;
    *out_place = gcap_doctor_hash(*out_place, where, sizeof(where));
    if (++*out_frames > kMostFrames) return false;
  }
  return *out_frames != 0;
}
