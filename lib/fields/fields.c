// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The structs by name. structs.inc is one list of rows: a row for a struct, then a row for each of its fields. The
// compiler fills in offsets and sizes, so a field that is no more does not compile; the test finds those that are new.
// Locking: none, the rows are constant.

#include "gcap/fields.h"

#include <stdbool.h>
#include <string.h>

#include "gcap/allocator_ops.h"
#include "gcap/buckets.h"
#include "gcap/external_allocator.h"
#include "gcap/runtime.h"
#include "gcap/runtime_ops.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/text.h"

enum { kMaxListBytes = 1024 };

typedef struct row {
  const char* name;  // of a struct: its type
  const char* part;  // of a field that is a struct: its type
  size_t offset, bytes;
  bool is_struct;
  void (*init)(void* memory);
} row_t;

#define STRUCT(base) \
  static void init_##base(void* memory) { base##_init(memory); }
#define PLAIN(base)
#define FIELD(base, field)
#define PART(base, field, type)
#include "lib/fields/structs.inc"
#undef STRUCT
#undef PLAIN
#undef FIELD
#undef PART

#define STRUCT(base) {.name = #base "_t", .bytes = sizeof(base##_t), .is_struct = true, .init = init_##base},
#define PLAIN(base) {.name = #base "_t", .bytes = sizeof(base##_t), .is_struct = true},
#define FIELD(base, field) \
  {.name = #field, .offset = offsetof(base##_t, field), .bytes = sizeof(((base##_t*)0)->field)},
#define PART(base, field, type) \
  {.name = #field, .part = #type "_t", .offset = offsetof(base##_t, field), .bytes = sizeof(type##_t)},
static const row_t rows[] = {
#include "lib/fields/structs.inc"
};
static const row_t* const rows_end = rows + sizeof(rows) / sizeof(*rows);

// `length` bytes of `name` are the row's name.
static bool is_called(const row_t* row, const char* name, size_t length) {
  return strncmp(row->name, name, length) == 0 && row->name[length] == '\0';
}

static const row_t* find_struct(const char* type_name) {
  for (const row_t* row = rows; row < rows_end; ++row) {
    if (row->is_struct && strcmp(row->name, type_name) == 0) return row;
  }
  return NULL;
}

static const row_t* find_field(const row_t* of, const char* name, size_t length) {
  for (const row_t* row = of + 1; row < rows_end && !row->is_struct; ++row) {
    if (is_called(row, name, length)) return row;
  }
  return NULL;
}

static gcap_status_t no_such_struct(const char* type_name) {
  return GCAP_STATUS(GCAP_NOT_FOUND, "there is no struct '%s' in the headers of gcap's core, such as gcap_run_t",
                     type_name);
}

static gcap_status_t no_such_field(const row_t* of, const char* name) {
  char chars[kMaxListBytes];
  gcap_text_t list;
  gcap_text_init(&list, chars, sizeof(chars));
  for (const row_t* row = of + 1; row < rows_end && !row->is_struct; ++row) {
    gcap_text_add(&list, "%s%s", row == of + 1 ? "" : ", ", row->name);
  }
  return GCAP_STATUS(GCAP_NOT_FOUND, "%s has no field '%s': expected one of %s", of->name, name, chars);
}

gcap_status_t gcap_struct_find_field(const char* type_name, const char* field_name, size_t* out_offset,
                                     size_t* out_bytes) {
  if (out_offset != NULL) *out_offset = 0;
  if (out_bytes != NULL) *out_bytes = 0;
  GCAP_RETURN_IF_NULL(type_name);
  const row_t* row = find_struct(type_name);
  if (row == NULL) return no_such_struct(type_name);
  size_t offset = 0;
  for (const char* name = field_name; name != NULL;) {
    const char* dot = strchr(name, '.');
    const row_t* field = find_field(row, name, dot != NULL ? (size_t)(dot - name) : strlen(name));
    if (field == NULL || (dot != NULL && field->part == NULL)) return no_such_field(row, name);
    offset += field->offset;
    row = dot != NULL ? find_struct(field->part) : field;
    name = dot != NULL ? dot + 1 : NULL;
  }
  if (out_offset != NULL) *out_offset = offset;
  if (out_bytes != NULL) *out_bytes = row->bytes;
  return NULL;
}

gcap_status_t gcap_struct_init(const char* type_name, void* memory, size_t bytes) {
  GCAP_RETURN_IF_NULL(type_name);
  GCAP_RETURN_IF_NULL(memory);
  const row_t* row = find_struct(type_name);
  if (row == NULL) return no_such_struct(type_name);
  if (bytes < row->bytes) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s has %zu bytes, and the memory has %zu", row->name, row->bytes, bytes);
  }
  memset(memory, 0, row->bytes);
  if (row->init != NULL) {
    row->init(memory);
  } else if (find_field(row, "struct_size", strlen("struct_size")) != NULL) {
    memcpy(memory, &row->bytes, sizeof(row->bytes));
  }
  return NULL;
}
