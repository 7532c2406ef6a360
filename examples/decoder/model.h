// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// model.h: the decoder's weights and planned products, and one pass over its layers.
#ifndef GCAP_EXAMPLES_DECODER_MODEL_H_
#define GCAP_EXAMPLES_DECODER_MODEL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "examples/decoder/kernels.h"
#include "gcap/graph_holes.h"
#include "gcap/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// The model, for all threads. Nothing of it changes after its creation.
typedef struct model model_t;

// Draws the weights from `seed`, and plans the products for each of `num_buckets` numbers of rows, at most
// DECODER_MAX_ROWS. For the calling thread's stream, which outlives the model: the products use its library handle.
// `*out_model` is to be destroyed also after a failure.
gcap_status_t model_create(gcap_runtime_t* runtime, uint32_t seed, const size_t* buckets, size_t num_buckets,
                           model_t** out_model);
// Call it when all graphs of the model are gone. NULL is fine.
gcap_status_t model_destroy(model_t* model);

gcap_runtime_t* model_runtime(const model_t* model);

// What a pass works on.
typedef struct model_pass {
  size_t rows;  // of a bucket
  bool draws;   // tokens are drawn; else chosen without noise
  decoder_values_t values;
  int32_t* chosen;
  decoder_page_t* pages;
  int32_t* tokens;
  // Attention of each layer, in a hole: [DECODER_LAYERS]. NULL: it is launched as all else.
  const gcap_graph_hole_t* attention;
  // With holes: what attention reads and writes beside the pages, [rows, MODEL_CROSSING_FLOATS] in device memory.
  float* crossing;
} model_pass_t;

enum { MODEL_CROSSING_FLOATS = 4 * DECODER_WIDTH };  // of a row: query, key and value, and what attention makes of them

// Issues one pass: each row of the bucket gets its next token. The intermediates are scratch of the run.
gcap_status_t model_issue(const model_t* model, const model_pass_t* pass, const gcap_run_resources_t* run);
// What the hole of a layer is to call: issues its attention.
gcap_status_t model_attend(const model_pass_t* pass, int layer, const gcap_run_resources_t* run);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_DECODER_MODEL_H_
