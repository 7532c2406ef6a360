// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The difference of two graphs, told to the caller one by one.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gcap/graph_contents.h"
#include "lib/contents/compare.h"
#include "lib/contents/contents.h"
#include "lib/internal/check_argument.h"

typedef struct teller {
  gcap_graph_difference_fn on_difference;
  void* user;
  size_t count;
} teller_t;

static void tell(teller_t* teller, const gcap_contents_t* contents, const gcap_contents_node_t* node, const char* field,
                 const char* before, const char* after) {
  ++teller->count;
  if (teller->on_difference == NULL) return;
  char text[256] = "the graph";
  if (node != NULL) gcap_contents_write_node(contents, node, text, sizeof(text));
  const gcap_graph_difference_t difference = {.struct_size = sizeof(difference),
                                              .node = node != NULL ? (size_t)(node - contents->nodes) : contents->count,
                                              .node_text = text,
                                              .field = field,
                                              .before = before,
                                              .after = after};
  teller->on_difference(teller->user, &difference);
}

// Of nodes of two types only their places in the graphs are compared.
static void tell_fields(teller_t* teller, const gcap_contents_t* old, const gcap_contents_t* new, size_t index) {
  const bool is_same = old->nodes[index].type == new->nodes[index].type;
  const gcap_contents_field_t end = is_same ? GCAP_CONTENTS_NUM_FIELDS : GCAP_CONTENTS_FUNCTION;
  gcap_contents_change_t change;
  for (gcap_contents_field_t field = 0; field < end; ++field) {
    if (!gcap_contents_differ(field, old, new, index, &change)) continue;
    tell(teller, new, &new->nodes[index], change.field, change.before, change.after);
  }
}

// Writes a value of up to 8 bytes as a number.
static void write_word(const unsigned char* bytes, size_t count, char* text, size_t capacity) {
  uint64_t word = 0;
  memcpy(&word, bytes, count);
  snprintf(text, capacity, "0x%" PRIx64, word);
}

static void tell_part(teller_t* teller, const unsigned char* before, const gcap_contents_t* contents,
                      const gcap_contents_node_t* after, size_t index) {
  const gcap_contents_part_t* part = &gcap_contents_parts_of(contents, after)[index];
  const unsigned char *old = before + part->offset, *new = gcap_contents_bytes_of(contents, after) + part->offset;
  size_t bytes = 0;
  for (size_t at = 0; at < part->bytes; at += bytes) {
    bytes = gcap_contents_value_bytes(contents, after, index, at);
    if (memcmp(old + at, new + at, bytes) == 0) continue;
    char place[64], was[32], is[32];
    gcap_contents_write_place(contents, after, index, at, place, sizeof(place));
    write_word(old + at, bytes, was, sizeof(was));
    write_word(new + at, bytes, is, sizeof(is));
    tell(teller, contents, after, place, was, is);
  }
}

static void tell_arguments(teller_t* teller, const gcap_contents_t* old, const gcap_contents_node_t* before,
                           const gcap_contents_t* new, const gcap_contents_node_t* after) {
  const char* told[2] = {before->has_arguments ? "told" : "not told", after->has_arguments ? "told" : "not told"};
  if (!before->has_arguments || !after->has_arguments) {
    tell(teller, new, after, "arguments", told[0], told[1]);
    return;
  }
  const bool same_shape =
      before->num_parts == after->num_parts && before->bytes == after->bytes &&
      (after->num_parts == 0 || memcmp(gcap_contents_parts_of(old, before), gcap_contents_parts_of(new, after),
                                       after->num_parts * sizeof(gcap_contents_part_t)) == 0);
  if (!same_shape) {
    char was[32], is[32];
    snprintf(was, sizeof(was), "%zu bytes", before->bytes);
    snprintf(is, sizeof(is), "%zu bytes", after->bytes);
    tell(teller, new, after, "arguments", was, is);
    return;
  }
  for (size_t i = 0; i < after->num_parts; ++i) tell_part(teller, gcap_contents_bytes_of(old, before), new, after, i);
}

static void tell_all(teller_t* teller, const gcap_contents_t* old, const gcap_contents_t* new) {
  if (old->count != new->count) {
    char was[32], is[32];
    snprintf(was, sizeof(was), "%zu", old->count);
    snprintf(is, sizeof(is), "%zu", new->count);
    tell(teller, new, NULL, "nodes", was, is);
  }
  for (size_t i = 0; i < old->count && i < new->count; ++i) {
    const gcap_contents_node_t *before = &old->nodes[i], *after = &new->nodes[i];
    tell_fields(teller, old, new, i);
    const bool is_same = before->type == after->type && before->function == after->function;
    if (is_same) tell_arguments(teller, old, before, new, after);
    if (!is_same && old->count != new->count) return;
  }
}

size_t gcap_contents_diff(const gcap_contents_t* before, const gcap_contents_t* after,
                          gcap_graph_difference_fn on_difference, void* user) {
  teller_t teller = {.on_difference = on_difference, .user = user};
  tell_all(&teller, before, after);
  return teller.count;
}

gcap_status_t gcap_graph_diff(cudaGraph_t before, cudaGraph_t after, gcap_graph_difference_fn on_difference, void* user,
                              size_t* out_count) {
  if (out_count != NULL) *out_count = 0;
  GCAP_RETURN_IF_NULL(before);
  GCAP_RETURN_IF_NULL(after);
  gcap_contents_t old = {0}, new = {0};
  gcap_status_t status = gcap_contents_read(before, /*with_arguments=*/true, &old);
  if (status == NULL) status = gcap_contents_read(after, /*with_arguments=*/true, &new);
  const size_t count = status == NULL ? gcap_contents_diff(&old, &new, on_difference, user) : 0;
  if (out_count != NULL) *out_count = count;
  gcap_contents_free(&old);
  gcap_contents_free(&new);
  return status;
}
