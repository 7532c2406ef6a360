// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// mangled.h: the names in a mangled C++ name.
#ifndef GCAP_DOCTOR_REPORT_MANGLED_H_
#define GCAP_DOCTOR_REPORT_MANGLED_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GCAP_DOCTOR_MANGLED_BYTES = 512 };  // of a name; longer ones are cut

typedef struct gcap_doctor_mangled {
  char name[GCAP_DOCTOR_MANGLED_BYTES];   // "at::native::reduce_kernel"
  char outer[GCAP_DOCTOR_MANGLED_BYTES];  // the first name in its template arguments; "" for none
  char inner[GCAP_DOCTOR_MANGLED_BYTES];  // the first name in that one's own template arguments; "" for none
} gcap_doctor_mangled_t;

// Reads the names of a symbol that is mangled as GCC, Clang and nvcc do. False for any other symbol.
bool gcap_doctor_mangled_read(const char* symbol, gcap_doctor_mangled_t* out_names);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_REPORT_MANGLED_H_
