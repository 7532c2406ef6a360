// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// module.h: the file of a module on this machine.
#ifndef GCAP_DOCTOR_SYMBOLS_MODULE_H_
#define GCAP_DOCTOR_SYMBOLS_MODULE_H_

#include <sys/types.h>

#include "doctor/base/build_id.h"

typedef struct gcap_doctor_module_file {
  off_t bytes;                            // 0 if there is nothing to ask a symbolizer about
  char build[GCAP_DOCTOR_BUILD_ID_TEXT];  // "" for none
} gcap_doctor_module_file_t;

// Looks at the file of that path. A '[vdso]' is no file.
void gcap_doctor_module_look(const char* path, gcap_doctor_module_file_t* out);

#endif  // GCAP_DOCTOR_SYMBOLS_MODULE_H_
