// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The main function of a target that is built without libFuzzer: runs it once on each file that is named, and on each
// file of a folder that is named.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/fuzz/input.h"

static size_t replayed;

static void replay_file(const char* path) {
  FILE* file = fopen(path, "rb");
  FUZZ_CHECK(file != NULL, "%s cannot be opened", path);
  static uint8_t bytes[1 << 20];
  const size_t count = fread(bytes, 1, sizeof(bytes), file);
  FUZZ_CHECK(count < sizeof(bytes) && !ferror(file), "%s cannot be read, or is too large", path);
  fclose(file);
  fprintf(stderr, "%s\n", path);  // so that the last line before a crash names the input
  // A copy of its own size on the heap, so that a sanitizer sees a read past the end.
  uint8_t* exact = malloc(count > 0 ? count : 1);
  FUZZ_CHECK(exact != NULL, "no memory");
  memcpy(exact, bytes, count);
  LLVMFuzzerTestOneInput(exact, count);
  free(exact);
  ++replayed;
}

static void replay_folder(const char* path) {
  struct dirent** entries;
  const int count = scandir(path, &entries, NULL, alphasort);
  FUZZ_CHECK(count >= 0, "%s is no folder", path);
  for (int i = 0; i < count; ++i) {
    char file[4096];
    snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
    if (entries[i]->d_name[0] != '.') replay_file(file);
    free(entries[i]);
  }
  free(entries);
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    DIR* folder = opendir(argv[i]);
    if (folder == NULL) {
      replay_file(argv[i]);
    } else {
      closedir(folder);
      replay_folder(argv[i]);
    }
  }
  printf("%zu inputs replayed\n", replayed);
  return replayed > 0 ? 0 : 1;
}
