// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Numbers are handled as keys: unsigned integers of 64 bits in the order of the numbers, whatever their type. So bounds
// are compared, and a third number is found between them, in one way. Little-endian, as all machines that CUDA runs on.
// Nothing is shared, so nothing is locked.

#include "lib/contents/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/internal/text.h"

// --- Numbers --------------------------------------------------------------------------------------------------------

static uint64_t load(const gcap_value_bytes_t* bytes, size_t count) {
  uint64_t raw = 0;
  memcpy(&raw, bytes->at, count);
  return raw;
}

static uint64_t mask_of(size_t bytes) { return bytes < sizeof(uint64_t) ? ((uint64_t)1 << 8 * bytes) - 1 : UINT64_MAX; }
static uint64_t sign_of(size_t bytes) { return (uint64_t)1 << (8 * bytes - 1); }

// A float whose sign is set comes in the reverse order of its bits.
static uint64_t key_of(const gcap_changing_value_t* value, const gcap_value_bytes_t* bytes) {
  const uint64_t raw = load(bytes, value->bytes), sign = sign_of(value->bytes);
  if (value->type == GCAP_GRAPH_VALUE_UNSIGNED) return raw;
  if (value->type == GCAP_GRAPH_VALUE_FLOAT && (raw & sign) != 0) return ~raw & mask_of(value->bytes);
  return raw ^ sign;
}

static gcap_value_bytes_t bytes_of_key(const gcap_changing_value_t* value, uint64_t key) {
  const uint64_t sign = sign_of(value->bytes);
  uint64_t raw = value->type == GCAP_GRAPH_VALUE_UNSIGNED ? key : key ^ sign;
  if (value->type == GCAP_GRAPH_VALUE_FLOAT && (key & sign) == 0) raw = ~key & mask_of(value->bytes);
  gcap_value_bytes_t bytes = {{0}};
  memcpy(bytes.at, &raw, value->bytes);
  return bytes;
}

static double float_of(const gcap_changing_value_t* value, const gcap_value_bytes_t* bytes) {
  float narrow = 0;
  double wide = 0;
  memcpy(&narrow, bytes->at, sizeof(narrow));
  memcpy(&wide, bytes->at, sizeof(wide));
  return value->bytes == sizeof(narrow) ? (double)narrow : wide;
}

static bool is_number(const gcap_changing_value_t* value, const gcap_value_bytes_t* bytes) {
  if (value->type != GCAP_GRAPH_VALUE_FLOAT) return true;
  const double number = float_of(value, bytes);
  return number == number;
}

bool gcap_value_may_be(const gcap_changing_value_t* value, const gcap_value_bytes_t* bytes) {
  if (value->type == GCAP_GRAPH_VALUE_BYTES) return true;
  const uint64_t key = key_of(value, bytes);
  return is_number(value, bytes) && key_of(value, &value->low) <= key && key <= key_of(value, &value->high);
}

void gcap_value_write(const gcap_changing_value_t* value, const gcap_value_bytes_t* bytes, char* text,
                      size_t capacity) {
  const uint64_t raw = load(bytes, value->bytes < sizeof(raw) ? value->bytes : sizeof(raw));
  switch (value->type) {
    case GCAP_GRAPH_VALUE_UNSIGNED: snprintf(text, capacity, "%" PRIu64, raw); return;
    case GCAP_GRAPH_VALUE_SIGNED: {
      const uint64_t sign = sign_of(value->bytes);
      snprintf(text, capacity, "%" PRId64, (int64_t)((raw ^ sign) - sign));
      return;
    }
    case GCAP_GRAPH_VALUE_FLOAT: snprintf(text, capacity, "%.17g", float_of(value, bytes)); return;
    case GCAP_GRAPH_VALUE_BYTES: break;
  }
  gcap_text_t out;
  gcap_text_init(&out, text, capacity);
  gcap_text_add(&out, "0x");
  for (size_t i = 0; i < value->bytes; ++i) gcap_text_add(&out, "%02x", bytes->at[i]);
}

// --- Checks ---------------------------------------------------------------------------------------------------------

static bool is_size_of(gcap_graph_value_type_t type, size_t bytes) {
  switch (type) {
    case GCAP_GRAPH_VALUE_BYTES: return bytes >= 1 && bytes <= GCAP_GRAPH_VALUE_MAX_BYTES;
    case GCAP_GRAPH_VALUE_SIGNED:
    case GCAP_GRAPH_VALUE_UNSIGNED: return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case GCAP_GRAPH_VALUE_FLOAT: return bytes == 4 || bytes == 8;
  }
  return false;
}

static const char* const type_names[] = {"bytes", "a signed integer", "an unsigned integer", "a float"};

static gcap_status_t check_size(const gcap_changing_value_t* value, size_t index) {
  const size_t type = (size_t)value->type;
  if (is_size_of(value->type, value->bytes)) return NULL;
  if (type >= sizeof(type_names) / sizeof(type_names[0])) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "value %zu '%s' has the type %zu, allowed are 0..%d", index, value->name,
                       type, GCAP_GRAPH_VALUE_FLOAT);
  }
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "value %zu '%s' is %s of %zu bytes, allowed are bytes of 1..%d, integers of 1, 2, 4 or 8, and "
                     "floats of 4 or 8",
                     index, value->name, type_names[type], value->bytes, GCAP_GRAPH_VALUE_MAX_BYTES);
}

gcap_status_t gcap_value_check(const gcap_changing_value_t* value, size_t index) {
  GCAP_RETURN_IF_ERROR(check_size(value, index));
  char low[80], high[80], now[80];
  gcap_value_write(value, &value->low, low, sizeof(low));
  gcap_value_write(value, &value->high, high, sizeof(high));
  gcap_value_write(value, &value->now, now, sizeof(now));
  const bool is_bytes = value->type == GCAP_GRAPH_VALUE_BYTES;
  if (is_bytes && memcmp(value->low.at, value->high.at, value->bytes) == 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "value %zu '%s' has twice the same other bytes %s, allowed are two others", index, value->name,
                       low);
  }
  const bool are_numbers = is_number(value, &value->low) && is_number(value, &value->high);
  if (!is_bytes && (!are_numbers || key_of(value, &value->low) >= key_of(value, &value->high))) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "value %zu '%s' is between %s and %s, allowed are a lower and a higher bound", index,
                       value->name, low, high);
  }
  if (gcap_value_may_be(value, &value->now)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "value %zu '%s' is %s, allowed are %s to %s", index, value->name, now, low,
                     high);
}

// --- Stand-ins ------------------------------------------------------------------------------------------------------

// A number within the bounds whose distance from the lower one has other bits than the present number's, as far as
// there are such. `salt` is another one for each value.
static gcap_value_bytes_t third(const gcap_changing_value_t* value, uint64_t salt) {
  if (value->type == GCAP_GRAPH_VALUE_BYTES) return salt % 2 == 0 ? value->high : value->low;
  const uint64_t low = key_of(value, &value->low), span = key_of(value, &value->high) - low;
  const uint64_t mask = UINT64_MAX >> __builtin_clzll(span);
  uint64_t distance = ~(key_of(value, &value->now) - low) & mask;
  if (distance > span) distance &= mask >> 1;
  // But for the lowest bit, which says whether it is even, no two values have the same.
  const uint64_t salted = distance ^ (salt << 1);
  if (salted <= span) distance = salted;
  return bytes_of_key(value, low + distance);
}

void gcap_values_choose(gcap_changing_value_t* values, size_t count) {
  static const unsigned char orders[][GCAP_STAND_IN_SETS] = {{1, 0, 2}, {0, 1, 2}, {2, 1, 0},
                                                             {1, 2, 0}, {0, 2, 1}, {2, 0, 1}};
  for (size_t i = 0; i < count; ++i) {
    const size_t order = i % (sizeof(orders) / sizeof(orders[0]));
    const gcap_value_bytes_t all[] = {values[i].low, values[i].high, third(&values[i], i)};
    for (size_t set = 0; set < GCAP_STAND_IN_SETS; ++set) values[i].stand_ins[set] = all[orders[order][set]];
  }
}

// --- The search -----------------------------------------------------------------------------------------------------

// Whether the place carries the bytes of the value from `word->from` on, in all captures.
static bool carries(const gcap_changing_value_t* value, const gcap_argument_span_t* span,
                    const gcap_value_word_t* word) {
  if (memcmp(span->real + word->offset, value->now.at + word->from, word->bytes) != 0) return false;
  for (size_t set = 0; set < span->num_sets; ++set) {
    const unsigned char* wanted = value->stand_ins[set].at + word->from;
    if (memcmp(span->elsewhere[set] + word->offset, wanted, word->bytes) != 0) return false;
  }
  return true;
}

// What a value of so many bytes is aligned to, at most `step`.
static size_t step_of(size_t bytes, size_t step) {
  const size_t natural = bytes & -bytes;
  return natural < step ? natural : step;
}

// Counts the places around `at` for pieces of so many bytes. The first of all goes to `out_word`.
static size_t count_places(const gcap_changing_value_t* value, const gcap_argument_span_t* span, size_t at,
                           size_t bytes, size_t step, gcap_value_word_t* out_word) {
  const size_t least = at + 1 >= span->begin + bytes ? at + 1 - bytes : span->begin;
  size_t count = 0;
  for (size_t offset = (least + step - 1) / step * step; offset <= at && offset + bytes <= span->end; offset += step) {
    for (size_t from = 0; from + bytes <= value->bytes; from += bytes) {
      const gcap_value_word_t word = {.value = out_word->value, .offset = offset, .from = from, .bytes = bytes};
      if (!carries(value, span, &word)) continue;
      if (count++ == 0) *out_word = word;
    }
  }
  return count;
}

// Longer pieces come first: what carries a whole value carries its halves too.
static size_t count_of_value(const gcap_changing_value_t* value, const gcap_argument_span_t* span, size_t at,
                             size_t step, gcap_value_word_t* out_word) {
  const size_t sizes[] = {value->bytes, 8, 4};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    if (i > 0 && sizes[i] >= value->bytes) continue;
    const size_t count = count_places(value, span, at, sizes[i], step_of(sizes[i], step), out_word);
    if (count != 0) return count;
  }
  return 0;
}

size_t gcap_values_find(const gcap_changing_value_t* values, size_t count, const gcap_argument_span_t* span, size_t at,
                        gcap_value_word_t* out_word) {
  static const size_t steps[] = {8, 4, 1};
  for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); ++k) {
    size_t found = 0;
    for (size_t i = 0; i < count; ++i) {
      gcap_value_word_t word = {.value = i};
      const size_t more = count_of_value(&values[i], span, at, steps[k], &word);
      if (found == 0 && more != 0) *out_word = word;
      found += more;
    }
    if (found != 0) return found;
  }
  return 0;
}
