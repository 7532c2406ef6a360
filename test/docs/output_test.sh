#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The program prints what the comment at the top of its source says, and leaves nothing behind.
#   output_test.sh PROGRAM SOURCE
set -eu
program=$1
source=$2

sed -n '/^#include/q; s|^//     ||p' "$source" >"$TEST_TMPDIR/expected"
[ -s "$TEST_TMPDIR/expected" ] || { echo "the comment at the top of $source shows no output" >&2 && exit 1; }
GCAP_SIM_CHECKS=leak=record "$program" >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/err" || {
  cat "$TEST_TMPDIR/out" "$TEST_TMPDIR/err" >&2
  exit 1
}
diff -u "$TEST_TMPDIR/expected" "$TEST_TMPDIR/out"
diff -u /dev/null "$TEST_TMPDIR/err"
