#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Each mistake is told with its call, its rule and its remedy, and the results are right.
#   main_test.sh broken_capture
set -eu
out=$TEST_TMPDIR/out
"$1" >"$out" 2>"$TEST_TMPDIR/err" || {
  cat "$out" "$TEST_TMPDIR/err"
  exit 1
}

expect() {
  grep -Eq -- "$1" "$out" && return
  echo "no line like '$1' in:"
  cat "$out"
  exit 1
}
expect 'cudaStreamSynchronize\(stream\).*broken_capture\.c:[0-9]+ broke it .*rule R11: .*remedy: '
expect 'cudaMalloc\(&temporary, BYTES\).*broken_capture\.c:[0-9]+ broke it .*rule R26: .*remedy: '
expect 'cudaStreamWaitEvent\(stream, bench->earlier, 0\).*broke it .*rule R17: .*remedy: '
expect 'never joined: stream 0x[0-9a-f]+ \(rule R6: .*remedy: '
[ "$(grep -c 'The results are right' "$out")" -eq 4 ]
