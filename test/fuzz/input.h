// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// input.h: what every fuzz target shares: its input, read from front to back, and how it says that it found something.
//
// Reading past the end gives zeros, so that each prefix of an input is an input, too.
#ifndef GCAP_TEST_FUZZ_INPUT_H_
#define GCAP_TEST_FUZZ_INPUT_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

// The target. Returns 0. Keeps no state from one call to the next.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

// A finding: libFuzzer writes the input to a file, and a replay dies here.
#define FUZZ_CHECK(condition, ...)                                             \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: expected %s: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                            \
      fputc('\n', stderr);                                                     \
      abort();                                                                 \
    }                                                                          \
  } while (0)

typedef struct fuzz_input {
  const uint8_t* at;
  size_t left;
} fuzz_input_t;

static inline uint8_t fuzz_byte(fuzz_input_t* input) {
  if (input->left == 0) return 0;
  --input->left;
  return *input->at++;
}

// 0 to `bound` - 1; bound is 1 to 256.
static inline unsigned fuzz_below(fuzz_input_t* input, unsigned bound) { return fuzz_byte(input) % bound; }

// Copies what comes before the next `end` byte, at most `capacity` - 1 bytes of it, and a zero. `end` is consumed.
static inline size_t fuzz_text(fuzz_input_t* input, char end, char* out, size_t capacity) {
  size_t bytes = 0;
  while (input->left > 0) {
    const char c = (char)fuzz_byte(input);
    if (c == end) break;
    if (bytes + 1 < capacity) out[bytes++] = c;
  }
  out[bytes] = '\0';
  return bytes;
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_FUZZ_INPUT_H_
