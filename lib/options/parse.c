// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Keys and values over a table of options.
//
// An option may be given by several names at once, as a host's configuration that is made of several parts does. The
// most special name decides, in whatever order they come: "ep.<name>.key" before "ep.cuda.key" before "key", and below
// each prefix the key before its aliases. That is the order in which ONNX Runtime's CUDA plugin looks them up. Of one
// name given twice the last value counts. A value that does not count is checked all the same.

#include <ctype.h>
#include <string.h>

#include "gcap/log.h"
#include "gcap/options.h"
#include "lib/internal/text.h"
#include "lib/options/inner.h"

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

// --- Prefixes -------------------------------------------------------------------------------------------------------

typedef enum rank { RANK_OTHER_EP = 0, RANK_BARE, RANK_CUDA, RANK_EP } rank_t;

// A key without its prefix.
typedef struct name {
  const char* key;
  size_t prefix_length;
  rank_t rank;
} name_t;

static const char ep_prefix[] = "ep.";
enum { kEpPrefixLength = sizeof(ep_prefix) - 1 };

// The length of "ep.<name>." at the beginning of a key; 0 when it begins otherwise. The case of the name does not
// matter: ONNX Runtime makes it lower.
static size_t length_of_prefix(const char* key, const char* ep_name) {
  size_t at = kEpPrefixLength;
  for (const char* c = ep_name; *c != '\0'; ++c, ++at) {
    if (tolower((unsigned char)key[at]) != tolower((unsigned char)*c)) return 0;
  }
  return key[at] == '.' ? at + 1 : 0;
}

static name_t split(const gcap_option_prefixes_t* prefixes, const char* key) {
  name_t name = {.key = key, .rank = RANK_BARE};
  if (!prefixes->allowed || strncmp(key, ep_prefix, kEpPrefixLength) != 0) return name;
  name.rank = RANK_EP;
  if (prefixes->ep_name != NULL) name.prefix_length = length_of_prefix(key, prefixes->ep_name);
  if (name.prefix_length == 0) {
    name.rank = RANK_CUDA;
    name.prefix_length = length_of_prefix(key, "cuda");
  }
  if (name.prefix_length == 0) {
    const bool is_of_other_ep = prefixes->ep_name != NULL && strchr(key + kEpPrefixLength, '.') != NULL;
    name.rank = is_of_other_ep ? RANK_OTHER_EP : RANK_BARE;
  }
  name.key = key + name.prefix_length;
  return name;
}

// --- Unknown keys ---------------------------------------------------------------------------------------------------

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

// The i-th name of a row, its key first; NULL: no more.
static const char* name_of(const gcap_option_t* row, size_t i) {
  if (i == 0) return row->key;
  return i <= GCAP_OPTION_MAX_ALIASES ? row->aliases[i - 1] : NULL;
}

// Whether `key` is `known` without its group: "max_mem" of "arena.max_mem".
static bool lacks_group(const char* key, const char* known) {
  const char* dot = strchr(known, '.');
  return dot != NULL && strcmp(dot + 1, key) == 0;
}

// The known name that `key` was surely meant to be; NULL if none is near.
static const char* nearest_name(const gcap_option_table_t* table, const char* key) {
  const size_t length = strlen(key);
  if (length > kMaxKeyLength) return NULL;
  const char* nearest = NULL;
  size_t least = length / 4 + 2;  // more than this is another word
  for (size_t i = 0; i < table->num_rows; ++i) {
    const char* known;
    for (size_t j = 0; (known = name_of(&table->rows[i], j)) != NULL; ++j) {
      if (lacks_group(key, known)) return known;
      const size_t away = distance(key, known);
      if (away >= least) continue;
      least = away;
      nearest = known;
    }
  }
  return nearest;
}

// Adds the keys that begin as this one does, up to its dot; nothing for a key without a dot.
static void add_group(const gcap_option_table_t* table, const char* key, gcap_text_t* text) {
  const char* dot = strchr(key, '.');
  const size_t length = dot == NULL ? 0 : (size_t)(dot - key) + 1;
  const char* separator = "; known are ";
  for (size_t i = 0; length > 0 && i < table->num_rows; ++i) {
    if (strncmp(table->rows[i].key, key, length) != 0) continue;
    gcap_text_add(text, "%s%s", separator, table->rows[i].key);
    separator = ", ";
  }
}

// All keys would be some 2,000 characters. Those of the key's group are named, and where the others are.
static gcap_status_t unknown_key(const gcap_option_table_t* table, const char* given, const name_t* name) {
  char hints[1024];
  gcap_text_t text;
  gcap_text_init(&text, hints, sizeof(hints));
  const char* nearest = nearest_name(table, name->key);
  if (nearest != NULL && name->prefix_length < kShownBytes) {
    gcap_text_add(&text, ", did you mean %.*s%s?", (int)name->prefix_length, given, nearest);
  }
  add_group(table, name->key, &text);
  shown_t shown;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "unknown %s '%s'%s; docs/options.md lists all", table->noun,
                     show(given, &shown), hints);
}

// --- One pair -------------------------------------------------------------------------------------------------------

// The row that has the name, and which of its names it is; NULL: none has it.
static const gcap_option_t* find(const gcap_option_table_t* table, const char* key, size_t* out_which) {
  for (size_t i = 0; i < table->num_rows; ++i) {
    const char* known;
    for (*out_which = 0; (known = name_of(&table->rows[i], *out_which)) != NULL; ++*out_which) {
      if (strcmp(key, known) == 0) return &table->rows[i];
    }
  }
  return NULL;
}

gcap_status_t gcap_option_table_find(const gcap_option_table_t* table, const gcap_option_prefixes_t* prefixes,
                                     const char* key, const gcap_option_t** out_row) {
  const name_t name = split(prefixes, key);
  size_t which;
  *out_row = find(table, name.key, &which);
  return *out_row != NULL ? NULL : unknown_key(table, key, &name);
}

// A field of any kind but a path.
typedef union field {
  bool flag;
  uint64_t number;
} field_t;

static gcap_status_t refused_value(const gcap_option_table_t* table, const gcap_option_t* row, const char* key,
                                   const char* value) {
  const bool only_default = row->use == GCAP_OPTION_USE_REFUSED;
  shown_t shown_key, shown;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s %s is '%s', allowed is %s%s%s", table->noun, show(key, &shown_key),
                     show(value, &shown), only_default ? "0" : gcap_option_value_allowed(row->kind),
                     only_default ? ": " : "", only_default ? row->meaning : "");
}

// Reads the value into the row's field, or looks whether it may be read at all where it does not count.
static bool read_value(const gcap_option_t* row, const char* value, bool counts, void* fields) {
  if (gcap_option_has_field(row) && counts) {
    return gcap_option_value_read(row->kind, value, (char*)fields + row->offset);
  }
  if (row->kind == GCAP_OPTION_PATH) {
    char path[GCAP_OPTIONS_MAX_PATH_BYTES];
    return gcap_option_value_read(row->kind, value, path);
  }
  field_t field = {.number = 0};
  if (!gcap_option_value_read(row->kind, value, &field)) return false;
  return row->use != GCAP_OPTION_USE_REFUSED || field.number == 0;
}

static gcap_status_t set(const gcap_option_table_t* table, const gcap_option_prefixes_t* prefixes, void* fields,
                         const char* key, const char* value, uint8_t* given) {
  const name_t name = split(prefixes, key);
  shown_t shown;
  if (name.rank == RANK_OTHER_EP) {
    gcap_log(GCAP_LOG_INFO, "option %s is another EP's than '%s', and ignored", show(key, &shown), prefixes->ep_name);
    return NULL;
  }
  size_t which;
  const gcap_option_t* row = find(table, name.key, &which);
  if (row == NULL) return unknown_key(table, key, &name);
  const uint8_t weight = (uint8_t)(name.rank * (GCAP_OPTION_MAX_ALIASES + 1) - which);
  uint8_t* given_weight = &given[row - table->rows];
  const bool counts = weight >= *given_weight;
  if (!read_value(row, value, counts, fields)) return refused_value(table, row, key, value);
  if (counts) *given_weight = weight;
  return NULL;
}

static gcap_status_t check_pair(const gcap_option_table_t* table, const char* key, const char* value, size_t index) {
  if (key == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: keys[%zu] is NULL", table->function, index);
  if (value != NULL) return NULL;
  shown_t shown;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: values[%zu] is NULL, the value of %s '%s'", table->function, index,
                     table->noun, show(key, &shown));
}

gcap_status_t gcap_option_table_parse(const gcap_option_table_t* table, const gcap_option_prefixes_t* prefixes,
                                      void* fields, const char* const* keys, const char* const* values, size_t count,
                                      uint8_t* out_given) {
  memset(out_given, 0, GCAP_OPTION_MAX_ROWS * sizeof(*out_given));
  for (size_t i = 0; i < count; ++i) {
    GCAP_RETURN_IF_ERROR(check_pair(table, keys[i], values[i], i));
    GCAP_RETURN_IF_ERROR(set(table, prefixes, fields, keys[i], values[i], out_given));
  }
  return NULL;
}
