#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The words of the public headers and of the pages: phrases that readers stumbled over do not come back. And each public
# function that returns a status lists its errors.
#   words_test.sh PAGE...
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

# check_phrases FILE
check_phrases() {
  prose "$1" >"$TEST_TMPDIR/prose"
  echo "$phrases" | sed -n 's/ \[\(.*\)\]$/|\1/p' | while read -r line; do
    # A phrase may have alternatives with the same separator: the advice follows the last one.
    grep -iE "${line%|*}" "$TEST_TMPDIR/prose" | sed "s|\$| -- write: ${line##*|}|" || true
  done >"$TEST_TMPDIR/found"
  [ ! -s "$TEST_TMPDIR/found" ] || fail "$1: $(cat "$TEST_TMPDIR/found")"
}

# check_errors HEADER
check_errors() {
  # status.h makes statuses, so a status that its functions return is no failure of theirs.
  [ "$(basename "$1")" != status.h ] || return 0
  awk '
    /^\/\// { if (/^\/\/   ([A-Z][A-Z_]+,?|others|errors of) /) listed = 1; next }
    /^GCAP_API gcap_status_t/ && !listed { sub(/\(.*/, "", $3); print $3 " lists no errors" }
    { listed = 0 }' "$1" >"$TEST_TMPDIR/found"
  [ ! -s "$TEST_TMPDIR/found" ] || fail "$1: $(cat "$TEST_TMPDIR/found")"
}

cd "$TEST_SRCDIR/$TEST_WORKSPACE"
headers=$(find -L include -name '*.h' | sort)
[ "$(echo "$headers" | wc -l)" -gt 15 ] || fail "there are no headers to read"
for header in $headers; do
  check_phrases "$header"
  check_errors "$header"
done
for page in "$@"; do
  check_phrases "$page"
done
exit $failed
