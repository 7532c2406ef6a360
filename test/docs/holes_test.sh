#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The example prints what the comment at the top of its source says, and the log says once which step a capture refused,
# which call at which line, by which rule, and what the hole costs.
#   holes_test.sh PROGRAM SOURCE
set -eu
program=$1
source=$2

sed -n '/^#include/q; s|^//     ||p' "$source" >"$TEST_TMPDIR/expected"
GCAP_SIM_CHECKS=leak=record "$program" >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/err" || {
  cat "$TEST_TMPDIR/out" "$TEST_TMPDIR/err" >&2
  exit 1
}
diff -u "$TEST_TMPDIR/expected" "$TEST_TMPDIR/out"
line=$(grep -n 'cudaStreamSynchronize(stream)' "$source" | head -n 1 | cut -d: -f1)
grep "a capture refused the step 'look at output'" "$TEST_TMPDIR/err" >"$TEST_TMPDIR/told" || true
[ "$(wc -l <"$TEST_TMPDIR/told")" -eq 1 ] || { cat "$TEST_TMPDIR/err" >&2 && exit 1; }
for part in "one launch and one call more (3 segments up to there)" \
  "cudaStreamSynchronize(stream) at examples/holes/holes.c:$line broke it (rule R11: "; do
  grep -qF "$part" "$TEST_TMPDIR/told" || { echo "missing in the log: $part" && cat "$TEST_TMPDIR/told" && exit 1; } >&2
done
