// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Signatures. A replay uses the addresses that the capture saw; with other tensors it would silently compute on the old
// ones. The check compares addresses and shapes in order, and makes sentences only if it fails. Nothing changes after
// creation, so there is nothing to lock.

#include "lib/graph/signature.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/internal/text.h"

#define MAX_SHAPE_CHARS 96  // of a message; a longer shape is cut

gcap_status_t gcap_graph_bindings_check(const gcap_graph_binding_t* bindings, size_t n) {
  if (n > 0 && bindings == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "bindings is NULL and n is %zu", n);
  for (size_t i = 0; i < n; ++i) {
    if (bindings[i].rank >= 0 && (bindings[i].rank == 0 || bindings[i].shape != NULL)) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "binding %zu ('%s'): rank is %d, shape is %p, expected 0 or more and one",
                       i, bindings[i].name != NULL ? bindings[i].name : "", bindings[i].rank,
                       (const void*)bindings[i].shape);
  }
  return NULL;
}

static const char* name_of(const gcap_graph_binding_t* binding) { return binding->name != NULL ? binding->name : ""; }

gcap_status_t gcap_graph_signature_create(const gcap_graph_binding_t* bindings, size_t n,
                                          gcap_graph_signature_t** out_signature) {
  *out_signature = NULL;
  size_t dims = 0;
  size_t chars = 0;
  for (size_t i = 0; i < n; ++i) {
    dims += (size_t)bindings[i].rank;
    chars += strlen(name_of(&bindings[i])) + 1;
  }
  gcap_graph_signature_t* signature =
      malloc(sizeof(*signature) + n * sizeof(*signature->bindings) + dims * sizeof(int64_t) + chars);
  if (signature == NULL)
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a signature of %zu tensors", n);
  signature->count = n;
  int64_t* shape = (int64_t*)(void*)(signature->bindings + n);
  char* name = (char*)(shape + dims);
  for (size_t i = 0; i < n; ++i) {
    const gcap_graph_binding_t* from = &bindings[i];
    signature->bindings[i] =
        (gcap_graph_binding_t){.name = name, .address = from->address, .rank = from->rank, .shape = shape};
    if (from->rank > 0) memcpy(shape, from->shape, (size_t)from->rank * sizeof(*shape));
    shape += from->rank;
    name = stpcpy(name, name_of(from)) + 1;
  }
  *out_signature = signature;
  return NULL;
}

static bool is_same_shape(const gcap_graph_binding_t* a, const gcap_graph_binding_t* b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; ++i) {
    if (a->shape[i] != b->shape[i]) return false;
  }
  return true;
}

static const char* write_shape(const gcap_graph_binding_t* binding, char chars[MAX_SHAPE_CHARS]) {
  gcap_text_t text;
  gcap_text_init(&text, chars, MAX_SHAPE_CHARS);
  gcap_text_add(&text, "[");
  for (int i = 0; i < binding->rank; ++i) gcap_text_add(&text, "%s%" PRId64, i > 0 ? ", " : "", binding->shape[i]);
  gcap_text_add(&text, "]");
  return chars;
}

static gcap_status_t compare(size_t index, const gcap_graph_binding_t* captured, const gcap_graph_binding_t* now) {
  const bool same_shape = is_same_shape(captured, now);
  if (captured->address == now->address && same_shape) return NULL;
  const char* name = captured->name[0] != '\0' ? captured->name : name_of(now);
  if (!same_shape) {
    char was[MAX_SHAPE_CHARS];
    char is[MAX_SHAPE_CHARS];
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "tensor %zu ('%s') has shape %s, it was captured with %s", index, name,
                       write_shape(now, is), write_shape(captured, was));
  }
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "tensor %zu ('%s') is at %p, it was captured at %p", index, name,
                     now->address, captured->address);
}

gcap_status_t gcap_graph_signature_check(const gcap_graph_signature_t* signature, const gcap_graph_binding_t* bindings,
                                         size_t n) {
  if (signature == NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "the captured run had no bindings: give them to every run of the id (gcap_run_t.bindings; of a "
                       "session, the run option check_bindings)");
  }
  if (signature->count != n) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%zu tensors are bound, it was captured with %zu", n,
                       signature->count);
  }
  for (size_t i = 0; i < n; ++i) GCAP_RETURN_IF_ERROR(compare(i, &signature->bindings[i], &bindings[i]));
  return NULL;
}
