// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Printable texts. What statuses and log lines are made of passes here, so no other module needs to look at characters.
// Constant data, no locking.

#include "lib/base/printable.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// The bytes of the control character that `text` begins with; 0 if it begins with another one.
static size_t control_bytes(const unsigned char* text) {
  if (text[0] < 0x20 || text[0] == 0x7f) return 1;
  const bool is_c1 = text[0] == 0xc2 && text[1] >= 0x80 && text[1] <= 0x9f;
  return is_c1 ? 2 : 0;
}

static bool continues_a_character(char byte) { return ((unsigned char)byte & 0xc0u) == 0x80u; }  // of UTF-8

size_t gcap_printable_cut(const char* text, size_t limit) {
  size_t length = strnlen(text, limit + 1);
  if (length <= limit) return length;
  length = limit;
  while (length > 0 && continues_a_character(text[length])) --length;
  return length;
}

size_t gcap_printable(const char* from, char* to, size_t capacity) {
  size_t length = 0, written = 0;
  for (const unsigned char* at = (const unsigned char*)from; *at != '\0';) {
    char piece[16];  // two escaped bytes at most
    size_t taken = control_bytes(at), piece_length = 0;
    for (size_t i = 0; i < taken; ++i, piece_length += 4) snprintf(piece + 4 * i, 5, "\\x%02x", at[i]);
    if (taken == 0) {
      piece[piece_length++] = (char)at[taken++];
      while (taken < 4 && continues_a_character((char)at[taken])) piece[piece_length++] = (char)at[taken++];
    }
    at += taken;
    // Once a character did not fit, none behind it is written.
    if (written == length && length + piece_length < capacity) {
      memcpy(to + written, piece, piece_length);
      written += piece_length;
    }
    length += piece_length;
  }
  if (capacity > 0) to[written] = '\0';
  return length;
}
