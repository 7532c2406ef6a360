#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# With a folder as its argument the program draws a graph there, and prints what it prints without one.
#   drawing_test.sh graph_care
set -eu
"$1" >"$TEST_TMPDIR/expected"
"$1" "$TEST_TMPDIR" | diff -u "$TEST_TMPDIR/expected" -
drawing=$TEST_TMPDIR/batch_1.dot
grep -q '^digraph' "$drawing" || { echo "$drawing is no drawing of a graph" && exit 1; }
