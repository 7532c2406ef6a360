// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: what was written on gcap-doctor's command line.
#ifndef GCAP_DOCTOR_COMMAND_OPTIONS_H_
#define GCAP_DOCTOR_COMMAND_OPTIONS_H_

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

// What the command ends with; gcap-doctor run has the program's exit code before these.
enum {
  GCAP_DOCTOR_EXIT_HEALTHY = 0,
  GCAP_DOCTOR_EXIT_FINDING = 1,  // a finding that is an error
  GCAP_DOCTOR_EXIT_MISUSE = 2,
  GCAP_DOCTOR_EXIT_FILE = 3,  // a file could not be read or written, or there is no recording to judge
};

typedef enum gcap_doctor_colour {
  GCAP_DOCTOR_COLOUR_AUTO = 0,  // where it is a terminal
  GCAP_DOCTOR_COLOUR_ALWAYS,
  GCAP_DOCTOR_COLOUR_NEVER,
} gcap_doctor_colour_t;

// The reports that are written into files, each by an option of its own.
typedef enum gcap_doctor_output {
  GCAP_DOCTOR_OUTPUT_HTML = 0,
  GCAP_DOCTOR_OUTPUT_JSON,
  GCAP_DOCTOR_OUTPUT_DOT,
  GCAP_DOCTOR_OUTPUT_TRACE,
  GCAP_DOCTOR_OUTPUT_SARIF,
  GCAP_DOCTOR_OUTPUT_JUNIT,
  GCAP_DOCTOR_NUM_OUTPUTS,
} gcap_doctor_output_t;

// "--html".
extern const char* const gcap_doctor_output_options[GCAP_DOCTOR_NUM_OUTPUTS];

// Files are NULL where none is wanted.
typedef struct gcap_doctor_options {
  const char* command;  // its name
  const char* outputs[GCAP_DOCTOR_NUM_OUTPUTS];
  const char *events, *cupti;
  const char* rule;
  const char* limit_mb;
  gcap_doctor_colour_t colour;
  bool time, quiet, exit_code, text, print_json, help;
  char** rest;  // the program and its arguments, or the files; ends with NULL
  int num_rest;
} gcap_doctor_options_t;

typedef struct gcap_doctor_command {
  const char* name;
  const char* usage;  // what comes after the name
  const char* about;
  const struct gcap_doctor_option* options;
  int num_options;
  bool runs_program;  // options end at the first word that is none
  int (*call)(const gcap_doctor_options_t* options);
} gcap_doctor_command_t;

extern const gcap_doctor_command_t gcap_doctor_commands[];
extern const int gcap_doctor_num_commands;

int gcap_doctor_run(const gcap_doctor_options_t* options);
int gcap_doctor_audit(const gcap_doctor_options_t* options);
int gcap_doctor_explain(const gcap_doctor_options_t* options);
int gcap_doctor_report(const gcap_doctor_options_t* options);
int gcap_doctor_diff(const gcap_doctor_options_t* options);
int gcap_doctor_vet(char** arguments);  // has options of its own

// Reads `arguments` (without the names of program and command; ended by NULL), and moves what is no option to their
// front. Returns false after a sentence on standard error.
bool gcap_doctor_options_read(const gcap_doctor_command_t* command, char** arguments,
                              gcap_doctor_options_t* out_options);

void gcap_doctor_print_help(FILE* out, const gcap_doctor_command_t* command);

// "gcap-doctor: " and the sentence, on standard error.
void gcap_doctor_say(const char* format, ...) __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_COMMAND_OPTIONS_H_
