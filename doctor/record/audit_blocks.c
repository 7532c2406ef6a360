// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What doctor/python tells of the blocks of frameworks' allocators. It calls from any thread of the program, outside of
// callbacks, and with the interpreter's lock. A thread on which the recorder is at work tells nothing: it would wait
// for itself. Locking: audit.c's.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/record/audit.h"
#include "doctor/record/calls.h"
#include "doctor/record/stacks.h"
#include "doctor/record/writer.h"

#define EXPORT __attribute__((visibility("default")))

// The blocks of "pytorch" or "cupy" are told from now on.
EXPORT void gcap_doctor_blocks_follow(const char* framework);
// A block was handed out. `what` is of gcap_doctor_memory_what_t, `function` what the report calls the call.
EXPORT void gcap_doctor_block_made(uint64_t address, uint64_t bytes, int what, const char* function);
// A block is found to be handed out. `place` has lines "LINE\tFILE\tFUNCTION\n" of Python, innermost first; NULL if
// it is not known where the block was allocated.
EXPORT void gcap_doctor_block_seen(uint64_t address, uint64_t bytes, int what, const char* place);
// A block is taken back.
EXPORT void gcap_doctor_block_freed(uint64_t address, const char* function);
// A sentence for the reader of the report.
EXPORT void gcap_doctor_blocks_note(const char* text);

// What was before the recorder began to work on a thread.
typedef struct work {
  gcap_doctor_thread_t* thread;
  int error, cancel_state;
} work_t;

static bool begin(work_t* work) {
  work->error = errno;
  if (!gcap_doctor_audit_is_on() || !gcap_doctor_writer_is_open()) return false;
  work->thread = gcap_doctor_thread_current();
  if (work->thread == NULL || work->thread->is_busy) return false;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &work->cancel_state);
  work->thread->is_busy = true;
  return true;
}

static void end(const work_t* work) {
  work->thread->is_busy = false;
  pthread_setcancelstate(work->cancel_state, NULL);
  errno = work->error;
}

static bool is_of_framework(int what) { return what == GCAP_DOCTOR_MEMORY_PYTORCH || what == GCAP_DOCTOR_MEMORY_CUPY; }

// A name that stays.
static const char* keep_function(const char* function) {
  static const char* const known[] = {"CUDACachingAllocator.free", "MemoryPool.malloc", "MemoryPool.free"};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
    if (strcmp(known[i], function) == 0) return known[i];
  }
  return "an allocator of Python";
}

static gcap_doctor_memory_place_t place_here(gcap_doctor_thread_t* thread, const char* function, uint32_t stack) {
  if (thread->definitions.size != 0 || thread->out.size != 0) gcap_doctor_thread_write(thread);
  return (gcap_doctor_memory_place_t){.call = gcap_doctor_call_new_number(),
                                      .start_ns = gcap_doctor_writer_now(),
                                      .function = function,
                                      .thread = thread->id,
                                      .stack = stack};
}

void gcap_doctor_blocks_follow(const char* framework) {
  // An interpreter may say so before the driver starts the recorder.
  gcap_doctor_audit_followed(strcmp(framework, "pytorch") == 0 ? GCAP_DOCTOR_MEMORY_PYTORCH : GCAP_DOCTOR_MEMORY_CUPY);
}

void gcap_doctor_block_made(uint64_t address, uint64_t bytes, int what, const char* function) {
  work_t work;
  if (!is_of_framework(what) || !begin(&work)) return;
  const gcap_doctor_memory_place_t place =
      place_here(work.thread, keep_function(function), gcap_doctor_stack_record(work.thread));
  gcap_doctor_audit_block_made(address, bytes, (gcap_doctor_memory_what_t)what, &place);
  end(&work);
}

// The id of the stack that lines of Python tell; 0 for none.
static uint32_t read_stack(gcap_doctor_thread_t* thread, const char* place) {
  uint32_t frames[GCAP_DOCTOR_MAX_PYTHON_FRAMES];
  size_t count = 0;
  while (place != NULL && *place != '\0' && count < GCAP_DOCTOR_MAX_PYTHON_FRAMES) {
    char *file = NULL, *next = NULL;
    char line[1024];
    const size_t length = strcspn(place, "\n");
    memcpy(line, place, length < sizeof(line) ? length : sizeof(line) - 1);
    line[length < sizeof(line) ? length : sizeof(line) - 1] = '\0';
    place += length + (place[length] == '\n');
    const unsigned long number = strtoul(line, &file, 10);
    if (*file != '\t' || (next = strchr(file + 1, '\t')) == NULL) continue;
    *next = '\0';
    const uint32_t id = gcap_doctor_stack_python_frame(thread, file + 1, (uint32_t)number, next + 1);
    if (id != 0) frames[count++] = id;
  }
  return count != 0 ? gcap_doctor_stack_of_python(thread, frames, count) : 0;
}

void gcap_doctor_block_seen(uint64_t address, uint64_t bytes, int what, const char* place) {
  work_t work;
  if (!is_of_framework(what) || !begin(&work)) return;
  if (gcap_doctor_audit_block_lives(address, bytes)) {
    end(&work);
    return;
  }
  const uint32_t stack = read_stack(work.thread, place);
  gcap_doctor_memory_place_t made = {0};
  if (stack != 0) made = place_here(work.thread, "CUDACachingAllocator.malloc", stack);
  gcap_doctor_audit_block_made(address, bytes, (gcap_doctor_memory_what_t)what, &made);
  end(&work);
}

void gcap_doctor_block_freed(uint64_t address, const char* function) {
  work_t work;
  if (!begin(&work)) return;
  gcap_doctor_memory_place_t place = {0};
  const bool is_used = gcap_doctor_audit_block_is_used(address);
  if (is_used) place = place_here(work.thread, keep_function(function), gcap_doctor_stack_record(work.thread));
  gcap_doctor_audit_block_freed(address, is_used ? &place : NULL);
  end(&work);
}

void gcap_doctor_blocks_note(const char* text) {
  work_t work;
  if (!begin(&work)) return;
  gcap_doctor_writer_note("%s", text);
  end(&work);
}
