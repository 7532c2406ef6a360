// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// path.h: paths of files as texts.
#ifndef GCAP_DOCTOR_BASE_PATH_H_
#define GCAP_DOCTOR_BASE_PATH_H_

#include <string.h>

// What follows the last slash; all of a path without one.
static inline const char* gcap_doctor_base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

#endif  // GCAP_DOCTOR_BASE_PATH_H_
