// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// python.h: the calling thread's Python stack, where an interpreter is in the process.
#ifndef GCAP_DOCTOR_RECORD_PYTHON_H_
#define GCAP_DOCTOR_RECORD_PYTHON_H_

#include "doctor/record/thread.h"

#pragma GCC visibility push(hidden)

struct link_map;

// Looks for an interpreter, once, before there are callbacks.
void gcap_doctor_python_start(void);
// Looks for it in a loaded file that code of the calling thread's stack is in, unless it was found: it may be loaded at
// any time. Legal in a callback.
void gcap_doctor_python_look_in(const struct link_map* module);

// Ids of frames, innermost first, at most GCAP_DOCTOR_MAX_PYTHON_FRAMES; returns how many. Where there is an
// interpreter but no stack, `*out_why` says why; else it is NULL.
size_t gcap_doctor_python_stack(gcap_doctor_thread_t* thread, uint32_t* out_frames, const char** out_why);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_PYTHON_H_
