// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// log.h: the log of calls. Guarded by the global mutex.
#ifndef GCAP_SIM_API_LOG_H_
#define GCAP_SIM_API_LOG_H_

#include <stdbool.h>
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "sim/api/handle.h"
#include "sim/base/thread.h"

struct gcap_sim_function;

extern bool gcap_sim_log_on;

// Note something with the call under way, for its line in the log: an argument, or what became of a capture. Never an
// address: equal runs must give equal logs.
void gcap_sim_log_argument(const char* format, ...) __attribute__((format(printf, 1, 2)));
void gcap_sim_log_capture(const char* format, ...) __attribute__((format(printf, 1, 2)));
#define gcap_sim_note_argument(...) (gcap_sim_log_on ? gcap_sim_log_argument(__VA_ARGS__) : (void)0)
#define gcap_sim_note_capture(...) (gcap_sim_log_on ? gcap_sim_log_capture(__VA_ARGS__) : (void)0)

// Notes a handle that the call under way was given, or has made.
void gcap_sim_log_handle(gcap_sim_kind_t kind, const void* handle);
void gcap_sim_log_made(gcap_sim_kind_t kind, const void* handle);

// Reads the filter from the environment, unless a call has set one.
void gcap_sim_log_prepare(void);
void gcap_sim_log_begin(gcap_sim_thread_t* thread, const struct gcap_sim_function* function, uint64_t number);
void gcap_sim_log_end(gcap_sim_thread_t* thread, cudaError_t code);
void gcap_sim_log_thread_ends(gcap_sim_thread_t* thread);

#endif  // GCAP_SIM_API_LOG_H_
