// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A daemon closes all descriptors, and opens its data base where the recorder's file was. A file is known by its device
// and number. Locking: none, the caller's.
#include "doctor/record/own_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

bool gcap_doctor_own_file_take(gcap_doctor_own_file_t* file, int descriptor) {
  struct stat status;
  file->descriptor = -1;
  if (descriptor < 0) return false;
  if (fstat(descriptor, &status) != 0) {
    const int error = errno;
    close(descriptor);
    errno = error;
    return false;
  }
  *file = (gcap_doctor_own_file_t){descriptor, status.st_dev, status.st_ino};
  return true;
}

bool gcap_doctor_own_file_is_there(const gcap_doctor_own_file_t* file) {
  struct stat status;
  return file->descriptor >= 0 && fstat(file->descriptor, &status) == 0 && status.st_dev == file->device &&
         status.st_ino == file->number;
}

void gcap_doctor_own_file_close(gcap_doctor_own_file_t* file) {
  if (gcap_doctor_own_file_is_there(file)) close(file->descriptor);
  file->descriptor = -1;
}
