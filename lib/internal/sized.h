// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// sized.h: public structs that begin with their size, so that a caller and a shared library may know different versions
// of them.
//
// A sized struct begins with `size_t struct_size`, which the caller's header fills in. Fields are appended only, so the
// shorter of two versions is the beginning of the longer one. A sized struct may have others embedded, each with a size
// of its own: these, and the fields between them, stay where they are, and a new field goes behind the last of them.
// The caller's layout is thus found by walking along the sizes.
//
// The defaults stand in one place, the struct's inline _init in the public header. The library calls it for what an
// older caller's struct lacks, and a table of all structs takes its address. A field that a later version appends has
// the default zero: a newer header's _init then makes a struct that an older library takes.
#ifndef GCAP_LIB_INTERNAL_SIZED_H_
#define GCAP_LIB_INTERNAL_SIZED_H_

#include <stddef.h>

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A sized struct that is embedded in another one.
typedef struct gcap_sized_part {
  size_t offset;
  const struct gcap_sized_type* type;
} gcap_sized_part_t;

// A sized struct as this library knows it.
typedef struct gcap_sized_type {
  const char* name;  // "gcap_scratch_options", for messages: its init function is this with "_init" behind
  size_t bytes;
  const gcap_sized_part_t* parts;  // by offset
  size_t num_parts;
} gcap_sized_type_t;

// Copies the caller's struct `given` into `known`, which has the library's layout and holds the defaults: what the
// caller's version does not have keeps its default.
//   INVALID_ARGUMENT  `given` is NULL; a size is 0 or otherwise none of a version; or a field that this library does
//                     not know is not zero
gcap_status_t gcap_sized_read(const gcap_sized_type_t* type, const void* given, void* known) GCAP_NODISCARD;

// Whether the caller's struct `given`, which is written later, has its size.
//   INVALID_ARGUMENT  a size that is no version's
gcap_status_t gcap_sized_check(const gcap_sized_type_t* type, const void* given) GCAP_NODISCARD;

// Copies `known` into the caller's struct `given`, whose sizes are set: as much as the caller's version has. What only
// the caller knows becomes zero. NULL is fine.
void gcap_sized_write(const gcap_sized_type_t* type, const void* known, void* given);

// Copies a table of functions, which begins with its size too, into `known`, which is zero: what a shorter table lacks
// stays so. What a longer one has beyond is not looked at, as a host of ONNX Runtime does with a newer EP.
//   INVALID_ARGUMENT  a size that is no version's
gcap_status_t gcap_sized_read_table(const char* name, const void* given, size_t bytes, void* known) GCAP_NODISCARD;

// The type of a struct without others embedded. Who embeds the struct needs no more of its module.
#define GCAP_SIZED_TYPE(base) \
  { .name = #base, .bytes = sizeof(base##_t) }

// Defines, for an options struct without others embedded, its type, and a function that reads the caller's struct, NULL
// for the defaults. `linkage`: that of the function, `static` where one file alone reads the struct, else nothing.
#define GCAP_SIZED_OPTIONS(linkage, base)                                            \
  static const gcap_sized_type_t base##_type = GCAP_SIZED_TYPE(base);                \
  linkage gcap_status_t base##_read(const base##_t* given, base##_t* out_options) {  \
    base##_init(out_options);                                                        \
    return given == NULL ? NULL : gcap_sized_read(&base##_type, given, out_options); \
  }                                                                                  \
  _Static_assert(offsetof(base##_t, struct_size) == 0, #base "_t begins with its size")

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_SIZED_H_
