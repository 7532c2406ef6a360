// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// log.h: where gcap sends the rare messages that belong to no call's status.
#ifndef GCAP_LOG_H_
#define GCAP_LOG_H_

#include "gcap/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gcap_log_level {
  GCAP_LOG_DEBUG = 0,
  GCAP_LOG_INFO,
  GCAP_LOG_WARNING,
  GCAP_LOG_ERROR,
} gcap_log_level_t;

// Receives one message: one line, without a trailing newline, and with control characters replaced as in status.h. gcap
// calls the sink on any thread, also while a stream captures and
// with some of its locks held, so the sink must call neither CUDA nor gcap.
typedef void (*gcap_log_sink_t)(void* user, gcap_log_level_t level, const char* message);

// Sends messages of `level` and above to `sink`. A NULL sink restores the default: standard error, GCAP_LOG_WARNING and
// above. Call this function before other threads use gcap.
GCAP_API void gcap_log_set_sink(gcap_log_sink_t sink, void* user, gcap_log_level_t level);

// Logs a printf-style message, truncated to 1,023 bytes, of which the last are then "...". Thread-safe.
GCAP_API void gcap_log(gcap_log_level_t level, const char* format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LOG_H_
