// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The driver's log of errors: a sentence of what was wrong with a call, which says more than the call's answer. The
// driver hands a sentence over on the thread whose call fails, within the call or as the call returns; so a sentence is
// of the thread's innermost call that is being recorded, or else, while all calls are seen, of the thread's last one,
// if that failed. Sentences of calls that are not recorded are skipped. Locking: none, the call is the thread's own.
#include "doctor/record/driver_log.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "doctor/record/calls.h"
#include "doctor/record/switch.h"
#include "doctor/record/thread.h"
#include "doctor/record/writer.h"

enum { kMaxText = 512 };

typedef void (*log_callback_t)(void* user, int level, char* message, size_t length);

static int (*register_callback)(log_callback_t callback, void* user, void** out_handle);
static atomic_bool is_listening;

static void write_text(gcap_doctor_thread_t* thread, uint64_t call, const char* message, size_t length) {
  char text[kMaxText + 1];
  length = gcap_doctor_line_cut(message, length, kMaxText);
  memcpy(text, message, length);
  while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\0')) --length;
  text[length] = '\0';
  if (length == 0) return;
  gcap_doctor_line_begin(&thread->out, "log");
  gcap_doctor_line_number(&thread->out, "call", call);
  gcap_doctor_line_field(&thread->out, "text", text);
  gcap_doctor_line_end(&thread->out);
  gcap_doctor_thread_flush(thread);
}

static void on_message(void* user, int level, char* message, size_t length) {
  (void)user;
  (void)level;
  if (message == NULL || !gcap_doctor_writer_is_open()) return;
  const int error = errno;
  gcap_doctor_thread_t* thread = gcap_doctor_thread_current();
  if (thread != NULL && !thread->is_busy) {
    thread->is_busy = true;
    gcap_doctor_open_call_t* open = gcap_doctor_call_open(thread);
    if (open != NULL) open->is_named = true;
    const bool has_all = gcap_doctor_switch_is_capturing();
    const uint64_t call = open != NULL ? open->number : has_all ? thread->last_failed : 0;
    if (call != 0) write_text(thread, call, message, strnlen(message, length));
    thread->is_busy = false;
  }
  errno = error;
}

void gcap_doctor_driver_log_start(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* symbol = library != NULL ? dlsym(library, "cuLogsRegisterCallback") : NULL;
  memcpy(&register_callback, &symbol, sizeof(symbol));
}

void gcap_doctor_driver_log_listen(void) {
  if (register_callback == NULL || atomic_exchange(&is_listening, true)) return;
  void* handle = NULL;
  const int result = register_callback(on_message, NULL, &handle);
  if (result != 0) gcap_doctor_writer_note("the driver does not hand over its log of errors (%d).", result);
}
