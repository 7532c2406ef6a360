// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The program's threads, each with its own record, which it makes at its first event and frees as it ends. A thread's
// line of the file goes out with its first other lines. The record hangs on a key: a thread-local variable of a library
// that is loaded late is allocated at its first use, or takes of the little room that a program has for such.
// Locking: none, a record is its thread's alone.
#include "doctor/record/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doctor/record/graphs.h"
#include "doctor/record/ranges.h"
#include "doctor/record/stacks.h"
#include "doctor/record/writer.h"

static pthread_key_t key;
static bool has_key;
static _Atomic uint32_t last_id;

static void end_of_thread(void* record) {
  gcap_doctor_thread_t* thread = record;
  gcap_doctor_thread_flush(thread);
  gcap_doctor_own_file_close(&thread->scratch);
  gcap_doctor_line_free(&thread->definitions);
  gcap_doctor_line_free(&thread->out);
  free(thread->defined.items);
  free(thread->clones);
  gcap_doctor_map_clear(&thread->places);
  free(thread->place_frames);
  gcap_doctor_map_clear(&thread->frame_ids);
  gcap_doctor_map_clear(&thread->codes);
  gcap_doctor_line_free(&thread->code_names);
  gcap_doctor_stacks_forget(thread);
  gcap_doctor_ranges_free(thread);
  free(thread);
}

static void make_key(void) { has_key = pthread_key_create(&key, end_of_thread) == 0; }

bool gcap_doctor_threads_start(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  return pthread_once(&once, make_key) == 0 && has_key;
}

gcap_doctor_thread_t* gcap_doctor_thread_current(void) {
  gcap_doctor_thread_t* thread = pthread_getspecific(key);
  if (thread != NULL) return thread;
  thread = calloc(1, sizeof(*thread));
  if (thread == NULL) return NULL;
  if (pthread_setspecific(key, thread) != 0) {
    free(thread);
    return NULL;
  }
  thread->scratch.descriptor = -1;
  thread->id = atomic_fetch_add(&last_id, 1) + 1;
  const uint64_t os = (uint64_t)syscall(SYS_gettid);
  thread->is_main = os == (uint64_t)getpid();
  char name[64] = "";
  gcap_doctor_line_t* line = &thread->definitions;
  gcap_doctor_line_begin(line, "thread");
  gcap_doctor_line_number(line, "id", thread->id);
  gcap_doctor_line_number(line, "os", os);
  if (pthread_getname_np(pthread_self(), name, sizeof(name)) == 0) gcap_doctor_line_field(line, "name", name);
  gcap_doctor_line_end(line);
  return thread;
}

void gcap_doctor_thread_flush(gcap_doctor_thread_t* thread) {
  gcap_doctor_graphs_spill(thread);
  gcap_doctor_thread_write(thread);
}

void gcap_doctor_thread_write(gcap_doctor_thread_t* thread) {
  gcap_doctor_intern_publish(&thread->defined, gcap_doctor_writer_define(&thread->definitions));
  gcap_doctor_line_clear(&thread->definitions);
  gcap_doctor_writer_write(&thread->out);
  gcap_doctor_line_clear(&thread->out);
  thread->can_wait = 0;
}

bool gcap_doctor_thread_has_on_stack(gcap_doctor_thread_t* thread, const void* address) {
  if (thread->stack_high == 0) {
    pthread_attr_t attributes;
    void* low = NULL;
    size_t size = 0;
    thread->stack_high = 1;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      pthread_attr_getstack(&attributes, &low, &size);
      pthread_attr_destroy(&attributes);
      thread->stack_low = (uintptr_t)low;
      thread->stack_high = (uintptr_t)low + size;
    }
  }
  return (uintptr_t)address >= thread->stack_low && (uintptr_t)address < thread->stack_high;
}

int gcap_doctor_thread_scratch_file(gcap_doctor_thread_t* thread) {
  const gcap_doctor_own_file_t* scratch = &thread->scratch;
  if (!gcap_doctor_own_file_is_there(scratch)) {
    gcap_doctor_own_file_take(&thread->scratch, memfd_create("gcap-doctor", MFD_CLOEXEC));
  } else if (ftruncate(scratch->descriptor, 0) != 0 || lseek(scratch->descriptor, 0, SEEK_SET) != 0) {
    return -1;
  }
  return scratch->descriptor;
}
