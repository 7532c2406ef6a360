// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One table says everything about a flag: where its value goes, what is allowed and how --help explains it. Parser and
// help both walk the table, so a flag cannot be in one and not in the other. No state, no locking.
#include "examples/minimal_ep/digits/cli.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

typedef enum flag_kind {
  FLAG_SWITCH = 0,  // bool, takes no value
  FLAG_TEXT,        // const char*, not empty
  FLAG_NUMBER,      // uint64_t in min..max
} flag_kind_t;

typedef struct flag {
  const char* name;
  flag_kind_t kind;
  size_t offset;  // of the field in cli_options_t
  uint64_t min;
  uint64_t max;
  uint64_t preset;         // a number's default
  const char* value_name;  // shown by --help
  const char* allowed;     // in words; NULL for a number
  const char* explanation;
} flag_t;

#define SWITCH(name, field, explanation) \
  { name, FLAG_SWITCH, offsetof(cli_options_t, field), 0, 0, 0, "", "the flag alone", explanation }
#define TEXT(name, field, value_name, allowed, explanation) \
  { name, FLAG_TEXT, offsetof(cli_options_t, field), 0, 0, 0, value_name, allowed, explanation }
#define NUMBER(name, field, min, max, preset, explanation) \
  { name, FLAG_NUMBER, offsetof(cli_options_t, field), min, max, preset, "N", NULL, explanation }

static const flag_t kFlags[] = {
    SWITCH("--help", help, "print this text and exit"),
    SWITCH("--json", json, "print one JSON object instead of the table"),
    TEXT("--data", data_dir, "DIR", "a directory",
         "read weights and images from DIR instead of the program's own data"),
    NUMBER("--batch", batch, 1, 4096, 32, "images in one run"),
    NUMBER("--runs", runs, 1, 1000000, 200, "timed runs, eager and replayed, of each thread"),
    NUMBER("--threads", threads, 1, 64, 1, "host threads, each with its own stream and graph"),
    NUMBER("--device", device, 0, 63, 0, "the CUDA device to run on"),
    SWITCH("--no-graph", no_graph, "run eagerly only: capture nothing"),
    SWITCH("--holes", holes, "compute what the CPU can compute there, in holes of the graph"),
    SWITCH("--async", async, "do not synchronise inside a run; the caller waits for the stream"),
    SWITCH("--user-stream", user_stream, "run on a stream that the program made, not the provider"),
    SWITCH("--external-allocator", external_allocator, "take device memory from the program's own callbacks"),
    TEXT("--trace-file", trace_file, "FILE", "a file", "write each allocation and free of scratch memory to FILE"),
    NUMBER("--seed", seed, 0, UINT64_MAX, 0, "order in which the simulator runs ready work; no effect on a GPU"),
    NUMBER("--inject-fault", inject_fault, 0, UINT64_MAX, 0,
           "make the Nth CUDA call from the making of the provider on fail; simulator only"),
};
#define FLAG_COUNT (sizeof kFlags / sizeof kFlags[0])

// The flag that `argument` names, up to a '=' if it has one; NULL if there is none.
static const flag_t* find_flag(const char* argument) {
  const size_t length = strcspn(argument, "=");
  for (size_t i = 0; i < FLAG_COUNT; ++i) {
    if (strlen(kFlags[i].name) == length && strncmp(kFlags[i].name, argument, length) == 0) return &kFlags[i];
  }
  return NULL;
}

// Decimal digits only: no sign, no space, no exponent.
static bool parse_number(const char* text, uint64_t* out) {
  uint64_t value = 0;
  for (const char* at = text; *at != '\0'; ++at) {
    if (*at < '0' || *at > '9') return false;
    const uint64_t digit = (uint64_t)(*at - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return *text != '\0';
}

// Ends a sentence about a flag with what it allows.
static int allowed_error(FILE* stream, const flag_t* flag) {
  if (flag->kind == FLAG_NUMBER) {
    fprintf(stream, ", allowed are whole numbers from %" PRIu64 " to %" PRIu64 ".\n", flag->min, flag->max);
  } else {
    fprintf(stream, ", allowed is %s.\n", flag->allowed);
  }
  return CLI_USAGE_ERROR;
}

static int value_error(FILE* stream, const flag_t* flag, const char* value) {
  fprintf(stream, "%s is '%s'", flag->name, value);
  return allowed_error(stream, flag);
}

static int missing_error(FILE* stream, const flag_t* flag) {
  fprintf(stream, "%s has no value", flag->name);
  return allowed_error(stream, flag);
}

static int unknown_error(FILE* stream, const char* argument) {
  const bool is_flag = argument[0] == '-';
  fprintf(stream, "%s '%s', allowed are the flags that --help lists.\n", is_flag ? "unknown flag" : "stray argument",
          argument);
  return CLI_USAGE_ERROR;
}

// Checks and stores a value; NULL for a switch. False if it is not allowed.
static bool store(const flag_t* flag, const char* value, cli_options_t* options) {
  char* field = (char*)options + flag->offset;
  if (flag->kind == FLAG_SWITCH) {
    *(bool*)field = true;
    return value == NULL;
  }
  if (flag->kind == FLAG_TEXT) {
    *(const char**)field = value;
    return *value != '\0';
  }
  uint64_t* number = (uint64_t*)field;
  return parse_number(value, number) && *number >= flag->min && *number <= flag->max;
}

static cli_options_t default_options(void) {
  cli_options_t options = {0};
  for (size_t i = 0; i < FLAG_COUNT; ++i) {
    if (kFlags[i].kind == FLAG_NUMBER) *(uint64_t*)((char*)&options + kFlags[i].offset) = kFlags[i].preset;
  }
  return options;
}

int cli_parse(int argc, char* const* argv, FILE* error_stream, cli_options_t* out_options) {
  *out_options = default_options();
  cli_options_t options = *out_options;
  for (int i = 1; i < argc; ++i) {
    const flag_t* flag = find_flag(argv[i]);
    if (flag == NULL) return unknown_error(error_stream, argv[i]);
    const char* equals = strchr(argv[i], '=');
    const char* value = equals == NULL ? NULL : equals + 1;
    if (flag->kind != FLAG_SWITCH && value == NULL) {
      // What looks like a flag is one: a directory called --x is given as --data=--x.
      if (i + 1 >= argc || strncmp(argv[i + 1], "--", 2) == 0) return missing_error(error_stream, flag);
      value = argv[++i];
    }
    if (!store(flag, value, &options)) return value_error(error_stream, flag, value);
  }
  *out_options = options;
  return 0;
}

void cli_print_help(FILE* stream) {
  fprintf(stream, "digits classifies handwritten digits through an execution provider that captures a CUDA graph.\n");
  for (size_t i = 0; i < FLAG_COUNT; ++i) {
    const flag_t* flag = &kFlags[i];
    const int width = 22 - (int)strlen(flag->name);  // the longest name and a space to the value's name
    fprintf(stream, "  %s %-*s%s", flag->name, width, flag->value_name, flag->explanation);
    if (flag->kind == FLAG_NUMBER && flag->max == UINT64_MAX) {
      fprintf(stream, " (default %" PRIu64 ")", flag->preset);
    } else if (flag->kind == FLAG_NUMBER) {
      fprintf(stream, " (%" PRIu64 "..%" PRIu64 ", default %" PRIu64 ")", flag->min, flag->max, flag->preset);
    }
    fputc('\n', stream);
  }
}
