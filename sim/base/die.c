// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The end of a program that did what has no defined result on a GPU, or what is not modelled.
//
// The idea: nothing pretends to have worked, and the last line names the call, which this file asks for. Locking: none;
// the function that names the call is set before a second thread can be in one.
#include "sim/base/die.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* (*call_under_way)(void);

void gcap_sim_die_in(const char* (*function)(void)) { call_under_way = function; }

void gcap_sim_die(const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  // A report names the call under way, whoever found the mistake.
  const char* call = call_under_way != NULL ? call_under_way() : "";
  if (strstr(text, call) != NULL) call = "";
  fprintf(stderr, "gcap sim: %s%s%s\n", call, *call ? ": " : "", text);
  abort();
}

void gcap_sim_die_of_setting(const char* format, ...) {
  va_list args;
  va_start(args, format);
  fputs("gcap sim: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  abort();
}
