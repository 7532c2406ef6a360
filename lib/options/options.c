// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Provider options. One table row per key: its name, what its value is, and where its field is.
// Parsing works on a copy, so that a bad pair leaves the caller's options alone.

#include "lib/options/options.h"

#include <ctype.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/allocator/options.h"
#include "lib/graph/options.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/text.h"
#include "lib/scratch/options.h"

static const gcap_sized_part_t parts[] = {
    {offsetof(gcap_options_t, arena), &gcap_scratch_options_type},
    {offsetof(gcap_options_t, mempool), &gcap_pool_allocator_options_type},
    {offsetof(gcap_options_t, graph), &gcap_graph_manager_options_type},
};
static const gcap_sized_type_t options_type = {
    .name = "gcap_options",
    .bytes = sizeof(gcap_options_t),
    .parts = parts,
    .num_parts = sizeof(parts) / sizeof(parts[0]),
};

static void init(gcap_options_t* options) {
  *options = (gcap_options_t){.struct_size = sizeof(*options), .do_copy_in_default_stream = true};
  gcap_scratch_options_init(&options->arena);
  gcap_pool_allocator_options_init(&options->mempool);
  gcap_graph_manager_options_init(&options->graph);
}

void gcap_options_set_defaults(gcap_options_t* options) {
  gcap_options_t defaults;
  init(&defaults);
  gcap_sized_write(&options_type, &defaults, options);
}

gcap_status_t gcap_options_read(const gcap_options_t* given, gcap_options_t* out_options) {
  init(out_options);
  return given == NULL ? NULL : gcap_sized_read(&options_type, given, out_options);
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

// An address as a number, or 0x and hexadecimal digits. Base 0 would read a leading 0 as octal.
static bool parse_address(const char* text, uintptr_t* out_value) {
  bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  uint64_t value = 0;
  if (!parse_unsigned(text, is_hex ? 16 : 10, UINTPTR_MAX, &value)) return false;
  *out_value = (uintptr_t)value;
  return true;
}

// --- Keys -----------------------------------------------------------------------------------------------------------

// What a key's value is, and so the type of its field.
typedef enum kind {
  KIND_BOOL,      // bool
  KIND_DEVICE,    // int
  KIND_COUNT,     // uint32_t
  KIND_CALLS,     // uint32_t, up to the largest ledger
  KIND_NUMBER,    // size_t
  KIND_BYTES,     // size_t
  KIND_BYTES_64,  // uint64_t
  KIND_ADDRESS,   // a pointer to an object or a function, which are alike wherever CUDA runs
  KIND_STRATEGY,  // bool
  KIND_POLICY,    // gcap_graph_policy_t
  KIND_PATH,      // char[GCAP_OPTIONS_MAX_PATH_BYTES]
} kind_t;

static const char* const allowed_texts[] = {
    [KIND_BOOL] = "0, 1, true or false",
    [KIND_DEVICE] = "a whole number from 0 to 2147483647",
    [KIND_COUNT] = "a whole number from 0 to 2147483647",
    [KIND_CALLS] = "a whole number from 0 to 65536",
    [KIND_NUMBER] = "a whole number from 0 to 18446744073709551615",
    [KIND_BYTES] = "a whole number of bytes from 0 to 18446744073709551615",
    [KIND_BYTES_64] = "a whole number of bytes from 0 to 18446744073709551615",
    [KIND_ADDRESS] = "an address as a decimal number or 0x…",
    [KIND_STRATEGY] = "0 (grow ahead) or 1 (as requested)",
    [KIND_POLICY] = "min_runs or stable",
    [KIND_PATH] = "a path of at most 255 bytes, or nothing",
};

_Static_assert(GCAP_CAPTURE_MAX_LEDGER_CALLS == 65536, "the text of KIND_CALLS has it");
_Static_assert(SIZE_MAX == UINT64_MAX, "the texts of KIND_NUMBER and KIND_BYTES have it");

static const struct {
  const char* key;
  kind_t kind;
  size_t offset;
} keys_table[] = {
    {"device_id", KIND_DEVICE, offsetof(gcap_options_t, device_id)},
    {"enable_cuda_graph", KIND_BOOL, offsetof(gcap_options_t, enable_cuda_graph)},
    {"min_num_runs_before_cuda_graph_capture", KIND_COUNT, offsetof(gcap_options_t, graph.min_num_runs_before_capture)},
    {"has_user_compute_stream", KIND_BOOL, offsetof(gcap_options_t, has_user_stream)},
    {"user_compute_stream", KIND_ADDRESS, offsetof(gcap_options_t, user_stream)},
    {"gpu_external_alloc", KIND_ADDRESS, offsetof(gcap_options_t, external_alloc)},
    {"gpu_external_free", KIND_ADDRESS, offsetof(gcap_options_t, external_free)},
    {"gpu_external_empty_cache", KIND_ADDRESS, offsetof(gcap_options_t, external_empty_cache)},
    {"do_copy_in_default_stream", KIND_BOOL, offsetof(gcap_options_t, do_copy_in_default_stream)},
    {"arena.extend_strategy", KIND_STRATEGY, offsetof(gcap_options_t, arena.extend_as_requested)},
    {"arena.initial_chunk_size_bytes", KIND_BYTES, offsetof(gcap_options_t, arena.initial_chunk_bytes)},
    {"arena.initial_growth_chunk_size_bytes", KIND_BYTES, offsetof(gcap_options_t, arena.initial_growth_chunk_bytes)},
    {"arena.max_power_of_two_extend_bytes", KIND_BYTES, offsetof(gcap_options_t, arena.max_extend_bytes)},
    {"arena.max_dead_bytes_per_chunk", KIND_BYTES, offsetof(gcap_options_t, arena.max_dead_bytes_per_chunk)},
    {"arena.max_mem", KIND_BYTES, offsetof(gcap_options_t, arena.memory_limit_bytes)},
    {"arena.use_cuda_mempool", KIND_BOOL, offsetof(gcap_options_t, use_mempool)},
    {"arena.cuda_mempool_release_threshold", KIND_BYTES_64, offsetof(gcap_options_t, mempool.release_threshold_bytes)},
    {"arena.cuda_mempool_bytes_to_keep_on_shrink", KIND_BYTES, offsetof(gcap_options_t, mempool.bytes_kept_on_trim)},
    {"arena.red_zones", KIND_BOOL, offsetof(gcap_options_t, arena.red_zones)},
    {"arena.poison_on_free", KIND_BOOL, offsetof(gcap_options_t, arena.poison_on_free)},
    {"arena.recorded_operations", KIND_NUMBER, offsetof(gcap_options_t, arena.recorded_operations)},
    {"arena.trace_file", KIND_PATH, offsetof(gcap_options_t, trace_file)},
    {"arena.share_graph_memory", KIND_BOOL, offsetof(gcap_options_t, share_graph_memory)},
    {"graph.policy", KIND_POLICY, offsetof(gcap_options_t, graph.policy)},
    {"graph.max_runs_before_capture", KIND_COUNT, offsetof(gcap_options_t, graph.max_runs_before_capture)},
    {"graph.max_graphs", KIND_NUMBER, offsetof(gcap_options_t, graph.max_graphs)},
    {"graph.max_bytes", KIND_BYTES, offsetof(gcap_options_t, graph.max_bytes)},
    {"graph.ledger_calls", KIND_CALLS, offsetof(gcap_options_t, graph.capture.ledger_calls)},
};
#define NUM_KEYS (sizeof(keys_table) / sizeof(keys_table[0]))

static bool set_policy(const char* text, gcap_graph_policy_t* policy) {
  const bool is_stable = strcmp(text, "stable") == 0;
  *policy = is_stable ? GCAP_GRAPH_POLICY_STABLE : GCAP_GRAPH_POLICY_MIN_RUNS;
  return is_stable || strcmp(text, "min_runs") == 0;
}

static bool set_strategy(const char* text, bool* extend_as_requested) {
  *extend_as_requested = strcmp(text, "1") == 0;
  return *extend_as_requested || strcmp(text, "0") == 0;
}

static bool set_path(const char* text, char* path) {
  const size_t length = strlen(text);
  if (length >= GCAP_OPTIONS_MAX_PATH_BYTES) return false;
  memcpy(path, text, length + 1);
  return true;
}

// Reads a whole number into a field of `field_bytes`.
static bool set_number(const char* text, uint64_t max, void* field, size_t field_bytes) {
  uint64_t value = 0;
  if (!parse_unsigned(text, 10, max, &value)) return false;
  const uint32_t narrow = (uint32_t)value;
  memcpy(field, field_bytes == sizeof(narrow) ? (const void*)&narrow : (const void*)&value, field_bytes);
  return true;
}

static bool set_address(const char* text, void* field) {
  uintptr_t address = 0;
  if (!parse_address(text, &address)) return false;
  memcpy(field, &address, sizeof(address));
  return true;
}

// Reads a value into the field of its key; false when the key does not allow it.
static bool set_field(kind_t kind, const char* text, void* field) {
  switch (kind) {
    case KIND_BOOL: return parse_bool(text, field);
    case KIND_DEVICE: return set_number(text, INT32_MAX, field, sizeof(int));
    case KIND_COUNT: return set_number(text, INT32_MAX, field, sizeof(uint32_t));
    case KIND_CALLS: return set_number(text, GCAP_CAPTURE_MAX_LEDGER_CALLS, field, sizeof(uint32_t));
    case KIND_NUMBER:
    case KIND_BYTES: return set_number(text, SIZE_MAX, field, sizeof(size_t));
    case KIND_BYTES_64: return set_number(text, UINT64_MAX, field, sizeof(uint64_t));
    case KIND_ADDRESS: return set_address(text, field);
    case KIND_STRATEGY: return set_strategy(text, field);
    case KIND_POLICY: return set_policy(text, field);
    case KIND_PATH: return set_path(text, field);
  }
  return false;
}

// --- What is wrong with a pair --------------------------------------------------------------------------------------

enum { kShownBytes = 128, kMaxKeyLength = 64 };

// A key or value of the caller's in a message: as much of it as tells which one it is.
typedef struct shown {
  char text[kShownBytes];
} shown_t;

static const char* show(const char* text, shown_t* shown) {
  gcap_text_t start;
  gcap_text_init(&start, shown->text, sizeof(shown->text));
  gcap_text_add(&start, "%s", text);
  return shown->text;
}

// How many characters must be inserted, deleted or replaced to make one text of the other, which are at most
// kMaxKeyLength long (Levenshtein's distance).
static size_t distance(const char* a, const char* b) {
  size_t row[kMaxKeyLength + 1];
  const size_t length = strlen(b);
  for (size_t j = 0; j <= length; ++j) row[j] = j;
  for (size_t i = 1; a[i - 1] != '\0'; ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= length; ++j) {
      const size_t replaced = diagonal + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
      const size_t shorter = row[j] < row[j - 1] ? row[j] : row[j - 1];
      diagonal = row[j];
      row[j] = replaced < shorter + 1 ? replaced : shorter + 1;
    }
  }
  return row[length];
}

// Whether `key` is `known` without its group: "max_mem" of "arena.max_mem".
static bool lacks_group(const char* key, const char* known) {
  const char* dot = strchr(known, '.');
  return dot != NULL && strcmp(dot + 1, key) == 0;
}

// The known key that `key` was surely meant to be; NULL if none is near.
static const char* nearest_key(const char* key) {
  const size_t length = strlen(key);
  if (length > kMaxKeyLength) return NULL;
  const char* nearest = NULL;
  size_t least = length / 4 + 2;  // more than this is another word
  for (size_t i = 0; i < NUM_KEYS; ++i) {
    if (lacks_group(key, keys_table[i].key)) return keys_table[i].key;
    const size_t away = distance(key, keys_table[i].key);
    if (away >= least) continue;
    least = away;
    nearest = keys_table[i].key;
  }
  return nearest;
}

static gcap_status_t unknown_key(const char* key) {
  char known[1024];
  gcap_text_t text;
  gcap_text_init(&text, known, sizeof(known));
  for (size_t i = 0; i < NUM_KEYS; ++i) gcap_text_add(&text, "%s%s", i > 0 ? ", " : "", keys_table[i].key);
  const char* nearest = nearest_key(key);
  shown_t shown;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "unknown option '%s'%s%s%s; known are %s", show(key, &shown),
                     nearest != NULL ? ", did you mean " : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "?" : "", known);
}

static gcap_status_t set_option(gcap_options_t* options, const char* key, const char* value) {
  for (size_t i = 0; i < NUM_KEYS; ++i) {
    if (strcmp(key, keys_table[i].key) != 0) continue;
    if (set_field(keys_table[i].kind, value, (char*)options + keys_table[i].offset)) return NULL;
    shown_t shown;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "option %s is '%s', allowed is %s", key, show(value, &shown),
                       allowed_texts[keys_table[i].kind]);
  }
  return unknown_key(key);
}

static gcap_status_t check_pair(const char* key, const char* value, size_t index) {
  if (key == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gcap_options_parse: keys[%zu] is NULL", index);
  if (value != NULL) return NULL;
  shown_t shown;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gcap_options_parse: values[%zu] is NULL, the value of option '%s'", index,
                     show(key, &shown));
}

gcap_status_t gcap_options_parse(gcap_options_t* options, const char* const* keys, const char* const* values,
                                 size_t count) {
  GCAP_RETURN_IF_NULL(options);
  if (count > 0) {
    GCAP_RETURN_IF_NULL(keys);
    GCAP_RETURN_IF_NULL(values);
  }
  gcap_options_t parsed;
  GCAP_RETURN_IF_ERROR(gcap_options_read(options, &parsed));
  for (size_t i = 0; i < count; ++i) {
    GCAP_RETURN_IF_ERROR(check_pair(keys[i], values[i], i));
    GCAP_RETURN_IF_ERROR(set_option(&parsed, keys[i], values[i]));
  }
  if (parsed.user_stream != NULL) parsed.has_user_stream = true;
  gcap_sized_write(&options_type, &parsed, options);
  return NULL;
}

gcap_status_t gcap_options_check(const gcap_options_t* options) {
  GCAP_RETURN_IF_NULL(options);
  gcap_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_options_read(options, &known));
  options = &known;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_options_check(&options->graph));
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
