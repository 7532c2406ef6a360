// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads a pack line by line. A name must come after the one before: that is the order, and no name is there twice.
#include "test/fuzz/pack.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A pack that is read.
typedef struct pack_reader {
  const char* path;
  int line;
  fuzz_pack_take_t take;
  void* context;
  char* error;
} pack_reader_t;

__attribute__((format(printf, 2, 3))) static bool refuse(const pack_reader_t* pack, const char* format, ...) {
  const int bytes = snprintf(pack->error, FUZZ_PACK_ERROR_BYTES / 2, "%s:%d: ", pack->path, pack->line);
  va_list arguments;
  va_start(arguments, format);
  if (bytes < FUZZ_PACK_ERROR_BYTES / 2) vsnprintf(pack->error + bytes, FUZZ_PACK_ERROR_BYTES / 2, format, arguments);
  va_end(arguments);
  return false;
}

bool fuzz_pack_name_is_good(const char* name) {
  const size_t bytes = strlen(name);
  if (bytes > 64 || !isalnum((unsigned char)name[0])) return false;
  for (size_t i = 1; i < bytes; ++i) {
    if (!isalnum((unsigned char)name[i]) && strchr("_-.", name[i]) == NULL) return false;
  }
  return true;
}

char* fuzz_pack_read_file(const char* path, size_t* bytes, char error[FUZZ_PACK_ERROR_BYTES]) {
  FILE* file = fopen(path, "rb");
  char* text = file != NULL ? malloc(FUZZ_PACK_MAX_BYTES + 1) : NULL;
  *bytes = text != NULL ? fread(text, 1, FUZZ_PACK_MAX_BYTES + 1, file) : 0;
  const bool read = text != NULL && !ferror(file);
  if (!read) snprintf(error, FUZZ_PACK_ERROR_BYTES, "%s cannot be read: %s", path, strerror(errno));
  if (file != NULL) fclose(file);
  const bool fits = *bytes <= FUZZ_PACK_MAX_BYTES;
  if (!fits) snprintf(error, FUZZ_PACK_ERROR_BYTES, "%s has more than %zu bytes", path, FUZZ_PACK_MAX_BYTES);
  char* const exact = read && fits ? realloc(text, *bytes > 0 ? *bytes : 1) : NULL;
  if (exact == NULL) free(text);
  return exact;
}

static int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

// Gives the input of one line, whose digits end in a zero.
static bool read_input(const pack_reader_t* pack, const char* name, const char* hex, size_t digits) {
  const size_t good = strspn(hex, "0123456789abcdef");
  if (good < digits) {
    return refuse(pack, "'%s' has the character of code %d, where only 0 to 9 and a to f are hex digits", name,
                  (unsigned char)hex[good]);
  }
  if (digits % 2 != 0) return refuse(pack, "'%s' has %zu hex digits, which is odd", name, digits);
  uint8_t* const data = malloc(digits > 0 ? digits / 2 : 1);
  if (data == NULL) return refuse(pack, "no memory for the %zu bytes of '%s'", digits / 2, name);
  for (size_t i = 0; i < digits; i += 2) data[i / 2] = (uint8_t)(digit(hex[i]) << 4 | digit(hex[i + 1]));
  pack->take(pack->context, name, data, digits / 2);
  free(data);
  return true;
}

static bool read_lines(pack_reader_t* pack, char* at, const char* text_end) {
  const size_t heading = strlen(FUZZ_PACK_HEADING);
  if ((size_t)(text_end - at) < heading || memcmp(at, FUZZ_PACK_HEADING, heading) != 0) {
    return refuse(pack, "the heading of a pack is '%.*s'", (int)heading - 1, FUZZ_PACK_HEADING);
  }
  at += heading;
  const char* last = "";
  for (pack->line = 2;; ++pack->line) {
    char* const end = memchr(at, '\n', (size_t)(text_end - at));
    if (end == NULL) return refuse(pack, "the pack is cut off: its last line is 'end'");
    *end = '\0';
    if (strcmp(at, "end") == 0) return end + 1 == text_end || refuse(pack, "there is more behind the last line, 'end'");
    char* const colon = strchr(at, ':');
    if (colon == NULL) return refuse(pack, "there is no colon between a name and its bytes");
    *colon = '\0';
    if (!fuzz_pack_name_is_good(at)) {
      return refuse(pack, "'%.80s' is no name of an input: %s", at, FUZZ_PACK_NAME_RULE);
    }
    const int order = strcmp(last, at);
    if (order == 0) return refuse(pack, "'%s' is there twice", at);
    if (order > 0) return refuse(pack, "'%s' stands behind '%s', and names are sorted", at, last);
    if (!read_input(pack, at, colon + 1, (size_t)(end - colon - 1))) return false;
    last = at;
    at = end + 1;
  }
}

bool fuzz_pack_read(const char* path, fuzz_pack_take_t take, void* context, char error[FUZZ_PACK_ERROR_BYTES]) {
  size_t bytes;
  char* const text = fuzz_pack_read_file(path, &bytes, error);
  if (text == NULL) return false;
  pack_reader_t pack = {path, 1, take, context, error};
  const bool read = read_lines(&pack, text, text + bytes);
  free(text);
  return read;
}
