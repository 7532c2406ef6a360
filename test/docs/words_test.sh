#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The words of the public headers and of the pages: phrases that readers stumbled over do not come back. And each public
# function that returns a status lists its errors, in a table that no formatter has moved (error_tables.awk); nor has it
# any other table (column_tables.awk).
#   words_test.sh ERROR_TABLES COLUMN_TABLES PAGE...
# The headers lie below the current folder.
set -eu
failed=0

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

# A phrase, and in brackets what to write.
phrases='
nobody knows [unknown]
for ever\> [until the process ends]
whoever [name the one]
all the same [name what happens nevertheless]
goes on [stays open, continues]
\<(he|his|him)\> [the caller, its]
\<(is|are|be) asked\> [is queried, is requested]
\<(tells|tell) [returns, says whether]
\<has ready\> [has prepared]
\<needs? (it|them)? ?not\> [does not need]
\<as it was before\> [before …]
\<some day\> [later]
synchronis [synchroniz-, as CUDA spells it]
initialis [initializ-]
'

# prose FILE: what a person reads of it, as "line: text": comments of a header, a page without its code.
prose() {
  awk '
    FILENAME ~ /\.h$/ { if (sub(/^.*\/\//, "//")) print FNR ": " $0; next }
    /^```/ { code = !code }
    !code && !/^    / { gsub(/`[^`]*`/, "`…`"); print FNR ": " $0 }' "$1"
}

any_phrase=$(echo "$phrases" | sed -n 's/ \[.*\]$//p' | paste -s -d '|' -)

# check_phrases FILE
check_phrases() {
  prose "$1" >"$TEST_TMPDIR/prose"
  grep -qiE "$any_phrase" "$TEST_TMPDIR/prose" || return 0
  echo "$phrases" | sed -n 's/ \[\(.*\)\]$/|\1/p' | while read -r line; do
    # A phrase may have alternatives with the same separator: the advice follows the last one.
    grep -iE "${line%|*}" "$TEST_TMPDIR/prose" | sed "s|\$| -- write: ${line##*|}|" || true
  done >"$TEST_TMPDIR/found"
  [ ! -s "$TEST_TMPDIR/found" ] || fail "$1: $(cat "$TEST_TMPDIR/found")"
}

# errors_of HEADER: what is wrong with the tables of errors. status.h makes statuses, so a status that its functions
# return is no failure of theirs.
errors_of() {
  [ "$(basename "$1")" = status.h ] || awk -f "$error_tables" include/gcap/status.h "$1"
}

# check_tables HEADER
check_tables() {
  errors_of "$1" >"$TEST_TMPDIR/found"
  awk -f "$column_tables" "$1" >>"$TEST_TMPDIR/found"
  [ ! -s "$TEST_TMPDIR/found" ] || fail "$1: $(cat "$TEST_TMPDIR/found")"
}

# expect_found WHAT: standard input is a header of which the tables' checks must say WHAT; "" for nothing.
expect_found() {
  cat >"$TEST_TMPDIR/sample.h"
  found=$(errors_of "$TEST_TMPDIR/sample.h"; awk -f "$column_tables" "$TEST_TMPDIR/sample.h")
  case $found in
    *"$1"*) [ -n "$1" ] || [ -z "$found" ] || fail "a good table: $found" ;;
    *) fail "'$1' was not found, but '$found'" ;;
  esac
}

# The check itself, by tables that are as they should be and tables that a formatter ate.
check_the_check() {
  expect_found "" <<'SAMPLE'
// Does it.
//   INVALID_ARGUMENT     NULL, or no such
//                        device
//   CUDA_ERROR, LEAKED   the runtime refused
//   others               as gcap_b
// Also what it returns.
GCAP_API gcap_status_t gcap_a(int a);
//   errors of gcap_a
GCAP_API gcap_status_t gcap_b(int a);
SAMPLE
  expect_found "gcap_a lists no errors" <<'SAMPLE'
// Does it. INVALID_ARGUMENT if it cannot.
GCAP_API gcap_status_t gcap_a(int a);
SAMPLE
  expect_found "gcap_b lists no errors" <<'SAMPLE'
//   INVALID_ARGUMENT  NULL
GCAP_API gcap_status_t gcap_a(int a);
GCAP_API gcap_status_t gcap_b(int a);
SAMPLE
  expect_found "holds a row that a formatter moved" <<'SAMPLE'
//   INVALID_ARGUMENT     NULL, or no such device FAILED_PRECONDITION  there is no context yet
GCAP_API gcap_status_t gcap_a(int a);
SAMPLE
  expect_found "holds a row that a formatter moved" <<'SAMPLE'
//   INVALID_ARGUMENT  NULL
// Frees it. CUDA_ERROR           the runtime refused
GCAP_API gcap_status_t gcap_a(int a);
SAMPLE
  expect_found "is not in the column of its table" <<'SAMPLE'
//   INVALID_ARGUMENT  NULL
//   CUDA_ERROR  the runtime refused
GCAP_API gcap_status_t gcap_a(int a);
SAMPLE
  expect_found "is neither a row nor in the column" <<'SAMPLE'
//   INVALID_ARGUMENT  NULL, or no
//   such device
GCAP_API gcap_status_t gcap_a(int a);
SAMPLE
  expect_found "is no code of status.h: BAD_ARGUMENT" <<'SAMPLE'
//   BAD_ARGUMENT  NULL
GCAP_API gcap_status_t gcap_a(int a);
SAMPLE
  expect_found "is listed twice" <<'SAMPLE'
//   CUDA_ERROR  NULL
//   CUDA_ERROR  not NULL
GCAP_API gcap_status_t gcap_a(int a);
SAMPLE
  expect_found "" <<'SAMPLE'
// No table:
//   one  two
//
//   op             types   what is honored
//   Add, Sub       any     nothing
//   Clip           floats  min,
//                          max                a further column
//   Reshape, Flatten any   nothing
//   Squeeze        any
SAMPLE
  expect_found "column 21 is none of the table's" <<'SAMPLE'
//   op       types   what is honored
//   Clip     floats  min, max: inputs or attributes (opset
//   6) Softmax     floats  axis
SAMPLE
  expect_found "is longer than 120" <<'SAMPLE'
//   op       types   what is honored
//   Clip     floats  min, max: inputs on the host, or attributes (opset 6), or what else has the word for a bound of a range
SAMPLE
  expect_found "a row of one column" <<'SAMPLE'
//   op       types   what is honored
//   Cast     any     to, if given, is the type. To
//   an
//                    integer: toward zero
SAMPLE
}

cd "$TEST_SRCDIR/$TEST_WORKSPACE"
error_tables=$1
column_tables=$2
shift 2
check_the_check
headers=$(find -L include -name '*.h' | sort)
[ "$(echo "$headers" | wc -l)" -gt 15 ] || fail "there are no headers to read"
for header in $headers; do
  check_phrases "$header"
  check_tables "$header"
done
for page in "$@"; do
  check_phrases "$page"
done
exit $failed
