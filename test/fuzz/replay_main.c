// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The main function of a target that is built without libFuzzer: runs it once on each file that is named, and on each
// input of a file whose name ends in .pack.
#include "test/fuzz/input.h"
#include "test/fuzz/pack.h"

static size_t replayed;

static void replay(void* context, const char* name, const uint8_t* data, size_t bytes) {
  (void)context;
  fprintf(stderr, "%s\n", name);  // so that the last line before a crash names the input
  LLVMFuzzerTestOneInput(data, bytes);
  ++replayed;
}

static bool replay_file(const char* path, char error[FUZZ_PACK_ERROR_BYTES]) {
  size_t bytes;
  char* const data = fuzz_pack_read_file(path, &bytes, error);
  if (data == NULL) return false;
  replay(NULL, path, (const uint8_t*)data, bytes);
  free(data);
  return true;
}

int main(int argc, char** argv) {
  char error[FUZZ_PACK_ERROR_BYTES];
  for (int i = 1; i < argc; ++i) {
    const char* end = strrchr(argv[i], '.');
    const bool packed = end != NULL && strcmp(end, ".pack") == 0;
    FUZZ_CHECK(packed ? fuzz_pack_read(argv[i], replay, NULL, error) : replay_file(argv[i], error), "%s", error);
  }
  printf("%zu inputs replayed\n", replayed);
  return replayed > 0 ? 0 : 1;
}
