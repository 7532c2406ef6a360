// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What is compared behind a run, and becomes a finding: outputs with a slot, by lib/verify; inputs, which no run
// changes; the pointers of a graph, by the manager's audit. Locking: none.

#include "kit/check/checking.h"
#include "lib/verify/elements.h"

// --- Differences ------------------------------------------------------------------------------------------------------

static void write(const char* list, const gcap_verify_block_t* block, const gcap_verify_difference_t* difference,
                  gcap_text_t* text) {
  gcap_text_add(text, "%s '%s', element %zu (%s), is ", list, block->name, difference->element,
                gcap_dtype_name(block->type));
  gcap_verify_write_element(block->type, difference->actual_bits, difference->actual, text);
  gcap_text_add(text, " and was ");
  gcap_verify_write_element(block->type, difference->expected_bits, difference->expected, text);
  gcap_text_add(text, "; %llu elements differ, by %g at most", (unsigned long long)difference->different,
                difference->largest_difference);
}

// Which input is not what the fill made it, in words; an empty text: none.
static gcap_status_t find_written_input(gcap_checking_t* checking, int fill, gcap_text_t* text) {
  gcap_verify_difference_t difference;
  GCAP_RETURN_IF_ERROR(gcap_verify_state_compare(checking->inputs, GCAP_CHECK_BEFORE + (size_t)fill, GCAP_VERIFY_NOW,
                                                 checking->places[GCAP_CHECK_HOME].stream, &difference));
  if (difference.block != SIZE_MAX) write("input", &checking->input_blocks[difference.block], &difference, text);
  return NULL;
}

// What differs from the slot, in words, or which input; an empty text: nothing does.
static gcap_status_t find_difference(gcap_checking_t* checking, int fill, size_t slot, gcap_text_t* text) {
  const cudaStream_t stream = checking->places[GCAP_CHECK_HOME].stream;
  gcap_verify_difference_t difference;
  GCAP_RETURN_IF_ERROR(gcap_verify_state_compare(checking->outputs, slot, GCAP_VERIFY_NOW, stream, &difference));
  if (difference.block != SIZE_MAX) {
    write("output", &checking->output_blocks[difference.block], &difference, text);
    return NULL;
  }
  return find_written_input(checking, fill, text);
}

// The first byte of an input on the host that is not the first fill's, in words. No replay writes there, so behind
// eager runs alone.
static void find_written_on_host(const gcap_checking_t* checking, gcap_text_t* text) {
  const unsigned char* values = checking->host_fills;
  for (size_t i = 0; i < checking->check.num_inputs; ++i) {
    const gcap_check_buffer_t* input = &checking->check.inputs[i];
    if (!input->on_host) continue;
    const unsigned char* now = input->address;
    for (size_t at = 0; at < input->bytes; ++at) {
      if (now[at] == values[at]) continue;
      gcap_text_add(text, "input '%s', on the host, byte %zu, is 0x%x and was 0x%x",
                    input->name != NULL ? input->name : "", at, now[at], values[at]);
      return;
    }
    values += input->bytes;
  }
}

gcap_status_t gcap_checking_compare_inputs(gcap_checking_t* checking) {
  if (gcap_checking_has_findings(checking)) return NULL;
  char chars[GCAP_CHECK_SENTENCE_BYTES];
  gcap_text_t text;
  gcap_text_init(&text, chars, sizeof(chars));
  GCAP_RETURN_IF_ERROR(find_written_input(checking, /*fill=*/0, &text));
  if (text.length == 0) find_written_on_host(checking, &text);
  if (text.length != 0) gcap_checking_add(checking, GCAP_CHECK_WRITES_INPUT, "an eager run writes an input: %s", chars);
  return NULL;
}

gcap_status_t gcap_checking_compare(gcap_checking_t* checking, int fill, size_t slot, gcap_check_kind_t kind,
                                    const char* situation, bool* out_differs) {
  char chars[GCAP_CHECK_SENTENCE_BYTES];
  gcap_text_t text;
  gcap_text_init(&text, chars, sizeof(chars));
  GCAP_RETURN_IF_ERROR(find_difference(checking, fill, slot, &text));
  if (out_differs != NULL) *out_differs = text.length != 0;
  if (text.length != 0) gcap_checking_add(checking, kind, "%s: %s", situation, chars);
  return NULL;
}

gcap_status_t gcap_checking_compare_replay(gcap_checking_t* checking, gcap_check_place_t* place, int fill, size_t slot,
                                           gcap_check_kind_t kind, const char* situation) {
  char chars[GCAP_CHECK_SENTENCE_BYTES];
  gcap_text_t text;
  gcap_text_init(&text, chars, sizeof(chars));
  GCAP_RETURN_IF_ERROR(find_difference(checking, fill, slot, &text));
  if (text.length == 0) return NULL;
  gcap_status_t explained = NULL;
  GCAP_RETURN_IF_ERROR(gcap_checking_explain(checking, place, fill, &explained));
  gcap_checking_add(checking, kind, "%s: %s", situation, explained != NULL ? gcap_status_message(explained) : chars);
  gcap_status_free(explained);
  return NULL;
}

// --- Pointers ---------------------------------------------------------------------------------------------------------

typedef struct audit {
  gcap_checking_t* checking;
  bool is_new;
  bool has_found;
} audit_t;

static void look(void* user, const gcap_graph_pointer_t* pointer) {
  audit_t* audit = user;
  if (!pointer->is_finding || audit->has_found) return;
  audit->has_found = true;
  const bool is_pageable = audit->is_new && pointer->owner == GCAP_GRAPH_OWNER_UNKNOWN;
  gcap_checking_add(audit->checking, is_pageable ? GCAP_CHECK_PAGEABLE : GCAP_CHECK_STALE_POINTER,
                    "%s of %s is %p, which was %s, and is %s", pointer->place, pointer->node_text, pointer->address,
                    pointer->memory, pointer->now != NULL ? pointer->now : "the same");
}

gcap_status_t gcap_checking_audit(gcap_checking_t* checking, gcap_check_place_t* place, bool is_new, bool* out_sound) {
  gcap_graph_manager_t* graphs = NULL;
  audit_t audit = {.checking = checking, .is_new = is_new};
  GCAP_RETURN_IF_ERROR(gcap_runtime_graphs(place->runtime, &graphs));
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_audit(graphs, place->id, look, &audit, /*out_findings=*/NULL));
  *out_sound = !audit.has_found;
  return NULL;
}
