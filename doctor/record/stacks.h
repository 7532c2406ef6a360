// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stacks.h: where in the program a call is made.
#ifndef GCAP_DOCTOR_RECORD_STACKS_H_
#define GCAP_DOCTOR_RECORD_STACKS_H_

#include "doctor/record/thread.h"

#pragma GCC visibility push(hidden)

enum {
  GCAP_DOCTOR_MAX_C_FRAMES = 48,
  GCAP_DOCTOR_MAX_PYTHON_FRAMES = 64,
};

// Once, before there are callbacks: the unwinder loads itself at its first use.
void gcap_doctor_stacks_start(void);
// The id of the calling thread's stack, C and Python. Its lines, if they are new, go with the thread's next write.
// 0 without memory.
uint32_t gcap_doctor_stack_record(gcap_doctor_thread_t* thread);
// The thread ends.
void gcap_doctor_stacks_forget(gcap_doctor_thread_t* thread);
// Where on the calling thread's stack the program's own frames begin, those of CUDA's libraries left out: what lies
// below is nobody's once the call returns. 0 if it is not known.
uintptr_t gcap_doctor_stacks_program_frame(void);
// The id of a stack of Python frames alone, innermost first; 0 without memory. Its line goes like that of the other.
uint32_t gcap_doctor_stack_of_python(gcap_doctor_thread_t* thread, const uint32_t* python, size_t count);
// The id of a Python frame; 0 without memory.
uint32_t gcap_doctor_stack_python_frame(gcap_doctor_thread_t* thread, const char* file, uint32_t line,
                                        const char* function);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_STACKS_H_
