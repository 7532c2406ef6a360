// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// repeats.h: calls that the program makes again and again, as one line with a count.
#ifndef GCAP_DOCTOR_RECORD_REPEATS_H_
#define GCAP_DOCTOR_RECORD_REPEATS_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "doctor/record/line.h"

#pragma GCC visibility push(hidden)

// What a call is told by that changes no capture, makes no node, and did not fail. Calls of one `like`, `event` and
// `bytes` are the same.
typedef struct gcap_doctor_repeat {
  uint32_t like, event;  // ids; 0 for no event
  uint64_t bytes;        // UINT64_MAX for none
  bool is_answer;        // whether a stream captures
  uint64_t number, start_ns, end_ns;
} gcap_doctor_repeat_t;

// Thread: any. Lines of what was counted are appended to `out`; its caller writes them.

// Counts the call if it is one that is remembered: then it needs no line of its own.
bool gcap_doctor_repeats_count(const gcap_doctor_repeat_t* call, gcap_doctor_line_t* out);
// Another such call gets a line: no count reaches across it. Behind an answer only answers are still remembered, since
// a capture that is told to be active was not broken by what failed before: work beside it is judged otherwise from
// there.
void gcap_doctor_repeats_write(const gcap_doctor_repeat_t* call, gcap_doctor_line_t* out);
// The call's own line is in the file, and so is what the line refers to: calls like it are counted from now on.
void gcap_doctor_repeats_remember(const gcap_doctor_repeat_t* call, gcap_doctor_line_t* out);
// A call gets a line that changes a capture, or may: nothing is remembered any more.
void gcap_doctor_repeats_forget(gcap_doctor_line_t* out);
// The same for a call that begins, and gets the next number here: no count reaches across the number.
uint64_t gcap_doctor_repeats_forget_at_number(gcap_doctor_line_t* out, _Atomic uint64_t* last_number);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_REPEATS_H_
