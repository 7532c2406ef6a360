// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The audit: allocations and frees are followed, an executable's pointers are read as it is made or updated, and a
// launch of an executable that points into memory which was freed since is told before the driver gets the launch.
//
// Here calls of the driver become what they mean for the audit: for its memory (audit_memory.c), its executables
// (audit_execs.c, audit_nodes.c) and its launches (audit_launches.c). A call that made nodes is part of a capture, and
// neither allocates nor frees.
//
// Locking: none here. The parts share one lock, over memory alone; graphs are read, and lines are written, without it.
#include "doctor/record/audit.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "doctor/record/audit_read.h"
#include "doctor/record/audit_state.h"
#include "doctor/record/audit_tell.h"
#include "doctor/record/calls.h"
#include "doctor/record/driver_calls.h"
#include "doctor/record/memory_calls.h"
#include "doctor/record/writer.h"

gcap_doctor_audit_state_t gcap_doctor_audit = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool gcap_doctor_audit_start(const gcap_doctor_cupti_t* cupti) {
  atomic_store(&gcap_doctor_audit.is_on, gcap_doctor_audit_read_start(cupti));
  return atomic_load(&gcap_doctor_audit.is_on);
}

bool gcap_doctor_audit_is_on(void) { return atomic_load_explicit(&gcap_doctor_audit.is_on, memory_order_relaxed); }

void gcap_doctor_audit_followed(gcap_doctor_memory_what_t what) {
  atomic_store(&gcap_doctor_audit.is_followed[what], true);
}

bool gcap_doctor_audit_wants(uint32_t callback) {
  if (!atomic_load_explicit(&gcap_doctor_audit.is_on, memory_order_relaxed)) return false;
  const uint8_t role = gcap_doctor_driver_call(callback)->role;
  return gcap_doctor_memory_call(callback)->does != GCAP_DOCTOR_MEMORY_DOES_NOTHING ||
         role == GCAP_DOCTOR_ROLE_INSTANTIATE || role == GCAP_DOCTOR_ROLE_UPDATE || role == GCAP_DOCTOR_ROLE_LAUNCH;
}

static void* pointer_argument(const gcap_doctor_driver_call_t* call, const gcap_doctor_cupti_call_t* data,
                              gcap_doctor_driver_argument_t kind) {
  void* value = NULL;
  if (call->at[kind] != 0 && data->arguments != NULL) {
    memcpy(&value, (const char*)data->arguments + call->at[kind] - 1, sizeof(value));
  }
  return value;
}

void gcap_doctor_audit_entered(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  const gcap_doctor_driver_call_t* call = gcap_doctor_driver_call(callback);
  if (call->role == GCAP_DOCTOR_ROLE_LAUNCH) {
    gcap_doctor_audit_launched(thread, callback, data, pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_EXEC));
  } else if (gcap_doctor_memory_call(callback)->does == GCAP_DOCTOR_MEMORY_DOES_FREE) {
    thread->freeing = gcap_doctor_audit_last_serial();
  }
}

// Whether the call was taken into a capture.
static bool made_nodes(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  const gcap_doctor_open_call_t* open = gcap_doctor_call_open(thread);
  if (open != NULL && open->callback == callback && open->correlation == data->correlation) return open->num_nodes != 0;
  return thread->unseen != 0;
}

static void instantiated(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  const gcap_doctor_driver_call_t* call = gcap_doctor_driver_call(callback);
  void* exec = pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_EXEC_OUT);
  if (exec != NULL) memcpy(&exec, exec, sizeof(exec));
  void* graph = pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_GRAPH);
  if (exec == NULL || graph == NULL) return;
  const gcap_doctor_memory_place_t made = gcap_doctor_audit_place(thread, callback, data);
  gcap_doctor_audit_take_graph(thread, exec, graph, &made);
}

void gcap_doctor_audit_left(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  const gcap_doctor_driver_call_t* call = gcap_doctor_driver_call(callback);
  const gcap_doctor_memory_call_t* memory = gcap_doctor_memory_call(callback);
  if (call->role == GCAP_DOCTOR_ROLE_LAUNCH) {
    gcap_doctor_audit_launch_ended(thread, pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_EXEC));
  }
  if (data->result != NULL && *(const int*)data->result != 0) return;
  if (call->role == GCAP_DOCTOR_ROLE_INSTANTIATE) {
    instantiated(thread, callback, data);
  } else if (call->role == GCAP_DOCTOR_ROLE_UPDATE) {
    gcap_doctor_audit_take_graph(thread, pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_EXEC),
                                 pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_GRAPH), NULL);
  } else if (memory->does == GCAP_DOCTOR_MEMORY_DOES_SET) {
    gcap_doctor_audit_set_node(thread, memory, data->arguments);
  } else if (memory->does == GCAP_DOCTOR_MEMORY_DOES_ENABLE) {
    gcap_doctor_audit_enable_node(thread, memory, data->arguments);
  } else if (memory->does == GCAP_DOCTOR_MEMORY_DOES_ALLOC && !made_nodes(thread, callback, data)) {
    const gcap_doctor_memory_place_t place = gcap_doctor_audit_place(thread, callback, data);
    gcap_doctor_audit_memory_made(memory, data->arguments, &place);
  } else if (memory->does == GCAP_DOCTOR_MEMORY_DOES_FREE && !made_nodes(thread, callback, data)) {
    const gcap_doctor_memory_place_t place = gcap_doctor_audit_place(thread, callback, data);
    gcap_doctor_audit_memory_freed(memory, data->arguments, thread->freeing, &place);
  }
}

void gcap_doctor_audit_finish(gcap_doctor_line_t* out) {
  if (gcap_doctor_audit_is_on()) gcap_doctor_audit_tell_groups(out);
  if (!gcap_doctor_audit_is_on() || atomic_load(&gcap_doctor_audit.is_followed[GCAP_DOCTOR_MEMORY_PYTORCH])) return;
  if (dlopen("libc10_cuda.so", RTLD_NOW | RTLD_NOLOAD) == NULL) return;
  gcap_doctor_writer_note(
      "PyTorch's allocator was not followed, so the audit knows of no block that PyTorch took back: the interpreter "
      "did "
      "not run doctor/python/sitecustomize.py, which gcap-doctor audit puts on PYTHONPATH, as with python -I, -E or "
      "-S.");
}
