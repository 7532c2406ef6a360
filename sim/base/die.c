// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The end of a program that did what has no defined result on a GPU, or what is not modelled.
//
// The idea: nothing pretends to have worked, and the last line names the call. Locking: none; only the thread's own
// record is read.
#include "sim/base/die.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/thread.h"

void gcap_sim_die(const char* format, ...) {
  const gcap_sim_thread_t* thread = gcap_sim_thread();
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  // A report names the call under way, whoever found the mistake.
  const char* call = thread->in_call && !strstr(text, thread->call) ? thread->call : "";
  fprintf(stderr, "gcap sim: %s%s%s\n", call, *call ? ": " : "", text);
  abort();
}
