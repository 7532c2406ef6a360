// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The command line.
//
// The idea: each command has a table of its options, and the reading, the help and the messages come of the tables. An
// option says where its value goes by an offset in the options' struct. Locking: none.
#include "doctor/command/options.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct gcap_doctor_option {
  const char* name;
  const char* value;  // what the help calls it; NULL for an option without a value
  size_t offset;      // of a const char*, or of a bool where there is no value
  const char* about;
} option_t;

#define AT(member) offsetof(gcap_doctor_options_t, member)
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

#define OPTION_COLOUR \
  { "--colour", "auto|always|never", AT(colour), "colour in the text; auto: where it goes to a terminal" }
#define OPTION_HELP \
  { "--help", NULL, AT(help), "this text" }
#define OUTPUT(name, output, about) \
  { name, "FILE", AT(outputs[GCAP_DOCTOR_OUTPUT_##output]), about }
#define OPTIONS_OUTPUT                                                         \
  OUTPUT("--json", JSON, "all findings, captures and graphs as JSON"),         \
      OUTPUT("--html", HTML, "one page with timeline, graphs and findings"),   \
      OUTPUT("--dot", DOT, "the graphs in Graphviz's language"),               \
      OUTPUT("--trace", TRACE, "calls and captures over time, for Perfetto"),  \
      OUTPUT("--sarif", SARIF, "the findings as SARIF 2.1.0, for code hosts"), \
      OUTPUT("--junit", JUNIT, "the findings as JUnit's XML, for CI systems")

const char* const gcap_doctor_output_options[GCAP_DOCTOR_NUM_OUTPUTS] = {"--html",  "--json",  "--dot",
                                                                         "--trace", "--sarif", "--junit"};

static const option_t kRunOptions[] = {
    {"--time", NULL, AT(time), "measure the device time of each node of a graph; costs more"},
    {"--events", "PREFIX", AT(events), "keep the events of each process in PREFIX.PID.events"},
    OPTIONS_OUTPUT,
    {"--cupti", "PATH", AT(cupti), "the libcupti.so to take; otherwise the first that is found"},
    {"--limit-mb", "N", AT(limit_mb), "the most that a process writes of events, in megabytes"},
    {"--exit-code", NULL, AT(exit_code),
     "if the program ended with 0, end with 1 for an error finding, with 3 where nothing was recorded"},
    {"--quiet", NULL, AT(quiet), "no report on standard error"},
    OPTION_COLOUR,
    OPTION_HELP,
};

static const option_t kExplainOptions[] = {
    {"--rule", "ID", AT(rule), "the page of a rule, such as R11"},
    {"--json", NULL, AT(print_json), "JSON in place of text"},
    OPTION_COLOUR,
    OPTION_HELP,
};

static const option_t kReportOptions[] = {
    OPTIONS_OUTPUT,
    {"--text", NULL, AT(text), "the text of explain, on standard output"},
    OPTION_COLOUR,
    OPTION_HELP,
};

static const option_t kDiffOptions[] = {
    OPTION_HELP,
};

const gcap_doctor_command_t gcap_doctor_commands[] = {
    {"run", "[OPTION...] [--] PROGRAM [ARGUMENT...]",
     "Runs the program, and says on standard error why its captures failed. Ends with the program's exit code, or 128\n"
     "and the signal's number; with 127 where there is no such program.",
     kRunOptions, COUNT(kRunOptions), true, gcap_doctor_run},
    {"audit", "[OPTION...] [--] PROGRAM [ARGUMENT...]",
     "Runs the program as run does, and says at each launch of a graph, and in the report, whether the graph uses "
     "memory\n"
     "that was freed since.",
     kRunOptions, COUNT(kRunOptions), true, gcap_doctor_audit},
    {"explain", "[OPTION...] FILE...  or  --rule ID",
     "Says on standard output what went wrong in files of events or in a simulator's log; '-' is standard input.",
     kExplainOptions, COUNT(kExplainOptions), false, gcap_doctor_explain},
    {"report", "FILE... --html|--json|--dot|--trace|--sarif|--junit FILE, or --text",
     "Writes reports of files of events; '-' is standard input, or standard output for a report.", kReportOptions,
     COUNT(kReportOptions), false, gcap_doctor_report},
    {"diff", "FILE FILE",
     "Says on standard output how the second file of events differs from the first. Ends with 0 where they are alike,\n"
     "with 1 where they differ, and with 2 where they cannot be compared.",
     kDiffOptions, COUNT(kDiffOptions), false, gcap_doctor_diff},
};
const int gcap_doctor_num_commands = COUNT(gcap_doctor_commands);

void gcap_doctor_say(const char* format, ...) {
  va_list args;
  va_start(args, format);
  fputs("gcap-doctor: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
}

// --- Reading ---------------------------------------------------------------------------------------------------------

static const option_t* find_option(const gcap_doctor_command_t* command, const char* word, size_t length) {
  for (int i = 0; i < command->num_options; ++i) {
    const option_t* option = &command->options[i];
    if (strlen(option->name) == length && strncmp(option->name, word, length) == 0) return option;
  }
  return NULL;
}

static void say_unknown(const gcap_doctor_command_t* command, const char* word) {
  fprintf(stderr, "gcap-doctor: %s: '%s' is no option of it: expected one of", command->name, word);
  for (int i = 0; i < command->num_options; ++i) {
    fprintf(stderr, "%s %s", i != 0 ? "," : "", command->options[i].name);
  }
  fputc('\n', stderr);
}

static bool set_colour(const gcap_doctor_command_t* command, const char* value, gcap_doctor_colour_t* out_colour) {
  static const char* const kNames[] = {"auto", "always", "never"};
  for (int i = 0; i < COUNT(kNames); ++i) {
    if (strcmp(value, kNames[i]) == 0) {
      *out_colour = (gcap_doctor_colour_t)i;
      return true;
    }
  }
  gcap_doctor_say("%s: --colour is '%s': expected auto, always or never", command->name, value);
  return false;
}

static bool set_value(const gcap_doctor_command_t* command, const option_t* option, const char* value,
                      gcap_doctor_options_t* options) {
  if (value == NULL || value[0] == '\0') {
    gcap_doctor_say("%s: %s has no value: expected %s", command->name, option->name, option->value);
    return false;
  }
  if (option->offset == AT(colour)) return set_colour(command, value, &options->colour);
  memcpy((char*)options + option->offset, &value, sizeof(value));
  return true;
}

// Reads the option at *at, and its value, which may be the next word; *at moves on.
static bool read_option(const gcap_doctor_command_t* command, char** arguments, int* at,
                        gcap_doctor_options_t* options) {
  const char* word = arguments[*at];
  size_t length = strcspn(word, "=");
  const option_t* option = find_option(command, strcmp(word, "-h") == 0 ? "--help" : word,
                                       strcmp(word, "-h") == 0 ? strlen("--help") : length);
  if (option == NULL) {
    say_unknown(command, word);
    return false;
  }
  const char* value = word[length] == '=' ? word + length + 1 : NULL;
  ++*at;
  if (option->value != NULL) {
    if (value == NULL && arguments[*at] != NULL) value = arguments[(*at)++];
    return set_value(command, option, value, options);
  }
  if (value != NULL) {
    gcap_doctor_say("%s: %s is '%s': expected no value", command->name, option->name, value);
    return false;
  }
  *(bool*)((char*)options + option->offset) = true;
  return true;
}

bool gcap_doctor_options_read(const gcap_doctor_command_t* command, char** arguments,
                              gcap_doctor_options_t* out_options) {
  *out_options = (gcap_doctor_options_t){.command = command->name, .rest = arguments};
  int at = 0, kept = 0;
  bool ended = false;
  while (arguments[at] != NULL) {
    const char* word = arguments[at];
    if (!ended && strcmp(word, "--") == 0) {
      ended = true;
      ++at;
    } else if (!ended && word[0] == '-' && word[1] != '\0') {
      if (!read_option(command, arguments, &at, out_options)) return false;
    } else {
      ended = ended || command->runs_program;
      arguments[kept++] = arguments[at++];
    }
  }
  arguments[kept] = NULL;
  out_options->num_rest = kept;
  return true;
}

// --- Help ------------------------------------------------------------------------------------------------------------

void gcap_doctor_print_help(FILE* out, const gcap_doctor_command_t* command) {
  fprintf(out, "gcap-doctor %s %s\n\n%s\n\n", command->name, command->usage, command->about);
  for (int i = 0; i < command->num_options; ++i) {
    const option_t* option = &command->options[i];
    const char* value = option->value != NULL ? option->value : "";
    int width = fprintf(out, "  %s%s%s", option->name, value[0] != '\0' ? " " : "", value);
    fprintf(out, "%*s%s\n", width < 28 ? 28 - width : 1, "", option->about);
  }
}
