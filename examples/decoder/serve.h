// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// serve.h: decodes sequences on some threads.
#ifndef GCAP_EXAMPLES_DECODER_SERVE_H_
#define GCAP_EXAMPLES_DECODER_SERVE_H_

#include "examples/decoder/batch.h"
#include "examples/decoder/cache.h"
#include "examples/decoder/step.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SERVE_MAX_THREADS = 8 };

typedef struct serve_options {
  int num_sequences;
  int num_steps;    // of each thread, at most
  int num_threads;  // 1..SERVE_MAX_THREADS; sequence i is decoded by thread i modulo this
  bool is_eager;    // captures nothing
  bool attends_in_holes;
  uint32_t seed;
  int steps_between_moves;    // after so many steps a thread moves its pool elsewhere; 0: never
  size_t max_graphs;          // of each thread; 0: no limit
  size_t memory_limit_bytes;  // of all scratch; 0: no limit
} serve_options_t;

typedef struct serve_report {
  int steps;  // of all threads, as the counts
  step_counts_t runs;
  cache_counts_t cache;
  size_t memory_bytes;  // that the arena holds at the end
  double seconds;       // from the start of the threads to their ends
} serve_report_t;

// Decodes `options->num_sequences` sequences, which this function draws.
gcap_status_t serve(const serve_options_t* options, sequence_t* out_sequences, serve_report_t* out_report);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_DECODER_SERVE_H_
