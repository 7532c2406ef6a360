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
// as many frames as there are for three stacks, the frames are what the fault handler itself reads, and are read as
// the fault handler reads them. 3.12 gives each code a version that no other one has: a code that was shown has its
// file and function at every line. Locking: none.
#include "doctor/record/python_place.h"

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
  kProofs = 3,  // stacks of two frames or more
};

// Offsets. A thread's state has a pointer at 56, which leads to one to the innermost frame.
typedef struct layout {
  const char* version;
  uint8_t innermost;  // in what the state's pointer leads to
  uint8_t code, previous, instruction, owner;
  uint8_t version_of_code;  // that no other code has; 0 if there is none
} layout_t;

static const layout_t layouts[] = {
    {"3.11.", 8, 32, 48, 56, 69, 0},
    {"3.12.", 0, 0, 8, 56, 70, 92},
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
  for (size_t at = 0; at < bytes; at += sizeof(uintptr_t)) {
    const uintptr_t word = *(const volatile uintptr_t*)(address + at);
    memcpy((char*)out + at, &word, sizeof(word));
  }
}

static bool is_proven(void) { return atomic_load_explicit(&num_proofs, memory_order_relaxed) >= kProofs; }

static bool read_memory(uintptr_t address, void* out, size_t bytes) {
  if (address % sizeof(uintptr_t) != 0) return false;
  if (is_proven()) {
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

// From the innermost frame outwards.
typedef struct walk {
  const layout_t* layout;
  uintptr_t frame, where[2];  // of Python: its code, and the instruction
  uintptr_t next;
  uint32_t num_read;
  bool is_whole;  // it has come to the end
} walk_t;

static bool begin_walk(const void* thread_state, walk_t* out_walk) {
  const layout_t* known = atomic_load(&layout);
  uintptr_t frames;
  *out_walk = (walk_t){.layout = known};
  return known != NULL && read_memory((uintptr_t)thread_state + kStateToFrames, &frames, sizeof(frames)) &&
         read_memory(frames + known->innermost, &out_walk->next, sizeof(out_walk->next));
}

// To the next frame of Python. False at the end, and where a frame is none.
static bool walk_on(walk_t* walk) {
  const layout_t* known = walk->layout;
  while (walk->next != 0) {
    char bytes[kFrameBytes];
    if (walk->num_read++ == 2 * kMostFrames || !read_memory(walk->next, bytes, sizeof(bytes))) return false;
    walk->frame = walk->next;
    walk->next = pointer_at(bytes, known->previous);
    if (bytes[known->owner] == kFrameOfC) continue;
    walk->where[0] = pointer_at(bytes, known->code);
    walk->where[1] = pointer_at(bytes, known->instruction);
    return walk->where[1] > walk->where[0] && walk->where[1] - walk->where[0] <= kMostCodeBytes;
  }
  walk->is_whole = true;
  return false;
}

bool gcap_doctor_python_place(const void* thread_state, uint64_t* out_place, uint32_t* out_frames) {
  walk_t walk;
  *out_place = 0;
  *out_frames = 0;
  if (!begin_walk(thread_state, &walk)) return false;
  while (walk_on(&walk)) {
    *out_place = gcap_doctor_hash(*out_place, walk.where, sizeof(walk.where));
    if (++*out_frames > kMostFrames) return false;
  }
  return walk.is_whole && *out_frames != 0;
}

// The code's version; 0 if it has none.
static uint64_t version_of(const walk_t* walk) {
  const uint8_t offset = walk->layout->version_of_code;
  uint32_t words[2];
  copy_words(walk->where[0] + offset / sizeof(words) * sizeof(words), words, sizeof(words));
  return words[offset % sizeof(words) / sizeof(words[0])];
}

size_t gcap_doctor_python_place_frames(const void* thread_state, gcap_doctor_python_frame_t* out_frames, size_t most) {
  walk_t walk;
  size_t count = 0;
  if (!is_proven() || !begin_walk(thread_state, &walk) || walk.layout->version_of_code == 0) return 0;
  while (count < most && walk_on(&walk)) {
    const uint64_t version = version_of(&walk);
    if (version == 0) return 0;
    gcap_doctor_python_frame_t* frame = &out_frames[count++];
    frame->frame = (const void*)walk.frame;
    frame->code = gcap_doctor_hash(version, &walk.where[0], sizeof(walk.where[0]));
    frame->place = gcap_doctor_hash(frame->code, &walk.where[1], sizeof(walk.where[1]));
  }
  return count == most || walk.is_whole ? count : 0;
}
