// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// fields.h: the structs of the core's headers by name, for a program that cannot read these headers: Python's ctypes,
// Rust, Julia. Such a program asks the library how large a struct is and where a field lies, and knows no layout.
//
// A struct is named as in C ("gcap_run_t"), and so is a field ("id"). A field of an embedded struct has a dot:
// "graph.max_graphs" of gcap_options_t. Options are set more easily by key and text: gcap_options_parse (options.h).
// Programs in C and C++ use the structs and their _init functions.
//
// Thread:   any.
// Capture:  legal.
// Lifetime: the answers hold for as long as the library is loaded. Another version may answer otherwise.
#ifndef GCAP_FIELDS_H_
#define GCAP_FIELDS_H_

#include <stddef.h>

#include "gcap/api.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Finds a field: how many bytes it lies behind the struct's begin, and how many it has. `field_name` NULL: the struct
// itself, at 0. An outcome that nobody wants may be NULL.
//   INVALID_ARGUMENT  `type_name` is NULL
//   NOT_FOUND         no such struct in the core's headers, or no such field of the struct; the message names the
//                     fields that there are
GCAP_API gcap_status_t gcap_struct_find_field(const char* type_name, const char* field_name, size_t* out_offset,
                                              size_t* out_bytes) GCAP_NODISCARD;

// Makes `memory`, which has `bytes` bytes, a struct with its defaults, as the struct's _init function does. A struct
// without such a function becomes zero, and one that begins with struct_size has its size there.
//   INVALID_ARGUMENT  `type_name` or `memory` is NULL, or fewer bytes than the struct has
//   NOT_FOUND         no such struct in the core's headers
GCAP_API gcap_status_t gcap_struct_init(const char* type_name, void* memory, size_t bytes) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_FIELDS_H_
