// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The file is: 6 magic bytes, a version (major, minor), the header's length (2 bytes in version 1, else 4, little
// endian), the header, the elements. The header is a Python dictionary as text: {'descr': '<f4', 'fortran_order':
// False, 'shape': (360, 1, 8, 8), } padded with spaces up to a newline. The idea: believe nothing before it is
// checked. The elements' size follows from the header and is compared with the file's own size before anything that
// large is allocated, and every sum and product is checked. One path out: the first failure writes the sentence.
// No locking: no state outlives a call.
#include "examples/minimal_ep/digits/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC_BYTES 6
#define PREAMBLE_BYTES 8   // magic and version
#define ELEMENT_BYTES 4    // of both dtypes
#define MAX_WORD_BYTES 16  // longer keys and type names are none of ours

// NumPy's own limit for headers that it reads without being told to trust them.
#define MAX_HEADER_BYTES 10000

static const unsigned char kMagic[MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

// The file being read, and where its failure is told.
typedef struct reader {
  FILE* file;
  const char* path;
  int64_t file_bytes;
  int64_t offset;  // bytes read so far
  char* error;
  size_t error_bytes;
} reader_t;

// What a header says.
typedef struct header {
  char descr[MAX_WORD_BYTES + 1];
  bool fortran_order;
  size_t rank;
  int64_t shape[NPY_MAX_RANK];
} header_t;

// The keys of a header, as bits.
enum { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, KEY_ALL = 7 };

// A position in the header's text, which no NUL ends.
typedef struct cursor {
  const char* at;
  const char* end;
} cursor_t;

// Writes "<path>: <message>" and returns -1.
__attribute__((format(printf, 2, 3))) static int fail(const reader_t* reader, const char* format, ...) {
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  if (reader->error_bytes > 0) snprintf(reader->error, reader->error_bytes, "%s: %s", reader->path, message);
  return -1;
}

static int read_bytes(reader_t* reader, void* out, size_t bytes, const char* what) {
  const size_t found = fread(out, 1, bytes, reader->file);
  reader->offset += (int64_t)found;
  if (found == bytes) return 0;
  if (ferror(reader->file)) return fail(reader, "cannot read %s: %s", what, strerror(errno));
  return fail(reader, "truncated: the file ends at byte %lld, expected %zu more bytes of %s", (long long)reader->offset,
              bytes - found, what);
}

// ---- The header's text ----

static void skip_spaces(cursor_t* cursor) {
  while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\n')) ++cursor->at;
}

// Skips spaces and takes `token` if it comes next.
static bool take(cursor_t* cursor, const char* token) {
  skip_spaces(cursor);
  const size_t bytes = strlen(token);
  if ((size_t)(cursor->end - cursor->at) < bytes || memcmp(cursor->at, token, bytes) != 0) return false;
  cursor->at += bytes;
  return true;
}

// Takes a quoted string of printable characters without escapes.
static bool take_string(cursor_t* cursor, char* out, size_t capacity) {
  const char quote = take(cursor, "'") ? '\'' : '"';
  if (quote == '"' && !take(cursor, "\"")) return false;
  size_t bytes = 0;
  for (; cursor->at < cursor->end && *cursor->at != quote; ++cursor->at) {
    const char c = *cursor->at;
    if (c < ' ' || c > '~' || c == '\\' || bytes + 1 == capacity) return false;
    out[bytes++] = c;
  }
  out[bytes] = '\0';
  return take(cursor, quote == '"' ? "\"" : "'");
}

// Takes a decimal number without sign or leading zeros, below 2^63.
static bool take_number(cursor_t* cursor, int64_t* out) {
  skip_spaces(cursor);
  const char* start = cursor->at;
  int64_t value = 0;
  for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; ++cursor->at) {
    const int64_t digit = *cursor->at - '0';
    if (value > (INT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return cursor->at > start && !(*start == '0' && cursor->at - start > 1);
}

// Takes (), (3,), (3, 4) or (3, 4,).
static bool take_shape(cursor_t* cursor, header_t* header) {
  header->rank = 0;
  if (!take(cursor, "(")) return false;
  bool comma = true;  // a number may follow
  while (!take(cursor, ")")) {
    if (!comma || header->rank == NPY_MAX_RANK) return false;
    if (!take_number(cursor, &header->shape[header->rank++])) return false;
    comma = take(cursor, ",");
  }
  return header->rank != 1 || comma;  // (3) is a number to Python
}

static bool take_bool(cursor_t* cursor, bool* out) {
  *out = take(cursor, "True");
  return *out || take(cursor, "False");
}

// Takes one key and its value. `*seen` has a bit for each key, so that none comes twice.
static bool take_entry(cursor_t* cursor, header_t* header, unsigned* seen) {
  char key[MAX_WORD_BYTES + 1];
  if (!take_string(cursor, key, sizeof key) || !take(cursor, ":")) return false;
  unsigned bit = 0;
  bool ok = false;
  if (strcmp(key, "descr") == 0) {
    bit = KEY_DESCR;
    ok = take_string(cursor, header->descr, sizeof header->descr);
  } else if (strcmp(key, "fortran_order") == 0) {
    bit = KEY_ORDER;
    ok = take_bool(cursor, &header->fortran_order);
  } else if (strcmp(key, "shape") == 0) {
    bit = KEY_SHAPE;
    ok = take_shape(cursor, header);
  }
  if (!ok || (*seen & bit)) return false;
  *seen |= bit;
  return true;
}

static bool parse_header(cursor_t cursor, header_t* header) {
  const bool has_newline = cursor.end > cursor.at && cursor.end[-1] == '\n';
  unsigned seen = 0;
  if (!take(&cursor, "{")) return false;
  bool comma = true;  // an entry may follow
  while (!take(&cursor, "}")) {
    if (!comma || !take_entry(&cursor, header, &seen)) return false;
    comma = take(&cursor, ",");
  }
  skip_spaces(&cursor);
  return seen == KEY_ALL && cursor.at == cursor.end && has_newline;
}

// Copies text of unknown origin so that it can be shown: at most `capacity` - 1 characters, all printable, and none of
// the padding at its end.
static void printable(const char* text, size_t bytes, char* out, size_t capacity) {
  while (bytes > 0 && (text[bytes - 1] == ' ' || text[bytes - 1] == '\n')) --bytes;
  size_t i = 0;
  for (; i < bytes && i + 1 < capacity; ++i) out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
  out[i] = '\0';
}

// ---- The file ----

static int read_preamble(reader_t* reader, size_t* out_header_bytes) {
  unsigned char bytes[PREAMBLE_BYTES];
  if (read_bytes(reader, bytes, sizeof bytes, "the magic and the version")) return -1;
  if (memcmp(bytes, kMagic, MAGIC_BYTES) != 0) {
    return fail(reader,
                "not an .npy file: it starts with bytes %02x %02x %02x %02x %02x %02x, expected 93 4e 55 4d 50 59",
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]);
  }
  const unsigned major = bytes[6];
  const unsigned minor = bytes[7];
  if (major < 1 || major > 3 || minor != 0) {
    return fail(reader, "format version is %u.%u, expected 1.0, 2.0 or 3.0", major, minor);
  }
  unsigned char length[4] = {0};
  if (read_bytes(reader, length, major == 1 ? 2 : 4, "the header's length")) return -1;
  const size_t header_bytes =
      (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
  if (header_bytes > MAX_HEADER_BYTES) {
    return fail(reader, "the header's length is %zu bytes, expected at most %d", header_bytes, MAX_HEADER_BYTES);
  }
  *out_header_bytes = header_bytes;
  return 0;
}

static int read_header(reader_t* reader, header_t* out_header) {
  memset(out_header, 0, sizeof *out_header);
  size_t bytes = 0;
  if (read_preamble(reader, &bytes)) return -1;
  char text[MAX_HEADER_BYTES];
  if (read_bytes(reader, text, bytes, "the header")) return -1;
  if (parse_header((cursor_t){text, text + bytes}, out_header)) return 0;
  char shown[100];
  printable(text, bytes, shown, sizeof shown);
  return fail(reader,
              "malformed header \"%s\", expected a dictionary of descr (a string), fortran_order (True or False) and "
              "shape (a tuple of at most %d lengths below 2^63), then a newline",
              shown, NPY_MAX_RANK);
}

// A shape as Python writes it, with * for NPY_ANY. Every rank up to NPY_MAX_RANK fits.
typedef struct shape_text {
  char text[NPY_MAX_RANK * 22 + 4];
} shape_text_t;

static shape_text_t format_shape(const int64_t* shape, size_t rank) {
  shape_text_t out = {"("};
  size_t used = 1;
  for (size_t i = 0; i < rank; ++i) {
    char length[21] = "*";
    if (shape[i] != NPY_ANY) snprintf(length, sizeof length, "%lld", (long long)shape[i]);
    used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%s", i == 0 ? "" : ", ", length);
  }
  snprintf(out.text + used, sizeof out.text - used, rank == 1 ? ",)" : ")");
  return out;
}

static int check_type(const reader_t* reader, const header_t* header, npy_dtype_t dtype) {
  const char* expected = dtype == NPY_FLOAT32 ? "<f4" : "<i4";
  if (strcmp(header->descr, expected) != 0) {
    return fail(reader, "the dtype is '%s', expected '%s'", header->descr, expected);
  }
  if (header->fortran_order) return fail(reader, "the array is in Fortran order, expected C order");
  return 0;
}

static int check_shape(const reader_t* reader, const header_t* header, const int64_t* expected, size_t rank) {
  bool same = header->rank == rank;
  for (size_t i = 0; same && i < rank; ++i) {
    same = expected[i] == NPY_ANY ? header->shape[i] >= 1 : header->shape[i] == expected[i];
  }
  if (same) return 0;
  return fail(reader, "the shape is %s, expected %s", format_shape(header->shape, header->rank).text,
              format_shape(expected, rank).text);
}

// Fills rank, shape and count, once the file is known to hold exactly so many elements.
static int check_size(const reader_t* reader, const header_t* header, npy_array_t* array) {
  const shape_text_t shape = format_shape(header->shape, header->rank);
  int64_t bytes = ELEMENT_BYTES;
  for (size_t i = 0; i < header->rank; ++i) {
    const int64_t length = header->shape[i];
    if (length > 0 && bytes > INT64_MAX / length) {
      return fail(reader, "the shape %s has 2^63 bytes or more, expected what the file can hold", shape.text);
    }
    bytes *= length;
    array->shape[i] = (size_t)length;
  }
  const int64_t found = reader->file_bytes - reader->offset;
  if (found < bytes) {
    return fail(reader, "truncated: %lld bytes of elements, expected %lld for shape %s", (long long)found,
                (long long)bytes, shape.text);
  }
  if (found > bytes) {
    return fail(reader, "%lld bytes after the last element, expected none for shape %s", (long long)(found - bytes),
                shape.text);
  }
  array->rank = header->rank;
  array->count = (size_t)bytes / ELEMENT_BYTES;
  return 0;
}

// Turns little-endian elements into the machine's own order, in place.
static void decode(unsigned char* bytes, size_t count) {
  for (; count > 0; --count, bytes += ELEMENT_BYTES) {
    const uint32_t value =
        (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    memcpy(bytes, &value, ELEMENT_BYTES);
  }
}

static int read_elements(reader_t* reader, npy_array_t* array) {
  const size_t bytes = array->count * ELEMENT_BYTES;
  array->data = malloc(bytes > 0 ? bytes : 1);
  if (array->data == NULL) return fail(reader, "cannot allocate the %zu bytes of its elements", bytes);
  if (read_bytes(reader, array->data, bytes, "elements")) return -1;
  decode(array->data, array->count);
  if (array->dtype != NPY_FLOAT32) return 0;
  const float* values = array->data;
  for (size_t i = 0; i < array->count; ++i) {
    if (!isfinite(values[i])) return fail(reader, "element %zu is %g, expected a finite number", i, (double)values[i]);
  }
  return 0;
}

// Opens a regular file; anything else could block or have no end.
static int open_file(reader_t* reader) {
  const int descriptor = open(reader->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return fail(reader, "cannot open: %s", strerror(errno));
  struct stat info;
  if (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode)) {
    reader->file_bytes = info.st_size;
    reader->file = fdopen(descriptor, "rb");
    if (reader->file != NULL) return 0;
    fail(reader, "cannot open: %s", strerror(errno));
  } else {
    fail(reader, "not a regular file, expected an .npy file");
  }
  close(descriptor);
  return -1;
}

static int read_file(reader_t* reader, npy_dtype_t dtype, const int64_t* expected_shape, size_t rank,
                     npy_array_t* array) {
  header_t header;
  array->dtype = dtype;
  if (read_header(reader, &header)) return -1;
  if (check_type(reader, &header, dtype)) return -1;
  if (check_shape(reader, &header, expected_shape, rank)) return -1;
  if (check_size(reader, &header, array)) return -1;
  return read_elements(reader, array);
}

int npy_load(const char* path, npy_dtype_t dtype, const int64_t* expected_shape, size_t rank, npy_array_t* out_array,
             char* error, size_t error_bytes) {
  reader_t reader = {.path = path, .error = error, .error_bytes = error_bytes};
  memset(out_array, 0, sizeof *out_array);
  if (error_bytes > 0) error[0] = '\0';
  if (rank > NPY_MAX_RANK) return fail(&reader, "rank %zu was asked for, expected at most %d", rank, NPY_MAX_RANK);
  if (open_file(&reader)) return -1;
  const int result = read_file(&reader, dtype, expected_shape, rank, out_array);
  fclose(reader.file);
  if (result) npy_free(out_array);
  return result;
}

void npy_free(npy_array_t* array) {
  free(array->data);
  memset(array, 0, sizeof *array);
}
