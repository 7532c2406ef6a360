// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The values of options. Each kind has a reader and a printer, and what is printed is read again as the same value.
// A value is read as a whole or not at all: no blanks, no signs, nothing behind it. No locking: values only.

#include "lib/options/value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/options.h"

// --- Numbers --------------------------------------------------------------------------------------------------------

static const char* const allowed_texts[] = {
    [GCAP_OPTION_BOOL] = "0, 1, true or false",
    [GCAP_OPTION_FLAG] = "0 or 1",
    [GCAP_OPTION_NOT] = "0 or 1",
    [GCAP_OPTION_DEVICE] = "a whole number from 0 to 2147483647",
    [GCAP_OPTION_GRAPH_ID] = "a whole number from -1 (never capture) to 2147483647",
    [GCAP_OPTION_COUNT] = "a whole number from 0 to 2147483647",
    [GCAP_OPTION_CALLS] = "a whole number from 0 to 65536",
    [GCAP_OPTION_NUMBER] = "a whole number from 0 to 18446744073709551615",
    [GCAP_OPTION_BYTES] = "a whole number of bytes from 0 to 18446744073709551615",
    [GCAP_OPTION_BYTES_64] = "a whole number of bytes from 0 to 18446744073709551615",
    [GCAP_OPTION_ADDRESS] = "an address as a decimal number or 0x…",
    [GCAP_OPTION_PATH] = "a path of at most 255 bytes in one line, or nothing",
    [GCAP_OPTION_ARENAS] = "nothing, or arenas of devices 0 to 63, as gpu:0;gpu:1",
    [GCAP_OPTION_STRATEGY] = "0 or kNextPowerOfTwo (grow ahead), 1 or kSameAsRequested",
    [GCAP_OPTION_POLICY] = "min_runs or stable",
    [GCAP_OPTION_SCOPE] = "thread or session",
    [GCAP_OPTION_AUDIT] = "off, on_demand or each_replay",
    [GCAP_OPTION_CONV_SEARCH] = "EXHAUSTIVE (0), HEURISTIC (1) or DEFAULT (2)",
    [GCAP_OPTION_BINDINGS] = "fixed, copy or relocate",
    [GCAP_OPTION_TEXT] = "any text",
};

_Static_assert(GCAP_CAPTURE_MAX_LEDGER_CALLS == 65536, "the text of GCAP_OPTION_CALLS has it");
_Static_assert(SIZE_MAX == UINT64_MAX, "the texts of GCAP_OPTION_NUMBER and GCAP_OPTION_BYTES have it");
_Static_assert(GCAP_OPTIONS_MAX_PATH_BYTES == 256, "the text of GCAP_OPTION_PATH has it");

const char* gcap_option_value_allowed(gcap_option_kind_t kind) { return allowed_texts[kind]; }

// A whole non-negative number up to `max`; `base` 10 or 16. A sign is not a number here.
static bool parse_unsigned(const char* text, int base, uint64_t max, uint64_t* out_value) {
  if (text[0] < '0' || text[0] > '9') return false;
  char* end = NULL;
  errno = 0;
  unsigned long long value = strtoull(text, &end, base);
  if (errno != 0 || *end != '\0' || value > max) return false;
  *out_value = value;
  return true;
}

// Into a field of `field_bytes`, four or eight.
static bool read_number(const char* text, uint64_t max, void* field, size_t field_bytes) {
  uint64_t value = 0;
  if (!parse_unsigned(text, 10, max, &value)) return false;
  const uint32_t narrow = (uint32_t)value;
  memcpy(field, field_bytes == sizeof(narrow) ? (const void*)&narrow : (const void*)&value, field_bytes);
  return true;
}

static bool read_graph_id(const char* text, void* field) {
  const int none = GCAP_GRAPH_ID_NONE;
  if (strcmp(text, "-1") != 0) return read_number(text, INT32_MAX, field, sizeof(int));
  memcpy(field, &none, sizeof(none));
  return true;
}

// As a number, or 0x and hexadecimal digits. Base 0 would read a leading 0 as octal.
static bool read_address(const char* text, void* field) {
  const bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  uint64_t value = 0;
  if (!parse_unsigned(text, is_hex ? 16 : 10, UINTPTR_MAX, &value)) return false;
  const uintptr_t address = (uintptr_t)value;
  memcpy(field, &address, sizeof(address));
  return true;
}

// --- Words ----------------------------------------------------------------------------------------------------------

typedef struct word {
  const char* text;  // NULL ends a list
  int value;
} word_t;

// Of two words for a value the first one is printed.
static const word_t bool_words[] = {{"0", 0},     {"1", 1},    {"false", 0}, {"true", 1},
                                    {"False", 0}, {"True", 1}, {NULL, 0}};
static const word_t flag_words[] = {{"0", 0}, {"1", 1}, {NULL, 0}};
static const word_t not_words[] = {{"0", 1}, {"1", 0}, {NULL, 0}};
static const word_t strategy_words[] = {{"0", 0}, {"1", 1}, {"kNextPowerOfTwo", 0}, {"kSameAsRequested", 1}, {NULL, 0}};
static const word_t policy_words[] = {
    {"min_runs", GCAP_GRAPH_POLICY_MIN_RUNS}, {"stable", GCAP_GRAPH_POLICY_STABLE}, {NULL, 0}};
static const word_t scope_words[] = {
    {"thread", GCAP_GRAPH_SCOPE_THREAD}, {"session", GCAP_GRAPH_SCOPE_SESSION}, {NULL, 0}};
static const word_t audit_words[] = {{"off", GCAP_GRAPH_AUDIT_OFF},
                                     {"on_demand", GCAP_GRAPH_AUDIT_ON_DEMAND},
                                     {"each_replay", GCAP_GRAPH_AUDIT_EACH_REPLAY},
                                     {NULL, 0}};
static const word_t conv_search_words[] = {{"EXHAUSTIVE", GCAP_CONV_SEARCH_EXHAUSTIVE},
                                           {"HEURISTIC", GCAP_CONV_SEARCH_HEURISTIC},
                                           {"DEFAULT", GCAP_CONV_SEARCH_DEFAULT},
                                           {"0", GCAP_CONV_SEARCH_EXHAUSTIVE},
                                           {"1", GCAP_CONV_SEARCH_HEURISTIC},
                                           {"2", GCAP_CONV_SEARCH_DEFAULT},
                                           {NULL, 0}};

// gcap_bindings_t, which is the kit's: kit/session/run_options.c sees to it that these are its numbers.
static const word_t bindings_words[] = {{"fixed", 0}, {"copy", 1}, {"relocate", 2}, {NULL, 0}};

// The words of a kind; NULL: it has none.
static const word_t* words_of(gcap_option_kind_t kind) {
  switch (kind) {
    case GCAP_OPTION_BOOL: return bool_words;
    case GCAP_OPTION_FLAG: return flag_words;
    case GCAP_OPTION_NOT: return not_words;
    case GCAP_OPTION_STRATEGY: return strategy_words;
    case GCAP_OPTION_POLICY: return policy_words;
    case GCAP_OPTION_SCOPE: return scope_words;
    case GCAP_OPTION_AUDIT: return audit_words;
    case GCAP_OPTION_CONV_SEARCH: return conv_search_words;
    case GCAP_OPTION_BINDINGS: return bindings_words;
    default: return NULL;
  }
}

// Whether a field with words is an enumeration, else it is a bool.
static bool is_enum(gcap_option_kind_t kind) { return kind > GCAP_OPTION_STRATEGY; }

_Static_assert(sizeof(gcap_graph_policy_t) == sizeof(int) && sizeof(gcap_graph_scope_t) == sizeof(int) &&
                   sizeof(gcap_graph_audit_level_t) == sizeof(int) && sizeof(gcap_conv_search_t) == sizeof(int),
               "enumerations are read as int");

static bool read_word(const word_t* words, const char* text, bool as_enum, void* field) {
  for (; words->text != NULL; ++words) {
    if (strcmp(words->text, text) != 0) continue;
    if (as_enum) {
      memcpy(field, &words->value, sizeof(words->value));
    } else {
      *(bool*)field = words->value != 0;
    }
    return true;
  }
  return false;
}

static const char* word_of(const word_t* words, bool as_enum, const void* field) {
  int value = 0;
  if (as_enum) {
    memcpy(&value, field, sizeof(value));
  } else {
    value = *(const bool*)field;
  }
  while (words->text != NULL && words->value != value) ++words;
  return words->text != NULL ? words->text : "?";  // gcap_options_check refuses such an enumeration
}

// --- Others ---------------------------------------------------------------------------------------------------------

static bool read_path(const char* text, char* path) {
  const size_t length = strlen(text);
  if (length >= GCAP_OPTIONS_MAX_PATH_BYTES || strchr(text, '\n') != NULL) return false;
  memcpy(path, text, length + 1);
  return true;
}

enum { kMaxArenas = 64 };  // bits of the field

// One entry of the list, of so many characters.
static bool read_arena(const char* text, size_t length, uint64_t* arenas) {
  static const char gpu[] = "gpu:";
  const size_t gpu_length = sizeof(gpu) - 1;
  char number[3] = {0};  // of two digits
  if (length <= gpu_length || length - gpu_length >= sizeof(number) || strncmp(text, gpu, gpu_length) != 0)
    return false;
  memcpy(number, text + gpu_length, length - gpu_length);
  uint64_t device = 0;
  if (!parse_unsigned(number, 10, kMaxArenas - 1, &device)) return false;
  *arenas |= UINT64_C(1) << device;
  return true;
}

static bool read_arenas(const char* text, void* field) {
  uint64_t arenas = 0;
  for (const char* at = text; *text != '\0';) {
    const size_t length = strcspn(at, ";");
    if (!read_arena(at, length, &arenas)) return false;
    if (at[length] == '\0') break;
    at += length + 1;
  }
  memcpy(field, &arenas, sizeof(arenas));
  return true;
}

// --- All kinds ------------------------------------------------------------------------------------------------------

bool gcap_option_value_read(gcap_option_kind_t kind, const char* text, void* field) {
  const word_t* words = words_of(kind);
  if (words != NULL) return read_word(words, text, is_enum(kind), field);
  switch (kind) {
    case GCAP_OPTION_DEVICE: return read_number(text, INT32_MAX, field, sizeof(int));
    case GCAP_OPTION_GRAPH_ID: return read_graph_id(text, field);
    case GCAP_OPTION_COUNT: return read_number(text, INT32_MAX, field, sizeof(uint32_t));
    case GCAP_OPTION_CALLS: return read_number(text, GCAP_CAPTURE_MAX_LEDGER_CALLS, field, sizeof(uint32_t));
    case GCAP_OPTION_NUMBER:
    case GCAP_OPTION_BYTES: return read_number(text, SIZE_MAX, field, sizeof(size_t));
    case GCAP_OPTION_BYTES_64: return read_number(text, UINT64_MAX, field, sizeof(uint64_t));
    case GCAP_OPTION_ADDRESS: return read_address(text, field);
    case GCAP_OPTION_PATH: return read_path(text, field);
    case GCAP_OPTION_ARENAS: return read_arenas(text, field);
    default: return kind == GCAP_OPTION_TEXT;
  }
}

void gcap_option_value_print(gcap_option_kind_t kind, const void* field, gcap_text_t* text) {
  const word_t* words = words_of(kind);
  if (words != NULL) {
    gcap_text_add(text, "%s", word_of(words, is_enum(kind), field));
    return;
  }
  switch (kind) {
    case GCAP_OPTION_DEVICE:
    case GCAP_OPTION_GRAPH_ID: gcap_text_add(text, "%d", *(const int*)field); return;
    case GCAP_OPTION_COUNT:
    case GCAP_OPTION_CALLS: gcap_text_add(text, "%" PRIu32, *(const uint32_t*)field); return;
    case GCAP_OPTION_NUMBER:
    case GCAP_OPTION_BYTES: gcap_text_add(text, "%zu", *(const size_t*)field); return;
    case GCAP_OPTION_BYTES_64: gcap_text_add(text, "%" PRIu64, *(const uint64_t*)field); return;
    case GCAP_OPTION_PATH: gcap_text_add(text, "%s", (const char*)field); return;
    case GCAP_OPTION_ADDRESS: {
      uintptr_t address = 0;
      memcpy(&address, field, sizeof(address));
      gcap_text_add(text, "%s%" PRIxPTR, address == 0 ? "" : "0x", address);
      return;
    }
    default: return;  // a text has no field, and arenas are of runs alone, whose options nobody prints
  }
}
