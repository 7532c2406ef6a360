// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Why ONNX Runtime does not capture a session: its own refusal names no node. Operators are few and reasons are short,
// so a list is searched, and the text has room for what a person reads.
//
// Locking: none; one thread at a time.

#include "ort/left.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/internal/grow.h"
#include "lib/internal/text.h"
#include "ort/node_model.h"

enum { TEXT_BYTES = 1024 };  // as long as a message of the log

struct gcap_ort_left_op {
  const char* op_type;
  gcap_ort_reason_t reason;
  size_t count;
};

void gcap_ort_left_add(gcap_ort_left_t* left, const char* op_type, const char* reason) {
  struct gcap_ort_left_op op = {.op_type = op_type, .count = 1};
  snprintf(op.reason.text, sizeof(op.reason.text), "%s", reason);
  ++left->num_nodes;
  for (size_t i = 0; i < left->count; ++i) {
    struct gcap_ort_left_op* known = &left->ops[i];
    if (strcmp(known->op_type, op_type) != 0 || strcmp(known->reason.text, op.reason.text) != 0) continue;
    ++known->count;
    return;
  }
  if (gcap_grow(&left->ops, &left->room, left->count + 1, sizeof(*left->ops))) left->ops[left->count++] = op;
}

void gcap_ort_left_deinit(gcap_ort_left_t* left) { free(left->ops); }

char* gcap_ort_left_describe(const gcap_ort_left_t* left, const char* name, size_t num_nodes) {
  char* chars = left->num_nodes > 0 ? malloc(TEXT_BYTES) : NULL;
  if (chars == NULL) return NULL;
  gcap_text_t text;
  gcap_text_init(&text, chars, TEXT_BYTES);
  gcap_text_add(
      &text,
      "EP '%s' leaves %zu of %zu nodes to other EPs, whose work is in no graph, so ONNX Runtime refuses the session "
      "with graphs:",
      name, left->num_nodes, num_nodes);
  for (size_t i = 0; i < left->count; ++i) {
    const struct gcap_ort_left_op* op = &left->ops[i];
    gcap_text_add(&text, "%s %zu %s (%s)", i > 0 ? "," : "", op->count, op->op_type, op->reason.text);
  }
  return chars;
}
