// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The recorder's life in a program: the driver loads it for CUDA_INJECTION64_PATH and calls InitializeInjection, which
// subscribes to CUPTI's callbacks; the callbacks write the events; at exit the sums are written.
//
// Whatever goes wrong is said in one sentence, and the program runs on without a recording. A callback asks nothing of
// CUDA, keeps errno, and ignores what it causes itself. A child of fork() records nothing: CUDA does not work there,
// and the locks may be another thread's. The library is never unloaded (-z nodelete), since CUPTI keeps the callback's
// address. Locks of the recorder are held over memory alone, never over a function of CUPTI, the loader or the
// interpreter, nor over a write; and none within another, but that of times.c over that of handles.c.
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/record/audit.h"
#include "doctor/record/calls.h"
#include "doctor/record/cupti_find.h"
#include "doctor/record/driver_calls.h"
#include "doctor/record/driver_log.h"
#include "doctor/record/elf_symbol.h"
#include "doctor/record/graphs.h"
#include "doctor/record/handles.h"
#include "doctor/record/python.h"
#include "doctor/record/repeats.h"
#include "doctor/record/settings.h"
#include "doctor/record/stacks.h"
#include "doctor/record/switch.h"
#include "doctor/record/thread.h"
#include "doctor/record/times.h"
#include "doctor/record/writer.h"

int InitializeInjection(void);

static gcap_doctor_cupti_t cupti;
static gcap_doctor_cupti_subscriber_t* subscriber;
static atomic_bool is_recording;

// --- Callbacks -------------------------------------------------------------------------------------------------------

// At a call's beginning after calls.c, at its end before: a call that is open there has its place from there.
static void audit(gcap_doctor_thread_t* thread, uint32_t id, const gcap_doctor_cupti_call_t* call) {
  if (!gcap_doctor_audit_wants(id)) return;
  if (call->site == GCAP_DOCTOR_CUPTI_ENTER) gcap_doctor_audit_entered(thread, id, call);
  if (call->site == GCAP_DOCTOR_CUPTI_EXIT) gcap_doctor_audit_left(thread, id, call);
}

static void dispatch(gcap_doctor_thread_t* thread, int32_t domain, uint32_t id, const void* data) {
  if (domain == GCAP_DOCTOR_CUPTI_RESOURCE) {
    gcap_doctor_graphs_event(thread, id, data);
  } else if (domain == GCAP_DOCTOR_CUPTI_DRIVER) {
    const gcap_doctor_cupti_call_t* call = data;
    if (call->site == GCAP_DOCTOR_CUPTI_ENTER) gcap_doctor_call_entered(thread, id, call);
    audit(thread, id, call);
    if (call->site == GCAP_DOCTOR_CUPTI_EXIT) gcap_doctor_call_left(thread, id, call);
  }
}

// A replay outside of captures is counted as it ends, but for an audit, which tells before the device faults.
static bool is_start_of_replay(int32_t domain, uint32_t id, const void* data) {
  return domain == GCAP_DOCTOR_CUPTI_DRIVER &&
         ((const gcap_doctor_cupti_call_t*)data)->site == GCAP_DOCTOR_CUPTI_ENTER &&
         gcap_doctor_driver_call(id)->role == GCAP_DOCTOR_ROLE_LAUNCH && !gcap_doctor_switch_is_capturing() &&
         !gcap_doctor_audit_wants(id);
}

static void on_callback(void* user, int32_t domain, uint32_t id, const void* data) {
  (void)user;
  if (data == NULL || !atomic_load_explicit(&is_recording, memory_order_relaxed) || gcap_doctor_writer_is_full())
    return;
  if (is_start_of_replay(domain, id, data)) return;
  const int error = errno;
  gcap_doctor_thread_t* thread = gcap_doctor_thread_current();
  if (thread != NULL && !thread->is_busy) {
    int cancel_state;
    // A thread that is to be cancelled must not end in the recorder's write.
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    thread->is_busy = true;
    dispatch(thread, domain, id, data);
    // No line is taken any more, so the program need not pay for callbacks.
    if (gcap_doctor_writer_is_full()) gcap_doctor_switch_stop();
    thread->is_busy = false;
    pthread_setcancelstate(cancel_state, NULL);
  }
  errno = error;
}

// --- The end ---------------------------------------------------------------------------------------------------------

static void in_child(void) {
  atomic_store(&is_recording, false);
  gcap_doctor_writer_stop();
}

static void at_exit(void) {
  if (!atomic_load(&is_recording) || !gcap_doctor_writer_is_open()) return;
  gcap_doctor_line_t lines = {0};
  gcap_doctor_thread_t* thread = gcap_doctor_thread_current();
  // A signal's handler may have called exit() in the midst of a callback, with a lock.
  const bool is_within = thread == NULL || thread->is_busy;
  if (!is_within) {
    gcap_doctor_times_finish(&lines);
    gcap_doctor_audit_finish(&lines);
    gcap_doctor_repeats_forget(&lines);
    gcap_doctor_graphs_spill(thread);
    if (thread->out.size != 0) gcap_doctor_thread_flush(thread);
  }
  atomic_store(&is_recording, false);
  if (!is_within) gcap_doctor_execs_finish(&lines);
  gcap_doctor_writer_finish(&lines, is_within);
  gcap_doctor_line_free(&lines);
  gcap_doctor_writer_stop();
}

// --- The beginning ---------------------------------------------------------------------------------------------------

static void explain_refusal(int result) {
  const char* text = NULL;
  if (cupti.GetResultString != NULL) cupti.GetResultString(result, &text);
  if (text == NULL) text = "no text";
  switch (result) {
    case GCAP_DOCTOR_CUPTI_MULTIPLE_SUBSCRIBERS:
      gcap_doctor_writer_note(
          "another tool uses CUPTI in this process, and CUPTI serves one at a time, so nothing is recorded: run "
          "without "
          "Nsight, cuda-gdb, compute-sanitizer, or a profiler such as torch.profiler.");
      break;
    case GCAP_DOCTOR_CUPTI_NOT_COMPATIBLE:
    case GCAP_DOCTOR_CUPTI_NOT_INITIALIZED:
      gcap_doctor_writer_note(
          "CUPTI does not work with this driver (%d, %s), so nothing is recorded: the driver is older than CUPTI's "
          "version %u; GCAP_DOCTOR_CUPTI can name an older CUPTI.",
          result, text, cupti.version);
      break;
    case GCAP_DOCTOR_CUPTI_INSUFFICIENT_PRIVILEGES:
      gcap_doctor_writer_note("CUPTI lacks the right to look at this process (%d, %s), so nothing is recorded.", result,
                              text);
      break;
    default: gcap_doctor_writer_note("CUPTI refuses (%d, %s), so nothing is recorded.", result, text); break;
  }
}

// Asked here, and not in a callback; legal before the driver is initialised.
static uint32_t driver_version(void) {
  int (*get_version)(int*) = NULL;
  int version = 0;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* symbol = library != NULL ? dlsym(library, "cuDriverGetVersion") : NULL;
  memcpy(&get_version, &symbol, sizeof(get_version));
  if (get_version == NULL || get_version(&version) != 0) return 0;
  return (uint32_t)version;
}

static void write_system(void) {
  const uint32_t driver = driver_version();
  gcap_doctor_line_t line = {0};
  gcap_doctor_line_begin(&line, "system");
  if (driver != 0) gcap_doctor_line_number(&line, "driver", driver);
  if (cupti.version != 0) gcap_doctor_line_number(&line, "cupti", cupti.version);
  char folder[PATH_MAX];
  if (getcwd(folder, sizeof(folder)) != NULL) gcap_doctor_line_field(&line, "folder", folder);
  gcap_doctor_line_end(&line);
  gcap_doctor_writer_write(&line);
  gcap_doctor_line_free(&line);
}

static void start(const gcap_doctor_settings_t* settings) {
  if (!gcap_doctor_threads_start() || !gcap_doctor_cupti_find(settings->cupti, &cupti)) return;
  write_system();
  gcap_doctor_elf_start();
  gcap_doctor_stacks_start();
  gcap_doctor_python_start();
  gcap_doctor_driver_log_start();
  gcap_doctor_graphs_start(&cupti);
  int result = cupti.Subscribe(&subscriber, on_callback, NULL);
  if (result == GCAP_DOCTOR_CUPTI_SUCCESS) {
    pthread_atfork(NULL, NULL, in_child);
    atexit(at_exit);
    if (settings->time) gcap_doctor_times_start(&cupti);
    const bool audits = settings->audit && gcap_doctor_audit_start(&cupti);
    atomic_store(&is_recording, true);
    result = gcap_doctor_switch_start(&cupti, subscriber, audits);
    if (result != GCAP_DOCTOR_CUPTI_SUCCESS) {
      gcap_doctor_writer_note("CUPTI %u does not tell of graphs (%d), so nodes are not recorded.", cupti.version,
                              result);
    }
  } else {
    explain_refusal(result);
  }
}

// What the driver calls, in cuInit. It wants a 1.
__attribute__((visibility("default"))) int InitializeInjection(void) {
  static atomic_bool is_started;
  const int error = errno;
  gcap_doctor_settings_t settings;
  if (!atomic_exchange(&is_started, true)) {
    gcap_doctor_settings_read(&settings);
    if (gcap_doctor_writer_open(settings.events, settings.run, settings.limit_bytes)) start(&settings);
    gcap_doctor_writer_started();
  }
  errno = error;
  return 1;
}
