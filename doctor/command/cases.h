// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cases.h: files of events, each with its diagnosis, and the reports of them.
#ifndef GCAP_DOCTOR_COMMAND_CASES_H_
#define GCAP_DOCTOR_COMMAND_CASES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "doctor/analyse/diagnosis.h"
#include "doctor/command/options.h"
#include "doctor/events/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_doctor_case {
  const char* name;  // of the file
  gcap_doctor_recording_t* recording;
  gcap_doctor_diagnosis_t* diagnosis;
} gcap_doctor_case_t;

// Cases, the worst first once they are sorted.
typedef struct gcap_doctor_cases {
  gcap_doctor_heap_t heap;
  gcap_doctor_case_t* items;
  size_t count, capacity;
} gcap_doctor_cases_t;

void gcap_doctor_cases_init(gcap_doctor_cases_t* cases);
void gcap_doctor_cases_deinit(gcap_doctor_cases_t* cases);

// Reads the file, '-' for standard input, and adds its case, which has no symbols yet. A file that cannot be read, or
// is none of events, gets a sentence and false.
bool gcap_doctor_cases_add(gcap_doctor_cases_t* cases, const char* path);
// The same of a file that is open, which it closes unless that is standard input.
bool gcap_doctor_cases_add_file(gcap_doctor_cases_t* cases, const char* name, FILE* file);

// Adds the case of a program of which there is no file: its report has the note, and nothing else.
void gcap_doctor_cases_add_empty(gcap_doctor_cases_t* cases, const char* program, bool ended, const char* note);

// Whether calls of the process were watched, be it that it made none: a recorder that could not work leaves only notes.
bool gcap_doctor_case_is_recorded(const gcap_doctor_case_t* of);

// Drops cases that have neither captures nor errors, but one where there are no others. Returns how many.
size_t gcap_doctor_cases_drop_idle(gcap_doctor_cases_t* cases);

// When all are added: those with an error before the others, and those with captures before those without; and, in this
// order and in the time that one report has for it, their symbols.
void gcap_doctor_cases_finish(gcap_doctor_cases_t* cases);

// GCAP_DOCTOR_EXIT_FINDING if there is an error in one of them, else GCAP_DOCTOR_EXIT_HEALTHY.
int gcap_doctor_cases_exit_code(const gcap_doctor_cases_t* cases);

// The text of each.
void gcap_doctor_cases_print(FILE* out, const gcap_doctor_cases_t* cases, gcap_doctor_colour_t colour);
// One object, or an array of them.
void gcap_doctor_cases_print_json(FILE* out, const gcap_doctor_cases_t* cases);

// Writes the files that the options want: the first case into the file of that name, each other one into a file with
// its number: page.html, page.2.html. False after a sentence for a file that cannot be written.
bool gcap_doctor_cases_write(const gcap_doctor_cases_t* cases, const gcap_doctor_options_t* options);

// Tries whether the files that the options want can be written, before hours of work for them. Leaves no file behind.
bool gcap_doctor_can_write(const gcap_doctor_options_t* options);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_COMMAND_CASES_H_
