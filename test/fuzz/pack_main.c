// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The command by which tools/fuzz packs and unpacks: `unpack PACK FOLDER` writes each input to a file of its name,
// `pack FOLDER` prints the pack of the folder's files. Exits with 2 and one sentence where it cannot.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fuzz/pack.h"

#define DIE(...) (fprintf(stderr, "fuzz: "), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(2))

static void write_input(void* folder, const char* name, const uint8_t* data, size_t bytes) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s", (const char*)folder, name);
  FILE* file = fopen(path, "wb");
  const bool written = file != NULL && fwrite(data, 1, bytes, file) == bytes;
  if (file == NULL || fclose(file) != 0 || !written) DIE("%s cannot be written: %s", path, strerror(errno));
}

static void print_input(const char* folder, const char* name) {
  char path[4096], error[FUZZ_PACK_ERROR_BYTES];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  if (!fuzz_pack_name_is_good(name)) DIE("'%s' is no name of an input: %s", name, FUZZ_PACK_NAME_RULE);
  size_t bytes;
  char* const data = fuzz_pack_read_file(path, &bytes, error);
  if (data == NULL) DIE("%s", error);
  printf("%s:", name);
  for (size_t i = 0; i < bytes; ++i) printf("%02x", (unsigned char)data[i]);
  putchar('\n');
  free(data);
}

static int is_visible(const struct dirent* entry) { return entry->d_name[0] != '.'; }

static void pack(const char* folder) {
  struct dirent** entries;
  const int count = scandir(folder, &entries, is_visible, alphasort);
  if (count < 0) DIE("%s cannot be read: %s", folder, strerror(errno));
  fputs(FUZZ_PACK_HEADING, stdout);
  for (int i = 0; i < count; ++i) {
    print_input(folder, entries[i]->d_name);
    free(entries[i]);
  }
  free(entries);
  fputs(FUZZ_PACK_END, stdout);
  if (fflush(stdout) != 0) DIE("the pack of %s cannot be written: %s", folder, strerror(errno));
}

int main(int argc, char** argv) {
  char error[FUZZ_PACK_ERROR_BYTES];
  if (argc == 4 && strcmp(argv[1], "unpack") == 0) {
    if (!fuzz_pack_read(argv[2], write_input, argv[3], error)) DIE("%s", error);
  } else if (argc == 3 && strcmp(argv[1], "pack") == 0) {
    pack(argv[2]);
  } else {
    DIE("usage: pack FOLDER, or unpack PACK FOLDER");
  }
  return 0;
}
