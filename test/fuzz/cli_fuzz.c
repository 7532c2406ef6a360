// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The command line of the main job. Input: the arguments, one a line.
#include "examples/minimal_ep/digits/cli.h"
#include "test/fuzz/input.h"

enum { kMaxArguments = 24, kMaxArgumentBytes = 64 };

static void check_ranges(const cli_options_t* options) {
  FUZZ_CHECK(options->batch >= 1 && options->batch <= 4096, "%llu", (unsigned long long)options->batch);
  FUZZ_CHECK(options->runs >= 1 && options->runs <= 1000000, "%llu", (unsigned long long)options->runs);
  FUZZ_CHECK(options->threads >= 1 && options->threads <= 64, "%llu", (unsigned long long)options->threads);
  FUZZ_CHECK(options->data_dir == NULL || options->data_dir[0] != '\0', "an empty folder");
  FUZZ_CHECK(options->trace_file == NULL || options->trace_file[0] != '\0', "an empty file");
}

// One sentence, and the defaults.
static void check_refusal(const char* text, size_t bytes, const cli_options_t* options) {
  FUZZ_CHECK(bytes > 2 && strcmp(text + bytes - 2, ".\n") == 0, "'%s'", text);
  char* const nothing[] = {NULL};
  cli_options_t defaults;
  FUZZ_CHECK(cli_parse(0, nothing, stderr, &defaults) == 0, "no arguments are refused");
  FUZZ_CHECK(options->batch == defaults.batch && options->runs == defaults.runs && options->data_dir == NULL &&
                 options->threads == defaults.threads && options->trace_file == NULL && options->seed == 0 &&
                 !options->json && !options->help && !options->async && options->inject_fault == 0,
             "not the defaults");
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  fuzz_input_t input = {data, bytes};
  char texts[kMaxArguments][kMaxArgumentBytes] = {"digits"};
  char* arguments[kMaxArguments + 1] = {texts[0]};
  int count = 1;
  for (; input.left > 0 && count < kMaxArguments; ++count) {
    fuzz_text(&input, '\n', texts[count], kMaxArgumentBytes);
    arguments[count] = texts[count];
  }
  char* text = NULL;
  size_t text_bytes = 0;
  FILE* errors = open_memstream(&text, &text_bytes);
  FUZZ_CHECK(errors != NULL, "no memory");
  cli_options_t options;
  const int code = cli_parse(count, arguments, errors, &options);
  fclose(errors);
  FUZZ_CHECK(code == 0 || code == CLI_USAGE_ERROR, "code %d", code);
  check_ranges(&options);
  if (code == 0) FUZZ_CHECK(text_bytes == 0, "'%s'", text);
  if (code != 0) check_refusal(text, text_bytes, &options);
  free(text);
  return 0;
}
