// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Provider options. One table row per key: its name, what it allows in words, and the function that reads its value.
// Parsing works on a copy, so that a bad pair leaves the caller's options alone.

#include "gcap/options.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void gcap_options_init(gcap_options_t* options) {
  *options = (gcap_options_t){
      .min_num_runs_before_capture = 2,
      .arena_initial_chunk_bytes = (size_t)1 << 20,
      .arena_initial_growth_chunk_bytes = (size_t)2 << 20,
      .arena_max_extend_bytes = (size_t)1 << 30,
      .arena_max_dead_bytes_per_chunk = (size_t)128 << 20,
      .arena_mempool_release_threshold_bytes = UINT64_MAX,
      .graph_max_runs_before_capture = 6,
      .graph_ledger_calls = 64,
  };
}

// --- Values ---------------------------------------------------------------------------------------------------------

// A whole non-negative number up to `max`; `base` 10, or 0 to allow 0x as well. A sign is not a number here.
static bool parse_unsigned(const char* text, int base, uint64_t max, uint64_t* out_value) {
  if (text[0] < '0' || text[0] > '9') return false;
  char* end = NULL;
  errno = 0;
  unsigned long long value = strtoull(text, &end, base);
  if (errno != 0 || *end != '\0' || value > max) return false;
  *out_value = value;
  return true;
}

static bool parse_bool(const char* text, bool* out_value) {
  bool is_true = strcmp(text, "1") == 0 || strcmp(text, "true") == 0 || strcmp(text, "True") == 0;
  bool is_false = strcmp(text, "0") == 0 || strcmp(text, "false") == 0 || strcmp(text, "False") == 0;
  *out_value = is_true;
  return is_true || is_false;
}

static bool parse_count(const char* text, uint32_t* out_value) {
  uint64_t value = 0;
  if (!parse_unsigned(text, 10, INT32_MAX, &value)) return false;
  *out_value = (uint32_t)value;
  return true;
}

static bool parse_size(const char* text, size_t* out_value) {
  uint64_t value = 0;
  if (!parse_unsigned(text, 10, SIZE_MAX, &value)) return false;
  *out_value = (size_t)value;
  return true;
}

static bool parse_pointer(const char* text, void** out_value) {
  // Base 0 would read a leading 0 as octal; only 0x is meant.
  bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  uint64_t value = 0;
  if (!parse_unsigned(text, is_hex ? 16 : 10, UINTPTR_MAX, &value)) return false;
  *out_value = (void*)(uintptr_t)value;
  return true;
}

// A function pointer has the representation of an object pointer wherever CUDA runs.
static bool parse_function(const char* text, void* out_function) {
  void* address = NULL;
  if (!parse_pointer(text, &address)) return false;
  memcpy(out_function, &address, sizeof(address));
  return true;
}

// --- Keys -----------------------------------------------------------------------------------------------------------

static bool set_device_id(gcap_options_t* o, const char* text) {
  uint64_t value = 0;
  if (!parse_unsigned(text, 10, INT32_MAX, &value)) return false;
  o->device_id = (int)value;
  return true;
}

static bool set_enable_graph(gcap_options_t* o, const char* text) { return parse_bool(text, &o->enable_cuda_graph); }

static bool set_min_runs(gcap_options_t* o, const char* text) {
  return parse_count(text, &o->min_num_runs_before_capture);
}

static bool set_has_user_stream(gcap_options_t* o, const char* text) { return parse_bool(text, &o->has_user_stream); }

static bool set_user_stream(gcap_options_t* o, const char* text) { return parse_pointer(text, &o->user_stream); }

static bool set_external_alloc(gcap_options_t* o, const char* text) { return parse_function(text, &o->external_alloc); }

static bool set_external_free(gcap_options_t* o, const char* text) { return parse_function(text, &o->external_free); }

static bool set_external_empty_cache(gcap_options_t* o, const char* text) {
  return parse_function(text, &o->external_empty_cache);
}

static bool set_extend_strategy(gcap_options_t* o, const char* text) {
  if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) return false;
  o->arena_extend_as_requested = text[0] == '1';
  return true;
}

static bool set_initial_chunk(gcap_options_t* o, const char* text) {
  return parse_size(text, &o->arena_initial_chunk_bytes);
}

static bool set_max_extend(gcap_options_t* o, const char* text) { return parse_size(text, &o->arena_max_extend_bytes); }

static bool set_initial_growth_chunk(gcap_options_t* o, const char* text) {
  return parse_size(text, &o->arena_initial_growth_chunk_bytes);
}

static bool set_max_dead(gcap_options_t* o, const char* text) {
  return parse_size(text, &o->arena_max_dead_bytes_per_chunk);
}

static bool set_use_mempool(gcap_options_t* o, const char* text) {
  return parse_bool(text, &o->arena_use_cuda_mempool);
}

static bool set_mempool_threshold(gcap_options_t* o, const char* text) {
  return parse_unsigned(text, 10, UINT64_MAX, &o->arena_mempool_release_threshold_bytes);
}

static bool set_mempool_kept(gcap_options_t* o, const char* text) {
  return parse_size(text, &o->arena_mempool_bytes_kept_on_trim);
}

static bool set_max_mem(gcap_options_t* o, const char* text) { return parse_size(text, &o->arena_memory_limit_bytes); }

static bool set_red_zones(gcap_options_t* o, const char* text) { return parse_bool(text, &o->arena_red_zones); }

static bool set_poison_on_free(gcap_options_t* o, const char* text) {
  return parse_bool(text, &o->arena_poison_on_free);
}

static bool set_recorded_operations(gcap_options_t* o, const char* text) {
  return parse_size(text, &o->arena_recorded_operations);
}

static bool set_trace_file(gcap_options_t* o, const char* text) {
  const size_t length = strlen(text);
  if (length >= sizeof(o->arena_trace_file)) return false;
  memcpy(o->arena_trace_file, text, length + 1);
  return true;
}

static bool set_share_graph_memory(gcap_options_t* o, const char* text) {
  return parse_bool(text, &o->arena_share_graph_memory);
}

static bool set_graph_policy(gcap_options_t* o, const char* text) {
  o->graph_when_stable = strcmp(text, "stable") == 0;
  return o->graph_when_stable || strcmp(text, "min_runs") == 0;
}

static bool set_graph_max_runs(gcap_options_t* o, const char* text) {
  return parse_count(text, &o->graph_max_runs_before_capture);
}

static bool set_graph_max_graphs(gcap_options_t* o, const char* text) { return parse_size(text, &o->graph_max_graphs); }

static bool set_graph_max_bytes(gcap_options_t* o, const char* text) { return parse_size(text, &o->graph_max_bytes); }

static bool set_graph_ledger(gcap_options_t* o, const char* text) { return parse_count(text, &o->graph_ledger_calls); }

#define BOOL_TEXT "0, 1, true or false"
#define COUNT_TEXT "a whole number from 0 to 2147483647"
#define BYTES_TEXT "a whole number of bytes, 0 or more"
#define ADDRESS_TEXT "an address as a decimal number or 0x…"

static const struct {
  const char* key;
  bool (*set)(gcap_options_t* options, const char* text);
  const char* allowed;
} keys_table[] = {
    {"device_id", set_device_id, COUNT_TEXT},
    {"enable_cuda_graph", set_enable_graph, BOOL_TEXT},
    {"min_num_runs_before_cuda_graph_capture", set_min_runs, COUNT_TEXT},
    {"has_user_compute_stream", set_has_user_stream, BOOL_TEXT},
    {"user_compute_stream", set_user_stream, ADDRESS_TEXT},
    {"gpu_external_alloc", set_external_alloc, ADDRESS_TEXT},
    {"gpu_external_free", set_external_free, ADDRESS_TEXT},
    {"gpu_external_empty_cache", set_external_empty_cache, ADDRESS_TEXT},
    {"arena.extend_strategy", set_extend_strategy, "0 (grow ahead) or 1 (as requested)"},
    {"arena.initial_chunk_size_bytes", set_initial_chunk, BYTES_TEXT},
    {"arena.initial_growth_chunk_size_bytes", set_initial_growth_chunk, BYTES_TEXT},
    {"arena.max_power_of_two_extend_bytes", set_max_extend, BYTES_TEXT},
    {"arena.max_dead_bytes_per_chunk", set_max_dead, BYTES_TEXT},
    {"arena.max_mem", set_max_mem, BYTES_TEXT},
    {"arena.use_cuda_mempool", set_use_mempool, BOOL_TEXT},
    {"arena.cuda_mempool_release_threshold", set_mempool_threshold, BYTES_TEXT},
    {"arena.cuda_mempool_bytes_to_keep_on_shrink", set_mempool_kept, BYTES_TEXT},
    {"arena.red_zones", set_red_zones, BOOL_TEXT},
    {"arena.poison_on_free", set_poison_on_free, BOOL_TEXT},
    {"arena.recorded_operations", set_recorded_operations, "a whole number, 0 or more"},
    {"arena.trace_file", set_trace_file, "a path of at most 255 bytes, or nothing"},
    {"arena.share_graph_memory", set_share_graph_memory, BOOL_TEXT},
    {"graph.policy", set_graph_policy, "min_runs or stable"},
    {"graph.max_runs_before_capture", set_graph_max_runs, COUNT_TEXT},
    {"graph.max_graphs", set_graph_max_graphs, "a whole number, 0 or more"},
    {"graph.max_bytes", set_graph_max_bytes, BYTES_TEXT},
    {"graph.ledger_calls", set_graph_ledger, COUNT_TEXT},
};
#define NUM_KEYS (sizeof(keys_table) / sizeof(keys_table[0]))

static gcap_status_t unknown_key(const char* key) {
  char known[1024] = "";
  for (size_t i = 0; i < NUM_KEYS; ++i) {
    if (i > 0) strncat(known, ", ", sizeof(known) - strlen(known) - 1);
    strncat(known, keys_table[i].key, sizeof(known) - strlen(known) - 1);
  }
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "unknown option '%s'; known are %s", key, known);
}

static gcap_status_t set_option(gcap_options_t* options, const char* key, const char* value) {
  for (size_t i = 0; i < NUM_KEYS; ++i) {
    if (strcmp(key, keys_table[i].key) != 0) continue;
    if (keys_table[i].set(options, value)) return NULL;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "option %s is '%s', allowed is %s", key, value, keys_table[i].allowed);
  }
  return unknown_key(key);
}

gcap_status_t gcap_options_parse(gcap_options_t* options, const char* const* keys, const char* const* values,
                                 size_t count) {
  gcap_options_t parsed = *options;
  for (size_t i = 0; i < count; ++i) GCAP_RETURN_IF_ERROR(set_option(&parsed, keys[i], values[i]));
  if (parsed.user_stream != NULL) parsed.has_user_stream = true;
  *options = parsed;
  return NULL;
}

gcap_status_t gcap_options_check(const gcap_options_t* options) {
  if ((options->external_alloc == NULL) != (options->external_free == NULL)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gpu_external_alloc and gpu_external_free go together; only %s is set",
                       options->external_alloc != NULL ? "gpu_external_alloc" : "gpu_external_free");
  }
  if (options->external_empty_cache != NULL && options->external_alloc == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "gpu_external_empty_cache is set without gpu_external_alloc and gpu_external_free");
  }
  if (options->arena_use_cuda_mempool && options->external_alloc != NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "arena.use_cuda_mempool is 1 and gpu_external_alloc is set; memory comes from one of them");
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
