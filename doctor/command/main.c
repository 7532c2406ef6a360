// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap-doctor: why did my capture fail. docs/doctor.md is its manual.
#include <string.h>

#include "doctor/command/options.h"
#include "gcap/version.h"

static void print_help(FILE* out) {
  fputs(
      "gcap-doctor: why did my capture fail, for any program\n\n"
      "  gcap-doctor run -- python serve.py      runs a program, and names the call that broke its capture\n"
      "  gcap-doctor audit -- python serve.py    the same, and each launch on memory that was freed is told\n"
      "  gcap-doctor explain FILE...             the same of events that were recorded, or of a simulator's log\n"
      "  gcap-doctor explain --rule R11          the page of a rule\n"
      "  gcap-doctor report FILE --html PAGE     a page; JSON, SARIF, JUnit's XML, a trace for Perfetto and more "
      "likewise\n"
      "  gcap-doctor diff FILE FILE              how a second recording differs from a first one\n"
      "  gcap-doctor vet tests/                  tests of captures that prove nothing, found in their source; needs "
      "Python\n"
      "  gcap-doctor COMMAND --help              all options of a command\n"
      "  gcap-doctor --version\n\n"
      "Exit codes: 0 nothing wrong was found; 1 an error was found; 2 the command line is wrong; 3 a file cannot be "
      "read\n"
      "or written. gcap-doctor run ends with the program's exit code.\n",
      out);
}

static const gcap_doctor_command_t* find_command(const char* name) {
  for (int i = 0; i < gcap_doctor_num_commands; ++i) {
    if (strcmp(gcap_doctor_commands[i].name, name) == 0) return &gcap_doctor_commands[i];
  }
  return NULL;
}

static int call_command(const gcap_doctor_command_t* command, char** arguments) {
  gcap_doctor_options_t options;
  if (!gcap_doctor_options_read(command, arguments, &options)) return GCAP_DOCTOR_EXIT_MISUSE;
  if (options.help) {
    gcap_doctor_print_help(stdout, command);
    return GCAP_DOCTOR_EXIT_HEALTHY;
  }
  return command->call(&options);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    print_help(stderr);
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  if (strcmp(argv[1], "vet") == 0) return gcap_doctor_vet(argv + 2);
  const gcap_doctor_command_t* command = find_command(argv[1]);
  if (command != NULL) return call_command(command, argv + 2);
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
    print_help(stdout);
  } else if (strcmp(argv[1], "--version") == 0) {
    printf("gcap-doctor %d.%d.%d\n", GCAP_VERSION_MAJOR, GCAP_VERSION_MINOR, GCAP_VERSION_PATCH);
  } else {
    gcap_doctor_say("'%s' is no command: expected run, audit, explain, report, diff, vet, --help or --version",
                    argv[1]);
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  return GCAP_DOCTOR_EXIT_HEALTHY;
}
