#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Each mistake is told with its call, its rule and its remedy, and the results are right.
# gcap-doctor says the same of the events that the program writes.
#   main_test.sh broken_capture gcap-doctor
set -eu
doctor=$2
out=$TEST_TMPDIR/out
"$1" "$TEST_TMPDIR" >"$out" 2>"$TEST_TMPDIR/err" || {
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

# explained NUMBER PATTERN...: each pattern is in the explanation of that mistake's events.
explained() {
  events=$TEST_TMPDIR/mistake_$1.events
  shift
  [ -s "$events" ] || { echo "there is no $events" && exit 1; }
  status=0
  "$doctor" explain "$events" >"$out" 2>&1 || status=$?
  [ "$status" -eq 1 ] || { echo "gcap-doctor ended with $status: expected 1, a finding" && cat "$out" && exit 1; }
  for pattern; do expect "$pattern"; done
}
explained 1 'cudaStreamSynchronize answered 900' 'C +.*broken_capture\.c:[0-9]+ \(broken_capture\)' 'rule +R11: '
explained 2 'cudaMalloc answered 900' 'C +.*broken_capture\.c:[0-9]+ \(broken_capture\)' 'rule +R26: '
explained 3 'cudaStreamWaitEvent answered 905' 'rule +R17: '
explained 4 'a fork that never came back' 'rule +R6: '
