// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Einsum: the equation, as numpy.einsum has it. "ij,jk->ik" names each axis of each operand with a letter, and then
// those of the output; "..." stands for the axes that have no letter, aligned at the last one. Without "->" the output
// has the axes of the ellipses, and then the letters that are there once, in the order of ASCII.

#include "kit/shape/einsum.h"

#include <stdbool.h>
#include <string.h>

#include "kit/shape/infer.h"

enum { NUM_LETTERS = 52, ELLIPSIS = NUM_LETTERS };

// The number of a letter, in the order of ASCII; -1: it is none.
static int label_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  return c >= 'a' && c <= 'z' ? 26 + (c - 'a') : -1;
}

// What stands between commas: letters, and at most one ellipsis before letter `ellipsis_at`, or none: -1.
typedef struct written {
  int num_letters;
  uint8_t letters[GCAP_MAX_RANK];
  int ellipsis_at;
} written_t;

// Reads up to a comma, an arrow or the end; moves `*at` there.
static const char* read_term(const char** at, written_t* out_term) {
  *out_term = (written_t){.ellipsis_at = -1};
  const char* c = *at;
  for (; *c != 0 && *c != ',' && *c != '-'; ++c) {
    if (*c == ' ') continue;
    if (strncmp(c, "...", 3) == 0) {
      if (out_term->ellipsis_at >= 0) return "has two ellipses for one tensor";
      out_term->ellipsis_at = out_term->num_letters;
      c += 2;
      continue;
    }
    const int label = label_of(*c);
    if (label < 0) return "has a sign that is no letter, no ellipsis, no comma and no arrow";
    if (out_term->num_letters == GCAP_MAX_RANK) return "has more than 8 letters for one tensor";
    out_term->letters[out_term->num_letters++] = (uint8_t)label;
  }
  *at = c;
  return NULL;
}

// The labels of a tensor whose ellipsis is `axes` axes, the last ones of those that ellipses have.
static const char* expand(const written_t* term, int axes, gcap_einsum_term_t* out_term) {
  *out_term = (gcap_einsum_term_t){0};
  if (term->num_letters + axes > GCAP_MAX_RANK) return "gives a tensor more than 8 dimensions";
  for (int i = 0; i <= term->num_letters; ++i) {
    for (int k = 0; i == term->ellipsis_at && k < axes; ++k) {
      out_term->labels[out_term->rank++] = (uint8_t)(ELLIPSIS + GCAP_MAX_RANK - axes + k);
    }
    if (i < term->num_letters) out_term->labels[out_term->rank++] = term->letters[i];
  }
  return NULL;
}

static const char* read_operand(const char** at, int rank, gcap_einsum_term_t* out_term, int* most_axes) {
  written_t term;
  const char* wrong = read_term(at, &term);
  if (wrong != NULL) return wrong;
  const int axes = rank - term.num_letters;
  if (axes < 0 || (axes > 0 && term.ellipsis_at < 0)) return "has another number of letters than an input has axes";
  if (axes > *most_axes) *most_axes = axes;
  return expand(&term, axes, out_term);
}

static void count_labels(const gcap_einsum_t* einsum, int counts[GCAP_EINSUM_MAX_LABELS]) {
  memset(counts, 0, GCAP_EINSUM_MAX_LABELS * sizeof(*counts));
  for (int i = 0; i < einsum->num_operands; ++i) {
    for (int axis = 0; axis < einsum->operands[i].rank; ++axis) ++counts[einsum->operands[i].labels[axis]];
  }
}

// The output that an equation without an arrow means.
static const char* imply_output(const gcap_einsum_t* einsum, int axes, gcap_einsum_term_t* out) {
  int counts[GCAP_EINSUM_MAX_LABELS];
  written_t term = {.ellipsis_at = 0};
  count_labels(einsum, counts);
  for (int label = 0; label < NUM_LETTERS; ++label) {
    if (counts[label] != 1) continue;
    if (term.num_letters == GCAP_MAX_RANK) return "gives a tensor more than 8 dimensions";
    term.letters[term.num_letters++] = (uint8_t)label;
  }
  return expand(&term, axes, out);
}

static const char* read_output(const char* at, int axes, gcap_einsum_t* einsum) {
  written_t term;
  const char* wrong = read_term(&at, &term);
  if (wrong != NULL) return wrong;
  if (*at != 0) return "has something behind the output";
  if (axes > 0 && term.ellipsis_at < 0) return "has an ellipsis, and none in the output";
  wrong = expand(&term, axes, &einsum->out);
  if (wrong != NULL) return wrong;
  int counts[GCAP_EINSUM_MAX_LABELS];
  bool is_there[GCAP_EINSUM_MAX_LABELS] = {false};
  count_labels(einsum, counts);
  for (int axis = 0; axis < einsum->out.rank; ++axis) {
    const int label = einsum->out.labels[axis];
    if (counts[label] == 0) return "has a letter in the output that no input has";
    if (is_there[label]) return "has a letter twice in the output";
    is_there[label] = true;
  }
  return NULL;
}

const char* gcap_einsum_parse(const char* equation, const int* ranks, int num_operands, gcap_einsum_t* out_einsum) {
  *out_einsum = (gcap_einsum_t){.num_operands = num_operands};
  const char* at = equation;
  int axes = 0;
  if (num_operands < 1 || num_operands > GCAP_EINSUM_MAX_OPERANDS) return "has more than 8 operands";
  for (int i = 0; i < num_operands; ++i) {
    const char* wrong = read_operand(&at, ranks[i], &out_einsum->operands[i], &axes);
    if (wrong != NULL) return wrong;
    if ((*at == ',') != (i + 1 < num_operands)) return "has another number of operands than there are inputs";
    if (*at == ',') ++at;
  }
  if (*at == 0) return imply_output(out_einsum, axes, &out_einsum->out);
  if (strncmp(at, "->", 2) != 0) return "has a hyphen that is no arrow";
  return read_output(at + 2, axes, out_einsum);
}

// Takes the size of one axis. Within one operand equal labels have equal sizes: the diagonal.
static gcap_status_t take_size(const gcap_node_t* node, const gcap_einsum_t* einsum, int input, int axis,
                               const gcap_tensor_t* tensor, int64_t* sizes) {
  const uint8_t* labels = einsum->operands[input].labels;
  const int64_t size = tensor->shape[axis];
  int64_t* known = &sizes[labels[axis]];
  bool fits = *known == GCAP_DIM_INFERRED || *known == 1 || size == 1 || size == *known;
  for (int other = 0; other < axis; ++other) fits &= labels[other] != labels[axis] || tensor->shape[other] == size;
  if (!fits) {
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input %d is %lld, another one of its letter in '%s' is not", axis,
                             input, (long long)size, gcap_node_string(node, "equation", ""));
  }
  if (*known == GCAP_DIM_INFERRED || *known == 1) *known = size;
  return NULL;
}

gcap_status_t gcap_einsum_read(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_einsum_t* out_einsum,
                               int64_t out_sizes[GCAP_EINSUM_MAX_LABELS]) {
  const char* equation = gcap_node_string(node, "equation", "");
  int ranks[GCAP_EINSUM_MAX_OPERANDS] = {0};
  for (int i = 0; i < node->num_inputs && i < GCAP_EINSUM_MAX_OPERANDS; ++i) ranks[i] = inputs[i].rank;
  const char* wrong = gcap_einsum_parse(equation, ranks, node->num_inputs, out_einsum);
  if (wrong != NULL) return GCAP_SHAPE_REFUSE(node, "the equation '%s' %s", equation, wrong);
  for (int label = 0; label < GCAP_EINSUM_MAX_LABELS; ++label) out_sizes[label] = GCAP_DIM_INFERRED;
  for (int i = 0; i < node->num_inputs; ++i) {
    for (int axis = 0; axis < inputs[i].rank; ++axis) {
      GCAP_RETURN_IF_ERROR(take_size(node, out_einsum, i, axis, &inputs[i], out_sizes));
    }
  }
  return NULL;
}

gcap_status_t gcap_infer_einsum(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_einsum_t einsum;
  int64_t sizes[GCAP_EINSUM_MAX_LABELS];
  GCAP_RETURN_IF_ERROR(gcap_einsum_read(node, inputs, &einsum, sizes));
  gcap_shape_t shape = {.rank = einsum.out.rank};
  for (int axis = 0; axis < shape.rank; ++axis) shape.at[axis] = sizes[einsum.out.labels[axis]];
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}
