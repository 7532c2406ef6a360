// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// decoder: decodes sequences with a small transformer, by graphs that are captured once for each bucket, and prints one
// JSON object: the tokens of each sequence, and what the runs were. The same options with --eager, or with --holes,
// give the same tokens. docs/serving.md is its page. step.c is what an engine needs of gcap; begin there. batch.c says
// who is decoded, cache.c where keys and values are, model.c what a pass is, kernels.h what is launched, serve.c what a
// thread does.
//
// Exit codes: 0, all well; 1, something failed; 2, wrong options.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/decoder/serve.h"

#define TRY(call)                                                     \
  do {                                                                \
    gcap_status_t status_ = (call);                                   \
    if (status_ != NULL) {                                            \
      fprintf(stderr, "decoder: %s\n", gcap_status_message(status_)); \
      return 1;                                                       \
    }                                                                 \
  } while (0)

enum { USAGE_ERROR = 2, MAX_SEQUENCES = 4096 };

// --- Options --------------------------------------------------------------------------------------------------------

typedef struct number {
  const char* name;
  long least, most, value;
  const char* explanation;
} number_t;

enum { SEQUENCES, STEPS, THREADS, SEED, MOVE, GRAPHS, MEMORY, NUM_NUMBERS };

static number_t numbers[NUM_NUMBERS] = {
    [SEQUENCES] = {"--sequences", 1, MAX_SEQUENCES, 16, "how many sequences are decoded"},
    [STEPS] = {"--steps", 1, 1000000, 100000, "the most steps of each thread; what is not done by then is cut off"},
    [THREADS] = {"--threads", 1, SERVE_MAX_THREADS, 1, "host threads, each with a batch and graphs of its own"},
    [SEED] = {"--seed", 0, 1000000, 1, "of the weights and the sequences"},
    [MOVE] = {"--move", 0, 1000000, 7, "after so many steps the pool of pages moves elsewhere; 0: never"},
    [GRAPHS] = {"--graphs", 0, 1000000, 0, "the most graphs that each thread keeps; 0: no limit"},
    [MEMORY] = {"--memory", 0, 1 << 30, 0, "the most scratch memory in KiB; 0: no limit"},
};

static int print_help(void) {
  printf("decoder decodes sequences with a small transformer, and prints their tokens as JSON.\n");
  printf("  --eager         capture nothing\n");
  printf("  --holes         attention is in holes: a function launches it, between the segments of a graph\n");
  for (int i = 0; i < NUM_NUMBERS; ++i) {
    const number_t* number = &numbers[i];
    printf("  %-11s N   %s (%ld..%ld, default %ld)\n", number->name, number->explanation, number->least, number->most,
           number->value);
  }
  return 0;
}

// Reads the value of an option; false, with a message, if it is not allowed.
static bool read_number(number_t* number, const char* text) {
  char* end = NULL;
  errno = 0;
  const long value = text != NULL ? strtol(text, &end, 10) : 0;
  if (text != NULL && end != text && *end == '\0' && errno == 0 && value >= number->least && value <= number->most) {
    number->value = value;
    return true;
  }
  fprintf(stderr, "decoder: %s is '%s', allowed are whole numbers from %ld to %ld\n", number->name,
          text != NULL ? text : "", number->least, number->most);
  return false;
}

static number_t* find_number(const char* name) {
  for (int i = 0; i < NUM_NUMBERS; ++i) {
    if (strcmp(numbers[i].name, name) == 0) return &numbers[i];
  }
  return NULL;
}

static bool parse(int argc, char** argv, bool* out_is_eager, bool* out_has_holes) {
  for (int i = 1; i < argc; ++i) {
    const bool is_eager = strcmp(argv[i], "--eager") == 0, has_holes = strcmp(argv[i], "--holes") == 0;
    *out_is_eager |= is_eager;
    *out_has_holes |= has_holes;
    if (is_eager || has_holes) continue;
    number_t* number = find_number(argv[i]);
    if (number == NULL) {
      fprintf(stderr, "decoder: unknown option '%s', allowed are those of --help\n", argv[i]);
      return false;
    }
    if (!read_number(number, argv[++i])) return false;
  }
  return true;
}

// --- The report -----------------------------------------------------------------------------------------------------

static void print_sequence(const sequence_t* sequence, bool is_last) {
  printf("  [");
  for (int i = 0; i < sequence->num_tokens; ++i) printf("%s%d", i > 0 ? ", " : "", (int)sequence->tokens[i]);
  printf("]%s\n", is_last ? "" : ",");
}

static void print(const serve_report_t* report, const sequence_t* sequences, int count) {
  int num_tokens = 0;
  for (int i = 0; i < count; ++i) num_tokens += sequences[i].num_tokens;
  printf("{\"tokens\": [\n");
  for (int i = 0; i < count; ++i) print_sequence(&sequences[i], i == count - 1);
  printf("], \"num_tokens\": %d, \"tokens_per_second\": %.0f,\n", num_tokens, num_tokens / report->seconds);
  const step_counts_t* runs = &report->runs;
  printf("\"steps\": %d, \"eager_runs\": %d, \"captures\": %d, \"replays\": %d, \"evictions\": %d, \"holes\": %d,\n",
         report->steps, runs->eager, runs->captured, runs->replayed, runs->evicted, runs->holes);
  printf("\"pool_growths\": %d, \"pool_moves\": %d, \"page_moves\": %d, \"memory_bytes\": %zu}\n",
         report->cache.growths, report->cache.pool_moves, report->cache.page_moves, report->memory_bytes);
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--help") == 0) return print_help();
  bool is_eager = false, has_holes = false;
  if (!parse(argc, argv, &is_eager, &has_holes)) return USAGE_ERROR;
  const serve_options_t options = {
      .num_sequences = (int)numbers[SEQUENCES].value,
      .num_steps = (int)numbers[STEPS].value,
      .num_threads = (int)numbers[THREADS].value,
      .is_eager = is_eager,
      .attends_in_holes = has_holes,
      .seed = (uint32_t)numbers[SEED].value,
      .steps_between_moves = (int)numbers[MOVE].value,
      .max_graphs = (size_t)numbers[GRAPHS].value,
      .memory_limit_bytes = (size_t)numbers[MEMORY].value << 10,
  };
  static sequence_t sequences[MAX_SEQUENCES];
  serve_report_t report;
  TRY(serve(&options, sequences, &report));
  print(&report, sequences, options.num_sequences);
  return 0;
}
