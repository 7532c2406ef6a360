#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The code on a page is that of the example, line for line.
#   code_test.sh PAGE SOURCE...
set -eu
cd "$TEST_SRCDIR/$TEST_WORKSPACE"
page=$1
shift
# Each block goes to a file of its own.
awk -v folder="$TEST_TMPDIR" '
  /^```(c|cuda)$/ { file = sprintf("%s/block.%02d", folder, ++count); next }
  /^```/ { file = "" }
  file != "" { print > file }' "$page"
num_blocks=0
for block in "$TEST_TMPDIR"/block.*; do
  num_blocks=$((num_blocks + 1))
  cat "$@" | awk -v first="$(head -n 1 "$block")" -v count="$(wc -l <"$block")" '
    $0 == first { begun = 1 }
    begun && count-- > 0' | diff -u "$block" - || { echo "FAILED: '-' is $page, '+' is the example" && exit 1; }
done
[ "$num_blocks" -ge 4 ] || { echo "FAILED: $page has $num_blocks blocks" && exit 1; }
