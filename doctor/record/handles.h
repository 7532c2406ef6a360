// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// handles.h: ids of the program's streams, events, graphs and executables. A handle that is destroyed and made again is
// a new thing with a new id. All functions are thread-safe; an id is never 0, but without memory.
#ifndef GCAP_DOCTOR_RECORD_HANDLES_H_
#define GCAP_DOCTOR_RECORD_HANDLES_H_

#include "doctor/record/line.h"
#include "doctor/record/thread.h"

#pragma GCC visibility push(hidden)

// A stream as a call names it. `context` is CUPTI's number of the context; `is_per_thread` says what a stream 0 is.
// Writes the stream's line if this is its first use.
uint32_t gcap_doctor_handle_stream(const gcap_doctor_thread_t* thread, const void* handle, uint32_t context,
                                   bool is_per_thread);
void gcap_doctor_handle_stream_made(const void* handle, uint32_t flags);
// Returns the id that it had, 0 if it had none.
uint32_t gcap_doctor_handle_stream_gone(const void* handle);

uint32_t gcap_doctor_handle_event(const void* handle);
void gcap_doctor_handle_event_gone(const void* handle);

uint32_t gcap_doctor_handle_graph(const void* handle);
void gcap_doctor_handle_graph_gone(const void* handle);

// `cupti_graph` is the number that CUPTI's records of activity give the executable; 0 if it is not known. The
// launches of an executable that had this handle before are appended to `out`.
uint32_t gcap_doctor_exec_made(const void* handle, uint32_t cupti_graph, gcap_doctor_line_t* out);
// 0 if it was not made while the recorder looked.
uint32_t gcap_doctor_exec(const void* handle);
uint32_t gcap_doctor_exec_of_cupti_graph(uint32_t cupti_graph);
// Counts a launch. Lines of launches are appended to `out`, not for each launch: see handles.c.
void gcap_doctor_exec_launched(const void* handle, bool failed, gcap_doctor_line_t* out);
void gcap_doctor_exec_gone(const void* handle, gcap_doctor_line_t* out);
// The launches of all executables that are in no line yet.
void gcap_doctor_execs_finish(gcap_doctor_line_t* out);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_HANDLES_H_
