// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The names in a mangled C++ name.
//
// The idea: a report wants a kernel's name and no types, and a demangler would link the C++ library into a program in
// C, to print five hundred characters of types, which would be cut away again. In a mangled name each identifier stands
// behind its length, and all that nests ends in an E: so one pass finds the function's name and the first names of
// its template arguments, and understands no types. What it does not know ends the reading; what was read until there
// is the name. Locking: none.
#include "doctor/report/mangled.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { kMaxNesting = 96 };

typedef struct scan {
  const char* at;
  gcap_doctor_mangled_t* names;
  char open[kMaxNesting];  // what is open: N names, I template arguments, L a literal, Z a local name, U a lambda, ...
  size_t num_open;
  const char* pending;  // the last identifier of the name that is open
  size_t pending_bytes;
  unsigned depth, outer_depth;  // of template arguments; of where `outer` was found
} scan_t;

static char top(const scan_t* scan) { return scan->num_open != 0 ? scan->open[scan->num_open - 1] : '\0'; }

// An identifier behind its length; false where the length is beyond the text.
static bool read_identifier(const char** at, const char** out_text, size_t* out_bytes) {
  size_t bytes = 0;
  while (isdigit((unsigned char)**at) && bytes < 100000) bytes = bytes * 10 + (size_t)(*(*at)++ - '0');
  if (bytes == 0 || strnlen(*at, bytes) < bytes) return false;
  *out_text = *at;
  *out_bytes = bytes;
  *at += bytes;
  return true;
}

static void skip_number(const char** at) {
  while (isdigit((unsigned char)**at) || isupper((unsigned char)**at)) ++*at;
  if (**at == '_') ++*at;
}

static void copy(char* to, const char* text, size_t bytes) {
  snprintf(to, GCAP_DOCTOR_MANGLED_BYTES, "%.*s",
           (int)(bytes < GCAP_DOCTOR_MANGLED_BYTES ? bytes : GCAP_DOCTOR_MANGLED_BYTES - 1), text);
}

// Appends a part of the function's own name. Unnamed namespaces say nothing.
static void append(gcap_doctor_mangled_t* names, const char* text, size_t bytes) {
  if (bytes >= 10 && strncmp(text, "_GLOBAL__N", 10) == 0) return;
  size_t length = strlen(names->name);
  snprintf(names->name + length, sizeof(names->name) - length, "%s%.*s", length != 0 ? "::" : "", (int)bytes, text);
}

// --- Template arguments ----------------------------------------------------------------------------------------------

// A name of a template argument is complete.
static void keep(scan_t* scan, const char* text, size_t bytes) {
  if (text == NULL || (bytes >= 10 && strncmp(text, "_GLOBAL__N", 10) == 0)) return;
  gcap_doctor_mangled_t* names = scan->names;
  if (names->outer[0] == '\0') {
    copy(names->outer, text, bytes);
    scan->outer_depth = scan->depth;
  } else if (names->inner[0] == '\0' && scan->outer_depth != 0) {
    if (scan->depth > scan->outer_depth) {
      copy(names->inner, text, bytes);
    } else {
      scan->outer_depth = 0;  // another argument: the first has no more names
    }
  }
}

static void keep_pending(scan_t* scan) {
  keep(scan, scan->pending, scan->pending_bytes);
  scan->pending = NULL;
}

static void push(scan_t* scan, char what) {
  if (what == 'I') {
    keep_pending(scan);
    ++scan->depth;
  }
  if (scan->num_open == kMaxNesting) {
    scan->at = "";
    return;
  }
  scan->open[scan->num_open++] = what;
}

// After the type of a literal comes its value.
static void end_literal(scan_t* scan) {
  if (top(scan) != 'L') return;
  while (*scan->at != '\0' && *scan->at != 'E') ++scan->at;
}

static void pop(scan_t* scan) {
  char was = top(scan);
  --scan->num_open;
  if (was == 'N') keep_pending(scan);
  if (was == 'I') --scan->depth;
  if (was == 'U') skip_number(&scan->at);  // lambdas are numbered
  if (was == 'N') end_literal(scan);
}

static void scan_identifier(scan_t* scan) {
  const char* text;
  size_t bytes;
  if (!read_identifier(&scan->at, &text, &bytes)) {
    scan->at = "";
  } else if (top(scan) == 'N') {
    scan->pending = text;
    scan->pending_bytes = bytes;
  } else if (top(scan) == 'L') {
    end_literal(scan);
  } else {
    // Its own template arguments, if any, come behind it and nest in it.
    keep(scan, text, bytes);
  }
}

static void scan_substitution(scan_t* scan) {
  if (*scan->at != '\0' && strchr("tabsiod", *scan->at) != NULL) {
    ++scan->at;
  } else {
    skip_number(&scan->at);
  }
  end_literal(scan);
}

static void scan_literal(scan_t* scan) {
  push(scan, 'L');
  if (strncmp(scan->at, "_Z", 2) == 0) {
    scan->at += 2;
    if (scan->num_open != 0) scan->open[scan->num_open - 1] = 'Z';  // a function's address
  } else if (islower((unsigned char)*scan->at)) {
    end_literal(scan);
  }
}

// Letters that take more than themselves; all others are types of one letter, qualifiers and operators.
static void scan_letter(scan_t* scan) {
  char letter = *scan->at++;
  switch (letter) {
    case 'N': push(scan, 'N'); break;
    case 'I':
    case 'J':
    case 'F':
    case 'X':
    case 'Z': push(scan, letter); break;
    case 'L': scan_literal(scan); break;
    case 'E': pop(scan); break;
    case 'S': scan_substitution(scan); break;
    case 'T':
    case 'A': skip_number(&scan->at); break;
    case 'B':
      if (isdigit((unsigned char)*scan->at)) {
        const char* text;
        size_t bytes;
        if (!read_identifier(&scan->at, &text, &bytes)) scan->at = "";
      }
      break;
    case 'U':
      if (*scan->at == 'l') {
        push(scan, 'U');
      } else if (*scan->at == 't') {
        ++scan->at;
        skip_number(&scan->at);
      }
      break;
    case 'D':
      if (*scan->at == 't' || *scan->at == 'T') push(scan, 'D');
      if (*scan->at != '\0') ++scan->at;
      break;
    case 'C':
      if (top(scan) == 'N' && isdigit((unsigned char)*scan->at)) ++scan->at;
      break;
    default: break;
  }
}

// From behind the I of the arguments to behind their E.
static const char* scan_arguments(gcap_doctor_mangled_t* names, const char* at) {
  names->outer[0] = names->inner[0] = '\0';
  scan_t scan = {.at = at, .names = names, .open = "I", .num_open = 1, .depth = 1};
  while (scan.num_open != 0 && *scan.at != '\0') {
    if (isdigit((unsigned char)*scan.at)) {
      scan_identifier(&scan);
    } else {
      scan_letter(&scan);
    }
  }
  return scan.at;
}

// --- The function's name ---------------------------------------------------------------------------------------------

// One part of a name; false at its end.
static bool read_part(gcap_doctor_mangled_t* names, const char** at) {
  const char* text;
  size_t bytes;
  if (isdigit((unsigned char)**at)) {
    if (!read_identifier(at, &text, &bytes)) return false;
    append(names, text, bytes);
    names->outer[0] = names->inner[0] = '\0';
    return true;
  }
  switch (**at) {
    case 'L': ++*at; return true;  // of internal linkage
    case 'I': *at = scan_arguments(names, *at + 1); return true;
    case 'S':
      ++*at;
      if (**at == 't') append(names, "std", 3);
      if (**at != '\0' && strchr("tabsiod", **at) != NULL) {
        ++*at;
      } else {
        skip_number(at);
      }
      return true;
    case 'B': ++*at; return read_identifier(at, &text, &bytes);
    case 'U': append(names, "lambda", 6); return false;
    default:
      if (islower((unsigned char)**at)) append(names, "operator", 8);
      return false;
  }
}

bool gcap_doctor_mangled_read(const char* symbol, gcap_doctor_mangled_t* out_names) {
  memset(out_names, 0, sizeof(*out_names));
  if (strncmp(symbol, "_Z", 2) != 0) return false;
  const char* at = symbol + 2;
  while (*at == 'Z') ++at;  // what is local to a function is called after it
  if (*at == 'N') {
    ++at;
    while (*at != '\0' && strchr("rVKRO", *at) != NULL) ++at;
    while (read_part(out_names, &at)) {
    }
  } else {
    if (*at == 'L') ++at;
    if (strncmp(at, "St", 2) == 0 && !read_part(out_names, &at)) return false;
    if (!isdigit((unsigned char)*at) || !read_part(out_names, &at)) return false;
    if (*at == 'I') scan_arguments(out_names, at + 1);
  }
  return out_names->name[0] != '\0';
}
