// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// memory_file.h: a file in memory, for readers that take a path.
#ifndef GCAP_TEST_FUZZ_MEMORY_FILE_H_
#define GCAP_TEST_FUZZ_MEMORY_FILE_H_

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/fuzz/input.h"

typedef struct fuzz_memory_file {
  int descriptor;
  char path[32];
} fuzz_memory_file_t;

// Makes a file of these bytes; close its descriptor.
static inline fuzz_memory_file_t fuzz_memory_file(const uint8_t* data, size_t bytes) {
  fuzz_memory_file_t file = {memfd_create("fuzz", MFD_CLOEXEC), ""};
  FUZZ_CHECK(file.descriptor >= 0, "no file in memory");
  FUZZ_CHECK(write(file.descriptor, data, bytes) == (ssize_t)bytes, "%zu bytes not written", bytes);
  snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.descriptor);
  return file;
}

#endif  // GCAP_TEST_FUZZ_MEMORY_FILE_H_
