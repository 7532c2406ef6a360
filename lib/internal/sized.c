// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sized structs. Reading and writing are one walk along both layouts: a stretch of plain fields is copied as far as
// both have it, an embedded struct is walked in its turn. Nothing is shared, so there is nothing to lock.

#include "lib/internal/sized.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum direction { READ, WRITE } direction_t;

static size_t size_of(const char* sized) {
  size_t bytes;
  memcpy(&bytes, sized, sizeof(bytes));
  return bytes;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static void copy(direction_t direction, char* given, char* known, size_t bytes) {
  if (direction == READ) {
    memcpy(known, given, bytes);
  } else {
    memcpy(given, known, bytes);
  }
}

// What only the caller knows: zero where the library writes, and to be zero where the library reads.
static bool settle_unknown(direction_t direction, char* unknown, size_t bytes) {
  if (direction == WRITE) memset(unknown, 0, bytes);
  for (size_t i = 0; i < bytes; ++i) {
    if (unknown[i] != 0) return false;
  }
  return true;
}

static bool is_of_a_version(size_t bytes) { return bytes >= 2 * sizeof(size_t) && bytes % sizeof(size_t) == 0; }

static gcap_status_t refuse_size(const gcap_sized_type_t* type, size_t bytes) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "%s_t: struct_size is %zu, which is no version's: fill the struct with %s_init", type->name, bytes,
                     type->name);
}

// Walks `given`, of `room` bytes at most, beside `known`.
static gcap_status_t walk(direction_t direction, const gcap_sized_type_t* type, char* given, size_t room, char* known) {
  const size_t given_bytes = room < sizeof(size_t) ? 0 : size_of(given);
  if (!is_of_a_version(given_bytes) || given_bytes > room) return refuse_size(type, given_bytes);
  size_t at_given = sizeof(size_t), at_known = sizeof(size_t);
  for (size_t i = 0; i < type->num_parts && at_given < given_bytes; ++i) {
    const gcap_sized_part_t* part = &type->parts[i];
    const size_t plain_bytes = part->offset - at_known;
    copy(direction, given + at_given, known + at_known, smaller(plain_bytes, given_bytes - at_given));
    at_given += plain_bytes;
    at_known += plain_bytes;
    if (at_given >= given_bytes) return NULL;
    GCAP_RETURN_IF_ERROR(walk(direction, part->type, given + at_given, given_bytes - at_given, known + at_known));
    at_given += size_of(given + at_given);
    at_known += part->type->bytes;
  }
  const size_t bytes = smaller(given_bytes - at_given, type->bytes - at_known);
  copy(direction, given + at_given, known + at_known, bytes);
  at_given += bytes;
  if (settle_unknown(direction, given + at_given, given_bytes - at_given)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "%s_t: struct_size is %zu, this gcap knows %zu bytes, and what lies beyond is not zero",
                     type->name, given_bytes, type->bytes);
}

gcap_status_t gcap_sized_read(const gcap_sized_type_t* type, const void* given, void* known) {
  if (given == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s_t is NULL", type->name);
  // The walk writes into `given` only when it is told to write.
  return walk(READ, type, (char*)given, SIZE_MAX, known);
}

gcap_status_t gcap_sized_check(const gcap_sized_type_t* type, const void* given) {
  const size_t bytes = size_of(given);
  return is_of_a_version(bytes) ? NULL : refuse_size(type, bytes);
}

void gcap_sized_write(const gcap_sized_type_t* type, const void* known, void* given) {
  if (given == NULL) return;
  gcap_status_ignore(walk(WRITE, type, given, SIZE_MAX, (char*)known));  // the sizes are the caller's header's
}

gcap_status_t gcap_sized_read_table(const char* name, const void* given, size_t bytes, void* known) {
  const size_t given_bytes = size_of(given);
  if (!is_of_a_version(given_bytes)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: struct_size is %zu, which is no version's: set sizeof(%s)", name,
                       given_bytes, name);
  }
  memcpy(known, given, smaller(bytes, given_bytes));
  return NULL;
}
