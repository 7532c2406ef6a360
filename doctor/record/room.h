// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// room.h: where in the file of events lines go: docs/doctor_events.md says how a file that reached its limit looks.
#ifndef GCAP_DOCTOR_RECORD_ROOM_H_
#define GCAP_DOCTOR_RECORD_ROOM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/record/own_file.h"

#pragma GCC visibility push(hidden)

// Once. The file, which is empty, never has more than `limit` bytes.
void gcap_doctor_room_start(uint64_t limit);
// Writes whole lines to the file. Lines that define something stay in it for ever, as long as there is room for such;
// others give way to newer ones. Thread-safe. False, and errno, if they were not written.
// `is_within`: the calling thread may have been interrupted in this very function: it does not wait for ever.
bool gcap_doctor_room_write(const gcap_doctor_own_file_t* file, const char* lines, size_t size, bool is_definition,
                            bool is_within);
// Whether there is room for what defines something. Thread-safe.
bool gcap_doctor_room_has_definitions(void);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_ROOM_H_
