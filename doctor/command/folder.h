// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// folder.h: the folder in which the processes of a run leave their files of events.
#ifndef GCAP_DOCTOR_COMMAND_FOLDER_H_
#define GCAP_DOCTOR_COMMAND_FOLDER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "doctor/base/heap.h"

#ifdef __cplusplus
extern "C" {
#endif

// A folder for files of events: PREFIX.PID.events, or PREFIX.PID.N.events of a program that another one became.
// Thread:   one thread
// Lifetime: gcap_doctor_folder_close; its texts are the heap's
typedef struct gcap_doctor_folder {
  gcap_doctor_heap_t* heap;
  const char* path;    // absolute
  const char* prefix;  // what names begin with, with the '.'
  const char* run;     // what the first line of this run's files has as `run`
  int descriptor;      // of the folder, whatever the program makes of the path
  bool is_temporary;   // made for this run: all of its files are of this run
} gcap_doctor_folder_t;

// Makes a folder for this run in TMPDIR. False after a sentence.
bool gcap_doctor_folder_make(gcap_doctor_folder_t* out_folder, gcap_doctor_heap_t* heap);

// Takes the folder and the prefix that `events` names; `from` is the option or the variable that says so. False after a
// sentence.
bool gcap_doctor_folder_take(gcap_doctor_folder_t* out_folder, gcap_doctor_heap_t* heap, const char* from,
                             const char* events);

// Sets the variables that tell the recorder where its files go and of which run they are.
void gcap_doctor_folder_set_environment(const gcap_doctor_folder_t* folder);

// The names that are those of files of events, sorted. Freed by free().
const char** gcap_doctor_folder_list(const gcap_doctor_folder_t* folder, size_t* out_count);

// Opens a file that a process of this run wrote. NULL for another run's, for what is no regular file or a link to one,
// and, after a sentence, for one that cannot be read.
FILE* gcap_doctor_folder_open(const gcap_doctor_folder_t* folder, const char* name);

// Removes files of events and the folder, if it was made for this run. What is no regular file or has another name is
// the program's: it stays, with the folder, and a sentence says so.
void gcap_doctor_folder_close(gcap_doctor_folder_t* folder);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_COMMAND_FOLDER_H_
