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
// calls the sink on any thread, also while a stream captures, and without a lock of its own, so the sink may call gcap.
// What a capture forbids on its thread, it forbids in the sink too: neither wait nor allocate while
// gcap_thread_is_capturing(). In a run of a session, an EP or a runtime the sink must not run the same one: runs that
// take turns would wait for themselves. A capture that the sink begins, it ends. It must not end an object whose call
// may have sent the message; a graph manager refuses that. Messages that the sink itself causes go to standard error.
typedef void (*gcap_log_sink_t)(void* user, gcap_log_level_t level, const char* message);

// Sends messages of `level` and above to `sink`. A NULL sink restores the default: standard error, GCAP_LOG_WARNING and
// above. Thread-safe: when the call returns, no thread is in the old sink any more, so `user` may end. A sink may set
// another one, and does then not wait for other threads. Call it without a lock that the old sink takes.
GCAP_API void gcap_log_set_sink(gcap_log_sink_t sink, void* user, gcap_log_level_t level);

// Logs a printf-style message, truncated to 1,023 bytes, of which the last are then "...". A level that does not exist
// counts as the nearest one. Thread-safe.
GCAP_API void gcap_log(gcap_log_level_t level, const char* format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LOG_H_
