// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// own_file.h: a file of the recorder's in a program that may close any descriptor, and get its number for a file of its
// own: what is the recorder's is asked before it is used.
#ifndef GCAP_DOCTOR_RECORD_OWN_FILE_H_
#define GCAP_DOCTOR_RECORD_OWN_FILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(hidden)

typedef struct gcap_doctor_own_file {
  int descriptor;  // -1 for none
  dev_t device;
  ino_t number;
} gcap_doctor_own_file_t;

// Takes a descriptor, which may be -1. False, and no file, if it is none.
bool gcap_doctor_own_file_take(gcap_doctor_own_file_t* file, int descriptor);
// Whether the descriptor still is this file.
bool gcap_doctor_own_file_is_there(const gcap_doctor_own_file_t* file);
// Writes all bytes at the offset. False, and errno, if it cannot, or the descriptor is not this file any more. What of
// the bytes went out at the end of the file before an error is taken back.
bool gcap_doctor_own_file_write(const gcap_doctor_own_file_t* file, const char* bytes, size_t size, uint64_t offset);
void gcap_doctor_own_file_close(gcap_doctor_own_file_t* file);

// As write(), but the signal that a write that fails sends does not reach the program.
ssize_t gcap_doctor_write_quietly(int descriptor, const char* bytes, size_t size);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_OWN_FILE_H_
