// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cli.h: the program's command line, from arguments to a checked struct.
#ifndef GCAP_EXAMPLES_MINIMAL_EP_DIGITS_CLI_H_
#define GCAP_EXAMPLES_MINIMAL_EP_DIGITS_CLI_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

// The exit code of a run that was asked for wrongly.
#define CLI_USAGE_ERROR 2

// cli_options_t: what the command line asks for. Filled by cli_parse.
// Thread:   read only once filled, so any number of threads may share it
// Lifetime: the caller's; the texts point into argv
typedef struct cli_options {
  bool help;
  bool json;
  const char* data_dir;  // never empty; NULL: the data beside the program
  uint64_t batch;        // images a run, 1..4096
  uint64_t runs;         // 1..1000000
  uint64_t threads;      // 1..64
  uint64_t device;       // 0..63
  bool no_graph;
  bool holes;
  bool async;
  bool user_stream;
  bool external_allocator;
  const char* trace_file;  // never empty; NULL: none
  uint64_t seed;           // any; 0 by default, as in the simulator
  uint64_t inject_fault;   // the call that fails, counted from 1; 0: none
} cli_options_t;

// Reads `argv[1..argc)`, each flag as `--flag`, `--flag value` or `--flag=value`; of a flag given twice the last
// counts. Returns 0, or CLI_USAGE_ERROR after writing one sentence to `error_stream` that names the flag, the value and
// what is allowed: an unknown flag, an argument that is no flag, a value that is missing, that a flag does not take, or
// that is out of range. `out_options` then holds the defaults.
int cli_parse(int argc, char* const* argv, FILE* error_stream, cli_options_t* out_options);

// Writes the usage: one line a flag.
void cli_print_help(FILE* stream);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MINIMAL_EP_DIGITS_CLI_H_
