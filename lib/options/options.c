// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Provider options: their defaults, what follows from them, and whether they fit together. The keys are in table.c.
// Parsing works on a copy, so that a bad pair leaves the caller's options alone. What follows from other options is not
// stored in the caller's struct, but for has_user_stream: who takes the user stream away again gets back what was.
// No locking: values only.

#include "lib/options/inner.h"

#include <cuda_runtime_api.h>

#include "lib/graph/inner.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/text.h"

static const gcap_sized_type_t arena_type = GCAP_SIZED_TYPE(gcap_scratch_options);
static const gcap_sized_type_t kernels_type = GCAP_SIZED_TYPE(gcap_kernel_options);
static const gcap_sized_type_t mempool_type = GCAP_SIZED_TYPE(gcap_pool_allocator_options);
static const gcap_sized_part_t parts[] = {
    {offsetof(gcap_options_t, arena), &arena_type},
    {offsetof(gcap_options_t, mempool), &mempool_type},
    {offsetof(gcap_options_t, graph), &gcap_graph_manager_options_type},
    {offsetof(gcap_options_t, kernels), &kernels_type},
};
static const gcap_sized_type_t options_type = {
    .name = "gcap_options",
    .bytes = sizeof(gcap_options_t),
    .parts = parts,
    .num_parts = sizeof(parts) / sizeof(parts[0]),
};

gcap_status_t gcap_options_read(const gcap_options_t* given, gcap_options_t* out_options) {
  gcap_options_init(out_options);
  return given == NULL ? NULL : gcap_sized_read(&options_type, given, out_options);
}

void gcap_options_derive(gcap_options_t* options) {
  if (options->user_stream != NULL) options->has_user_stream = true;
  if (options->has_user_stream || options->external_alloc != NULL) options->use_unified_stream = true;
  if (options->use_unified_stream) options->graph_scope = GCAP_GRAPH_SCOPE_SESSION;
}

// --- Texts ----------------------------------------------------------------------------------------------------------

// Whether the rows that were given have the one of this field.
static bool has_field(const uint8_t* given, size_t offset) {
  for (size_t i = 0; i < gcap_provider_option_table.num_rows; ++i) {
    const gcap_option_t* row = &gcap_provider_option_table.rows[i];
    if (given[i] != 0 && gcap_option_has_field(row) && row->offset == offset) return true;
  }
  return false;
}

static gcap_status_t parse(gcap_options_t* options, const gcap_option_prefixes_t* prefixes, const char* const* keys,
                           const char* const* values, size_t count) {
  gcap_options_t parsed;
  GCAP_RETURN_IF_ERROR(gcap_options_read(options, &parsed));
  uint8_t given[GCAP_OPTION_MAX_ROWS];
  GCAP_RETURN_IF_ERROR(
      gcap_option_table_parse(&gcap_provider_option_table, prefixes, &parsed, keys, values, count, given));
  if (has_field(given, offsetof(gcap_options_t, user_stream))) parsed.allow_default_stream = parsed.user_stream == NULL;
  if (parsed.user_stream != NULL) parsed.has_user_stream = true;
  gcap_sized_write(&options_type, &parsed, options);
  return NULL;
}

gcap_status_t gcap_options_parse(gcap_options_t* options, const char* const* keys, const char* const* values,
                                 size_t count) {
  GCAP_RETURN_IF_NULL(options);
  if (count > 0) {
    GCAP_RETURN_IF_NULL(keys);
    GCAP_RETURN_IF_NULL(values);
  }
  const gcap_option_prefixes_t prefixes = {.allowed = true};
  return parse(options, &prefixes, keys, values, count);
}

gcap_status_t gcap_options_parse_for_ep(gcap_options_t* options, const char* ep_name, const char* const* keys,
                                        const char* const* values, size_t count) {
  GCAP_RETURN_IF_NULL(options);
  GCAP_RETURN_IF_NULL(ep_name);
  if (count > 0) {
    GCAP_RETURN_IF_NULL(keys);
    GCAP_RETURN_IF_NULL(values);
  }
  if (ep_name[0] == '\0') return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gcap_options_parse_for_ep: ep_name is empty");
  const gcap_option_prefixes_t prefixes = {.allowed = true, .ep_name = ep_name};
  return parse(options, &prefixes, keys, values, count);
}

// The options in force.
static gcap_status_t read_in_force(const gcap_options_t* given, gcap_options_t* out_options) {
  GCAP_RETURN_IF_ERROR(gcap_options_read(given, out_options));
  gcap_options_derive(out_options);
  return NULL;
}

static void add_value(const gcap_options_t* known, const gcap_option_t* row, gcap_text_t* text) {
  if (gcap_option_has_field(row)) {
    gcap_option_value_print(row->kind, (const char*)known + row->offset, text);
  } else {
    gcap_text_add(text, "0");  // nothing else is allowed
  }
}

static void add_all(const gcap_options_t* known, gcap_text_t* text) {
  for (size_t i = 0; i < gcap_provider_option_table.num_rows; ++i) {
    const gcap_option_t* row = &gcap_provider_option_table.rows[i];
    const bool is_stream = row->offset == offsetof(gcap_options_t, user_stream);
    if (!gcap_option_has_field(row)) continue;
    // Given as 0 it would say that the default stream is meant.
    if (is_stream && known->user_stream == NULL && !known->allow_default_stream) continue;
    gcap_text_add(text, "%s=", row->key);
    add_value(known, row, text);
    gcap_text_add(text, "\n");
  }
}

gcap_status_t gcap_options_get(const gcap_options_t* options, const char* key, char* out_text, size_t text_bytes) {
  GCAP_RETURN_IF_NULL(out_text);
  if (text_bytes > 0) out_text[0] = '\0';
  GCAP_RETURN_IF_NULL(options);
  const gcap_option_prefixes_t prefixes = {.allowed = true};
  const gcap_option_t* row = NULL;
  if (key != NULL) {
    GCAP_RETURN_IF_ERROR(gcap_option_table_find(&gcap_provider_option_table, &prefixes, key, &row));
  }
  gcap_options_t known;
  GCAP_RETURN_IF_ERROR(read_in_force(options, &known));
  gcap_text_t text;
  gcap_text_init(&text, out_text, text_bytes);
  if (row != NULL) add_value(&known, row, &text);
  if (row == NULL) add_all(&known, &text);
  if (!gcap_text_is_cut(&text)) return NULL;
  if (text_bytes > 0) out_text[0] = '\0';
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "the %s%s has %zu bytes, out_text has room for %zu",
                     row != NULL ? "value of option " : "text of all options", row != NULL ? row->key : "",
                     text.length + 1, text_bytes);
}

// --- Whether they fit together --------------------------------------------------------------------------------------

// Enumerations that a program has set itself.
static gcap_status_t check_enumerations(const gcap_options_t* options) {
  if (options->graph_scope != GCAP_GRAPH_SCOPE_THREAD && options->graph_scope != GCAP_GRAPH_SCOPE_SESSION) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph_scope is %d, allowed is 0 (thread) or 1 (session)",
                       (int)options->graph_scope);
  }
  const int search = (int)options->kernels.conv_search;
  if (search >= GCAP_CONV_SEARCH_EXHAUSTIVE && search <= GCAP_CONV_SEARCH_DEFAULT) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "kernels.conv_search is %d, allowed is 0 (EXHAUSTIVE), 1 (HEURISTIC) or 2 (DEFAULT)", search);
}

static gcap_status_t check_external_memory(const gcap_options_t* options) {
  if ((options->external_alloc == NULL) != (options->external_free == NULL)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gpu_external_alloc and gpu_external_free go together; only %s is set",
                       options->external_alloc != NULL ? "gpu_external_alloc" : "gpu_external_free");
  }
  if (options->external_empty_cache != NULL && options->external_alloc == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "gpu_external_empty_cache is set without gpu_external_alloc and gpu_external_free");
  }
  if (options->use_mempool && options->external_alloc != NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "arena.use_cuda_mempool is 1 and gpu_external_alloc is set; memory comes from one of them");
  }
  return NULL;
}

static gcap_status_t check_user_stream(const gcap_options_t* options) {
  if (options->has_user_stream && options->user_stream == NULL && !options->allow_default_stream) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "has_user_compute_stream is 1 and user_compute_stream is missing: give the stream, or 0 for the "
                       "legacy default stream (in C: allow_default_stream)");
  }
  // 0, cudaStreamLegacy (1) and cudaStreamPerThread (2): no stream of the caller's own making.
  uintptr_t stream = (uintptr_t)options->user_stream;
  if (options->has_user_stream && options->enable_cuda_graph && stream <= (uintptr_t)cudaStreamPerThread) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "user_compute_stream is %d, %s: pass a stream created with cudaStreamNonBlocking, or set "
                       "enable_cuda_graph to 0",
                       (int)stream,
                       stream == (uintptr_t)cudaStreamPerThread
                           ? "another stream on every thread"
                           : "the legacy default stream, which cannot be captured");
  }
  return NULL;
}

gcap_status_t gcap_options_check(const gcap_options_t* options) {
  GCAP_RETURN_IF_NULL(options);
  gcap_options_t known;
  GCAP_RETURN_IF_ERROR(read_in_force(options, &known));
  GCAP_RETURN_IF_ERROR(check_enumerations(&known));
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_options_check(&known.graph));
  GCAP_RETURN_IF_ERROR(check_external_memory(&known));
  return check_user_stream(&known);
}
