// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The log sink: one process-wide function pointer, set before threads start, so that logging takes no lock of ours.

#include "gcap/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/printable.h"

static void log_to_stderr(void* user, gcap_log_level_t level, const char* message) {
  (void)user;
  static const char* const names[] = {"debug", "info", "warning", "error"};
  fprintf(stderr, "gcap %s: %s\n", names[level], message);
}

static gcap_log_sink_t current_sink = log_to_stderr;
static void* current_user;
static gcap_log_level_t current_level = GCAP_LOG_WARNING;

void gcap_log_set_sink(gcap_log_sink_t sink, void* user, gcap_log_level_t level) {
  current_sink = sink != NULL ? sink : log_to_stderr;
  current_user = sink != NULL ? user : NULL;
  current_level = sink != NULL ? level : GCAP_LOG_WARNING;
}

void gcap_log(gcap_log_level_t level, const char* format, ...) {
  if (level < current_level) return;
  char text[1024], message[1024];  // longer messages are cut: a log line is not a report
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  const bool is_cut = gcap_printable(text, message, sizeof(message)) >= sizeof(message) || length >= (int)sizeof(text);
  if (is_cut) strcpy(message + gcap_printable_cut(message, sizeof(message) - sizeof("...")), "...");
  current_sink(current_user, level, message);
}
