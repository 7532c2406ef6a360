// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// python_place.h: where a thread of Python stands, as one number, without asking the interpreter.
#ifndef GCAP_DOCTOR_RECORD_PYTHON_PLACE_H_
#define GCAP_DOCTOR_RECORD_PYTHON_PLACE_H_

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

// Once the interpreter is found: `version` is its own, as "3.12.1 (main, ...". An interpreter that is not known has no
// places.
void gcap_doctor_python_place_start(const char* version);
// A number that is the same as long as each frame of the thread stands at the same instruction of the same code;
// `*out_frames` is how many there are. False if it cannot be known.
bool gcap_doctor_python_place(const void* thread_state, uint64_t* out_place, uint32_t* out_frames);
// The interpreter showed the `frames` frames that there are: what is known of it is right. After several of these the
// frames are read without the kernel.
void gcap_doctor_python_place_shown(uint32_t frames);
// The interpreter showed another number of frames than there are: what is known of it is wrong. No places from now on.
void gcap_doctor_python_place_stop(void);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_PYTHON_PLACE_H_
