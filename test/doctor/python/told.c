// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What doctor/python tells the recorder, a line a call on standard output.
#include <inttypes.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void gcap_doctor_blocks_follow(const char* framework);
EXPORT void gcap_doctor_block_made(uint64_t address, uint64_t bytes, int what, const char* function);
EXPORT void gcap_doctor_block_seen(uint64_t address, uint64_t bytes, int what, const char* place);
EXPORT void gcap_doctor_block_freed(uint64_t address, const char* function);
EXPORT void gcap_doctor_blocks_note(const char* text);

#define TELL(...)        \
  do {                   \
    printf(__VA_ARGS__); \
    fflush(stdout);      \
  } while (0)

void gcap_doctor_blocks_follow(const char* framework) { TELL("follow %s\n", framework); }

void gcap_doctor_block_made(uint64_t address, uint64_t bytes, int what, const char* function) {
  TELL("made 0x%" PRIx64 " %" PRIu64 " %d %s\n", address, bytes, what, function);
}

void gcap_doctor_block_seen(uint64_t address, uint64_t bytes, int what, const char* place) {
  TELL("seen 0x%" PRIx64 " %" PRIu64 " %d %s\n", address, bytes, what, place != NULL ? place : "-");
}

void gcap_doctor_block_freed(uint64_t address, const char* function) {
  TELL("freed 0x%" PRIx64 " %s\n", address, function);
}

void gcap_doctor_blocks_note(const char* text) { TELL("note %s\n", text); }
